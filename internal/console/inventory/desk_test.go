package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
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

// tally is the observer: what was written, and what was dropped.
type tally struct {
	mu      sync.Mutex
	rows    []int
	dropped []string
}

func (c *tally) InventoryApplied(rows int, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, rows)
}

func (c *tally) InventoryDropped(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = append(c.dropped, reason)
}

// take returns what was counted since it was last called.
func (c *tally) take() (rows []int, dropped []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rows, dropped = c.rows, c.dropped
	c.rows, c.dropped = nil, nil
	return rows, dropped
}

// desk is a Service on a real store with the collectors "a" and "b" of cluster alpha in acme-prod.
type desk struct {
	*inventory.Service
	t     testing.TB
	db    *storetest.Database
	clock *clocktest.Manual
	count *tally
}

func newDesk(t testing.TB, db *storetest.Database) *desk {
	t.Helper()
	db.House(t)
	d := &desk{t: t, db: db, clock: clocktest.New(storetest.Noon()), count: &tally{}}
	d.Service = d.on(db.Inventory())
	d.agent("a", nil)
	d.agent("b", nil)
	return d
}

// on makes a Service like the desk's own on another view of the store.
func (d *desk) on(s inventory.Store) *inventory.Service {
	return inventory.New(inventory.Config{Store: s, Agents: d.db.Fleet(), Clock: d.clock, Logger: slog.New(slog.DiscardHandler), Observer: d.count})
}

