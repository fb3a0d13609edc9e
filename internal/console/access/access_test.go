package access_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/console/store"
	"prxm.uz/proxima/internal/console/tenancy"
)

const (
	email    = "ann@example.com"
	password = "correct horse battery"
)

// recording notes the audit events that go to the real store.
type recording struct {
	access.Store
	events []string
}

func (r *recording) InTx(ctx context.Context, f func(access.Tx) error) error {
	return r.Store.InTx(ctx, func(tx access.Tx) error { return f(recordingTx{tx, r}) })
}

type recordingTx struct {
	access.Tx
	of *recording
}

func (t recordingTx) AppendAudit(ctx context.Context, e audit.Event) error {
	t.of.events = append(t.of.events, string(e.Action)+" "+e.ResourceID)
	return t.Tx.AppendAudit(ctx, e)
}

type house struct {
	store   *recording
	access  *access.Service
	tenancy *tenancy.Service
	clock   *clocktest.Manual
}

func newHouse(t *testing.T) house {
	t.Helper()
	c := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "proxima.db"), Clock: c})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	hasher, err := access.NewHasher(access.Cost{MemoryKiB: 64, Iterations: 1, Parallelism: 1})
	must(t, err)
	recorded := &recording{Store: db.Access()}
	h := house{store: recorded, access: access.New(recorded, hasher, c, slog.New(slog.DiscardHandler)), tenancy: tenancy.New(db.Tenancy(), hasher, c), clock: c}
	_, err = h.tenancy.EnsureAdministrator(t.Context(), email, password)
	must(t, err)
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSignIn(t *testing.T) {
	h := newHouse(t)
	p, err := h.access.SignIn(t.Context(), " ANN@Example.com ", password, "192.0.2.1:5")
	must(t, err)
	if p.Email != email || !p.Allows(access.UsersWrite, access.Scope{}) || p.RemoteAddr != "192.0.2.1:5" {
		t.Errorf("signed in as %+v", p)
	}
	_, wrong := h.access.SignIn(t.Context(), email, "wrong", "192.0.2.1:5")
	_, unknown := h.access.SignIn(t.Context(), "nobody@example.com", "wrong", "192.0.2.1:5")
	if problem.CodeOf(wrong) != "sign_in_failed" || wrong.Error() != unknown.Error() {
		t.Errorf("wrong password: %v; unknown user: %v; want one answer", wrong, unknown)
	}
}

func TestSignInIsThrottled(t *testing.T) {
	h := newHouse(t)
	var mu sync.Mutex
	codes := map[string]int{}
	var wait sync.WaitGroup
	for range 30 {
		wait.Go(func() {
			_, err := h.access.SignIn(context.WithoutCancel(t.Context()), email, "wrong", "192.0.2.1:5")
			mu.Lock()
			defer mu.Unlock()
			codes[problem.CodeOf(err)]++
		})
	}
	wait.Wait()
	if codes["sign_in_failed"] > access.AttemptsPerAccount || codes["sign_in_failed"]+codes["too_many_attempts"] != 30 {
		t.Errorf("30 guesses at once: %v", codes)
	}
	_, err := h.access.SignIn(t.Context(), email, password, "192.0.2.1:6")
	if !problem.Is(err, problem.TooMany) {
		t.Fatalf("the right password while throttled: %v", err)
	}
	if e, ok := err.(*problem.Error); !ok || e.RetryAfterSeconds < 60 || e.RetryAfterSeconds > 15*60 { //nolint:errorlint // not wrapped
		t.Errorf("retry after: %v", err)
	}
	if _, err := h.access.SignIn(t.Context(), email, password, "198.51.100.1:5"); err != nil {
		t.Errorf("the owner is locked out from elsewhere: %v", err)
	}
	h.clock.Advance(access.AttemptWindow + time.Second)
	if _, err := h.access.SignIn(t.Context(), email, password, "192.0.2.1:5"); err != nil {
		t.Errorf("after the window: %v", err)
	}
}

// One account is guessed at from many addresses, each within its own limit.
func TestGuessesFromManyAddressesAreThrottled(t *testing.T) {
	h := newHouse(t)
	for i := range access.AttemptsFromAnywhere {
		if _, err := h.access.SignIn(t.Context(), email, "wrong", fmt.Sprintf("192.0.2.%d:5", i%50)); problem.CodeOf(err) != "sign_in_failed" {
			t.Fatalf("guess %d: %v", i, err)
		}
	}
	if _, err := h.access.SignIn(t.Context(), email, "wrong", "198.51.100.1:5"); !problem.Is(err, problem.TooMany) {
		t.Errorf("one more: %v", err)
	}
	must(t, h.access.Forget(t.Context()))
	if _, err := h.access.SignIn(t.Context(), email, "wrong", "198.51.100.1:5"); !problem.Is(err, problem.TooMany) {
		t.Errorf("those that count were forgotten: %v", err)
	}
}

