package store

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/console/tenancy"
)

func TestSessionsEndByTimeByNameAndWithTheirUser(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Access()
		house(t, db)
		put := func(hash string, ends time.Time, userID string) {
			t.Helper()
			put := access.Session{
				ID: "id of " + hash, TokenHash: hash, UserID: userID, Data: []byte{0, 1, 255}, CreatedAt: noon, SeenAt: noon, ExpiresAt: ends,
				RemoteAddr: "192.0.2.1", UserAgent: "Firefox",
			}
			err := s.UpdateSession(ctx, put)
			if errors.Is(err, access.ErrNotFound) {
				err = s.InsertSession(ctx, put)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		there := func(hash string, at time.Time) bool {
			t.Helper()
			got, err := s.Session(ctx, hash, at)
			if err != nil && !errors.Is(err, access.ErrNotFound) {
				t.Fatal(err)
			}
			if err == nil && (len(got.Data) != 3 || got.TokenHash != hash) {
				t.Errorf("session came back as %+v", got)
			}
			return err == nil
		}
		put("anonymous", after(time.Hour), "")
		put("anns", after(time.Hour), "")
		put("anns", after(2*time.Hour), "ann") // signed in: the same session has a user now
		put("short", after(time.Minute), "ann")
		if !there("short", after(59*time.Second)) || there("short", after(time.Minute)) {
			t.Error("a session does not end at its time")
		}
		if err := s.DeleteExpiredSessions(ctx, after(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if there("short", noon) {
			t.Error("the expired session is still there")
		}
		listed, err := s.Sessions(ctx, "ann", noon)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]access.Session{{
			ID: "id of anns", TokenHash: "anns", UserID: "ann", Data: []byte{0, 1, 255}, CreatedAt: noon, SeenAt: noon, ExpiresAt: after(2 * time.Hour),
			RemoteAddr: "192.0.2.1", UserAgent: "Firefox",
		}}, listed); diff != "" {
			t.Error(diff)
		}
		put("anns second", after(time.Hour), "ann")
		write(t, db, func(x *tx) error {
			if err := x.DeleteSessionOfUser(ctx, "bob", "id of anns"); !errors.Is(err, access.ErrNotFound) {
				t.Errorf("another's session: %v", err)
			}
			return x.DeleteSessionOfUser(ctx, "ann", "id of anns second")
		})
		if there("anns second", noon) || !there("anns", noon) {
			t.Error("not exactly the one session was deleted")
		}
		write(t, db, func(x *tx) error { return x.DeleteSessionsOfUser(ctx, "ann") })
		if there("anns", noon) || !there("anonymous", noon) {
			t.Error("not exactly the user's sessions were deleted")
		}
		if err := s.DeleteSession(ctx, "anonymous"); err != nil {
			t.Fatal(err)
		}
		if there("anonymous", noon) {
			t.Error("the session is still there")
		}
		nobodys := access.Session{ID: "x", TokenHash: "x", UserID: "nobody", CreatedAt: noon, SeenAt: noon, ExpiresAt: noon}
		if err := s.InsertSession(ctx, nobodys); !errors.Is(err, access.ErrNotFound) {
			t.Errorf("a session of nobody: %v", err)
		}
	})
}

func TestRevokeAPITokensOfUser(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		house(t, db)
		write(t, db, func(x *tx) error { return x.InsertUser(t.Context(), user("bob")) })
		for _, token := range []access.APIToken{
			{ID: "endless", UserID: "ann"},
			{ID: "live", UserID: "ann", ExpiresAt: after(time.Hour)},
			{ID: "expired", UserID: "ann", ExpiresAt: after(time.Minute)},
			{ID: "revoked", UserID: "ann", RevokedAt: noon},
			{ID: "bob's", UserID: "bob"},
		} {
			token.CreatedAt = noon
			write(t, db, func(x *tx) error { return x.InsertAPIToken(t.Context(), token, hashOf(token.ID)) })
		}
		for _, want := range []int{2, 0} {
			write(t, db, func(x *tx) error {
				n, err := x.RevokeAPITokensOfUser(t.Context(), "ann", after(time.Minute))
				if n != want {
					t.Errorf("%d tokens ended, want %d", n, want)
				}
				return err
			})
		}
		for id, at := range map[string]time.Time{"endless": after(time.Minute), "live": after(time.Minute), "expired": {}, "revoked": noon, "bob's": {}} {
			if token, err := db.Access().APITokenByHash(t.Context(), hashOf(id)); err != nil || !token.RevokedAt.Equal(at) {
				t.Errorf("%s: revoked at %v, %v", id, token.RevokedAt, err)
			}
		}
	})
}

// TestRevokingATokenAtOnce: its owner and an administrator revoke one token ten times, and the log tells
// of one revocation.
func TestRevokingATokenAtOnce(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		house(t, db)
		owner := access.New(db.Access(), nil, clock.System(), slog.New(slog.DiscardHandler))
		ann := access.Principal{UserID: "ann", Email: "ann@example.org"}
		token, _, err := owner.MintAPIToken(ctx, ann, "ci", 0)
		if err != nil {
			t.Fatal(err)
		}
		administrator := tenancy.New(db.Tenancy(), nil, clock.System())
		root := access.Principal{UserID: "root", Grants: []access.Grant{{Permissions: []access.Permission{access.UsersWrite}}}}
		const times = 10
		errs := make(chan error, times)
		for i := range times {
			go func() {
				if i%2 == 0 {
					errs <- owner.RevokeAPIToken(ctx, ann, token.ID)
				} else {
					errs <- administrator.RevokeAPIToken(ctx, root, "ann", token.ID)
				}
			}()
		}
		for range times {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		events, err := one(ctx, db.plain().raw, "SELECT COUNT(*) FROM audit_events WHERE action = 'api_token_revoked'", nil,
			func(r *sql.Rows) (n int, err error) { return n, r.Scan(&n) })
		if err != nil || events != 1 {
			t.Errorf("%d revocations in the log (%v)", events, err)
		}
	})
}

