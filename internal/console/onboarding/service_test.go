package onboarding_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/test/storetest"
)

var engines storetest.Engines

func TestMain(m *testing.M) {
	code, err := storetest.Main(m, &engines)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// book is the host names that the tests know.
type book map[string]string

func (b book) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	address, ok := b[host]
	if !ok {
		return nil, errors.New("no such host")
	}
	return []netip.Addr{netip.MustParseAddr(address)}, nil
}

// office is a Service on a real store, with a clock that tests move.
type office struct {
	*onboarding.Service
	t     *testing.T
	db    *storetest.Database
	clock *clocktest.Manual
}

// inOffices runs a test in an office of its own on each engine.
func inOffices(t *testing.T, f func(*testing.T, *office)) {
	t.Helper()
	engines.Each(t, func(t *testing.T, db *storetest.Database) {
		db.House(t)
		c := clocktest.New(storetest.Noon())
		f(t, &office{
			Service: onboarding.New(onboarding.Config{
				Store: db.Onboarding(), Environments: db.Enrollment(), Clock: c, Logger: slog.New(slog.DiscardHandler),
				PublicURL: "https://console.example", SyncInterval: 5 * time.Minute, Resolver: book{"console.example": "203.0.113.5"},
			}),
			t: t, db: db, clock: c,
		})
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want holds an error to a kind and a code.
func want(t *testing.T, err error, kind problem.Kind, code string) {
	t.Helper()
	if !problem.Is(err, kind) || problem.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func grant(scope access.Scope, permissions ...access.Permission) access.Principal {
	return access.Principal{UserID: "usr_x", Email: "x@example.com", RemoteAddr: "192.0.2.9", Grants: []access.Grant{{Role: "r", Permissions: permissions, Scope: scope}}}
}

// writer may record in acme, reader may look there, neighbour may record in acme-test only, stranger may
// everything in zeta.
func writer() access.Principal {
	return grant(access.Scope{ClientID: "acme"}, access.HostsRead, access.HostsWrite)
}

func reader() access.Principal { return grant(access.Scope{ClientID: "acme"}, access.HostsRead) }

func neighbour() access.Principal {
	return grant(access.Scope{ClientID: "acme", EnvironmentID: "acme-test"}, access.HostsRead, access.HostsWrite)
}

func stranger() access.Principal {
	return grant(access.Scope{ClientID: "zeta"}, access.Permissions()...)
}

func (o *office) record(name string) onboarding.Recorded {
	o.t.Helper()
	r, err := o.Record(o.t.Context(), writer(), "acme", "acme-prod", name)
	must(o.t, err)
	return r
}

func (o *office) attempts() int { return o.db.Count(o.t, "SELECT COUNT(*) FROM onboardings") }

func (o *office) tokens() int { return o.db.Count(o.t, "SELECT COUNT(*) FROM install_tokens") }

func (o *office) status(id string) onboarding.Status {
	o.t.Helper()
	s, err := o.Status(o.t.Context(), reader(), id)
	must(o.t, err)
	return s
}

// enroll stores a collector that enrolled with the token.
func (o *office) enroll(agentID string, t *enrollment.Token) {
	o.t.Helper()
	ctx, now := o.t.Context(), o.clock.Now()
	must(o.t, o.db.Enrollment().InTx(ctx, func(tx enrollment.Tx) error {
		ok, err := tx.UseToken(ctx, t.ID, now)
		if err != nil || !ok {
			return fmt.Errorf("use: %v %w", ok, err)
		}
		return tx.InsertAgent(ctx, fleet.Agent{
			ID: agentID, ClientID: "acme", EnvironmentID: "acme-prod", Type: fleet.TypeCollector, ClusterSlug: "alpha", Name: agentID, PublicKey: "U" + agentID,
			EnrolledBy: t.ID, EnrolledAt: now, Version: "0.9.0", Capability: 1, Template: 1, CredentialIssuedAt: now, CredentialExpiresAt: now.Add(7 * 24 * time.Hour),
		})
	}))
}

// prove stores what makes all gates of an attempt on slug alpha pass.
func (o *office) prove(t *enrollment.Token) {
	o.t.Helper()
	ctx, now := o.t.Context(), o.clock.Now()
	o.enroll("agt-1", t)
	must(o.t, o.db.Fleet().RecordPulses(ctx, []fleet.Pulse{{AgentID: "agt-1", ReceivedAt: now}}))
	o.publish("agt-1")
}

// publish stores a first inventory of cluster alpha.
func (o *office) publish(agentID string) {
	o.t.Helper()
	ctx, now := o.t.Context(), o.clock.Now()
	must(o.t, o.db.Inventory().InTx(ctx, func(tx inventory.Tx) error {
		return tx.InsertCluster(ctx, inventory.Cluster{
			ID: "cls-1", ClientID: "acme", EnvironmentID: "acme-prod", Slug: "alpha", Name: "Alpha", UID: "uid-1", AgentID: agentID, FirstSyncAt: now, LastSyncAt: now,
		})
	}))
}

// TestWindows: package gate stands alone, so it cannot take the fleet's windows from there.
func TestWindows(t *testing.T) {
	if gate.HeartbeatWindow != fleet.StaleAfter || gate.PresenceWindow != fleet.PresentWithin {
		t.Errorf("gates judge by %s and %s, the fleet by %s and %s", gate.HeartbeatWindow, gate.PresenceWindow, fleet.StaleAfter, fleet.PresentWithin)
	}
}

func TestRecordIsIdempotent(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			ids   = map[string]int{}
			plain int
		)
		for range 8 {
			wg.Go(func() {
				r, err := o.Record(t.Context(), writer(), "acme", "acme-prod", " Alpha ")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				ids[r.Attempt.ID]++
				if r.Plain != "" {
					plain++
				} else if r.TokenNote == "" {
					t.Error("no token, and no note that says why")
				}
			})
		}
		wg.Wait()
		if len(ids) != 1 || plain != 1 || o.attempts() != 1 || o.tokens() != 1 || o.db.Audits(t, "onboarding_recorded") != 1 {
			t.Errorf("attempts %v, %d plain tokens, %d rows, %d tokens, %d audits", ids, plain, o.attempts(), o.tokens(), o.db.Audits(t, "onboarding_recorded"))
		}

		o.clock.Advance(7 * 24 * time.Hour)
		again := o.record("ALPHA")
		if !again.Resumed || again.Attempt.DisplayName != "Alpha" || ids[again.Attempt.ID] == 0 {
			t.Errorf("a week later: %+v", again)
		}
		// The token of the week before has expired, and nobody came in by it: a dead end is replaced.
		if again.Plain == "" || len(again.Notes) != 2 || o.tokens() != 2 {
			t.Errorf("a dead end: token %q, notes %q", again.TokenNote, again.Notes)
		}
		elsewhere, err := o.Record(t.Context(), writer(), "acme", "acme-test", "Alpha")
		must(t, err)
		if elsewhere.Resumed || elsewhere.Attempt.ID == again.Attempt.ID {
			t.Error("another environment resumed the attempt of the first")
		}
	})
}

func TestRecordKeepsAUsedToken(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		first := o.record("Alpha")
		o.enroll("agt-1", first.Token)
		o.clock.Advance(30 * 24 * time.Hour)
		again := o.record("Alpha")
		if again.Plain != "" || !strings.Contains(again.TokenNote, "has enrolled") || o.tokens() != 1 {
			t.Errorf("token note %q, %d tokens", again.TokenNote, o.tokens())
		}
		token, plain, err := o.AddToken(t.Context(), writer(), first.Attempt.ID)
		must(t, err)
		if token.ID == first.Token.ID || plain == "" || o.tokens() != 2 {
			t.Errorf("an added token: %+v", token)
		}
		for _, row := range o.db.Dump(t, "install_tokens") {
			if strings.Contains(strings.Join(row, " "), plain) {
				t.Error("the store holds the plain token")
			}
		}
	})
}

