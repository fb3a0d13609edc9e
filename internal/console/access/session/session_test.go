package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/access/session"
	"prxm.uz/proxima/internal/console/store"
	"prxm.uz/proxima/internal/console/tenancy"
)

// browser keeps the cookie of one person.
type browser struct {
	t       *testing.T
	handler http.Handler
	cookie  *http.Cookie
	header  http.Header // of the last answer
}

func (b *browser) get(path string) string {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), "GET", path, nil)
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	b.header = w.Result().Header
	for _, c := range w.Result().Cookies() {
		b.cookie = c
	}
	return w.Body.String()
}

// open makes a manager on a store of its own, and a user.
func open(t testing.TB) (*session.Manager, access.Account, *clocktest.Manual) {
	t.Helper()
	c := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "proxima.db"), Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	hasher, err := access.NewHasher(access.Cost{MemoryKiB: 64, Iterations: 1, Parallelism: 1})
	if err != nil {
		t.Fatal(err)
	}
	people := tenancy.New(db.Tenancy(), hasher, c)
	if _, err := people.EnsureAdministrator(t.Context(), "root@example.com", "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	root, err := db.Access().AccountByEmail(t.Context(), "root@example.com")
	if err != nil {
		t.Fatal(err)
	}
	return session.New(db.Access(), session.Options{Secure: true, Clock: c, Logger: slog.New(slog.DiscardHandler)}), root, c
}

func TestSessionLives(t *testing.T) {
	m, root, c := open(t)
	b := &browser{t: t, handler: m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/in":
			if err := m.SignIn(r.Context(), root.UserID); err != nil {
				t.Error(err)
			}
		case "/out":
			if err := m.SignOut(r.Context()); err != nil {
				t.Error(err)
			}
		}
		fmt.Fprint(w, m.UserID(r.Context()))
	}), func(w http.ResponseWriter, _ *http.Request, err error) { fmt.Fprint(w, "refused: ", err) })}
	if got := b.get("/"); got != "" || b.cookie != nil {
		t.Errorf("a stranger is %q with cookie %v", got, b.cookie)
	}
	b.get("/in")
	if k := b.cookie; k == nil || k.Name != "proxima_session" || !k.HttpOnly || !k.Secure || k.SameSite != http.SameSiteLaxMode {
		t.Fatalf("the cookie is %v", k)
	}
	first := b.cookie.Value
	b.get("/in")
	if b.cookie.Value == first {
		t.Error("signing in kept the token")
	}
	old := &browser{t: t, handler: b.handler, cookie: &http.Cookie{Name: "proxima_session", Value: first}}
	if got := old.get("/"); got != "" {
		t.Errorf("the old token still is %q", got)
	}
	// Used twice a day it lives for seven days, and not longer.
	for day := 0.0; day < 7; day += 0.5 {
		if got := b.get("/"); got != root.UserID {
			t.Fatalf("on day %.1f the session is %q", day, got)
		}
		c.Advance(12 * time.Hour)
	}
	if got := b.get("/"); got != "" {
		t.Error("the session outlived seven days")
	}
	b.get("/in")
	c.Advance(24*time.Hour + time.Minute)
	if got := b.get("/"); got != "" {
		t.Error("the session outlived a day without a request")
	}
	b.get("/in")
	kept := *b.cookie
	b.get("/out")
	b.cookie = &kept
	if got := b.get("/"); got != "" {
		t.Error("the session outlived signing out")
	}
}

// TestSessionThatCannotBeRead: whoever stands behind the middleware does not see the request, and the one who
// was named answers.
func TestSessionThatCannotBeRead(t *testing.T) {
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "proxima.db")})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	m := session.New(db.Access(), session.Options{Clock: clocktest.New(time.Now()), Logger: slog.New(slog.DiscardHandler)})
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") })
	b := &browser{t: t, cookie: &http.Cookie{Name: session.CookieName, Value: "x"}, handler: m.Middleware(served, func(w http.ResponseWriter, _ *http.Request, err error) {
		fmt.Fprint(w, "refused: ", err)
	})}
	if got := b.get("/"); !strings.HasPrefix(got, "refused: ") || strings.Contains(got, "served") {
		t.Errorf("the answer: %q", got)
	}
	if got := m.UserID(t.Context()); got != "" {
		t.Errorf("outside of the middleware %q is signed in", got)
	}
}

// unwritable is a store that takes no writes while it is told so.
type unwritable struct {
	session.Store
	full bool
}

func (u *unwritable) InsertSession(ctx context.Context, s access.Session) error {
	if u.full {
		return errors.New("the disk is full")
	}
	return u.Store.InsertSession(ctx, s)
}

func (u *unwritable) UpdateSession(ctx context.Context, s access.Session) error {
	if u.full {
		return errors.New("the disk is full")
	}
	return u.Store.UpdateSession(ctx, s)
}