// A volley for many accounts at once gets no further than one after the other would.
func TestAddressIsThrottled(t *testing.T) {
	h := newHouse(t)
	var checked atomic.Int64
	var wait sync.WaitGroup
	for i := range 2 * access.AttemptsPerAddress {
		wait.Go(func() {
			_, err := h.access.SignIn(t.Context(), fmt.Sprintf("x%d@example.com", i), "wrong", "[2001:db8::1]:5")
			if problem.CodeOf(err) == "sign_in_failed" {
				checked.Add(1)
			}
		})
	}
	wait.Wait()
	if n := checked.Load(); n > access.AttemptsPerAddress {
		t.Errorf("%d passwords were checked", n)
	}
	for range access.AttemptsPerAddress {
		_, _ = h.access.SignIn(t.Context(), "y@example.com", "wrong", "[2001:db8::1]:5")
	}
	if _, err := h.access.SignIn(t.Context(), email, password, "[2001:db8::2]:5"); !problem.Is(err, problem.TooMany) {
		t.Errorf("the same /64: %v", err)
	}
	if _, err := h.access.SignIn(t.Context(), email, password, "[2001:db8:1::1]:5"); err != nil {
		t.Errorf("another /64: %v", err)
	}
}

// Many people behind one address who sign in well use none of its count.
func TestSuccessIsNotCounted(t *testing.T) {
	h := newHouse(t)
	for i := range 2 * access.AttemptsPerAddress {
		h.clock.Advance(time.Second)
		if _, err := h.access.SignIn(t.Context(), email, password, "192.0.2.1:5"); err != nil {
			t.Fatalf("sign-in %d: %v", i, err)
		}
	}
}

func TestAPITokens(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	p, err := h.access.SignIn(ctx, email, password, "")
	must(t, err)
	minted, plain, err := h.access.MintAPIToken(ctx, p, "ci", time.Hour)
	must(t, err)
	if !strings.HasPrefix(plain, "pat_") || len(plain) != 36 || !strings.HasPrefix(plain, minted.Prefix) || len(minted.Prefix) > 10 {
		t.Errorf("token %q with prefix %q", plain, minted.Prefix)
	}
	got, err := h.access.PrincipalOfToken(ctx, plain, "192.0.2.1")
	must(t, err)
	if got.UserID != p.UserID || got.APITokenID != minted.ID {
		t.Errorf("acts as %+v", got)
	}
	refused := func(why, code string) {
		t.Helper()
		if _, err := h.access.PrincipalOfToken(ctx, plain, ""); !problem.Is(err, problem.Unauthenticated) || problem.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", why, err, code)
		}
	}
	h.clock.Advance(time.Hour)
	refused("expired", "api_token_expired")
	minted, plain, err = h.access.MintAPIToken(ctx, p, "ci", 0)
	must(t, err)
	for range 2 { // the second changes nothing, and is no event
		must(t, h.access.RevokeAPIToken(ctx, p, minted.ID))
	}
	refused("revoked", "api_token_revoked")
	if got := h.store.events; len(got) != 4 || got[0] != "signed_in "+p.UserID || got[2] != "api_token_minted "+minted.ID || got[3] != "api_token_revoked "+minted.ID {
		t.Errorf("audited: %v", got)
	}

	u, err := h.tenancy.CreateUser(ctx, p, "bob@example.com", "Bob", password)
	must(t, err)
	bob, err := h.access.Principal(ctx, u.ID)
	must(t, err)
	if err := h.access.RevokeAPIToken(ctx, bob, minted.ID); !problem.Is(err, problem.NotFound) {
		t.Errorf("revoking another's token: %v", err)
	}
	_, plain, err = h.access.MintAPIToken(ctx, bob, "bob", 0)
	must(t, err)
	_, err = h.tenancy.UpdateUser(ctx, p, u.ID, tenancy.UserPatch{Active: new(false)})
	must(t, err)
	refused("deactivated", "api_token_revoked")
	_, plain, err = h.access.MintAPIToken(ctx, bob, "bob", 0) // by a request that was under way
	must(t, err)
	refused("deactivated, and minted in that moment", "account_deactivated")
	_, err = h.tenancy.UpdateUser(ctx, p, u.ID, tenancy.UserPatch{Active: new(true)})
	must(t, err)
	refused("reactivated", "api_token_revoked")
}

func TestPasswordRules(t *testing.T) {
	for password, ok := range map[string]bool{
		strings.Repeat("a", 11): false, strings.Repeat("a", 12): true, strings.Repeat("é", 200): true, strings.Repeat("a", 201): false,
		strings.Repeat(" ", 20): false, "abcdefghijk\x00l": false, "abcdefghijkl\xff": false,
	} {
		if err := access.CheckPassword(password); (err == nil) != ok {
			t.Errorf("%q: %v", password, err)
		}
	}
}
