package e2e

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/agent/cluster"
	"prxm.uz/proxima/internal/console"
	"prxm.uz/proxima/test/harness"
)

// badSetting is a value with which a program does not start. What it says holds the variable, the value and a
// form that works.
type badSetting struct {
	variable, value string
	// beside is set too: what the variable needs to be looked at.
	beside map[string]string
	args   []string
	exit   int
	// shown is the part of the value that is shown; "" is all of it.
	shown string
	form  string
	// secret is never shown.
	secret string
}

const usage, failure = 2, 1

func badConsoleSettings() []badSetting {
	tls := map[string]string{"PROXIMA_TLS_KEY_FILE": "/nowhere/tls.key"}
	return []badSetting{
		{variable: "PROXIMA_DATA_DIR", value: "/proc/x", exit: failure, form: "such as /var/lib/proxima"},
		{variable: "PROXIMA_DATA_DIR", value: "/dev/null", exit: failure, form: "such as /var/lib/proxima"},
		{variable: "PROXIMA_LISTEN_ADDR", value: "8080", exit: usage, form: "host:port, such as 0.0.0.0:8080"},
		{variable: "PROXIMA_LISTEN_ADDR", value: "192.0.2.1:8080", exit: failure, form: "such as 127.0.0.1:8080"},
		{variable: "PROXIMA_PUBLIC_URL", value: "console.example", exit: usage, form: "https://host"},
		{variable: "PROXIMA_PUBLIC_URL", value: "https://console.example/proxima", exit: usage, form: "write https://console.example"},
		{variable: "PROXIMA_TRUSTED_PROXIES", value: "10.0.0.0/8,proxy", shown: "proxy", exit: usage, form: "10.0.0.0/8"},
		{variable: "PROXIMA_TLS_CERT_FILE", value: "/dev/null", exit: usage, shown: "PROXIMA_TLS_KEY_FILE", form: "go together"},
		{variable: "PROXIMA_TLS_CERT_FILE", value: "/nowhere/tls.crt", beside: tls, exit: failure, form: "PEM file of the certificate with its chain"},
		{variable: "PROXIMA_TLS_KEY_FILE", value: "/dev/null", beside: map[string]string{"PROXIMA_TLS_CERT_FILE": "/dev/null"}, exit: failure, form: "one of the key that belongs to it"},
		{variable: "PROXIMA_METRICS_ADDR", value: "9090", exit: usage, form: "host:port"},
		{variable: "PROXIMA_METRICS_ADDR", value: "192.0.2.1:9090", exit: failure, form: "such as 127.0.0.1:8080"},
		{variable: "PROXIMA_DATABASE_URL", value: "mysql://root:hunter22@db/console", exit: usage, shown: "postgres://", form: "postgres://user:password@host:5432/name", secret: "hunter22"},
		{variable: "PROXIMA_DATABASE_URL", value: "postgres://root:hunter22@127.0.0.1:1/console", exit: failure, shown: "127.0.0.1", form: "postgres://user:password@host:5432/name", secret: "hunter22"},
		{variable: "PROXIMA_DATABASE_URL", value: "postgres://root:hun/ter22@db/console", exit: failure, shown: "cannot be read", form: "postgres://user:password@host:5432/name", secret: "hun"},
		{variable: "PROXIMA_DATABASE_URL", value: "postgres://root:12/hunter22@127.0.0.1:1/console", exit: failure, shown: "more than one @, or one behind", form: "postgres://user:password@host:5432/name", secret: "hunter22"},
		{variable: "PROXIMA_DATABASE_URL", value: "postgres://root:hun%ter22@db/console", exit: failure, shown: "cannot be read", form: "postgres://user:password@host:5432/name", secret: "ter22"},
		{variable: "PROXIMA_DATABASE_URL", value: "postgres://root:hunter22@db/console?sslmode=maybe", exit: failure, shown: "sslmode is invalid", form: "postgres://user:password@host:5432/name", secret: "hunter22"},
		{variable: "PROXIMA_DATABASE_URL", value: "@/nowhere/url", exit: usage, shown: "/nowhere/url", form: "@ and the path of a file"},
		{variable: "PROXIMA_NATS_URL", value: "http://root:hunter22@nats", exit: usage, shown: "@nats", form: "tls://host:4222", secret: "hunter22"},
		{variable: "PROXIMA_NATS_URL", value: "nats://127.0.0.1:1", exit: failure, shown: "nats-keys", form: "run proxima-console nats-setup and give its keys directory as PROXIMA_NATS_KEYS_DIR"},
		{variable: "PROXIMA_NATS_PUBLIC_URLS", value: "nats", exit: usage, form: "tls://host:4222"},
		{variable: "PROXIMA_NATS_WEBSOCKET_URL", value: "http://root:hunter22@nats", exit: usage, shown: "@nats", form: "wss://host:port", secret: "hunter22"},
		{variable: "PROXIMA_NATS_PORT", value: "abc", exit: usage, form: "such as 4222"},
		{variable: "PROXIMA_NATS_PORT", value: "70000", exit: usage, form: "between 0 and 65535"},
		{variable: "PROXIMA_NATS_KEYS_DIR", value: "/proc/x", exit: failure, form: "a directory that console's user may write"},
		{variable: "PROXIMA_NATS_CA_FILE", value: "/nowhere/ca.crt", exit: failure, form: "PEM file"},
		{variable: "PROXIMA_NATS_CA_FILE", value: "/dev/null", exit: failure, form: "-----BEGIN CERTIFICATE-----"},
		{variable: "PROXIMA_CREDENTIAL_TTL", value: "7d", exit: usage, form: "such as 168h"},
		{variable: "PROXIMA_CREDENTIAL_TTL", value: "1s", exit: usage, form: "between 10s and 720h"},
		{variable: "PROXIMA_AUDIT_RETENTION", value: "365d", exit: usage, form: "such as"},
		{variable: "PROXIMA_AUDIT_RETENTION", value: "1h", exit: usage, form: "between 24h"},
		{variable: "PROXIMA_ADMIN_EMAIL", value: "notmail", exit: failure, form: "such as ann@example.com"},
		{variable: "PROXIMA_ADMIN_PASSWORD", value: "hunter22", exit: usage, shown: "8 characters", form: "12 or more", secret: "hunter22"},
		{variable: "PROXIMA_ADMIN_PASSWORD", value: strings.Repeat("x", 201), exit: failure, shown: "201 characters", form: "12 to 200 characters", secret: "xxx"},
		{variable: "PROXIMA_K8S_SYNC_INTERVAL", value: "5", exit: usage, form: "such as 5m"},
		{variable: "PROXIMA_K8S_SYNC_INTERVAL", value: "0s", exit: usage, form: "between 1s and 24h"},
		{variable: "PROXIMA_IMAGE_REGISTRY", value: "https://registry.example/", exit: failure, form: "such as registry.prxm.uz/proxima"},
		{variable: "PROXIMA_LOG_LEVEL", value: "loud", exit: usage, form: `"info"`},
		{variable: "PROXIMA_LOG_FORMAT", value: "xml", exit: usage, form: `"json"`},
	}
}

