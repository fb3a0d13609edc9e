package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/config"
)

type settings struct {
	Name     string          `name:"cluster-name" env:"PROXIMA_CLUSTER_NAME" group:"Identity" required:"" help:"Name that people see."`
	Backend  config.BaseURL  `name:"backend-url" env:"PROXIMA_BACKEND_URL" group:"Identity" required:"" help:"Where console is."`
	Token    config.Secret   `name:"install-token" env:"PROXIMA_INSTALL_TOKEN" group:"Identity" help:"Token of the attempt."`
	Interval time.Duration   `name:"sync-interval" env:"PROXIMA_K8S_SYNC_INTERVAL" group:"Work" default:"5m" help:"Time between two syncs."`
	Level    string          `name:"log-level" env:"PROXIMA_LOG_LEVEL" group:"Work" enum:"debug,info,warn,error" default:"info" help:"Least severity to log."`
	Exclude  config.List     `name:"exclude" env:"PROXIMA_K8S_EXCLUDE_NAMESPACES" group:"Work" help:"Left out."`
	NATS     config.NATSURLs `name:"nats-url" env:"PROXIMA_NATS_URL" group:"Work" help:"Addresses."`
	Access   bool            `name:"kube-access" env:"PROXIMA_KUBE_ACCESS_ENABLED" group:"Work" help:"Live access | off by default."`
	Pod      string          `name:"pod-name" env:"POD_NAME" group:"Work" help:"Set by Kubernetes."`
	Limit    int             `name:"pod-limit" env:"PROXIMA_K8S_POD_LIMIT" group:"Work" default:"5000" help:"Pods per sync."`

	Run    struct{} `cmd:"" default:"1" help:"Run."`
	Doctor struct {
		JSON bool `name:"json" env:"PROXIMA_DOCTOR_JSON" help:"Print JSON."`
	} `cmd:"" help:"Check."`
}

// Validate bounds the limit, as a program's own struct would.
func (s *settings) Validate() error {
	return config.Within("PROXIMA_K8S_POD_LIMIT", s.Limit, 1, 100_000)
}

func program() config.Program {
	return config.Program{Name: "agent", Description: "Sends.", Version: "0.9.0", KnownVariables: []string{"PROXIMA_TEST_CLOCK_FILE"}}
}

func parse(t *testing.T, args, environ []string) (settings, *config.Result, string, error) {
	t.Helper()
	var s settings
	var stdout bytes.Buffer
	r, err := config.Parse(program(), &s, args, environ, &stdout, &stdout)
	return s, r, stdout.String(), err
}

func required(more ...string) []string {
	return append([]string{"PROXIMA_CLUSTER_NAME=Prod EU", "PROXIMA_BACKEND_URL=https://console.example/"}, more...)
}