func atDesks(t *testing.T, f func(*testing.T, *desk)) {
	t.Helper()
	engines.Each(t, func(t *testing.T, db *storetest.Database) { f(t, newDesk(t, db)) })
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

func writer() access.Principal {
	return grant(access.Scope{ClientID: "acme"}, access.HostsRead, access.HostsWrite)
}

// conflicted stores a cluster that another one reports under, seen the given time ago.
func (d *desk) conflicted(slug, reporter string, seen, synced time.Duration) {
	d.t.Helper()
	now := d.clock.Now()
	must(d.t, d.db.Inventory().InTx(d.t.Context(), func(tx inventory.Tx) error {
		return tx.InsertCluster(d.t.Context(), inventory.Cluster{
			ID: "cls-" + slug, ClientID: "acme", EnvironmentID: "acme-prod", Slug: slug, Name: slug, UID: "uid", AgentID: "a", LastSyncAt: now.Add(-synced),
			Conflict: inventory.Conflict{UID: "other", AgentID: reporter, FirstSeenAt: now.Add(-time.Hour), SeenAt: now.Add(-seen)},
		})
	}))
}

// agent enrolls a collector of alpha in acme-prod; change may be nil.
func (d *desk) agent(id string, change func(*fleet.Agent)) {
	d.t.Helper()
	a := fleet.Agent{
		ID: id, ClientID: "acme", EnvironmentID: "acme-prod", Type: fleet.TypeCollector, ClusterSlug: "alpha", Name: "pod-" + id,
		PublicKey: "U" + id, EnrolledAt: d.clock.Now(), Version: "0.9.0", Capability: 1,
	}
	if change != nil {
		change(&a)
	}
	must(d.t, d.db.Enrollment().InTx(d.t.Context(), func(tx enrollment.Tx) error { return tx.InsertAgent(d.t.Context(), a) }))
}

// enrolledAnew binds the agent to a new key, as an enrolment after its release does.
func (d *desk) enrolledAnew(id string) {
	d.t.Helper()
	a, err := d.db.Fleet().Agent(d.t.Context(), id)
	must(d.t, err)
	a.PublicKey += "x"
	a.ClusterRemovedAt = time.Time{}
	a.CredentialIssuedAt, a.CredentialExpiresAt = d.clock.Now(), d.clock.Now().Add(time.Hour)
	must(d.t, d.db.Enrollment().InTx(d.t.Context(), func(tx enrollment.Tx) error { return tx.BindAgent(d.t.Context(), a) }))
}

// token mints an install token of an attempt that ends at the given time.
func (d *desk) token(id, attempt string, ends time.Time) string {
	d.t.Helper()
	must(d.t, d.db.Enrollment().InTx(d.t.Context(), func(tx enrollment.Tx) error {
		return tx.InsertToken(d.t.Context(), enrollment.Token{
			ID: id, ClientID: "acme", EnvironmentID: "acme-prod", OnboardingID: attempt, MaxUses: 25, CreatedAt: d.clock.Now(), ExpiresAt: ends,
		}, []byte(id))
	}))
	return id
}

// publish receives an inventory of the agent a minute later.
func (d *desk) publish(agentID string, inv *wire.Inventory) error {
	d.t.Helper()
	data, err := wire.EncodeInventory(inv)
	must(d.t, err)
	d.clock.Advance(time.Minute)
	return d.deliver(d.t.Context(), agentID, data)
}

// deliver does what the edge does with a message.
func (d *desk) deliver(ctx context.Context, agentID string, data []byte) error {
	err := d.Receive(ctx, agentID, data, d.clock.Now())
	if errors.Is(err, inventory.ErrLarge) {
		err = d.ReceiveLarge(ctx, agentID, data, d.clock.Now())
	}
	return err
}

// applied publishes and holds what happens to the number of rows written.
func (d *desk) applied(agentID string, inv *wire.Inventory, rows int) {
	d.t.Helper()
	must(d.t, d.publish(agentID, inv))
	if got, dropped := d.count.take(); len(got) != 1 || got[0] != rows || len(dropped) != 0 {
		d.t.Errorf("rows written %v, dropped %q; want %d rows", got, dropped, rows)
	}
}

// drops publishes and holds what happens to a reason.
func (d *desk) drops(agentID string, inv *wire.Inventory, reason string) {
	d.t.Helper()
	must(d.t, d.publish(agentID, inv))
	if got, dropped := d.count.take(); len(got) != 0 || len(dropped) != 1 || dropped[0] != reason {
		d.t.Errorf("rows written %v, dropped %q; want %s", got, dropped, reason)
	}
}

func (d *desk) cluster(slug string) inventory.Cluster {
	d.t.Helper()
	c, err := d.db.Inventory().ClusterBySlug(d.t.Context(), "acme-prod", slug)
	must(d.t, err)
	return c
}

func (d *desk) missing(slug string) {
	d.t.Helper()
	if c, err := d.db.Inventory().ClusterBySlug(d.t.Context(), "acme-prod", slug); !errors.Is(err, inventory.ErrNotFound) {
		d.t.Errorf("there is a cluster %+v, %v", c, err)
	}
}

// names lists the stored objects of a section as namespace/name, or as name.
func (d *desk) names(section inventory.Section) []string {
	d.t.Helper()
	page, err := d.db.Inventory().Objects(d.t.Context(), inventory.Query{ClusterID: d.cluster("alpha").ID, Section: section, Sort: "name", Limit: 500})
	must(d.t, err)
	names := []string{}
	for _, o := range page.Objects {
		name := o.Name
		if o.Namespace != "" {
			name = o.Namespace + "/" + name
		}
		names = append(names, name)
	}
	return names
}

// house is an inventory of alpha with one or two objects of each kind, 12 rows; sync (1, 1).
func house() *wire.Inventory {
	at := storetest.Noon().Add(-time.Hour)
	meta := func(namespace, name string) wire.Meta {
		return wire.Meta{Namespace: namespace, Name: name, UID: "uid-" + name, CreatedAt: at, Labels: map[string]string{"app": name}}
	}
	return whole(&wire.Inventory{
		Capability: 1, Epoch: 1, Sync: 1, ClusterName: "Alpha", ClusterSlug: "alpha", ClusterUID: "uid-alpha", CollectedAt: at,
		Cluster: wire.ClusterInfo{Version: "v1.36.3", Platform: "linux/amd64", Provider: "aws"},
		Nodes: []wire.Node{
			{Meta: meta("", "node-1"), Ready: wire.NodeReadyTrue, Allocatable: wire.Resources{CPUMillis: new(int64(4000)), MemoryBytes: new(int64(8 << 30))}},
			{Meta: meta("", "node-2"), Ready: wire.NodeReadyFalse},
		},
		Namespaces: []wire.Namespace{{Meta: meta("", "shop"), Phase: "Active", Pods: 2}, {Meta: meta("", "kube-system"), Phase: "Active"}},
		Workloads: []wire.Workload{
			{Meta: meta("shop", "web"), Kind: "Deployment", Desired: 2, Ready: 2},
			{Meta: meta("shop", "db"), Kind: "StatefulSet", Desired: 1},
			{Meta: meta("shop", "log"), Kind: "DaemonSet", Desired: 2, Ready: 2},
		},
		Pods: []wire.Pod{
			{Meta: meta("shop", "web-1"), Phase: "Running", NodeName: "node-1", OwnerKind: "ReplicaSet", OwnerName: "web-x", WorkloadKind: "Deployment", WorkloadName: "web", LongRunning: 1, ReadyContainers: 1},
			{Meta: meta("shop", "web-2"), Phase: "Pending"},
		},
		Services: []wire.Service{{Meta: meta("shop", "web"), Type: "ClusterIP"}},
		Events: []wire.Event{
			{Meta: meta("shop", "ev-1"), Type: "Warning", Reason: "BackOff", InvolvedKind: "Pod", InvolvedName: "web-1", Count: 3, LastSeen: at},
			{Meta: meta("shop", "ev-2"), Type: "Normal", Count: 1, LastSeen: at.Add(time.Minute)},
		},
	})
}

// kinds lists every kind of an inventory.
func kinds() []wire.Kind {
	return []wire.Kind{
		wire.KindNodes, wire.KindNamespaces, wire.KindDeployments, wire.KindStatefulSets, wire.KindDaemonSets, wire.KindPods, wire.KindServices, wire.KindEvents,
	}
}

// whole reports every kind as read to its end.
func whole(inv *wire.Inventory) *wire.Inventory {
	count := map[wire.Kind]int{
		wire.KindNodes: len(inv.Nodes), wire.KindNamespaces: len(inv.Namespaces), wire.KindPods: len(inv.Pods),
		wire.KindServices: len(inv.Services), wire.KindEvents: len(inv.Events),
		wire.KindDeployments: 0, wire.KindStatefulSets: 0, wire.KindDaemonSets: 0, // counted below
	}
	for _, w := range inv.Workloads {
		count[map[string]wire.Kind{"Deployment": wire.KindDeployments, "StatefulSet": wire.KindStatefulSets, "DaemonSet": wire.KindDaemonSets}[w.Kind]]++
	}
	inv.Kinds = nil
	for _, k := range kinds() {
		inv.Kinds = append(inv.Kinds, wire.KindReport{Kind: k, Kept: count[k], Total: count[k]})
	}
	return inv
}

// at gives an inventory another place in the order.
func at(epoch, sync int64, inv *wire.Inventory) *wire.Inventory {
	inv.Epoch, inv.Sync = epoch, sync
	return inv
}

// report changes the report of one kind.
func report(inv *wire.Inventory, kind wire.Kind, change func(*wire.KindReport)) {
	for i := range inv.Kinds {
		if inv.Kinds[i].Kind == kind {
			change(&inv.Kinds[i])
		}
	}
}

// a conflict ends when its cause is gone, and never because a rebuilt cluster was quiet for a while.
func TestEndConflicts(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		ctx := t.Context()
		d.agent("revoked", func(a *fleet.Agent) { a.RevokedAt = d.clock.Now() })
		rows := map[string]struct {
			reporter     string
			seen, synced time.Duration
			stands       bool
		}{
			"quiet, and the stored one synced since":  {"b", 11 * time.Minute, time.Minute, false},
			"not quiet for long enough":               {"b", 9 * time.Minute, time.Minute, true},
			"rebuilt: the stored one never came back": {"b", 3 * time.Hour, 4 * time.Hour, true},
			"reporter revoked":                        {"revoked", time.Minute, time.Hour, false},
			"reporter deleted":                        {"gone", time.Minute, time.Hour, false},
		}
		for slug, r := range rows {
			d.conflicted(slug, r.reporter, r.seen, r.synced)
		}
		for range 2 {
			must(t, d.EndConflicts(ctx, 10*time.Minute))
		}
		for slug, r := range rows {
			if c := d.cluster(slug); (c.Conflict.UID != "") != r.stands {
				t.Errorf("%s: the conflict is %+v", slug, c.Conflict)
			}
		}
	})
}