func TestRecordRefusals(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		for _, name := range []string{"", "   ", "Пром", "!!!", "a\x00b", "a\x1b[31mb", "\xff\xfe", "a\u200bb", "a\u00adb", "a\u202eb", "a\u200d", strings.Repeat("x", 101)} {
			if _, err := o.Record(t.Context(), writer(), "acme", "acme-prod", name); !problem.Is(err, problem.Unprocessable) || problem.CodeOf(err) != "name_invalid" {
				t.Errorf("%q: got %v, want name_invalid", name, err)
			}
		}
		for _, row := range []struct {
			who                 access.Principal
			client, environment string
			kind                problem.Kind
			code                string
		}{
			{reader(), "acme", "acme-prod", problem.Forbidden, "permission_missing"},
			{neighbour(), "acme", "acme-prod", problem.NotFound, "environment_not_found"},
			{stranger(), "acme", "acme-prod", problem.NotFound, "environment_not_found"},
			{writer(), "acme", "zeta-prod", problem.NotFound, "environment_not_found"},
			{writer(), "zeta", "acme-prod", problem.NotFound, "environment_not_found"},
			{writer(), "acme", "nowhere", problem.NotFound, "environment_not_found"},
		} {
			_, err := o.Record(t.Context(), row.who, row.client, row.environment, "Alpha")
			want(t, err, row.kind, row.code)
		}
		if o.attempts() != 0 || o.tokens() != 0 {
			t.Errorf("a refusal stored %d attempts and %d tokens", o.attempts(), o.tokens())
		}
	})
}