func TestAPITokens(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Access()
		house(t, db)
		token := access.APIToken{ID: "t", UserID: "ann", Name: "ci", Prefix: "pat_", CreatedAt: noon}
		write(t, db, func(x *tx) error { return x.InsertAPIToken(ctx, token, hashOf("t")) })
		for _, at := range []time.Duration{2 * time.Minute, time.Minute} { // the earlier use does not move it back
			if err := s.TouchAPIToken(ctx, "t", after(at)); err != nil {
				t.Fatal(err)
			}
		}
		for _, at := range []time.Duration{time.Hour, 2 * time.Hour} { // the first revocation counts
			write(t, db, func(x *tx) error { return x.RevokeAPIToken(ctx, "ann", "t", after(at)) })
		}
		token.LastUsedAt, token.RevokedAt = after(2*time.Minute), after(time.Hour)
		got, err := s.APITokenByHash(ctx, hashOf("t"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(token, got); diff != "" {
			t.Error(diff)
		}
		if all, err := s.APITokens(ctx, "ann"); err != nil || len(all) != 1 {
			t.Errorf("%v, %v", all, err)
		}
		err = db.inTx(ctx, func(x *tx) error { return x.RevokeAPIToken(ctx, "bob", "t", noon) })
		if !errors.Is(err, tenancy.ErrNotFound) {
			t.Errorf("another user's token: %v", err)
		}
		if _, err := s.APITokenByHash(ctx, hashOf("u")); !errors.Is(err, access.ErrNotFound) {
			t.Errorf("an unknown token: %v", err)
		}
	})
}

func TestSignInAttemptsAreCountedAndForgotten(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Access()
		done := make(chan error)
		for i := range 10 {
			go func() {
				_, err := s.RecordAttempt(ctx, []access.AttemptLimit{{Key: "ann", Most: 11}, {Key: "here", Most: 11}}, noon, after(time.Duration(i)*time.Minute))
				done <- err
			}()
		}
		for range 10 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		expect := func(key string, since time.Time, want int) {
			t.Helper()
			if n, err := s.CountAttempts(ctx, key, since); err != nil || n != want {
				t.Errorf("%d attempts of %s since %v, want %d (%v)", n, key, since, want, err)
			}
		}
		expect("ann", noon, 10)
		expect("ann", time.Time{}, 10)
		expect("ann", after(8*time.Minute), 2)
		expect("bob", noon, 0)
		if err := s.ForgetAttempts(ctx, after(5*time.Minute)); err != nil {
			t.Fatal(err)
		}
		expect("ann", time.Time{}, 5)
		expect("here", time.Time{}, 5)
		if err := s.ClearAttempts(ctx, []string{"ann"}, "here", after(7*time.Minute)); err != nil {
			t.Fatal(err)
		}
		expect("here", time.Time{}, 4)
		expect("ann", time.Time{}, 0)
	})
}

// TestVolleyOfSignIns: of 300 guesses at once from one address as many are counted against the account as one
// address may make, and as many passwords are looked at.
func TestVolleyOfSignIns(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		hasher, err := access.NewHasher(access.Cost{MemoryKiB: 64, Iterations: 1, Parallelism: 1})
		if err != nil {
			t.Fatal(err)
		}
		s := access.New(db.Access(), hasher, clock.System(), slog.New(slog.DiscardHandler))
		const volley = 300
		answers := make(chan string, volley)
		for range volley {
			go func() {
				_, err := s.SignIn(ctx, "ann@example.org", "wrong", "192.0.2.1:5")
				if problem.CodeOf(err) == "" {
					t.Error(err)
				}
				answers <- problem.CodeOf(err)
			}()
		}
		codes := map[string]int{}
		for range volley {
			codes[<-answers]++
		}
		if codes["sign_in_failed"] != access.AttemptsPerAccount || codes["too_many_attempts"] != volley-access.AttemptsPerAccount {
			t.Errorf("the answers: %v", codes)
		}
		for _, key := range []string{"account ann@example.org", "account ann@example.org from 192.0.2.1", "address 192.0.2.1"} {
			if n, err := db.Access().CountAttempts(ctx, key, time.Time{}); err != nil || n != access.AttemptsPerAccount {
				t.Errorf("%d counted under %q, want %d (%v)", n, key, access.AttemptsPerAccount, err)
			}
		}
	})
}

func TestReplicasAgreeOnSettings(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		if _, err := db.GetSetting(ctx, "id"); !errors.Is(err, ErrNoSetting) {
			t.Errorf("got %v", err)
		}
		answers := make(chan string)
		for i := range 8 {
			go func() {
				stored, err := db.PutSettingIfAbsent(ctx, "id", fmt.Appendf(nil, "replica %d", i))
				if err != nil {
					t.Error(err)
				}
				answers <- string(stored)
			}()
		}
		first := <-answers
		for range 7 {
			if other := <-answers; other != first {
				t.Errorf("one replica got %q, another %q", first, other)
			}
		}
		if stored, err := db.GetSetting(ctx, "id"); err != nil || string(stored) != first {
			t.Errorf("stored %q, %v", stored, err)
		}
	})
}
