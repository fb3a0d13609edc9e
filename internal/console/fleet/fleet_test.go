package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/natsapi"
	"prxm.uz/proxima/internal/console/natsauth"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/wire"
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

// cuts notes which keys NATS was told to refuse, and can be away.
type cuts struct {
	mu   sync.Mutex
	keys []string
	away error
}

func (c *cuts) Revoke(_ context.Context, publicKey string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away != nil {
		return c.away
	}
	c.keys = append(c.keys, publicKey)
	return nil
}

// answers stands for the agents at the other end of NATS.
type answers struct {
	reply wire.CommandReply
	err   error
	does  func(agentID string)
	asked []string
}

func (a *answers) Command(_ context.Context, agentID string, c wire.Command) (wire.CommandReply, error) {
	a.asked = append(a.asked, agentID+" "+c.Name)
	if a.does != nil {
		a.does(agentID)
	}
	return a.reply, a.err
}

// yard is a Service on a real store, with a clock that tests move.
type yard struct {
	*fleet.Service
	t     testing.TB
	db    *storetest.Database
	clock *clocktest.Manual
	nats  *cuts
	far   *answers
}

func inYards(t *testing.T, f func(*testing.T, *yard)) {
	t.Helper()
	engines.Each(t, func(t *testing.T, db *storetest.Database) {
		db.House(t)
		y := &yard{t: t, db: db, clock: clocktest.New(storetest.Noon()), nats: &cuts{}, far: &answers{}}
		y.Service = fleet.New(fleet.Config{Store: db.Fleet(), Revoker: y.nats, Commander: y.far, Clock: y.clock, Logger: slog.New(slog.DiscardHandler)})
		f(t, y)
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err error, kind problem.Kind, code string) {
	t.Helper()
	if !problem.Is(err, kind) || problem.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func grant(scope access.Scope, permissions ...access.Permission) access.Principal {
	return access.Principal{UserID: "usr_x", Email: "x@example.com", Grants: []access.Grant{{Role: "r", Permissions: permissions, Scope: scope}}}
}

func keeper() access.Principal {
	return grant(access.Scope{ClientID: "acme"}, access.AgentsRead, access.AgentsWrite)
}

// agent enrolls a collector of acme-prod in the store; change may be nil.
func (y *yard) agent(id string, change func(*fleet.Agent)) fleet.Agent {
	y.t.Helper()
	a := fleet.Agent{
		ID: id, ClientID: "acme", EnvironmentID: "acme-prod", Type: fleet.TypeCollector, ClusterSlug: "alpha", Name: "name-" + id,
		PublicKey: "U" + id, EnrolledAt: y.clock.Now(), Version: "0.9.0", Capability: 1, Template: 1,
		CredentialIssuedAt: y.clock.Now(), CredentialExpiresAt: y.clock.Now().Add(7 * 24 * time.Hour),
	}
	if change != nil {
		change(&a)
	}
	must(y.t, y.db.Enrollment().InTx(y.t.Context(), func(tx enrollment.Tx) error { return tx.InsertAgent(y.t.Context(), a) }))
	return a
}

func (y *yard) stored(id string) fleet.Agent {
	y.t.Helper()
	a, err := y.db.Fleet().Agent(y.t.Context(), id)
	must(y.t, err)
	return a
}

func TestWhatAgentsSendNeverMovesBack(t *testing.T) {
	inYards(t, func(t *testing.T, y *yard) {
		ctx := t.Context()
		want := y.agent("a", nil)
		status := func(at time.Time, version string, role wire.Role) []fleet.Presence {
			return []fleet.Presence{{AgentID: "a", ReceivedAt: at, Status: wire.Status{Capability: 2, Version: version, Role: role, SyncIntervalSeconds: 60}}}
		}
		pulse := func(at time.Time, n int64) []fleet.Pulse {
			return []fleet.Pulse{{AgentID: "a", ReceivedAt: at, Heartbeat: wire.Heartbeat{Capability: 2, LastSync: &wire.SyncInfo{Number: n, FinishedAt: at}}}}
		}
		late, early := y.clock.Now().Add(2*time.Minute), y.clock.Now().Add(time.Minute)
		must(t, y.RecordPresence(ctx, status(late, "1.0.0", wire.RoleLeader)))
		must(t, y.RecordPresence(ctx, status(early, "0.9.1", wire.RoleStandby))) // another replica of console was slower
		must(t, y.RecordPulses(ctx, pulse(late, 7)))
		must(t, y.RecordPulses(ctx, pulse(early, 6)))
		must(t, y.RecordPulses(ctx, pulse(late, 7))) // twice is as good as once
		want.PresenceAt, want.Version, want.Role, want.SyncIntervalSeconds, want.Capability = late, "1.0.0", wire.RoleLeader, 60, 2
		want.HeartbeatAt, want.ReportedSync = late, &wire.SyncInfo{Number: 7, FinishedAt: late}
		if diff := cmp.Diff(want, y.stored("a")); diff != "" {
			t.Error(diff)
		}
	})
}

// One agent's odd message must not hold up the batch, which is that of all.
func TestABatchSurvivesHostileMembers(t *testing.T) {
	inYards(t, func(t *testing.T, y *yard) {
		ctx := t.Context()
		y.agent("good", nil)
		y.agent("odd", nil)
		y.agent("revoked", func(a *fleet.Agent) { a.RevokedAt = y.clock.Now() })
		at := y.clock.Now()
		for name, odd := range map[string]wire.Status{
			"NUL in the version":   {Version: "1\x00", Role: "leader"},
			"version is not UTF-8": {Version: "1\xff", Role: "leader"},
			"version of 10 kB":     {Version: strings.Repeat("1", 10_000), Role: "leader"},
			"unknown role":         {Version: "1", Role: "king\x00"},
			"interval below zero":  {Version: "1", SyncIntervalSeconds: -1},
			"error of 10 kB":       {Version: "1", LastSync: &wire.SyncInfo{Error: strings.Repeat("ж", 5_000)}},
			"NUL in the error":     {Version: "1", LastSync: &wire.SyncInfo{Error: "a\x00b\xff"}},
		} {
			at = at.Add(time.Second)
			must(t, y.RecordPresence(ctx, []fleet.Presence{
				{AgentID: "nobody", ReceivedAt: at},
				{AgentID: "odd", ReceivedAt: at, Status: odd},
				{AgentID: "revoked", ReceivedAt: at},
				{AgentID: "good", ReceivedAt: at, Status: wire.Status{Version: "1.0.0", Role: wire.RoleStandby}},
			}))
			must(t, y.RecordPulses(ctx, []fleet.Pulse{
				{AgentID: "odd", ReceivedAt: at, Heartbeat: wire.Heartbeat{LastSync: odd.LastSync}}, {AgentID: "revoked", ReceivedAt: at}, {AgentID: "good", ReceivedAt: at},
			}))
			if got := y.stored("good"); !got.PresenceAt.Equal(at) || !got.HeartbeatAt.Equal(at) || got.Version != "1.0.0" {
				t.Errorf("%s: the other agent is %+v", name, got)
			}
			got := y.stored("odd")
			if !got.PresenceAt.Equal(at) || len(got.Version) > 64 || got.Role != "" && got.Role != wire.RoleLeader || got.SyncIntervalSeconds < 0 ||
				strings.ContainsRune(got.Version, 0) || !utf8.ValidString(got.Version) || got.ReportedSync != nil && len(got.ReportedSync.Error) > 1<<10 {
				t.Errorf("%s: stored as %+v", name, got)
			}
		}
		if got := y.stored("revoked"); !got.LastSeen().IsZero() {
			t.Errorf("a revoked agent was seen at %v", got.LastSeen())
		}
	})
}

func TestListsShowWhatTheCallerReaches(t *testing.T) {
	inYards(t, func(t *testing.T, y *yard) {
		y.agent("a1", nil)
		y.agent("a2", func(a *fleet.Agent) { a.EnvironmentID, a.ClusterSlug = "acme-test", "beta" })
		y.agent("a3", func(a *fleet.Agent) { a.Type = fleet.TypeNodeMonitor })
		y.agent("a4", func(a *fleet.Agent) { a.Type, a.ClusterSlug = fleet.TypeHost, "" })
		y.agent("z1", func(a *fleet.Agent) { a.ClientID, a.EnvironmentID = "zeta", "zeta-prod" })
		everywhere := grant(access.Scope{}, access.AgentsRead, access.HostsRead)
		for name, c := range map[string]struct {
			p      access.Principal
			filter fleet.Filter
			ids    string
			total  int
		}{
			"all":                 {everywhere, fleet.Filter{}, "a1 a2 a3 a4 z1", 5},
			"one client":          {keeper(), fleet.Filter{}, "a1 a2 a3 a4", 4},
			"one environment":     {grant(access.Scope{ClientID: "acme", EnvironmentID: "acme-test"}, access.AgentsRead), fleet.Filter{}, "a2", 1},
			"another's client":    {keeper(), fleet.Filter{ClientID: "zeta"}, "", 0},
			"a forged reach":      {keeper(), fleet.Filter{Reach: access.Reach{All: true}}, "a1 a2 a3 a4", 4},
			"nobody":              {access.Principal{}, fleet.Filter{}, "", 0},
			"no right to agents":  {grant(access.Scope{}, access.HostsRead), fleet.Filter{}, "", 0},
			"hosts page":          {grant(access.Scope{}, access.HostsRead), fleet.Filter{ExcludeCollectors: true}, "a3 a4", 2},
			"hosts page, no host": {grant(access.Scope{}, access.AgentsRead), fleet.Filter{ExcludeCollectors: true}, "", 0},
			"type":                {everywhere, fleet.Filter{Type: fleet.TypeCollector}, "a1 a2 z1", 3},
			"slug":                {everywhere, fleet.Filter{ClusterSlug: "beta"}, "a2", 1},
			"environment":         {everywhere, fleet.Filter{EnvironmentID: "acme-prod"}, "a1 a3 a4", 3},
			"a page":              {everywhere, fleet.Filter{Limit: 2, Offset: 2}, "a3 a4", 5},
			"beyond the end":      {everywhere, fleet.Filter{Limit: 2, Offset: 100}, "", 5},
			"odd bounds":          {everywhere, fleet.Filter{Limit: -1, Offset: -7}, "a1 a2 a3 a4 z1", 5},
			"too many":            {everywhere, fleet.Filter{Limit: 1_000_000}, "a1 a2 a3 a4 z1", 5},
		} {
			found, total, err := y.Agents(t.Context(), c.p, c.filter)
			must(t, err)
			var ids []string
			for _, a := range found {
				ids = append(ids, a.ID)
			}
			if got := strings.Join(ids, " "); got != c.ids || total != c.total {
				t.Errorf("%s: %q of %d, want %q of %d", name, got, total, c.ids, c.total)
			}
		}
	})
}

// acts are what a person does to one agent.
func acts(y *yard) map[string]func(access.Principal, string) error {
	ctx := y.t.Context()
	return map[string]func(access.Principal, string) error{
		"release": func(p access.Principal, id string) error { _, err := y.ReleaseIdentity(ctx, p, id); return err },
		"revoke":  func(p access.Principal, id string) error { _, err := y.Revoke(ctx, p, id); return err },
		"delete":  func(p access.Principal, id string) error { return y.Delete(ctx, p, id) },
	}
}

func TestStrangersSeeNothingAndReadersChangeNothing(t *testing.T) {
	inYards(t, func(t *testing.T, y *yard) {
		before := y.agent("a", nil)
		prod := access.Scope{ClientID: "acme", EnvironmentID: "acme-prod"}
		for name, c := range map[string]struct {
			p     access.Principal
			reads bool
			kind  problem.Kind
			code  string
		}{
			"reader":           {grant(prod, access.AgentsRead), true, problem.Forbidden, "permission_missing"},
			"reader of all":    {grant(access.Scope{}, access.AgentsRead, access.HostsWrite), true, problem.Forbidden, "permission_missing"},
			"another client":   {grant(access.Scope{ClientID: "zeta"}, access.Permissions()...), false, problem.NotFound, "agent_not_found"},
			"next environment": {grant(access.Scope{ClientID: "acme", EnvironmentID: "acme-test"}, access.Permissions()...), false, problem.NotFound, "agent_not_found"},
			"hosts alone":      {grant(prod, access.HostsRead, access.HostsWrite), false, problem.NotFound, "agent_not_found"},
			"nobody":           {access.Principal{}, false, problem.NotFound, "agent_not_found"},
		} {
			_, err := y.Agent(t.Context(), c.p, "a")
			if (err == nil) != c.reads || err != nil && problem.CodeOf(err) != "agent_not_found" {
				t.Errorf("%s reads: %v", name, err)
			}
			for act, do := range acts(y) {
				if err := do(c.p, "a"); !problem.Is(err, c.kind) || problem.CodeOf(err) != c.code {
					t.Errorf("%s, %s: %v", name, act, err)
				}
			}
		}
		for act, do := range acts(y) {
			if err := do(keeper(), "none"); problem.CodeOf(err) != "agent_not_found" {
				t.Errorf("%s nobody: %v", act, err)
			}
		}
		if diff := cmp.Diff(before, y.stored("a")); diff != "" || len(y.nats.keys) != 0 {
			t.Errorf("keys cut off: %v; %s", y.nats.keys, diff)
		}
	})
}

// D-35: a revoked agent is not released, and none that was seen within five minutes.
func TestReleaseIdentity(t *testing.T) {
	inYards(t, func(t *testing.T, y *yard) {
		ctx := t.Context()
		now := y.clock.Now()
		for name, c := range map[string]struct {
			presence, heartbeat time.Duration // ago; 0: never
			revoked             bool
			code                string
		}{
			"never seen":                {0, 0, false, ""},
			"quiet for five minutes":    {5 * time.Minute, 0, false, ""},
			"present a moment ago":      {5*time.Minute - time.Second, 0, false, "agent_alive"},
			"heartbeat a moment ago":    {time.Hour, time.Second, false, "agent_alive"},
			"old heartbeat, present":    {time.Second, time.Hour, false, "agent_alive"},
			"revoked":                   {0, 0, true, "agent_revoked"},
			"revoked and still talking": {time.Second, 0, true, "agent_revoked"},
		} {
			id := strings.ReplaceAll(name, " ", "-")
			a := y.agent(id, func(a *fleet.Agent) {
				if c.presence > 0 {
					a.PresenceAt = now.Add(-c.presence)
				}
				if c.heartbeat > 0 {
					a.HeartbeatAt = now.Add(-c.heartbeat)
				}
				if c.revoked {
					a.RevokedAt = now
				}
			})
			got, err := y.ReleaseIdentity(ctx, keeper(), id)
			if c.code != "" {
				if !problem.Is(err, problem.Conflict) || problem.CodeOf(err) != c.code {
					t.Errorf("%s: %v, want %s", name, err, c.code)
				}
				if slices.Contains(y.nats.keys, a.PublicKey) || y.stored(id).PublicKey != a.PublicKey {
					t.Errorf("%s: released all the same", name)
				}
				continue
			}
			must(t, err)
			if got.PublicKey != "" || !got.ReleasedAt.Equal(now) || got.Name != a.Name || !slices.Contains(y.nats.keys, a.PublicKey) {
				t.Errorf("%s: %+v, keys cut off %v", name, got, y.nats.keys)
			}
		}
		if n := y.db.Audits(t, "agent_identity_released"); n != 2 || len(y.nats.keys) != 2 {
			t.Errorf("%d audit rows, keys %v", n, y.nats.keys)
		}
		// Released twice: there is no key any more to cut off.
		_, err := y.ReleaseIdentity(ctx, keeper(), "never-seen")
		must(t, err)
		if len(y.nats.keys) != 2 {
			t.Errorf("keys cut off: %v", y.nats.keys)
		}
	})
}

func TestRevokeIsForGood(t *testing.T) {
	inYards(t, func(t *testing.T, y *yard) {
		ctx := t.Context()
		y.agent("a", func(a *fleet.Agent) { a.PresenceAt = y.clock.Now() }) // a live agent as well as a quiet one
		at := y.clock.Now()
		got, err := y.Revoke(ctx, keeper(), "a")
		must(t, err)
		if !got.RevokedAt.Equal(at) || !slices.Equal(y.nats.keys, []string{"Ua"}) {
			t.Errorf("%+v, keys cut off %v", got, y.nats.keys)
		}
		y.clock.Advance(time.Minute)
		must(t, y.RecordPresence(ctx, []fleet.Presence{{AgentID: "a", ReceivedAt: y.clock.Now()}}))
		got, err = y.Revoke(ctx, keeper(), "a")
		must(t, err)
		if !got.RevokedAt.Equal(at) || !got.PresenceAt.Equal(at) {
			t.Errorf("revoked again: %+v", got)
		}
		revoked, err := y.db.Fleet().Revoked(ctx, time.Time{})
		must(t, err)
		if _, ok := revoked["Ua"]; !ok || len(revoked) != 1 {
			t.Errorf("revoked keys: %v", revoked)
		}
	})
}

// B-102: the record goes, its credential with it; the cluster and its inventory stay.
func TestDelete(t *testing.T) {
	inYards(t, func(t *testing.T, y *yard) {
		ctx := t.Context()
		y.agent("a", nil)
		must(t, y.db.Inventory().InTx(ctx, func(tx inventory.Tx) error {
			return tx.InsertCluster(ctx, inventory.Cluster{ID: "cls", ClientID: "acme", EnvironmentID: "acme-prod", Slug: "alpha", Name: "Alpha", UID: "uid", AgentID: "a"})
		}))
		must(t, y.Delete(ctx, keeper(), "a"))
		want(t, y.Delete(ctx, keeper(), "a"), problem.NotFound, "agent_not_found")
		if !slices.Equal(y.nats.keys, []string{"Ua"}) || y.db.Audits(t, "agent_deleted") != 1 {
			t.Errorf("keys cut off %v, %d audit rows", y.nats.keys, y.db.Audits(t, "agent_deleted"))
		}
		if c, err := y.db.Inventory().Cluster(ctx, "cls"); err != nil || c.AgentName != "" || c.Collectors != 0 {
			t.Errorf("the cluster is %+v, %v", c, err)
		}
		y.agent("b", func(a *fleet.Agent) { a.Name, a.PublicKey = "name-a", "Ua" }) // name and key are free
	})
}

// delete goes by presence; a revoked agent has none that counts.
func TestDeleteGoesByPresence(t *testing.T) {
	inYards(t, func(t *testing.T, y *yard) {
		ctx := t.Context()
		for _, id := range []string{"quiet", "revoked"} {
			y.agent(id, nil)
			must(t, y.RecordPresence(ctx, []fleet.Presence{{AgentID: id, ReceivedAt: y.clock.Now(), Status: wire.Status{Capability: 1, Role: wire.RoleLeader}}}))
			y.clock.Advance(fleet.StaleAfter - time.Second)
			want(t, y.Delete(ctx, keeper(), id), problem.Conflict, "agent_alive")
			if id == "quiet" {
				y.clock.Advance(time.Second)
			} else if _, err := y.Revoke(ctx, keeper(), id); err != nil {
				t.Fatal(err)
			}
			must(t, y.Delete(ctx, keeper(), id))
		}
	})
}

// what an agent reported of another cluster ends with its right to report.
func TestAConflictEndsWithItsReporter(t *testing.T) {
	inYards(t, func(t *testing.T, y *yard) {
		ctx := t.Context()
		for _, id := range []string{"revoke", "delete", "stays"} {
			y.agent(id, func(a *fleet.Agent) { a.ClusterSlug = id })
			must(t, y.db.Inventory().InTx(ctx, func(tx inventory.Tx) error {
				return tx.InsertCluster(ctx, inventory.Cluster{
					ID: "cls-" + id, ClientID: "acme", EnvironmentID: "acme-prod", Slug: id, Name: id, UID: "uid", AgentID: "right",
					Conflict: inventory.Conflict{UID: "other", AgentID: id, FirstSeenAt: y.clock.Now(), SeenAt: y.clock.Now()},
				})
			}))
		}
		_, err := y.Revoke(ctx, keeper(), "revoke")
		must(t, err)
		must(t, y.Delete(ctx, keeper(), "delete"))
		for id, stands := range map[string]bool{"revoke": false, "delete": false, "stays": true} {
			c, err := y.db.Inventory().Cluster(ctx, "cls-"+id)
			must(t, err)
			if (c.Conflict.UID != "") != stands {
				t.Errorf("%s: the conflict is %+v", id, c.Conflict)
			}
		}
	})
}

// Only a change is audited, and each change once, however many ask for it at once.
func TestOnlyAChangeIsAudited(t *testing.T) {
	for act, action := range map[string]string{"release": "agent_identity_released", "revoke": "agent_revoked", "delete": "agent_deleted"} {
		t.Run(act, func(t *testing.T) {
			inYards(t, func(t *testing.T, y *yard) {
				y.agent("a", nil)
				var wg sync.WaitGroup
				for range 6 {
					wg.Go(func() {
						if err := acts(y)[act](keeper(), "a"); err != nil && problem.CodeOf(err) != "agent_not_found" {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if n := y.db.Audits(t, action); n != 1 {
					t.Errorf("%d rows %s of one change", n, action)
				}
			})
		})
	}
}

// An agent that floods is kept out for a while, whatever NATS says meanwhile, and is then as it was.
func TestSuspension(t *testing.T) {
	inYards(t, func(t *testing.T, y *yard) {
		a := y.agent("a", nil)
		y.nats.away = errors.New("no NATS")
		if err := y.Suspend(t.Context(), "a", "it flooded"); err == nil {
			t.Error("the cut failed, and nobody was told")
		}
		y.nats.away = nil
		begun := y.clock.Now()
		got := y.stored("a")
		if got.SuspendedAt != begun || got.SuspendedUntil() != begun.Add(10*time.Minute) {
			t.Errorf("suspended at %v until %v", got.SuspendedAt, got.SuspendedUntil())
		}
		keys, err := y.db.Fleet().Revoked(t.Context(), begun.Add(-time.Hour))
		must(t, err)
		if keys[a.PublicKey] != begun {
			t.Errorf("the servers are to refuse %v", keys)
		}
		y.clock.Advance(time.Minute)
		must(t, y.Suspend(t.Context(), "a", "it floods on"))
		if got := y.stored("a"); got.SuspendedAt != begun || len(y.nats.keys) != 1 {
			t.Errorf("suspended anew at %v, cuts %v", got.SuspendedAt, y.nats.keys)
		}
		y.clock.Advance(time.Hour)
		must(t, y.Suspend(t.Context(), "a", "again"))
		if got := y.stored("a"); got.SuspendedAt != y.clock.Now() {
			t.Errorf("the second time is not noted: %v", got.SuspendedAt)
		}
		if n := y.db.Audits(t, "agent_suspended"); n != 2 {
			t.Errorf("%d audit rows for two suspensions", n)
		}
		must(t, y.Suspend(t.Context(), "nobody", "it flooded"))
		must(t, y.db.Fleet().InTx(t.Context(), func(tx fleet.Tx) error { return tx.RevokeAgent(t.Context(), "a", y.clock.Now()) }))
		y.clock.Advance(time.Hour)
		must(t, y.Suspend(t.Context(), "a", "after its end"))
		if n := y.db.Audits(t, "agent_suspended"); n != 2 {
			t.Error("an agent that was revoked is suspended too")
		}
	})
}

// The row is the truth: it stays changed although NATS did not take the cut.
func TestNATSIsAway(t *testing.T) {
	for act := range acts(&yard{t: t}) {
		t.Run(act, func(t *testing.T) {
			inYards(t, func(t *testing.T, y *yard) {
				y.agent("a", nil)
				y.nats.away = errors.New("nobody answers")
				want(t, acts(y)[act](keeper(), "a"), problem.Unavailable, "nats_unavailable")
				revoked, err := y.db.Fleet().Revoked(t.Context(), time.Time{})
				must(t, err)
				if _, ok := revoked["Ua"]; !ok {
					t.Errorf("the key is not among the revoked ones: %v", revoked)
				}
			})
		})
	}
}

// The cut is real: the agent's connection drops, and its credential is refused from then on.
func TestRevokeDropsTheConnection(t *testing.T) {
	db := engines.SQLite(t)
	db.House(t)
	logger := slog.New(slog.DiscardHandler)
	dir := t.TempDir()
	keys, err := natsauth.LoadOrCreate(filepath.Join(dir, "keys"))
	must(t, err)
	authority, err := natsauth.New(keys, 0)
	must(t, err)
	now := clock.System().Now()
	server, err := natsapi.StartEmbedded(t.Context(), natsapi.EmbeddedConfig{
		Dir: filepath.Join(dir, "nats"), Listen: "127.0.0.1:0", StoreLimit: 1 << 30, Authority: authority, Now: now, Logger: logger,
	})
	must(t, err)
	t.Cleanup(func() { must(t, server.Shutdown(context.WithoutCancel(t.Context()))) })
	console, err := natsapi.Connect(t.Context(), natsapi.ConnectConfig{Embedded: server, Authority: authority, Revocations: db.Fleet(), Clock: clock.System(), Logger: logger})
	must(t, err)
	t.Cleanup(console.Close)
	y := &yard{t: t, db: db, clock: clocktest.New(now)}
	y.Service = fleet.New(fleet.Config{Store: db.Fleet(), Revoker: console, Clock: clock.System(), Logger: logger})

	pair, err := nkeys.CreateUser()
	must(t, err)
	public, err := pair.PublicKey()
	must(t, err)
	y.agent("a", func(a *fleet.Agent) { a.PublicKey = public })
	credential, err := authority.IssueCredential("a", public, now)
	must(t, err)
	dial := func(closed func(*nats.Conn)) (*nats.Conn, error) {
		return nats.Connect("nats://"+server.Addr().String(), nats.NoReconnect(), nats.CustomInboxPrefix(wire.InboxPrefix("a")), nats.ClosedHandler(closed),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // it would print
			nats.UserJWT(func() (string, error) { return credential.JWT, nil }, pair.Sign))
	}
	gone := make(chan struct{})
	_, err = dial(func(*nats.Conn) { close(gone) })
	must(t, err)
	_, err = y.Revoke(t.Context(), keeper(), "a")
	must(t, err)
	<-gone // a connection that stays ends the suite by its time limit
	if nc, err := dial(nil); err == nil {
		nc.Close()
		t.Error("the credential was taken again")
	}
}
