package httpapi_test

import (
	"context"
	"encoding/json"
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
	"prxm.uz/proxima/internal/console/audit/trail"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/httpapi"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/natsauth"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/console/store"
	"prxm.uz/proxima/internal/console/tenancy"
	"prxm.uz/proxima/internal/wire"
)

const password = "correct horse battery"

// console is the API on a real SQLite store, with two clients: acme with the environments prod and
// test, and zeta with prod. What requests name lives in acme's prod.
type console struct {
	t        testing.TB
	clock    *clocktest.Manual
	store    *store.DB
	access   *access.Service
	tenancy  *tenancy.Service
	sessions *session.Manager
	handler  http.Handler
	admin    access.Principal
	acme     tenancy.Client
	zeta     tenancy.Client
	prod     tenancy.Environment
	test     tenancy.Environment
	zetaProd tenancy.Environment
	program  string // the id of a service account, once there are fixtures
	logs     *strings.Builder
}

func newConsole(t testing.TB) *console {
	t.Helper()
	return newConsoleWith(t, func(c *console) httpapi.Onboarding {
		return oneAttempt{attempt: onboarding.Attempt{ID: "onb", ClientID: c.acme.ID, EnvironmentID: c.prod.ID, Slug: "one", DisplayName: "One", CreatedAt: c.clock.Now()}}
	})
}

func newConsoleWith(t testing.TB, attempts func(*console) httpapi.Onboarding) *console {
	t.Helper()
	c := &console{t: t, clock: clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), logs: &strings.Builder{}}
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "proxima.db"), Clock: c.clock})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	hasher, err := access.NewHasher(access.Cost{MemoryKiB: 64, Iterations: 1, Parallelism: 1})
	must(t, err)
	logger := slog.New(slog.NewTextHandler(c.logs, nil))
	c.store = db
	c.access = access.New(db.Access(), hasher, c.clock, logger)
	c.tenancy = tenancy.New(db.Tenancy(), hasher, c.clock)
	c.sessions = session.New(db.Access(), session.Options{Clock: c.clock, Logger: logger})
	if made, err := c.tenancy.EnsureAdministrator(t.Context(), "root@example.com", password); err != nil || !made {
		t.Fatalf("first administrator: %v, %v", made, err)
	}
	c.admin, err = c.access.SignIn(t.Context(), "Root@Example.com", password, "192.0.2.1:1")
	must(t, err)
	ctx := t.Context()
	c.acme, err = c.tenancy.CreateClient(ctx, c.admin, "acme")
	must(t, err)
	c.zeta, err = c.tenancy.CreateClient(ctx, c.admin, "zeta")
	must(t, err)
	c.prod, err = c.tenancy.CreateEnvironment(ctx, c.admin, c.acme.ID, "prod")
	must(t, err)
	c.test, err = c.tenancy.CreateEnvironment(ctx, c.admin, c.acme.ID, "test")
	must(t, err)
	c.zetaProd, err = c.tenancy.CreateEnvironment(ctx, c.admin, c.zeta.ID, "prod")
	must(t, err)
	keys, err := natsauth.LoadOrCreate(t.TempDir())
	must(t, err)
	authority, err := natsauth.New(keys, 0)
	must(t, err)
	api, err := httpapi.New(httpapi.Config{
		Access: c.access, Sessions: c.sessions, Tenancy: c.tenancy,
		Enrollment: enrollment.New(enrollment.Config{
			Store: db.Enrollment(), Authority: authority, Fleet: db.Fleet(), Clock: c.clock, Logger: logger,
		}),
		Onboarding: attempts(c),
		Inventory:  inventory.New(inventory.Config{Store: db.Inventory(), Clock: c.clock, Logger: logger}),
		Fleet:      fleet.New(fleet.Config{Store: db.Fleet(), Revoker: noRevoker{}, Commander: obedient{db.Fleet(), c.clock}, Clock: c.clock, Logger: logger}),
		Health:     measured(db, c.clock, logger),
		Audit:      trail.New(trail.Config{Store: db.Audit(), Clock: c.clock, Logger: logger, Retention: 365 * 24 * time.Hour}),
		Clock:      c.clock, Logger: logger,
	})
	must(t, err)
	c.handler = c.sessions.Middleware(api, httpapi.Refuse(logger))
	return c
}

// user makes a user with a role on a scope ("" for none) and answers an API token.
func (c *console) user(name, roleID string, scope access.Scope) string {
	c.t.Helper()
	u, err := c.tenancy.CreateUser(c.t.Context(), c.admin, name+"@example.com", name, password)
	must(c.t, err)
	if roleID != "" {
		_, err = c.tenancy.Assign(c.t.Context(), c.admin, u.ID, roleID, scope)
		must(c.t, err)
	}
	return c.token(u.ID, 0)
}