func TestWhoMayWhatWithAnAttempt(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		attemptID := o.record("Alpha").Attempt.ID
		verbs := map[string]func(access.Principal, string) error{
			"status": func(p access.Principal, id string) error {
				_, err := o.Status(t.Context(), p, id)
				return err
			},
			"command": func(p access.Principal, id string) error {
				_, err := o.Command(t.Context(), p, id, "")
				return err
			},
			"add token": func(p access.Principal, id string) error {
				_, _, err := o.AddToken(t.Context(), p, id)
				return err
			},
			"abandon": func(p access.Principal, id string) error { return o.Abandon(t.Context(), p, id) },
		}
		for verb, do := range verbs {
			want(t, do(stranger(), attemptID), problem.NotFound, "onboarding_not_found")
			want(t, do(neighbour(), attemptID), problem.NotFound, "onboarding_not_found")
			want(t, do(writer(), "onb_none"), problem.NotFound, "onboarding_not_found")
			if verb == "add token" || verb == "abandon" {
				want(t, do(reader(), attemptID), problem.Forbidden, "permission_missing")
			} else {
				must(t, do(reader(), attemptID))
			}
		}
		if o.tokens() != 1 || o.db.Audits(t, "onboarding_abandoned") != 0 {
			t.Error("somebody who may not has done it")
		}
		for who, n := range map[string]int{"writer": 1, "stranger": 0, "neighbour": 0} {
			p := map[string]access.Principal{"writer": writer(), "stranger": stranger(), "neighbour": neighbour()}[who]
			found, err := o.List(t.Context(), p, "acme", false)
			must(t, err)
			if len(found) != n {
				t.Errorf("%s sees %d attempts", who, len(found))
			}
		}
	})
}

func TestAbandonAndResume(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		first := o.record("Alpha")
		o.enroll("agt-1", first.Token)
		for range 2 {
			must(t, o.Abandon(t.Context(), writer(), first.Attempt.ID))
		}
		if n := o.db.Audits(t, "onboarding_abandoned"); n != 1 {
			t.Errorf("%d audits of one abandonment", n)
		}
		open, err := o.List(t.Context(), reader(), "acme", true)
		must(t, err)
		all, err := o.List(t.Context(), reader(), "acme", false)
		must(t, err)
		if len(open) != 0 || len(all) != 1 {
			t.Errorf("%d open, %d in all", len(open), len(all))
		}
		if s := o.status(first.Attempt.ID); s.Inventory.Gates[1].State != gate.Passed || s.Attempt.AbandonedAt.IsZero() {
			t.Errorf("an abandoned attempt is measured all the same: %+v", s.Inventory.Gates[1])
		}
		again := o.record("Alpha")
		if !again.Resumed || !again.Attempt.AbandonedAt.IsZero() || len(again.Notes) != 1 || again.Attempt.ID != first.Attempt.ID {
			t.Errorf("resumed: %+v", again)
		}
	})
}