func badAgentSettings() []badSetting {
	return []badSetting{
		{variable: "PROXIMA_CLUSTER_NAME", value: " ", exit: failure, form: "the display name of the cluster"},
		{variable: "PROXIMA_CLUSTER_NAME", value: "…", exit: failure, form: "set PROXIMA_CLUSTER_SLUG"},
		{variable: "PROXIMA_CLUSTER_SLUG", value: "Prod EU", exit: usage, form: "a-z, 0-9 and hyphen"},
		{variable: "PROXIMA_BACKEND_URL", value: "console.example", exit: usage, form: "https://host"},
		{variable: "PROXIMA_BACKEND_URL", value: "https://root:hunter22@console.example", exit: usage, shown: "@console.example", form: "https://host", secret: "hunter22"},
		{variable: "PROXIMA_INSTALL_TOKEN", value: "@/nowhere/token", exit: usage, shown: "/nowhere/token", form: "@ and the path of a file"},
		{variable: "PROXIMA_AGENT_DATA_DIR", value: "/proc/x", exit: failure, form: "mount a writable volume"},
		{variable: "POD_NAME", value: "agent-0", exit: usage, shown: "POD_NAMESPACE", form: "downward API"},
		{variable: "POD_NAMESPACE", value: "Bad_NS", exit: usage, form: "such as proxima"},
		{variable: "PROXIMA_K8S_SYNC_INTERVAL", value: "5", exit: usage, form: "such as 5m"},
		{variable: "PROXIMA_K8S_SYNC_INTERVAL", value: "25h", exit: usage, form: "between 1s and 24h"},
		{variable: "PROXIMA_K8S_POD_LIMIT", value: "many", exit: usage, form: "such as 5000"},
		{variable: "PROXIMA_K8S_POD_LIMIT", value: "0", exit: usage, form: "between 1 and 100000"},
		{variable: "PROXIMA_K8S_EXCLUDE_NAMESPACES", value: "Bad_NS,,", shown: "Bad_NS", exit: usage, form: "such as kube-system,monitoring"},
		{variable: "PROXIMA_KUBECONFIG", value: "/nowhere/config", args: []string{"doctor"}, exit: failure, form: "such as ~/.kube/config"},
		{variable: "PROXIMA_HEARTBEAT_INTERVAL", value: "30", exit: usage, form: "such as 30s"},
		{variable: "PROXIMA_HEARTBEAT_INTERVAL", value: "3m", exit: usage, form: "between 1s and 2m"},
		{variable: "PROXIMA_NATS_URL", value: "http://nats", exit: usage, form: "tls://host:4222"},
		{variable: "PROXIMA_NATS_CA_FILE", value: "/nowhere/ca.crt", exit: failure, form: "PEM file"},
		{variable: "PROXIMA_CA_FILE", value: "/dev/null", exit: failure, form: "-----BEGIN CERTIFICATE-----"},
		{variable: "HTTPS_PROXY", value: "http://root:hunter22@proxy:port", exit: usage, shown: "@proxy:port", form: "http://host:port", secret: "hunter22"},
		{variable: "HTTP_PROXY", value: "ftp://proxy", exit: usage, form: "http://host:port"},
		{variable: "PROXIMA_METRICS_ADDR", value: "9090", exit: usage, form: "host:port"},
		{variable: "PROXIMA_LOG_LEVEL", value: "loud", exit: usage, form: `"info"`},
	}
}

