package install_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"prxm.uz/proxima/infra"
	"prxm.uz/proxima/internal/console/install"
)

func params(name string) install.Params {
	return install.Params{
		ClusterName: name, ClusterSlug: "prod-eu", BackendURL: "https://console.example",
		Token: "pit_abcDEF_0-9", ManifestBaseURL: "https://console.example/install/cluster-agent",
	}
}

func hostileNames(bin string) []string {
	return []string{
		"Prod EU", "", " ", "O'Brien's", "'", "''", `'"'"'`, `\`, `\'`, `a\`, `'; touch ` + bin + `/owned; '`,
		"$(touch " + bin + "/owned)", "`touch " + bin + "/owned`", "${HOME}", "$HOME", "$(PROXIMA_INSTALL_TOKEN)",
		"Prod $(PROXIMA_INSTALL_TOKEN)", "$$double", "$(NOT_A_VARIABLE) and $HOME", "$", "$$$(", "$$(PROXIMA_INSTALL_TOKEN)",
		"{a,b}", "a,b", "[x]=y", "a=b=c", "-", "--help", "KEY-", "!!", "!history", "#comment", "*", "~", "a;b|c&d>e<f",
		"line\ntouch " + bin + "/owned\n", "\n", "'\ntouch " + bin + "/owned\n'", "\\\n", "EOF\n", "%s%n", "日本語 Åland Заря 🚀",
		strings.Repeat("'", 100), strings.Repeat("long name ", 50), strings.Repeat("$(", 250), "&& touch " + bin + "/owned",
	}
}

// stub makes a directory with a kubectl that only notes its arguments: a NUL after each of them and two
// after a call.
func stub(t *testing.T) (bin, record string) {
	t.Helper()
	bin = t.TempDir()
	record = filepath.Join(bin, "record")
	script := `#!/bin/sh
# The second half of the pipe notes its call after the first half has printed, so the order is fixed.
case "$*" in 'apply -f -') read -r x; [ "$x" = manifest ] || exit 1;; esac
{ for a in "$@"; do printf '%s\0' "$a"; done; printf '\0\0'; } >>"$RECORD"
case "$*" in *--dry-run=client*) echo manifest;; esac
case "$*" in *"$FAIL_AT"*) [ -z "$FAIL_AT" ] || exit 1;; esac
`
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return bin, record
}

// run gives the text to a shell that finds nothing but the stub, and returns the calls it noted.
func run(t *testing.T, bin, record, text, failAt string) ([][]string, error) {
	t.Helper()
	_ = os.Remove(record)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", text)
	cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + bin, "FAIL_AT=" + failAt, "RECORD=" + record}
	cmd.Dir = bin
	out, err := cmd.CombinedOutput()
	if len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("the shell said %q", out)
	}
	content, readErr := os.ReadFile(record)
	if readErr != nil {
		t.Fatal(readErr)
	}
	var calls [][]string
	for _, call := range strings.Split(strings.TrimSuffix(string(content), "\x00\x00\x00"), "\x00\x00\x00") {
		calls = append(calls, strings.Split(call, "\x00"))
	}
	return calls, err
}

