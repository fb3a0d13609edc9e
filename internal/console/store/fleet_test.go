package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/wire"
)

func TestWhatAgentsReportNeverMovesBack(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Fleet()
		house(t, db)
		putToken(t, db, token("t"))
		want := collector("a", "alpha", "t")
		putAgent(t, db, want)
		putAgent(t, db, collector("revoked", "alpha", "t"))
		write(t, db, func(x *tx) error { return x.RevokeAgent(ctx, "revoked", noon) })

		pulse := func(at time.Duration, number int64) fleet.Pulse {
			return fleet.Pulse{AgentID: "a", ReceivedAt: after(at), Heartbeat: wire.Heartbeat{Capability: 2, LastSync: &wire.SyncInfo{Number: number}}}
		}
		presence := func(at time.Duration, version string, number int64) fleet.Presence {
			return fleet.Presence{AgentID: "a", ReceivedAt: after(at), Status: wire.Status{
				Capability: 2, Version: version, Role: wire.RoleLeader, SyncIntervalSeconds: 300, LastSync: &wire.SyncInfo{Number: number},
			}}
		}
		stranger, dead := pulse(time.Hour, 1), pulse(time.Hour, 1)
		stranger.AgentID, dead.AgentID = "stranger", "revoked"
		if err := s.RecordPulses(ctx, []fleet.Pulse{stranger, pulse(2*time.Minute, 7), pulse(time.Minute, 6), dead}); err != nil {
			t.Fatal(err)
		}
		if err := s.RecordPresence(ctx, []fleet.Presence{presence(90*time.Second, "1.1.0", 5), presence(30*time.Second, "1.0.9", 4)}); err != nil {
			t.Fatal(err)
		}
		if err := s.RecordPublishedSlug(ctx, "a", "omega", after(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := s.RecordPublishedSlug(ctx, "a", "older", noon); err != nil {
			t.Fatal(err)
		}
		if err := s.RenewCredential(ctx, "a", 2, after(time.Hour), after(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		want.HeartbeatAt, want.PresenceAt = after(2*time.Minute), after(90*time.Second)
		want.Version, want.Capability, want.Role, want.SyncIntervalSeconds = "1.1.0", 2, wire.RoleLeader, 300
		want.ReportedSync = &wire.SyncInfo{Number: 7}
		want.PublishedSlug, want.PublishedSlugAt = "omega", after(time.Minute)
		want.Template, want.CredentialIssuedAt, want.CredentialExpiresAt = 2, after(time.Hour), after(2*time.Hour)
		got, err := s.Agent(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if got, err := s.Agent(ctx, "revoked"); err != nil || !got.HeartbeatAt.IsZero() {
			t.Errorf("a revoked agent's heartbeat was recorded: %+v, %v", got, err)
		}
	})
}

func TestReplicasRecordBatchesAtOnce(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Fleet()
		house(t, db)
		putToken(t, db, token("t"))
		for i := range 20 {
			putAgent(t, db, collector(fmt.Sprint(i), "alpha", "t"))
		}
		done := make(chan error)
		for replica := range 4 {
			go func() {
				var batch []fleet.Pulse
				for i := range 20 {
					id := (i + replica*5) % 20 // each in another order, as to provoke deadlocks
					batch = append(batch, fleet.Pulse{AgentID: fmt.Sprint(id), ReceivedAt: after(time.Duration(replica) * time.Second)})
				}
				done <- s.RecordPulses(ctx, batch)
			}()
		}
		for range 4 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		agents, total, err := s.Agents(ctx, fleet.Filter{Reach: access.Reach{All: true}, Limit: 100})
		if err != nil || total != 20 {
			t.Fatalf("%d agents, %v", total, err)
		}
		for _, a := range agents {
			if !a.HeartbeatAt.Equal(after(3 * time.Second)) {
				t.Errorf("agent %s was last heard at %v", a.ID, a.HeartbeatAt)
			}
		}
	})
}

func TestListsOfAgents(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Fleet()
		house(t, db)
		putToken(t, db, token("t"))
		for i, kind := range []fleet.Type{fleet.TypeCollector, fleet.TypeNodeMonitor, fleet.TypeHost} {
			for _, env := range []string{"acme-prod", "acme-test"} {
				a := collector(fmt.Sprint(i)+env, "alpha", "t")
				a.Type, a.EnvironmentID, a.Name = kind, env, fmt.Sprint("name-", i)
				if kind == fleet.TypeHost {
					a.ClusterSlug = ""
				}
				putAgent(t, db, a)
			}
		}
		all := access.Reach{All: true}
		for name, c := range map[string]struct {
			filter fleet.Filter
			want   []string
			total  int
		}{
			"nobody":   {fleet.Filter{Limit: 10}, nil, 0},
			"all":      {fleet.Filter{Reach: all, Limit: 10}, []string{"0acme-prod", "0acme-test", "1acme-prod", "1acme-test", "2acme-prod", "2acme-test"}, 6},
			"page":     {fleet.Filter{Reach: all, Limit: 2, Offset: 1}, []string{"0acme-test", "1acme-prod"}, 6},
			"hosts":    {fleet.Filter{Reach: all, Limit: 10, ExcludeCollectors: true, EnvironmentID: "acme-prod"}, []string{"1acme-prod", "2acme-prod"}, 2},
			"type":     {fleet.Filter{Reach: all, Limit: 10, Type: fleet.TypeCollector}, []string{"0acme-prod", "0acme-test"}, 2},
			"cluster":  {fleet.Filter{Reach: all, Limit: 10, ClusterSlug: "alpha", ClientID: "acme", EnvironmentID: "acme-test"}, []string{"0acme-test", "1acme-test"}, 2},
			"client":   {fleet.Filter{Reach: all, Limit: 10, ClientID: "zeta"}, nil, 0},
			"by reach": {fleet.Filter{Reach: access.Reach{Scopes: []access.Scope{{ClientID: "acme", EnvironmentID: "acme-test"}}}, Limit: 10}, []string{"0acme-test", "1acme-test", "2acme-test"}, 3},
			"other":    {fleet.Filter{Reach: access.Reach{Scopes: []access.Scope{{ClientID: "zeta"}}}, Limit: 10}, nil, 0},
		} {
			found, total, err := s.Agents(ctx, c.filter)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, a := range found {
				ids = append(ids, a.ID)
			}
			if diff := cmp.Diff(c.want, ids); diff != "" || total != c.total {
				t.Errorf("%s: of %d, %s", name, total, diff)
			}
		}
	})
}