// TestEveryRefusalIsCured is X-52: whatever Console refused with the attempt's own token, gate 2 says why
// and names the cure itself. token_unknown belongs to no token, so no attempt has it.
func TestEveryRefusalIsCured(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		first := o.record("Alpha")
		for _, code := range enrollment.Codes() {
			o.clock.Advance(time.Second)
			must(t, o.db.Enrollment().RecordRefusal(t.Context(), first.Token.ID, enrollment.Refusal{
				At: o.clock.Now(), Code: code, AgentName: "agent-0", AgentType: fleet.TypeCollector, ClusterSlug: "alpha", Version: "0.9.0", RemoteAddr: "192.0.2.9:1",
			}))
			g := o.status(first.Attempt.ID).Inventory.Gates[1]
			if code == enrollment.CodeTokenUnknown {
				continue
			}
			if g.State != gate.Failed || g.Action == nil || strings.Contains(g.Sentence, code) || strings.Contains(g.Action.Text, "log") {
				t.Errorf("%s: %s %q, next %+v", code, g.State, g.Sentence, g.Action)
			}
		}
	})
}

// TestAStrangerFailsNoHealthyCluster: a pod with the attempt's token and a key of its own is refused, again
// and again, beside an agent that enrolled before and never will again.
func TestAStrangerFailsNoHealthyCluster(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		ctx := t.Context()
		first := o.record("Alpha")
		o.prove(first.Token)
		knock := func() {
			must(t, o.db.Enrollment().RecordRefusal(ctx, first.Token.ID, enrollment.Refusal{
				At: o.clock.Now(), Code: enrollment.CodeAlreadyEnrolled, AgentName: "agt-1", AgentType: fleet.TypeCollector, ClusterSlug: "alpha", Version: "0.9.0", RemoteAddr: "[2001:db8::7]:4711",
			}))
		}
		for range 6 {
			o.clock.Advance(20 * time.Second)
			knock()
			st := o.status(first.Attempt.ID)
			if !st.Inventory.Done || !strings.Contains(st.Inventory.Gates[1].Sentence, "from 2001:db8::7 0 s ago") {
				t.Fatalf("refused beside a collector that was heard a moment ago: %+v", st.Inventory)
			}
			o.clock.Advance(10 * time.Second)
			must(t, o.db.Fleet().RecordPulses(ctx, []fleet.Pulse{{AgentID: "agt-1", ReceivedAt: o.clock.Now()}}))
			if st := o.status(first.Attempt.ID); !st.Inventory.Done || !strings.Contains(st.Inventory.Gates[1].Sentence, "heard since") {
				t.Fatalf("refused, and the collector was heard since: %+v", st.Inventory)
			}
		}
		// Now the collector itself is gone, and the pod in its place is refused: that is the news.
		o.clock.Advance(2 * time.Minute)
		knock()
		st := o.status(first.Attempt.ID)
		if g := st.Inventory.Gates; g[1].State != gate.Failed || g[3].State != gate.Blocked || !strings.Contains(g[2].Sentence, "last heartbeat") || !strings.Contains(g[3].Sentence, "last inventory arrived") {
			t.Errorf("the pod lost its state: %+v", g)
		}
		must(t, o.db.Fleet().RecordPulses(ctx, []fleet.Pulse{{AgentID: "agt-1", ReceivedAt: o.clock.Now().Add(time.Second)}}))
		o.clock.Advance(time.Second)
		if st := o.status(first.Attempt.ID); !st.Inventory.Done {
			t.Errorf("the collector is back: %+v", st.Inventory)
		}
	})
}

