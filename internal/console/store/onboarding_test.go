package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
)

func TestRecordingAtOnceMakesOneAttempt(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Onboarding()
		house(t, db)
		// What the domain does: look, insert, and look again where somebody was faster.
		record := func(id string) (got onboarding.Attempt, err error) {
			err = s.InTx(ctx, func(x onboarding.Tx) error {
				got, err = x.AttemptBySlug(ctx, "acme-prod", "alpha")
				if !errors.Is(err, onboarding.ErrNotFound) {
					return err
				}
				got = attempt(id, "alpha")
				if err := x.InsertAttempt(ctx, got); err != nil {
					return err
				}
				return x.InsertToken(ctx, token("t"+id), hashOf(id))
			})
			return got, err
		}
		ids := make(chan string)
		for i := range 16 {
			go func() {
				got, err := record(fmt.Sprint(i))
				if err != nil {
					t.Error(err)
				}
				ids <- got.ID
			}()
		}
		first := <-ids
		for range 15 {
			if other := <-ids; other != first {
				t.Errorf("attempts %s and %s", first, other)
			}
		}
		all, err := s.Attempts(ctx, "acme", access.Reach{All: true}, false)
		if err != nil || len(all) != 1 {
			t.Errorf("%d attempts, %v", len(all), err)
		}
		if tokens, n, err := db.Enrollment().Tokens(ctx, enrollment.TokenQuery{ClientID: "acme", Reach: access.Reach{All: true}, Limit: 10}); err != nil || len(tokens) != 1 || n != 1 {
			t.Errorf("%d tokens, %v", len(tokens), err)
		}
	})
}

func TestRemovingAClusterFreesItsSlug(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Onboarding()
		house(t, db)
		putAttempt(t, db, attempt("o", "alpha"))
		putCluster(t, db, cluster("c", "alpha"))
		apply(t, db, inventory.Change{ClusterID: "c", Upsert: pods(3)})
		err := s.InTx(ctx, func(x onboarding.Tx) error { return x.InsertAttempt(ctx, attempt("p", "alpha")) })
		if !errors.Is(err, onboarding.ErrTaken) {
			t.Errorf("a second attempt: %v", err)
		}
		write(t, db, func(x *tx) error { return x.DeleteCluster(ctx, "c", after(time.Hour)) })
		if got, err := s.Attempt(ctx, "o"); err != nil || !got.ArchivedAt.Equal(after(time.Hour)) {
			t.Errorf("%+v, %v", got, err)
		}
		if hashes, err := db.Inventory().Hashes(ctx, "c"); err != nil || len(hashes) != 0 {
			t.Errorf("%d objects are left, %v", len(hashes), err)
		}
		putAttempt(t, db, attempt("p", "alpha"))
		write(t, db, func(x *tx) error {
			got, err := x.AttemptBySlug(ctx, "acme-prod", "alpha")
			if got.ID != "p" {
				t.Errorf("the attempt on the slug is %q", got.ID)
			}
			return err
		})
	})
}

func TestRowsOfAnAttempt(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Onboarding()
		house(t, db)
		putAttempt(t, db, attempt("o", "alpha"))
		first, second, foreign := token("t1"), token("t2"), token("t3")
		first.OnboardingID, second.OnboardingID = "o", "o"
		first.First, second.CreatedAt = true, after(time.Minute)
		for _, one := range []enrollment.Token{second, first, foreign} {
			putToken(t, db, one)
		}
		putAgent(t, db, collector("b", "alpha", "t2"))
		putAgent(t, db, collector("a", "other-slug", "t1")) // enrolled by the attempt's token, whatever its slug
		putAgent(t, db, collector("x", "alpha", "t3"))
		if err := db.Enrollment().PutFindings(ctx, enrollment.Findings{TokenID: "t1", AgentName: "a", ReceivedAt: noon}); err != nil {
			t.Fatal(err)
		}
		before, err := s.Rows(ctx, "o")
		if err != nil {
			t.Fatal(err)
		}
		if before.Cluster != nil || len(before.Tokens) != 2 || before.Tokens[0].ID != "t1" || len(before.Collectors) != 2 || before.Collectors[0].ID != "a" || len(before.Findings) != 1 {
			t.Errorf("before the cluster: %+v", before)
		}
		mine, same, other := cluster("c", "alpha"), cluster("d", "beta"), cluster("e", "gamma")
		same.UID = mine.UID
		for _, c := range []inventory.Cluster{mine, same, other} {
			putCluster(t, db, c)
		}
		rows, err := s.Rows(ctx, "o")
		if err != nil {
			t.Fatal(err)
		}
		if rows.Cluster == nil || rows.Cluster.ID != "c" || len(rows.SameUID) != 1 || rows.SameUID[0].ID != "d" {
			t.Errorf("with the cluster: %+v", rows)
		}
		if rows.Attempt.ClientName != "Client acme" || rows.Attempt.EnvironmentName != "prod" || rows.Attempt.CreatedByName != "User ann" {
			t.Errorf("names are missing: %+v", rows.Attempt)
		}
		if _, err := s.Rows(ctx, "none"); !errors.Is(err, onboarding.ErrNotFound) {
			t.Errorf("rows of no attempt: %v", err)
		}
	})
}

