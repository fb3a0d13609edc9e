package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/access"
)

// signedIn answers the cookie of a new session of the user.
func (c *console) signedIn(userID string) *http.Cookie {
	c.t.Helper()
	w := httptest.NewRecorder()
	c.sessions.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		must(c.t, c.sessions.SignIn(r.Context(), userID))
	}), nil).ServeHTTP(w, httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, "/signin", nil))
	return w.Result().Cookies()[0]
}

func TestSessionsOfTheCaller(t *testing.T) {
	c := newConsole(t)
	u, err := c.tenancy.CreateUser(t.Context(), c.admin, "ann@example.com", "Ann", password)
	must(t, err)
	foreign := c.signedIn(c.admin.UserID)
	here := c.signedIn(u.ID)
	c.clock.Advance(time.Minute)
	there := c.signedIn(u.ID)
	ask := func(cookie *http.Cookie, method, path string) (reply, map[string]any) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		r.AddCookie(cookie)
		return c.send(r)
	}
	_, list := ask(here, http.MethodGet, "/api/v1/sessions")
	items := as[[]any](list["items"])
	if len(items) != 2 {
		t.Fatalf("listed: %v", list)
	}
	newer, older := as[map[string]any](items[0]), as[map[string]any](items[1])
	if newer["current"] != false || older["current"] != true || older["remoteAddr"] != "192.0.2.1" {
		t.Errorf("listed: %v", list)
	}
	end := "/api/v1/sessions/" + as[string](newer["id"])
	if res, _ := ask(foreign, http.MethodDelete, end); res.StatusCode != http.StatusNotFound {
		t.Errorf("another's session: %d", res.StatusCode)
	}
	if res, _ := ask(here, http.MethodDelete, end); res.StatusCode != http.StatusNoContent {
		t.Errorf("one's own: %d", res.StatusCode)
	}
	if res, _ := ask(there, http.MethodGet, "/api/v1/session"); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the ended session: %d", res.StatusCode)
	}
	if res, _ := ask(here, http.MethodGet, "/api/v1/session"); res.StatusCode != http.StatusOK {
		t.Errorf("the other session: %d", res.StatusCode)
	}
	_, list = c.call(c.token(u.ID, 0), http.MethodGet, "/api/v1/sessions", "")
	if items := as[[]any](list["items"]); len(items) != 1 || as[map[string]any](items[0])["current"] != false {
		t.Errorf("by a token: %v", list)
	}

	there = c.signedIn(u.ID)
	if _, answer := ask(here, http.MethodDelete, "/api/v1/sessions"); answer["ended"] != 1.0 {
		t.Errorf("all others: %v", answer)
	}
	for cookie, want := range map[*http.Cookie]int{here: http.StatusOK, there: http.StatusUnauthorized, foreign: http.StatusOK} {
		if res, _ := ask(cookie, http.MethodGet, "/api/v1/session"); res.StatusCode != want {
			t.Errorf("after all others ended: %d, want %d", res.StatusCode, want)
		}
	}
	if _, answer := c.call(c.token(u.ID, 0), http.MethodDelete, "/api/v1/sessions", ""); answer["ended"] != 1.0 {
		t.Errorf("by a token: %v", answer)
	}
}

func TestUsersByPage(t *testing.T) {
	c := newConsole(t)
	root := c.token(c.admin.UserID, 0)
	c.user("ann", "", access.Scope{})
	for query, want := range map[string]float64{"": 2, "?q=ANN": 1, "?active=false": 0, "?limit=1": 2, "?q=root&active=true": 1} {
		res, list := c.call(root, http.MethodGet, "/api/v1/users"+query, "")
		if res.StatusCode != http.StatusOK || list["total"] != want || query == "?limit=1" && len(as[[]any](list["items"])) != 1 {
			t.Errorf("%s: %d %v", query, res.StatusCode, list)
		}
	}
}
