package session_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"prxm.uz/proxima/internal/console/access/session"
)

// FuzzCookie: beside a session that lives, a header without its token is nobody, and gets neither a cookie nor an
// error for it.
func FuzzCookie(f *testing.F) {
	m, root, _ := open(f)
	ask := func(ctx context.Context, header, path string) (w *httptest.ResponseRecorder, who string) {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
		r.Header["Cookie"] = []string{header}
		w = httptest.NewRecorder()
		m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/in" {
				_ = m.SignIn(r.Context(), root.UserID) // the answer shows whether
			}
			who = m.UserID(r.Context())
			w.WriteHeader(http.StatusNoContent)
		}), func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}).ServeHTTP(w, r)
		return w, who
	}
	in, _ := ask(f.Context(), "", "/in")
	cookie, err := http.ParseSetCookie(in.Header().Get("Set-Cookie"))
	if err != nil {
		f.Fatal(err)
	}
	token := cookie.Value
	if _, who := ask(f.Context(), session.CookieName+"="+token, "/"); who != root.UserID {
		f.Fatalf("the session is %q", who)
	}
	const name = session.CookieName + "="
	for _, seed := range []string{"", name, name + strings.Repeat("A", 43), name + "\"a\"; " + name + "b", name + "\x00\xff", name + "%00", "other=1; " + name + "é", ";;;=", name + strings.Repeat("x", 3000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		answer, who := ask(t.Context(), header, "/")
		if strings.Contains(header, token) {
			return
		}
		if who != "" || answer.Code != http.StatusNoContent || answer.Header().Get("Set-Cookie") != "" {
			t.Errorf("%q is %q: status %d, cookies %q", header, who, answer.Code, answer.Header()["Set-Cookie"])
		}
	})
}