// TestOneUnreadFactLeavesTheOthers is A-49: what could not be read is a warning that names it, and the rest
// is judged all the same; on PostgreSQL too, where a failed query spoils its whole transaction.
func TestOneUnreadFactLeavesTheOthers(t *testing.T) {
	p, w := gate.Passed, gate.Warning
	for fact, row := range map[string]struct {
		fault  string
		states []gate.State
		says   string
	}{
		"tokens":     {"ALTER TABLE install_tokens RENAME COLUMN prefix TO broken", []gate.State{w, p, p, p}, "install tokens of this attempt could not be read (the database answered with an error"},
		"collectors": {"ALTER TABLE agents RENAME COLUMN template TO broken", []gate.State{p, w, w, w}, "enrolled agents could not be read"},
		"cluster":    {"ALTER TABLE clusters RENAME COLUMN platform TO broken", []gate.State{p, p, p, w}, "stored clusters could not be read"},
		"findings":   {"ALTER TABLE findings RENAME COLUMN items TO broken", []gate.State{p, p, p, p}, ""},
		"kinds":      {"UPDATE clusters SET kinds = '{'", []gate.State{p, p, p, w}, "stored clusters could not be read"},
	} {
		t.Run(fact, func(t *testing.T) {
			inOffices(t, func(t *testing.T, o *office) {
				first := o.record("Alpha")
				o.prove(first.Token)
				o.db.Exec(t, row.fault)
				st, err := o.Status(t.Context(), reader(), first.Attempt.ID)
				must(t, err)
				said := false
				for i, g := range st.Inventory.Gates {
					if g.State != row.states[i] {
						t.Errorf("gate %d is %s, want %s: %s", g.Number, g.State, row.states[i], g.Sentence)
					}
					said = said || row.says != "" && strings.Contains(g.Sentence, row.says)
				}
				if row.says != "" && (!said || !strings.Contains(st.Inventory.Owner, "runs Console")) {
					t.Errorf("no gate says that %s; %s", row.says, st.Inventory.Owner)
				}
				cancelled, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := o.Status(cancelled, reader(), first.Attempt.ID); !errors.Is(err, context.Canceled) {
					t.Errorf("a caller who left: %v", err)
				}
			})
		})
	}
}

// TestRemovedClusterArchives: the attempt goes with its cluster, and the slug is free again.
// A first inventory that is stored in part has not landed yet.
func TestAPartOfAnInventoryHasNotLanded(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		r := o.record("Alpha")
		o.prove(r.Token)
		must(t, o.db.Inventory().InTx(t.Context(), func(tx inventory.Tx) error {
			c, err := tx.Cluster(t.Context(), "cls-1")
			c.FirstSyncAt, c.LastSyncAt, c.PartlyApplied = time.Time{}, time.Time{}, true
			return errors.Join(err, tx.UpdateCluster(t.Context(), c))
		}))
		st, err := o.Status(t.Context(), writer(), r.Attempt.ID)
		must(t, err)
		if g := st.Inventory.Gates[3]; g.State != gate.Waiting {
			t.Errorf("gate 4 is %s: %s", g.State, g.Sentence)
		}
	})
}

func TestRemovedClusterArchives(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		first := o.record("Alpha")
		o.prove(first.Token)
		must(t, o.db.Inventory().InTx(t.Context(), func(tx inventory.Tx) error { return tx.DeleteCluster(t.Context(), "cls-1", o.clock.Now()) }))
		_, err := o.Command(t.Context(), reader(), first.Attempt.ID, "")
		want(t, err, problem.Conflict, "onboarding_archived")
		_, _, err = o.AddToken(t.Context(), writer(), first.Attempt.ID)
		want(t, err, problem.Conflict, "onboarding_archived")
		want(t, o.Abandon(t.Context(), writer(), first.Attempt.ID), problem.Conflict, "onboarding_archived")
		o.clock.Advance(time.Minute)
		st := o.status(first.Attempt.ID)
		if g := st.Inventory.Gates[3]; g.State != gate.Warning || !strings.Contains(g.Sentence, "removed in Console 1 min ago, at 2026-03-01 12:00:00 UTC") || strings.Contains(g.Sentence, "No inventory arrived") {
			t.Errorf("an archived attempt: %+v", g)
		}
		if st.Attempt.LastStatus != nil {
			t.Errorf("the last verdict was written over: %+v", st.Attempt.LastStatus)
		}
		// Its agent was there all the time, and goes on.
		must(t, o.db.Fleet().RecordPulses(t.Context(), []fleet.Pulse{{AgentID: "agt-1", ReceivedAt: o.clock.Now()}}))
		o.publish("agt-1")
		if g := o.status(first.Attempt.ID).Inventory.Gates[3]; g.State != gate.Warning || !strings.Contains(g.Sentence, "made a cluster alpha anew") {
			t.Errorf("an archived attempt whose agent publishes: %+v", g)
		}
		second := o.record("Alpha")
		if g := o.status(second.Attempt.ID).Inventory.Gates[1]; g.State != gate.Waiting || !strings.Contains(g.Sentence, "Agent agt-1 enrolled for slug alpha 1 min ago with the token of another install") || g.Action == nil {
			t.Errorf("an attempt whose slug an agent holds: %+v", g)
		}
		if again := second; again.Resumed || again.Attempt.ID == first.Attempt.ID || again.Plain == "" {
			t.Errorf("after the removal: %+v", again)
		}
	})
}