// TestWhatASessionRemembers: where it began, when and from where it was seen; not more often than every five
// minutes, and up to its last day. One that is ended while a request of it runs stays ended.
func TestWhatASessionRemembers(t *testing.T) {
	at := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "proxima.db"), Clock: at})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	hasher, err := access.NewHasher(access.Cost{MemoryKiB: 64, Iterations: 1, Parallelism: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenancy.New(db.Tenancy(), hasher, at).EnsureAdministrator(t.Context(), "root@example.com", "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	who := access.New(db.Access(), hasher, at, slog.New(slog.DiscardHandler))
	root, err := who.SignIn(t.Context(), "root@example.com", "correct horse battery", "192.0.2.1:1")
	if err != nil {
		t.Fatal(err)
	}
	m := session.New(db.Access(), session.Options{Clock: at, Logger: slog.New(slog.DiscardHandler)})
	handler := m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/in":
			if err := m.SignIn(r.Context(), root.UserID); err != nil {
				t.Error(err)
			}
		case "/ended":
			if alive, err := m.Alive(r.Context()); err != nil || !alive {
				t.Errorf("alive %v, %v", alive, err)
			}
			if _, err := who.EndOtherSessions(r.Context(), root, ""); err != nil {
				t.Error(err)
			}
			if alive, err := m.Alive(r.Context()); err != nil || alive {
				t.Errorf("after it was ended: alive %v, %v", alive, err)
			}
			m.Put(r.Context(), "note", "x")
		}
		fmt.Fprint(w, m.UserID(r.Context()), " ", m.ID(r.Context()))
	}), func(_ http.ResponseWriter, _ *http.Request, err error) { t.Error(err) })
	var cookie *http.Cookie
	get := func(path, agent string) string {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		r.RemoteAddr = "192.0.2.7:4711"
		r.Header.Set("User-Agent", agent)
		if cookie != nil {
			r.AddCookie(cookie)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		for _, c := range w.Result().Cookies() {
			cookie = c
		}
		return w.Body.String()
	}
	only := func() access.Session {
		t.Helper()
		sessions, err := who.Sessions(t.Context(), root)
		if err != nil || len(sessions) != 1 {
			t.Fatalf("sessions %v, %v", sessions, err)
		}
		return sessions[0]
	}
	get("/in", "Firefox \xff"+strings.Repeat("x", 400))
	began := at.Now()
	first := only()
	if first.RemoteAddr != "192.0.2.7" || !strings.HasPrefix(first.UserAgent, "Firefox x") || len(first.UserAgent) > 300 || !first.CreatedAt.Equal(began) {
		t.Errorf("the session is %+v", first)
	}
	if strings.Contains(cookie.Value, first.ID) || first.ID == first.TokenHash {
		t.Error("the id says something of the token")
	}
	at.Advance(4 * time.Minute)
	get("/", "Chromium")
	if got := only(); !got.SeenAt.Equal(began) {
		t.Errorf("seen at %v after four minutes", got.SeenAt)
	}
	for range 6*24 + 12 {
		at.Advance(time.Hour)
		get("/", "Chromium")
	}
	if got := only(); !got.SeenAt.Equal(at.Now()) || got.UserAgent != "Chromium" || got.ID != first.ID || !got.CreatedAt.Equal(began) {
		t.Errorf("on its last day: %+v", got)
	}
	if got := get("/", "Chromium"); got != root.UserID+" "+first.ID {
		t.Errorf("the request has %q", got)
	}
	get("/ended", "Chromium")
	if got := get("/", "Chromium"); got != " " {
		t.Errorf("after it was ended: %q", got)
	}
}

// TestSessionThatCannotBeSaved: one that has only to be extended is still valid, so the answer goes through; where
// something of it changed there is one answer, that of the one who was named.
func TestSessionThatCannotBeSaved(t *testing.T) {
	at := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "proxima.db"), Clock: at})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	kept := &unwritable{Store: db.Access()}
	m := session.New(kept, session.Options{Clock: at, Logger: slog.New(slog.DiscardHandler)})
	b := &browser{t: t, handler: m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/note" {
			m.Put(r.Context(), "note", at.Now().String())
		}
		w.Header().Set("Content-Length", "6")
		w.Header().Set("Hx-Redirect", "/elsewhere")
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, "served")
	}), func(w http.ResponseWriter, _ *http.Request, _ error) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "refused")
	})}
	b.get("/note")
	if b.cookie == nil {
		t.Fatal("no session")
	}
	kept.full = true
	at.Advance(session.IdleTimeout / 2)
	if got := b.get("/"); got != "served" {
		t.Errorf("one that cannot be extended: %q", got)
	}
	if got := b.get("/note"); got != "refused" {
		t.Errorf("one that changed: %q", got)
	}
	if h := b.header; h.Get("Hx-Redirect") != "" || h.Get("Content-Length") != "" || h.Get("Vary") == "" {
		t.Errorf("the refusal has the headers of the answer: %v", h)
	}
	kept.full = false
	if got := b.get("/note"); got != "served" {
		t.Errorf("once it can be saved: %q", got)
	}
}
