package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"prxm.uz/proxima/test/harness"
)

// TestHeadersOverTLS is what browsers are told by a console that speaks TLS: to come over TLS alone, to run nothing
// but its own files, and to send the cookies nowhere else.
func TestHeadersOverTLS(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	authority := h.Authority()
	c := h.Console(harness.ConsoleOptions{Authority: authority, Env: settings()})
	pem, err := os.ReadFile(authority.File())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		Jar:           jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(method, path string, form url.Values) reply {
		t.Helper()
		r := request(t.Context(), t, method, c.URL+path, form)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if got := answer.Header.Values("Strict-Transport-Security"); len(got) != 1 || got[0] != "max-age=31536000" {
			t.Errorf("%s %s: Strict-Transport-Security is %q", method, path, got)
		}
		for _, cookie := range answer.Cookies() {
			if !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Domain != "" || cookie.Path != "/" {
				t.Errorf("%s %s sets the cookie %s with Secure %t, HttpOnly %t, SameSite %d, domain %q, path %q",
					method, path, cookie.Name, cookie.Secure, cookie.HttpOnly, cookie.SameSite, cookie.Domain, cookie.Path)
			}
		}
		return reply{answer.StatusCode, answer.Header, answer.Cookies()}
	}
	signedIn := ask(http.MethodPost, "/signin", url.Values{"email": {c.Email}, "password": {c.Password}})
	if signedIn.status != http.StatusSeeOther || len(signedIn.cookies) != 1 {
		t.Fatalf("sign-in: status %d, cookies %v", signedIn.status, signedIn.cookies)
	}
	themed := ask(http.MethodPost, "/theme", url.Values{"theme": {"dark"}}).cookies
	if !slices.ContainsFunc(themed, func(c *http.Cookie) bool { return c.Name == "proxima_theme" && c.Value == "dark" }) {
		t.Errorf("the theme: cookies %v", themed)
	}
	for _, path := range []string{"/clusters", "/profile", "/nothing", "/signin", "/agents/none/revoke"} {
		policy := ask(http.MethodGet, path, nil).header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: the content policy is %q", path, policy)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/api/v1/session", "/api/v1/nothing", "/install/cluster-agent/none", "/static/0/base.css"} {
		ask(http.MethodGet, path, nil)
	}
	ask(http.MethodPost, "/signout", url.Values{})
}

// reply is an answer without its body.
type reply struct {
	status  int
	header  http.Header
	cookies []*http.Cookie
}

func request(ctx context.Context, t *testing.T, method, address string, form url.Values) *http.Request {
	t.Helper()
	var body io.Reader = http.NoBody
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}