func TestHostileNamesArriveAsTyped(t *testing.T) {
	bin, record := stub(t)
	for _, name := range hostileNames(bin) {
		t.Run(fmt.Sprintf("%.40q", name), func(t *testing.T) {
			command, err := install.Manifest(params(name))
			if err != nil {
				t.Fatal(err)
			}
			text := command.String()
			if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-n", "-c", text).CombinedOutput(); err != nil {
				t.Fatalf("sh -n: %v %s\n%s", err, out, text)
			}
			calls, err := run(t, bin, record, text, "")
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			last := calls[len(calls)-1]
			environment := map[string]string{}
			for _, argument := range last[len(last)-3:] {
				key, value, _ := strings.Cut(argument, "=")
				environment[key] = value
			}
			base := "https://console.example/install/cluster-agent/"
			want := [][]string{
				{"config", "current-context"},
				{"apply", "-f", base + "namespace.yaml"},
				{"apply", "-f", base + "serviceaccount.yaml"},
				{"apply", "-f", base + "clusterrole.yaml"},
				{"apply", "-f", base + "clusterrolebinding.yaml"},
				{"-n", "proxima-system", "create", "secret", "generic", "proxima-install-token", "--from-literal=token=pit_abcDEF_0-9", "--dry-run=client", "-o", "yaml"},
				{"apply", "-f", "-"},
				{"apply", "-f", base + "deployment.yaml"},
				{
					"-n", "proxima-system", "set", "env", "deployment/proxima-cluster-agent",
					"PROXIMA_CLUSTER_NAME=" + strings.ReplaceAll(name, "$", "$$"), "PROXIMA_CLUSTER_SLUG=prod-eu", "PROXIMA_BACKEND_URL=https://console.example",
				},
			}
			if diff := cmp.Diff(want, calls); diff != "" {
				t.Errorf("%s\n%s", diff, text)
			}
			environment["PROXIMA_INSTALL_TOKEN"] = "pit_abcDEF_0-9"
			if got := expand(environment["PROXIMA_CLUSTER_NAME"], environment); got != name {
				t.Errorf("after the kubelet the agent sees %q, want %q", got, name)
			}
			if _, err := os.Stat(filepath.Join(bin, "owned")); err == nil {
				t.Fatal("a part of the name was run")
			}
		})
	}
}

// The first failure ends the command: nothing is set on a Deployment whose role was not applied.
func TestAFailureEndsTheCommand(t *testing.T) {
	bin, record := stub(t)
	command, err := install.Manifest(params("x"))
	if err != nil {
		t.Fatal(err)
	}
	for failAt, calls := range map[string]int{"current-context": 1, "clusterrole.yaml": 4, "apply -f -": 7, "deployment.yaml": 8, "set env": 9} {
		got, err := run(t, bin, record, command.String(), failAt)
		if err == nil || len(got) != calls {
			t.Errorf("failing at %s made %d calls, want %d, and ended with %v", failAt, len(got), calls, err)
		}
	}
}

func TestWithoutTheTokenAPlaceholderIsPrinted(t *testing.T) {
	bin, record := stub(t)
	p := params("x")
	p.Token = ""
	command, err := install.Manifest(p)
	if err != nil {
		t.Fatal(err)
	}
	calls, err := run(t, bin, record, command.String(), "")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(calls), "--from-literal=token=<install-token>") {
		t.Error(calls)
	}
}