// TestDoneIsStampedInTheBackgroundOnly is X-29: looking stamps nothing, the round of every 30 s does, and
// a proof that lapses stays stamped.
func TestDoneIsStampedInTheBackgroundOnly(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		first := o.record("Alpha")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			o.Run(ctx)
		}()
		t.Cleanup(func() {
			cancel()
			<-ended
		})
		stored := func() onboarding.Attempt {
			a, err := o.db.Onboarding().Attempt(t.Context(), first.Attempt.ID)
			must(t, err)
			return a
		}
		await := func(what string, is func(onboarding.Attempt) bool) {
			t.Helper()
			ticker, deadline := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
			defer ticker.Stop()
			for !is(stored()) {
				select {
				case <-ticker.C:
				case <-deadline:
					t.Fatalf("no round has %s", what)
				}
			}
		}
		await("looked at the attempt", func(a onboarding.Attempt) bool { return !a.LastCheckedAt.IsZero() })
		o.prove(first.Token)
		for range 3 {
			if s := o.status(first.Attempt.ID); !s.Inventory.Done || !stored().InventoryDoneAt.IsZero() {
				t.Fatalf("done %v, stamped %v", s.Inventory.Done, stored().InventoryDoneAt)
			}
		}
		o.clock.Advance(30 * time.Second)
		await("stamped the proof", func(a onboarding.Attempt) bool { return !a.InventoryDoneAt.IsZero() })
		stamped := stored().InventoryDoneAt
		o.clock.Advance(2 * time.Hour)
		if s := o.status(first.Attempt.ID); s.Inventory.Done || s.Inventory.Gates[2].State != gate.Failed {
			t.Errorf("two hours of silence: %+v", s.Inventory.Gates[2])
		}
		if now := stored().InventoryDoneAt; !now.Equal(stamped) {
			t.Errorf("the stamp moved from %v to %v", stamped, now)
		}
	})
}

// Whoever may read reads for days, on pages that measure every two seconds: the same verdict is not stored again, and
// that a silent agent makes Console ask whether anything can be stored writes no more.
func TestAHundredReadsOfASilentAttemptWriteOnce(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		first := o.record("Alpha")
		o.enroll("agt-1", first.Token)
		o.clock.Advance(20 * time.Minute)
		stored := func() string {
			return fmt.Sprint(o.db.Dump(t, "onboardings"), o.db.Dump(t, "settings"))
		}
		writes := 0
		for before := stored(); o.clock.Now().Before(storetest.Noon().Add(20*time.Minute + 200*time.Second)); o.clock.Advance(2 * time.Second) {
			if s := o.status(first.Attempt.ID); s.Inventory.Gates[2].State != gate.Failed {
				t.Fatalf("gate 3 is %+v", s.Inventory.Gates[2])
			}
			if after := stored(); after != before {
				writes++
				before = after
			}
		}
		if writes > 1 {
			t.Errorf("a hundred reads wrote %d times", writes)
		}
		if a, err := o.db.Onboarding().Attempt(t.Context(), first.Attempt.ID); err != nil || a.LastStatus == nil || a.LastStatus.Failed != 1 {
			t.Errorf("list rows have %+v, %v", a.LastStatus, err)
		}
	})
}