func (c *console) token(userID string, lifetime time.Duration) string {
	c.t.Helper()
	p, err := c.access.Principal(c.t.Context(), userID)
	must(c.t, err)
	_, plain, err := c.access.MintAPIToken(c.t.Context(), p, "test", lifetime)
	must(c.t, err)
	return plain
}

// call sends a request; body "" sends none. It checks that every refusal is a whole problem.
func (c *console) call(token, method, path, body string) (reply, map[string]any) {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return c.send(r)
}

func (c *console) send(r *http.Request) (reply, map[string]any) {
	c.t.Helper()
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	res := reply{StatusCode: w.Code, Header: w.Header()}
	raw := w.Body.Bytes()
	answer := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &answer); err != nil && res.Header.Get("Content-Type") != "application/x-ndjson" {
			c.t.Errorf("%s %s answers %q, which is no JSON object", r.Method, r.URL.Path, raw)
		}
	}
	if res.StatusCode >= 400 {
		if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
			c.t.Errorf("%s %s: status %d with content type %q", r.Method, r.URL.Path, res.StatusCode, got)
		}
		for _, name := range []string{"type", "title", "status", "code", "detail", "cure"} {
			if answer[name] == nil || answer[name] == "" {
				c.t.Errorf("%s %s: the problem has no %s: %s", r.Method, r.URL.Path, name, raw)
			}
		}
		if answer["status"] != float64(res.StatusCode) {
			c.t.Errorf("%s %s: status %v in the body, %d in the head", r.Method, r.URL.Path, answer["status"], res.StatusCode)
		}
	}
	if res.Header.Get("Cache-Control") != "no-store" && !strings.Contains(r.URL.Path, "openapi.json") && !strings.Contains(strings.Join(res.Header.Values("Cache-Control"), ","), "no-store") {
		c.t.Errorf("%s %s may be cached: %q", r.Method, r.URL.Path, res.Header.Values("Cache-Control"))
	}
	return res, answer
}

// reply is the head of an answer.
type reply struct {
	StatusCode int
	Header     http.Header
}

// Cookies reads the cookies that the answer sets.
func (r reply) Cookies() []*http.Cookie { return (&http.Response{Header: r.Header}).Cookies() }

// as is v as a T, or the zero value, which then fails the test's own check.
func as[T any](v any) T {
	t, _ := v.(T)
	return t
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type noRevoker struct{}

func (noRevoker) Revoke(context.Context, string) error { return nil }

// obedient stands for agents that do what they are asked.
type obedient struct {
	store fleet.Store
	clock *clocktest.Manual
}

func (o obedient) Command(ctx context.Context, agentID string, _ wire.Command) (wire.CommandReply, error) {
	now := o.clock.Now()
	return wire.CommandReply{OK: true}, o.store.RenewCredential(ctx, agentID, 1, now, now.Add(time.Hour))
}

// oneAttempt is an onboarding that knows one attempt.
type oneAttempt struct{ attempt onboarding.Attempt }

func (o oneAttempt) Record(_ context.Context, p access.Principal, clientID, environmentID, _ string) (onboarding.Recorded, error) {
	err := p.Require(access.HostsWrite, access.Scope{ClientID: clientID, EnvironmentID: environmentID}, "environment "+environmentID)
	return onboarding.Recorded{Attempt: o.attempt, TokenNote: "A token was minted.", Plain: "pit_x"}, err
}

func (o oneAttempt) List(_ context.Context, p access.Principal, _ string, _ bool) ([]onboarding.Attempt, error) {
	if p.Allows(access.HostsRead, o.attempt.Scope()) {
		return []onboarding.Attempt{o.attempt}, nil
	}
	return nil, nil
}

func (o oneAttempt) Status(_ context.Context, p access.Principal, id string) (onboarding.Status, error) {
	return onboarding.Status{Attempt: o.attempt, CheckedAt: o.attempt.CreatedAt, Inventory: gate.Track{Owner: "you"}},
		p.Require(access.HostsRead, o.attempt.Scope(), "attempt "+id)
}

func (o oneAttempt) Abandon(_ context.Context, p access.Principal, id string) error {
	if err := p.Require(access.HostsRead, o.attempt.Scope(), "attempt "+id); err != nil {
		return err
	}
	return p.Require(access.HostsWrite, o.attempt.Scope(), "attempt "+id)
}

func (o oneAttempt) Command(_ context.Context, p access.Principal, id, plain string) (onboarding.Command, error) {
	return onboarding.Command{Method: "manifest", Text: "kubectl apply " + plain}, p.Require(access.HostsRead, o.attempt.Scope(), "attempt "+id)
}