func TestManifestRefuses(t *testing.T) {
	for name, change := range map[string]func(*install.Params){
		"interrupt":      func(p *install.Params) { p.ClusterName = "a\x03rm -rf ~" },
		"escape":         func(p *install.Params) { p.ClusterName = "a\x1b[201~b" },
		"carriage":       func(p *install.Params) { p.ClusterName = "a\rb" },
		"tab":            func(p *install.Params) { p.ClusterName = "a\tb" },
		"zero":           func(p *install.Params) { p.ClusterName = "a\x00b" },
		"c1":             func(p *install.Params) { p.ClusterName = "a\u009bb" },
		"direction":      func(p *install.Params) { p.ClusterName = "a\u202eb" },
		"utf-8":          func(p *install.Params) { p.ClusterName = "a\xffb" },
		"slug":           func(p *install.Params) { p.ClusterSlug = "" },
		"url":            func(p *install.Params) { p.BackendURL = "https://a b" },
		"manifest url":   func(p *install.Params) { p.ManifestBaseURL = "https://a\n" },
		"token":          func(p *install.Params) { p.Token = "pit_hush'; x" },
		"token's spaces": func(p *install.Params) { p.Token = " pit_hush" },
	} {
		p := params("x")
		change(&p)
		command, err := install.Manifest(p)
		if err == nil {
			t.Errorf("%s: printed %q", name, command)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	for _, name := range hostileNames("/nowhere") {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		command, err := install.Manifest(params(name))
		if refused := install.CheckName(name) != nil; refused != (err != nil) {
			t.Fatalf("CheckName and Manifest disagree: %v", err)
		}
		if err != nil {
			return
		}
		if strings.ContainsFunc(command.String(), func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
			t.Errorf("control character in %q", command)
		}
		text := command.Lines[len(command.Lines)-1]
		_, text, _ = strings.Cut(text, "PROXIMA_CLUSTER_NAME=")
		word, rest := shellWord(text)
		if !strings.HasPrefix(rest, " \\\n  PROXIMA_CLUSTER_SLUG='prod-eu' ") {
			t.Errorf("the shell reads %q and then %q", word, rest)
		}
		if got := expand(word, map[string]string{"PROXIMA_INSTALL_TOKEN": "hush"}); got != name {
			t.Errorf("the agent sees %q, want %q", got, name)
		}
	})
}

// shellWord reads one word of single-quoted and backslash-quoted parts, as a POSIX shell does.
func shellWord(s string) (word, rest string) {
	var b strings.Builder
	for s != "" {
		switch s[0] {
		case '\'':
			quoted, after, _ := strings.Cut(s[1:], "'")
			b.WriteString(quoted)
			s = after
		case '\\':
			b.WriteByte(s[1])
			s = s[2:]
		default:
			return b.String(), s
		}
	}
	return b.String(), ""
}

// expand does what the kubelet does with a container's environment value: $(NAME) becomes the value of
// a known variable and stays as it is otherwise, $$ becomes $, and a lone $ stays.
func expand(s string, known map[string]string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch end := strings.IndexByte(s[i:], ')'); {
		case s[i+1] == '$':
			b.WriteByte('$')
			i++
		case s[i+1] == '(' && end > 0:
			name := s[i+2 : i+end]
			if value, ok := known[name]; ok {
				b.WriteString(value)
			} else {
				b.WriteString("$(" + name + ")")
			}
			i += end
		default:
			b.WriteByte('$')
		}
	}
	return b.String()
}

func TestFile(t *testing.T) {
	names, err := fs.Glob(infra.ClusterAgent(), "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		original, err := fs.ReadFile(infra.ClusterAgent(), name)
		if err != nil {
			t.Fatal(err)
		}
		served, err := install.File(name, install.Image{Registry: "mirror.example:5000/px/", Tag: install.Tag("0.9.0-dev+abc")})
		if err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile(`registry\.prxm\.uz/proxima/proxima-cluster-agent:[0-9.]+`).
			ReplaceAllString(string(original), "mirror.example:5000/px/proxima-cluster-agent:0.9.0-dev_abc")
		if diff := cmp.Diff(want, string(served)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if listed := len(install.Files()); listed != len(names) {
		t.Errorf("%d files are listed, %d are there", listed, len(names))
	}
	for _, name := range install.Files() {
		if _, err := install.File(name, install.Image{Tag: "1"}); err != nil {
			t.Error(err)
		}
	}
	served, err := install.File("deployment.yaml", install.Image{Tag: "0.9.0"})
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(served, &d); err != nil {
		t.Fatal(err)
	}
	if got := d.Spec.Template.Spec.Containers[0].Image; got != install.DefaultImageRegistry+"/proxima-cluster-agent:0.9.0" {
		t.Errorf("image %q", got)
	}
}

func TestFileRefuses(t *testing.T) {
	for _, name := range []string{"", ".", "..", "nothing.yaml", "../embed.go", "/etc/passwd", "namespace.yaml/", "./namespace.yaml"} {
		if _, err := install.File(name, install.Image{Tag: "1"}); err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) && name != "." {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, image := range []install.Image{{}, {Tag: "a b"}, {Tag: "1\nx: y"}, {Registry: "Up.example", Tag: "1"}, {Registry: "a b", Tag: "1"}, {Registry: "a\nb", Tag: "1"}, {Tag: "a+b"}, {Registry: "https://mirror.example/px", Tag: "1"}, {Registry: "mirror.example//px", Tag: "1"}, {Registry: "mirror.example:px", Tag: "1"}} {
		if _, err := install.File("deployment.yaml", image); err == nil {
			t.Errorf("%+v was accepted", image)
		}
	}
}