// What Console itself keeps out is not called silent, from the first moment on.
func TestASuspensionIsAFact(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		first := o.record("Alpha")
		o.prove(first.Token)
		o.clock.Advance(time.Minute)
		must(t, o.db.Fleet().InTx(t.Context(), func(tx fleet.Tx) error { return tx.SuspendAgent(t.Context(), "agt-1", "it flooded", o.clock.Now()) }))
		o.clock.Advance(6 * time.Minute)
		gates := o.status(first.Attempt.ID).Inventory.Gates
		for i, state := range map[int]gate.State{1: gate.Warning, 2: gate.Failed, 3: gate.Blocked} {
			if g := gates[i]; g.State != state || !strings.Contains(g.Sentence, "Console suspended agt-1 (6 min ago, until 12:11 UTC)") {
				t.Errorf("gate %d is %s: %s", g.Number, g.State, g.Sentence)
			}
		}
	})
}

// full is a store that takes no writes.
type full struct{ onboarding.Store }

func (full) Ready(context.Context) error { return errors.New("the disk is full") }

// Where nothing can be stored, silence says nothing about an agent.
func TestNothingCanBeStored(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		first := o.record("Alpha")
		o.enroll("agt-1", first.Token)
		o.clock.Advance(20 * time.Minute)
		o.Store = full{o.db.Onboarding()}
		if g := o.status(first.Attempt.ID).Inventory.Gates[2]; g.State != gate.Warning || !strings.Contains(g.Sentence, "cannot store what agents send now") {
			t.Errorf("gate 3 is %s: %s", g.State, g.Sentence)
		}
	})
}

func TestCommand(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		first := o.record("Alpha")
		fresh, err := o.Command(t.Context(), reader(), first.Attempt.ID, first.Plain)
		must(t, err)
		later, err := o.Command(t.Context(), reader(), first.Attempt.ID, "")
		must(t, err)
		if !strings.Contains(fresh.Text, first.Plain) || strings.Contains(later.Text, first.Plain) || !strings.Contains(later.Text, "<install-token>") {
			t.Errorf("fresh:\n%s\nlater:\n%s", fresh.Text, later.Text)
		}
		if len(fresh.Warnings) != 0 {
			t.Errorf("a public address warns: %q", fresh.Warnings)
		}
		for address, says := range map[string][]string{
			"http://127.0.0.1:8080":   {"plain http", "loopback"},
			"https://[::1]:8080":      {"loopback"},
			"https://169.254.1.1":     {"link-local"},
			"https://10.0.0.4":        {"private"},
			"https://nowhere.example": {"no address"},
		} {
			o.PublicURL = address
			c, err := o.Command(t.Context(), reader(), first.Attempt.ID, "")
			must(t, err)
			if len(c.Warnings) != len(says) {
				t.Errorf("%s: %q", address, c.Warnings)
				continue
			}
			for i, part := range says {
				if !strings.Contains(c.Warnings[i], part) {
					t.Errorf("%s: %q does not say %q", address, c.Warnings[i], part)
				}
			}
		}
	})
}

// The record of the one agent is deleted, as B-102 has it, after the token expired: the token is no dead end, and
// the gate does not say that nobody enrolled with it.
func TestATokenOutlivesItsAgentsRecord(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		first := o.record("Alpha")
		o.prove(first.Token)
		o.clock.Advance(26 * time.Hour)
		o.db.Exec(t, "DELETE FROM agents WHERE id = $1", "agt-1")
		if g := o.status(first.Attempt.ID).Inventory.Gates[0]; g.State != gate.Passed || !strings.Contains(g.Sentence, "deleted or enrolled anew since") {
			t.Errorf("gate 1 is %s: %s", g.State, g.Sentence)
		}
		if again := o.record("Alpha"); again.Token != nil || !strings.Contains(again.TokenNote, "deleted or enrolled anew since") || o.tokens() != 1 {
			t.Errorf("minted anew: %+v", again)
		}
	})
}

// A live token pinned to collectors admits collectors, so it is not replaced.
func TestALivePinnedTokenIsKept(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		first := o.record("Alpha")
		o.clock.Advance(20 * time.Hour)
		_, _, err := o.AddToken(t.Context(), writer(), first.Attempt.ID)
		must(t, err)
		o.db.Exec(t, "UPDATE install_tokens SET agent_type = 'collector' WHERE id <> $1", first.Token.ID)
		o.clock.Advance(10 * time.Hour)
		if again := o.record("Alpha"); again.Token != nil || again.TokenNote == "" || o.tokens() != 2 {
			t.Errorf("minted beside a live one: %+v", again)
		}
	})
}