// a cluster whose collector is present is not removed.
func TestAPresentClusterIsNotRemoved(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		ctx := t.Context()
		d.conflicted("alpha", "b", time.Hour, time.Minute)
		id := d.cluster("alpha").ID
		seen := func() {
			must(t, d.db.Fleet().RecordPresence(ctx, []fleet.Presence{{AgentID: "b", ReceivedAt: d.clock.Now(), Status: wire.Status{Role: wire.RoleStandby}}}))
		}
		seen()
		d.clock.Advance(fleet.PresentWithin)
		err := d.Remove(ctx, writer(), id)
		want(t, err, problem.Conflict, "cluster_alive")
		if goes, err := d.Removal(ctx, writer(), id); err != nil || goes.Refusal == nil || goes.Refusal.Code != "cluster_alive" {
			t.Errorf("what goes: %+v, %v", goes.Refusal, err)
		}
		if d.cluster("alpha").ID != id || d.db.Audits(t, "cluster_removed") != 0 {
			t.Error("it is gone all the same")
		}
		d.clock.Advance(time.Second)
		seen()
		must(t, d.db.Fleet().InTx(ctx, func(tx fleet.Tx) error { return tx.RevokeAgent(ctx, "b", d.clock.Now()) }))
		d.agent("elsewhere", func(a *fleet.Agent) { a.EnvironmentID, a.PresenceAt = "acme-test", d.clock.Now() })
		d.agent("node", func(a *fleet.Agent) { a.Type, a.PresenceAt = fleet.TypeNodeMonitor, d.clock.Now() })
		must(t, d.Remove(ctx, writer(), id)) // revoked a moment ago, so nothing of it comes any more
	})
}