func TestPrecedence(t *testing.T) {
	t.Setenv("PROXIMA_LOG_LEVEL", "debug") // of this process: must play no part
	s, r, _, err := parse(t,
		[]string{"--sync-interval", "1m"},
		required("PROXIMA_K8S_SYNC_INTERVAL=2m", "PROXIMA_K8S_POD_LIMIT=", "PROXIMA_INSTALL_TOKEN=@@pit_x",
			"PROXIMA_K8S_EXCLUDE_NAMESPACES= kube-system, ,a", "PROXIMA_NATS_URL=tls://a:4222,wss://b/nats",
			"PROXIMA_KUBE_ACCESS_ENABLED=true", "POD_NAME=agent-0"))
	if err != nil {
		t.Fatal(err)
	}
	want := settings{
		Name: "Prod EU", Backend: "https://console.example", Token: config.NewSecret("@pit_x"), Interval: time.Minute,
		Level: "info", Exclude: config.List{"kube-system", "a"}, NATS: config.NATSURLs{"tls://a:4222", "wss://b/nats"},
		Access: true, Pod: "agent-0", Limit: 5000,
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	if r.Command != "run" || len(r.Warnings) != 0 {
		t.Errorf("result %+v", r)
	}
}

func TestCommandsAndTheirVariables(t *testing.T) {
	s, r, _, err := parse(t, []string{"doctor"}, required("PROXIMA_DOCTOR_JSON=1"))
	if err != nil || r.Command != "doctor" || !s.Doctor.JSON {
		t.Errorf("%+v %+v %v", s, r, err)
	}
	// A value meant for another command does not fail this one.
	if _, _, _, err := parse(t, nil, required("PROXIMA_DOCTOR_JSON=perhaps")); err != nil {
		t.Error(err)
	}
}

func TestUnknownVariablesAreNamed(t *testing.T) {
	_, r, _, err := parse(t, nil, required("PROXIMA_K8S_SYNC_INTERVALL=hush", "PROXIMA_WHATEVER_ELSE=x", "OTHER=1", "PROXIMA_TEST_CLOCK_FILE=/x"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"environment variable PROXIMA_K8S_SYNC_INTERVALL is not known to agent and has no effect; did you mean PROXIMA_K8S_SYNC_INTERVAL?",
		"environment variable PROXIMA_WHATEVER_ELSE is not known to agent and has no effect",
	}
	if diff := cmp.Diff(want, r.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsNameVariableAndCure(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args, environ []string
		want          []string
	}{
		"missing":         {nil, []string{"PROXIMA_BACKEND_URL="}, []string{"PROXIMA_CLUSTER_NAME (flag --cluster-name) is not set", "PROXIMA_BACKEND_URL (flag --backend-url) is not set: Where console is."}},
		"duration":        {nil, required("PROXIMA_K8S_SYNC_INTERVAL=5"), []string{"PROXIMA_K8S_SYNC_INTERVAL: ", "duration", `"5"`}},
		"number":          {nil, required("PROXIMA_K8S_POD_LIMIT=many"), []string{"PROXIMA_K8S_POD_LIMIT: ", "many"}},
		"bool":            {nil, required("PROXIMA_KUBE_ACCESS_ENABLED=perhaps"), []string{"PROXIMA_KUBE_ACCESS_ENABLED: "}},
		"range":           {nil, required("PROXIMA_K8S_POD_LIMIT=0"), []string{"PROXIMA_K8S_POD_LIMIT is 0; it must lie between 1 and 100000"}},
		"enum":            {nil, required("PROXIMA_LOG_LEVEL=loud"), []string{"loud", "debug", "PROXIMA_LOG_LEVEL"}},
		"scheme":          {nil, required("PROXIMA_BACKEND_URL=console.example"), []string{"PROXIMA_BACKEND_URL: ", "https://"}},
		"no host":         {nil, required("PROXIMA_BACKEND_URL=https://:443"), []string{"names no host"}},
		"user":            {nil, required("PROXIMA_BACKEND_URL=https://a:hush@b"), []string{"user or password"}},
		"query":           {nil, required("PROXIMA_BACKEND_URL=https://b?x"), []string{"query or fragment"}},
		"nats":            {nil, required("PROXIMA_NATS_URL=http://u:hush@b"), []string{"PROXIMA_NATS_URL: ", "nats://host:4222"}},
		"no file":         {nil, required("PROXIMA_INSTALL_TOKEN=@/nowhere/x"), []string{"PROXIMA_INSTALL_TOKEN: ", "/nowhere/x"}},
		"empty file":      {nil, required("PROXIMA_INSTALL_TOKEN=@" + empty), []string{empty, "is empty"}},
		"unknown flag":    {[]string{"--sync-intervall=5m"}, required(), []string{"--sync-intervall", "--sync-interval"}},
		"unknown command": {[]string{"dance"}, required(), []string{"dance"}},
		"flag":            {[]string{"--pod-limit=x"}, required(), []string{"--pod-limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, _, err := parse(t, c.args, c.environ)
			if config.ExitCode(err) != config.ExitUsage {
				t.Fatalf("exit code %d of %v", config.ExitCode(err), err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("%q shows a password", err)
			}
			var stderr bytes.Buffer
			if code := config.Report(program(), err, &stderr); code != config.ExitUsage || !strings.Contains(stderr.String(), "agent --help") {
				t.Errorf("reported %d %q", code, stderr.String())
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	_, _, out, err := parse(t, []string{"--help"}, nil)
	if !errors.Is(err, config.ErrHelp) || config.ExitCode(err) != 0 {
		t.Fatal(err)
	}
	for _, part := range []string{"--sync-interval=5m", "$PROXIMA_K8S_SYNC_INTERVAL", "doctor", "Sends."} {
		if !strings.Contains(out, part) {
			t.Errorf("help lacks %q:\n%s", part, out)
		}
	}
	if _, _, out, err = parse(t, []string{"--version"}, nil); !errors.Is(err, config.ErrHelp) || out != "0.9.0\n" {
		t.Errorf("version printed %q, %v", out, err)
	}
	if config.ExitCode(errors.New("else")) != 1 || config.ExitCode(nil) != 0 {
		t.Error("exit codes of other errors")
	}
}

func TestSecretFromFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(" pit_abc\r\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _, _, err := parse(t, []string{"--install-token=@" + path}, required())
	if err != nil || s.Token.Reveal() != " pit_abc" || !s.Token.IsSet() {
		t.Errorf("%q, %v", s.Token.Reveal(), err)
	}
	if err := os.WriteFile(path, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := parse(t, nil, required("PROXIMA_INSTALL_TOKEN=@"+path)); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Error(err)
	}
}

func TestSecretIsNeverPrinted(t *testing.T) {
	s := settings{Token: config.NewSecret("hush")}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%T"} {
		fmt.Fprintf(&out, verb+" "+verb+" "+verb+"\n", s.Token, &s.Token, s)
	}
	fmt.Fprintln(&out, s.Token, &s.Token, s, []config.Secret{s.Token}, map[string]any{"a": s.Token}, errors.Join(fmt.Errorf("x %v", s.Token)))
	logger := slog.New(slog.NewJSONHandler(&out, nil))
	logger.Info("m", "token", s.Token, "all", s, "pointer", &s.Token)
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "token", s.Token, "all", s)
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	if text := out.String(); strings.Contains(text, "hush") || strings.Contains(text, "68757368") || !strings.Contains(text, "***") {
		t.Error(text)
	}
	if (config.Secret{}).String() != "" {
		t.Error("a secret that is not set should print nothing")
	}
}

func TestReference(t *testing.T) {
	got, err := config.Reference(program(), &settings{})
	if err != nil {
		t.Fatal(err)
	}
	want := `## agent

Sends.

### Identity

| Variable | Flag | Default | Description |
|---|---|---|---|
| ` + "`PROXIMA_CLUSTER_NAME` | `--cluster-name`" + ` | required | Name that people see. |
| ` + "`PROXIMA_BACKEND_URL` | `--backend-url`" + ` | required | Where console is. |
| ` + "`PROXIMA_INSTALL_TOKEN` | `--install-token` | – | Token of the attempt. **Secret**: never printed; `@/path/to/file`" + ` reads it from a file. |

### Work
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	for _, part := range []string{
		"| `PROXIMA_LOG_LEVEL` | `--log-level` | `info` | Least severity to log. One of `debug`, `info`, `warn`, `error`. |",
		`Live access \| off by default.`, "### Command `agent doctor`",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("lacks %q:\n%s", part, got)
		}
	}
	if strings.Contains(got, "--help") || strings.Contains(got, "--version") {
		t.Error("the reference lists help or version")
	}
}

func TestVariables(t *testing.T) {
	got, err := config.Variables(&settings{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 11 || got[0] != "POD_NAME" || got[1] != "PROXIMA_BACKEND_URL" {
		t.Errorf("%q", got)
	}
}

func TestBaseURL(t *testing.T) {
	for in, want := range map[string]config.BaseURL{
		"https://a": "https://a", " http://a:80/ ": "http://a:80", "https://[::1]:8443/p//": "https://[::1]:8443/p", "": "",
	} {
		var u config.BaseURL
		if err := u.UnmarshalText([]byte(in)); err != nil || u != want {
			t.Errorf("%q gave %q, %v", in, u, err)
		}
	}
	u := config.BaseURL("https://[::1]:8443/p")
	if u.Join("/x") != "https://[::1]:8443/p/x" || u.Host() != "::1" || !u.IsSet() {
		t.Errorf("%q %q", u.Join("/x"), u.Host())
	}
}
