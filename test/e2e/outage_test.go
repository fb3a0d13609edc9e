package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/test/harness"
)

// TestWithoutDatabase: while PostgreSQL is away every answer says so, with a cure and a time to come back, and
// none blames who asked.
func TestWithoutDatabase(t *testing.T) {
	h := harness.New(t)
	postgres := h.Postgres()
	c := h.Console(harness.ConsoleOptions{Env: map[string]string{"PROXIMA_DATABASE_URL": h.Database(postgres)}})
	token, err := c.APIToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	stranger, signedIn := http.DefaultClient, &http.Client{Jar: jar}
	credentials := url.Values{"email": {c.Email}, "password": {c.Password}}
	type answer struct {
		status int
		header http.Header
		body   string
	}
	ask := func(client *http.Client, method, path, bearer string) answer {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, c.URL+path, http.NoBody)
		if method == http.MethodPost {
			req, err = http.NewRequestWithContext(t.Context(), method, c.URL+path, strings.NewReader(credentials.Encode()))
		}
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if bearer != "" {
			req.Header.Set("Authorization", "Bearer "+bearer)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer{res.StatusCode, res.Header, string(text)}
	}
	first := ask(signedIn, http.MethodPost, "/signin", "")
	style := regexp.MustCompile(`/static/[^"]+\.css`).FindString(first.body)
	if first.status != http.StatusOK || style == "" {
		t.Fatalf("signing in: %d", first.status)
	}
	if err := postgres.Kill(); err != nil {
		t.Fatal(err)
	}
	unavailable := func(what string, a answer, kind string, says ...string) {
		t.Helper()
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") != "5" || !strings.HasPrefix(a.header.Get("Content-Type"), kind) {
			t.Errorf("%s: %d, Retry-After %q, %s", what, a.status, a.header.Get("Retry-After"), a.header.Get("Content-Type"))
		}
		for _, part := range append(says, "Try again in some seconds", "log names the reason") {
			if !strings.Contains(a.body, part) {
				t.Errorf("%s does not say %q: %s", what, part, a.body)
			}
		}
	}
	unavailable("signing in", ask(stranger, http.MethodPost, "/signin", ""), "text/html", "database does not answer")
	unavailable("the metrics", ask(stranger, http.MethodGet, "/metrics", token), "text/plain", "API token cannot be looked up now")
	unavailable("a page", ask(signedIn, http.MethodGet, "/clusters", ""), "text/html", "database does not answer", style)
	api := ask(signedIn, http.MethodGet, "/api/v1/session", "")
	unavailable("the API", api, "application/problem+json")
	var p console.Problem
	if err := json.Unmarshal([]byte(api.body), &p); err != nil || p.Code != "database_unavailable" || p.Cure == nil {
		t.Errorf("the problem is %s (%v)", api.body, err)
	}
	if a := ask(signedIn, http.MethodGet, style, ""); a.status != http.StatusOK {
		t.Errorf("%s of the page that says so: %d", style, a.status)
	}
	if err := postgres.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := ask(signedIn, http.MethodGet, "/profile", ""); a.status != http.StatusOK {
		t.Errorf("the database is back: %d %s", a.status, a.body)
	}
}
