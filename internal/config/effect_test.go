package config_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/config"
)

func TestSettingsInEffect(t *testing.T) {
	_, result, _, err := parse(t, []string{"--log-level", "warn", "run"}, required(
		"PROXIMA_INSTALL_TOKEN=pit_hunter22", "PROXIMA_LOG_LEVEL=debug", "PROXIMA_K8S_POD_LIMIT=", "PROXIMA_KUBE_ACCESS_ENABLED=true",
		"PROXIMA_K8S_EXCLUDE_NAMESPACES=a, b", "PROXIMA_NATS_URL=nats://ann:hunter22@a:4222,tls://hunter22@b:4222,wss://c/nats?jwt=hunter22",
	))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteByte('\n')
	for _, s := range result.Settings {
		fmt.Fprintf(&b, "%s | %s | %s | %s | %s\n", s.Group, s.Variable, s.Flag, s.Value, s.Source)
		if s.Secret != (s.Flag == "install-token") || s.Help == "" {
			t.Errorf("%s: secret %v, help %q", s.Flag, s.Secret, s.Help)
		}
	}
	const want = `
Identity | PROXIMA_CLUSTER_NAME | cluster-name | Prod EU | environment
Identity | PROXIMA_BACKEND_URL | backend-url | https://console.example | environment
Identity | PROXIMA_INSTALL_TOKEN | install-token | set | environment
Work | PROXIMA_K8S_SYNC_INTERVAL | sync-interval | 5m | default
Work | PROXIMA_LOG_LEVEL | log-level | warn | flag
Work | PROXIMA_K8S_EXCLUDE_NAMESPACES | exclude | a, b | environment
Work | PROXIMA_NATS_URL | nats-url | nats://***@a:4222, tls://***@b:4222, wss://c/nats?*** | environment
Work | PROXIMA_KUBE_ACCESS_ENABLED | kube-access | true | environment
Work | POD_NAME | pod-name |  | default
Work | PROXIMA_K8S_POD_LIMIT | pod-limit | 5000 | default
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text := fmt.Sprintf("%+v", *result); strings.Contains(text, "hunter22") {
		t.Errorf("a secret is shown: %s", text)
	}
}

func TestASecretThatIsNotSet(t *testing.T) {
	var cfg struct {
		Token config.Secret `name:"token" env:"PROXIMA_TOKEN" help:"A token."`
		Both  string        `name:"both" env:"PROXIMA_NEW,PROXIMA_OLD" help:"Two names."`
	}
	var out bytes.Buffer
	result, err := config.Parse(program(), &cfg, nil, []string{"PROXIMA_OLD=x"}, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Setting{
		{Variable: "PROXIMA_TOKEN", Flag: "token", Group: "General", Value: "not set", Secret: true, Source: config.FromDefault, Help: "A token."},
		{Variable: "PROXIMA_OLD", Flag: "both", Group: "General", Value: "x", Source: config.FromEnvironment, Help: "Two names."},
	}
	if diff := cmp.Diff(want, result.Settings); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMasked(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "info": "info", "ann@example.com": "ann@example.com", "/var/lib/proxima": "/var/lib/proxima",
		"https://host:8443/a":                      "https://host:8443/a",
		"postgres://u:p@host:5432/db?sslmode=none": "postgres://***@host:5432/db?***",
		"nats://token@host":                        "nats://***@host",
		"nats://u:p@q@host":                        "nats://***@host",
		"https://u:p@host/a@b":                     "https://***@host/a@b",
		"https://host/#p":                          "https://host/?***",
		"nats://u:%zz@host":                        "nats://***",
	} {
		if got := config.Masked(text); got != want {
			t.Errorf("Masked(%q) = %q, want %q", text, got, want)
		}
	}
}