func TestAProofIsStampedOnce(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Onboarding()
		house(t, db)
		putAttempt(t, db, attempt("o", "alpha"))
		put := func(at time.Duration, passed int, done time.Time) {
			t.Helper()
			if err := s.PutStatus(ctx, "o", onboarding.Summary{Passed: passed, Gate: "first"}, after(at), done); err != nil {
				t.Fatal(err)
			}
		}
		put(2*time.Minute, 4, after(2*time.Minute))
		put(1*time.Minute, 1, time.Time{})          // checked before, written after
		put(1*time.Minute, 4, after(1*time.Minute)) // does not move the stamp
		put(3*time.Minute, 3, time.Time{})          // a later failure does not clear it
		got, err := s.Attempt(ctx, "o")
		if err != nil {
			t.Fatal(err)
		}
		if !got.InventoryDoneAt.Equal(after(2*time.Minute)) || !got.LastCheckedAt.Equal(after(3*time.Minute)) {
			t.Errorf("%+v", got)
		}
		if diff := cmp.Diff(&onboarding.Summary{Passed: 3, Gate: "first"}, got.LastStatus); diff != "" {
			t.Error(diff)
		}
	})
}

func TestListsOfAttempts(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Onboarding()
		db.clock = clocktest.New(after(24 * time.Hour))
		house(t, db)
		change := map[string]func(*onboarding.Attempt){
			"new":       func(*onboarding.Attempt) {},
			"checked":   func(a *onboarding.Attempt) { a.LastCheckedAt = after(24 * time.Hour) },
			"abandoned": func(a *onboarding.Attempt) { a.AbandonedAt = noon },
			"archived":  func(a *onboarding.Attempt) { a.ArchivedAt = noon },
			"done": func(a *onboarding.Attempt) {
				a.InventoryDoneAt, a.LastCheckedAt = noon, after(23*time.Hour+time.Minute)
			},
			"done-old": func(a *onboarding.Attempt) { a.InventoryDoneAt, a.LastCheckedAt = noon, after(22*time.Hour) },
			"test":     func(a *onboarding.Attempt) { a.EnvironmentID = "acme-test" },
		}
		for i, id := range []string{"new", "checked", "abandoned", "archived", "done", "done-old", "test"} {
			a := attempt(id, id)
			a.CreatedAt = after(time.Duration(i) * time.Minute)
			change[id](&a)
			putAttempt(t, db, a)
		}
		ids := func(reach access.Reach, unfinished bool) []string {
			t.Helper()
			found, err := s.Attempts(ctx, "", reach, unfinished)
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, a := range found {
				all = append(all, a.ID)
			}
			return all
		}
		if diff := cmp.Diff([]string{"test", "done-old", "done", "archived", "abandoned", "checked", "new"}, ids(access.Reach{All: true}, false)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"test", "checked", "new"}, ids(access.Reach{All: true}, true)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"test"}, ids(access.Reach{Scopes: []access.Scope{{ClientID: "acme", EnvironmentID: "acme-test"}}}, false)); diff != "" {
			t.Error(diff)
		}
		open, err := s.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(open)
		if diff := cmp.Diff([]string{"checked", "done-old", "new", "test"}, open); diff != "" {
			t.Error(diff)
		}
		write(t, db, func(x *tx) error { return x.SetAbandoned(ctx, "new", noon) })
		if got, err := s.Attempt(ctx, "new"); err != nil || !got.AbandonedAt.Equal(noon) {
			t.Errorf("%+v, %v", got, err)
		}
		write(t, db, func(x *tx) error { return x.SetAbandoned(ctx, "new", time.Time{}) })
		if got, err := s.Attempt(ctx, "new"); err != nil || !got.AbandonedAt.IsZero() {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestALeaseHasOneHolder(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Onboarding()
		answers := make(chan bool)
		for i := range 8 {
			go func() {
				ok, err := s.Lease(ctx, "evaluation", fmt.Sprint("replica-", i), noon, after(time.Minute))
				if err != nil {
					t.Error(err)
				}
				answers <- ok
			}()
		}
		held := 0
		for range 8 {
			if <-answers {
				held++
			}
		}
		if held != 1 {
			t.Fatalf("%d hold the lease", held)
		}
		take := func(holder string, now, until time.Duration, want bool) {
			t.Helper()
			if ok, err := s.Lease(ctx, "evaluation", holder, after(now), after(until)); err != nil || ok != want {
				t.Errorf("%s at %v: %v, %v", holder, now, ok, err)
			}
		}
		take("late", time.Minute, 2*time.Minute, true)       // it was over
		take("other", 90*time.Second, 3*time.Minute, false)  // held
		take("late", 90*time.Second, 3*time.Minute, true)    // extended
		take("other", 150*time.Second, 4*time.Minute, false) // still held
		take("other", 3*time.Minute, 4*time.Minute, true)    // over again
		if ok, err := s.Lease(ctx, "another", "x", noon, after(time.Minute)); err != nil || !ok {
			t.Errorf("another lease: %v, %v", ok, err)
		}
	})
}