// TestWrongSettings: of every setting of every program a wrong value is named with its variable (never a
// secret's) and with a form that works. A setting that takes any text is one of those that are named here.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	product := harness.New(t).Product()
	for _, p := range []struct {
		program string
		config  any
		anyText []string
		base    map[string]string
		rows    []badSetting
	}{
		{product.Console, console.Config{}, nil, map[string]string{"PROXIMA_LISTEN_ADDR": "127.0.0.1:0", "PROXIMA_NATS_PORT": "0"}, badConsoleSettings()},
		{
			product.ClusterAgent,
			cluster.Config{},
			[]string{"NO_PROXY"},
			map[string]string{"PROXIMA_BACKEND_URL": "http://127.0.0.1:1", "PROXIMA_CLUSTER_NAME": "Prod EU", "PROXIMA_METRICS_ADDR": "127.0.0.1:0"},
			badAgentSettings(),
		},
	} {
		name := filepath.Base(p.program)
		for _, variable := range variables(reflect.TypeOf(p.config)) {
			if !slices.Contains(p.anyText, variable) && !slices.ContainsFunc(p.rows, func(r badSetting) bool { return r.variable == variable }) {
				t.Errorf("%s: no wrong value of %s is tried", name, variable)
			}
		}
		for _, row := range p.rows {
			t.Run(name+"/"+row.variable+"="+strings.ReplaceAll(row.value, "/", "|"), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				env := map[string]string{"PROXIMA_DATA_DIR": filepath.Join(dir, "data"), "PROXIMA_AGENT_DATA_DIR": filepath.Join(dir, "data")}
				maps.Copy(env, p.base)
				maps.Copy(env, row.beside)
				env[row.variable] = row.value
				row.try(t, p.program, env)
			})
		}
	}
}

func (s badSetting) try(t *testing.T, program string, env map[string]string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, s.args...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	output, err := cmd.CombinedOutput()
	text := string(output)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != s.exit {
		t.Errorf("it ended with %v, want exit status %d:\n%s", err, s.exit, text)
	}
	said := strings.ReplaceAll(text, `\"`, `"`) // as the log quotes it
	for _, part := range []string{s.variable, cmp.Or(s.shown, s.value), s.form} {
		if !strings.Contains(said, part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
	if s.secret != "" && strings.Contains(text, s.secret) {
		t.Errorf("it shows a secret:\n%s", text)
	}
}

// variables are the first names of a Config's settings.
func variables(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("env"), ",")
		names = append(names, name)
	}
	return names
}
