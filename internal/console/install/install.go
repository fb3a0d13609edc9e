// Package install owns the text of the commands that people run in their clusters, and the manifests
// that these commands fetch. It is pure: values in, text out.
//
// The text is a security boundary. A teammate may have typed the cluster's name, and whoever
// runs the command is cluster-admin. Three readers come between the name and the agent, and each is
// answered here:
//
//   - the terminal: characters that steer it are refused ([CheckName]);
//   - the shell: every value stands in single quotes, and each single quote within is written as a
//     quote, a backslash and two quotes;
//   - the kubelet, which replaces $(NAME) by other variables, the install token's included: each $ is
//     written $$.
package install

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names that the manifests and the commands share.
const (
	namespace  = "proxima-system"
	deployment = "deployment/proxima-cluster-agent"
	secret     = "proxima-install-token"
)

// TokenPlaceholder stands in the command where the token's plaintext is no longer known.
const TokenPlaceholder = "<install-token>"

// Params are the values of one install.
type Params struct {
	// ClusterName is the display name as it was typed; see [CheckName].
	ClusterName string
	// ClusterSlug is the recorded slug.
	ClusterSlug string
	// BackendURL is where the agent enrols: console's public URL.
	BackendURL string
	// Token is the install token's plaintext; where it is empty, [TokenPlaceholder] is printed.
	Token string
	// ManifestBaseURL is the URL under which console serves the files of [Files].
	ManifestBaseURL string
}

// Command is a text for a POSIX shell.
type Command struct {
	// Lines are the single commands in their order, without the && between them. A line may span
	// several rows of text.
	Lines []string
}

// String returns the text to copy: the lines joined by &&, so that the first failure ends it.
func (c Command) String() string { return strings.Join(c.Lines, " &&\n") }

// Manifest returns the command of the manifest form (A-34, B-50 to B-52, X-51). It first prints which
// cluster kubectl speaks to. Running it twice does no harm. It fails where a value can not be carried
// to the agent safely; the error says which and why.
func Manifest(p Params) (Command, error) {
	if err := p.check(); err != nil {
		return Command{}, err
	}
	token := p.Token
	if token == "" {
		token = TokenPlaceholder
	}
	apply := func(file string) string {
		return "kubectl apply -f " + quote(strings.TrimRight(p.ManifestBaseURL, "/")+"/"+file)
	}
	lines := []string{"kubectl config current-context"}
	for _, file := range before() {
		lines = append(lines, apply(file))
	}
	return Command{Lines: append(lines,
		"kubectl -n "+namespace+" create secret generic "+secret+" \\\n  --from-literal=token="+quote(token)+" \\\n  --dry-run=client -o yaml | kubectl apply -f -",
		apply(deploymentFile),
		"kubectl -n "+namespace+" set env "+deployment+
			" \\\n  PROXIMA_CLUSTER_NAME="+quote(escapeKubelet(p.ClusterName))+
			" \\\n  PROXIMA_CLUSTER_SLUG="+quote(escapeKubelet(p.ClusterSlug))+
			" \\\n  PROXIMA_BACKEND_URL="+quote(escapeKubelet(p.BackendURL)),
	)}, nil
}

func (p Params) check() error {
	if err := CheckName(p.ClusterName); err != nil {
		return fmt.Errorf("cluster name %q: %w", p.ClusterName, err)
	}
	for name, value := range map[string]string{"cluster slug": p.ClusterSlug, "backend URL": p.BackendURL, "manifest URL": p.ManifestBaseURL} {
		if !plain(value) {
			return fmt.Errorf("%s %q is empty or holds characters other than printable ASCII", name, value)
		}
	}
	if p.Token != "" && !regexp.MustCompile(`\A[A-Za-z0-9_-]+\z`).MatchString(p.Token) {
		return errors.New("install token: it holds characters that no token of ours has") // the value is not for logs
	}
	return nil
}

// plain reports whether s is not empty and holds only printable ASCII characters without the space.
func plain(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// CheckName reports why a display name cannot be part of a command that is pasted into a terminal. In
// a pasted text control characters act like keys (an interrupt ends the quoted value and runs what
// follows), and characters that change the direction of writing show another command than the one
// that runs. A line feed is harmless within quotes and allowed. Length and emptiness are not judged.
func CheckName(name string) error {
	if !utf8.ValidString(name) {
		return errors.New("it is not valid UTF-8; type it anew")
	}
	for _, r := range name {
		switch {
		case r == '\n':
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return fmt.Errorf("it holds the control character %U; remove it", r)
		case unicode.Is(unicode.Bidi_Control, r):
			return fmt.Errorf("it holds %U, which changes the direction of writing; remove it", r)
		}
	}
	return nil
}

// quote returns s as one word for a POSIX shell, whatever it holds.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// escapeKubelet returns s so that the kubelet, expanding an environment value, gives s again.
func escapeKubelet(s string) string { return strings.ReplaceAll(s, "$", "$$") }
