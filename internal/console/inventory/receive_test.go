package inventory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/wire"
	"prxm.uz/proxima/test/storetest"
)

func TestTheFirstInventoryMakesTheCluster(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		d.applied("a", house(), 12)
		now := d.clock.Now()
		got := d.cluster("alpha")
		want := inventory.Cluster{
			ID: got.ID, ClientID: "acme", ClientName: "acme", EnvironmentID: "acme-prod", EnvironmentName: "prod", Slug: "alpha", Name: "Alpha",
			UID: "uid-alpha", AgentID: "a", AgentName: "pod-a", Epoch: 1, Sync: 1, Revision: 1, FirstSyncAt: now, LastSyncAt: now, CollectedAt: storetest.Noon().Add(-time.Hour),
			Version: "v1.36.3", Platform: "linux/amd64", Provider: "aws",
			Counts:     inventory.Counts{Nodes: 2, Namespaces: 2, Workloads: 3, Pods: 2, Services: 1, Events: 2},
			Collectors: 2, EnrolledAt: storetest.Noon(),
		}
		for _, r := range house().Kinds {
			want.Kinds = append(want.Kinds, inventory.KindState{KindReport: r, ReadAt: now})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		pod, err := d.Object(t.Context(), writer(), got.ID, inventory.Key{Section: inventory.SectionPods, Kind: "Pod", Namespace: "shop", Name: "web-1"})
		must(t, err)
		var body wire.Pod
		must(t, json.Unmarshal(pod.Body, &body))
		if diff := cmp.Diff(house().Pods[0], body); diff != "" {
			t.Error(diff)
		}
		if pod.State != "Running" || pod.Node != "node-1" || pod.Owner != "Deployment/web" || pod.UID != "uid-web-1" {
			t.Errorf("the columns are %+v", pod)
		}
	})
}

func TestOnlyWhatChangedIsWritten(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		big := func(sync int64) *wire.Inventory {
			inv := at(1, sync, house())
			for i := range 998 {
				inv.Pods = append(inv.Pods, wire.Pod{Meta: wire.Meta{Namespace: "shop", Name: fmt.Sprintf("pod-%03d", i)}, Phase: "Running"})
			}
			return whole(inv)
		}
		d.applied("a", big(1), 12+998)
		d.applied("a", big(2), 0)
		changed := big(3)
		for i := range 10 { // 1 %
			changed.Pods[100+i].Restarts = 1
		}
		d.applied("a", changed, 10)
		page, err := d.Objects(t.Context(), writer(), inventory.Query{ClusterID: d.cluster("alpha").ID, Section: inventory.SectionPods, Sort: "restarts", Desc: true, Limit: 11})
		must(t, err)
		if page.Total != 1000 || page.Objects[9].Restarts != 1 || page.Objects[10].Restarts != 0 {
			t.Errorf("the most restarted of %d: %+v", page.Total, page.Objects)
		}
		d.applied("a", changed, 0) // delivered twice
		if c := d.cluster("alpha"); c.Sync != 3 || c.Dropped != 0 || c.Counts.Pods != 1000 {
			t.Errorf("%+v", c)
		}
	})
}

func TestWhatVanishedGoes(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		d.applied("a", house(), 12)
		inv := at(1, 2, house())
		inv.Pods, inv.Services, inv.Nodes = inv.Pods[1:], nil, inv.Nodes[:1]
		inv.Pods = append(inv.Pods, wire.Pod{Meta: wire.Meta{Namespace: "shop", Name: "web-3"}})
		d.applied("a", whole(inv), 4)
		if diff := cmp.Diff([]string{"shop/web-2", "shop/web-3"}, d.names(inventory.SectionPods)); diff != "" {
			t.Error(diff)
		}
		c := d.cluster("alpha")
		if diff := cmp.Diff(inventory.Counts{Nodes: 1, Namespaces: 2, Workloads: 3, Pods: 2, Events: 2}, c.Counts); diff != "" || len(d.names(inventory.SectionServices)) != 0 {
			t.Error(diff)
		}
		if page, err := d.Objects(t.Context(), writer(), inventory.Query{ClusterID: c.ID, Section: inventory.SectionServices}); err != nil || page.Total != 0 {
			t.Errorf("services: %+v, %v", page, err)
		}
	})
}

// sectionOf is where the rows of a kind are shown, and how many house has of it.
func sectionOf(k wire.Kind) (inventory.Section, int) {
	switch k {
	case wire.KindNodes:
		return inventory.SectionNodes, 2
	case wire.KindNamespaces:
		return inventory.SectionNamespaces, 2
	case wire.KindDeployments, wire.KindStatefulSets, wire.KindDaemonSets:
		return inventory.SectionWorkloads, 1
	case wire.KindPods:
		return inventory.SectionPods, 2
	case wire.KindServices:
		return inventory.SectionServices, 1
	case wire.KindEvents:
		return inventory.SectionEvents, 2
	}
	return "", 0
}

// an unread kind keeps its rows and says from when they are; the others go on.
func TestUnreadKindsKeepTheirRows(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		d.applied("a", house(), 12)
		readAt := d.clock.Now()
		sync := int64(1)
		for _, kind := range kinds() {
			sync++
			inv := at(1, sync, house())
			switch kind {
			case wire.KindNodes:
				inv.Nodes = nil
			case wire.KindNamespaces:
				inv.Namespaces = nil
			case wire.KindDeployments:
				inv.Workloads = slices.Delete(inv.Workloads, 0, 1)
			case wire.KindStatefulSets:
				inv.Workloads = slices.Delete(inv.Workloads, 1, 2)
			case wire.KindDaemonSets:
				inv.Workloads = slices.Delete(inv.Workloads, 2, 3)
			case wire.KindPods:
				inv.Pods = nil
			case wire.KindServices:
				inv.Services = nil
			case wire.KindEvents:
				inv.Events = nil
			}
			report(whole(inv), kind, func(r *wire.KindReport) { r.Unread, r.Message = wire.UnreadForbidden, "no" })
			d.applied("a", inv, 0)
			c := d.cluster("alpha")
			if diff := cmp.Diff(inventory.Counts{Nodes: 2, Namespaces: 2, Workloads: 3, Pods: 2, Services: 1, Events: 2}, c.Counts); diff != "" {
				t.Errorf("%s: %s", kind, diff)
			}
			for _, st := range c.Kinds {
				if st.Kind == kind && (!st.ReadAt.Equal(readAt) || st.Unread != wire.UnreadForbidden || st.Message != "no") || st.Kind != kind && !st.ReadAt.Equal(d.clock.Now()) {
					t.Errorf("%s unread: %+v", kind, st)
				}
			}
			// Unread again: the age stays. Not mentioned: the rows stay, too, and so does their age.
			sync++
			inv.Sync = sync
			d.applied("a", inv, 0)
			sync++
			inv.Sync = sync
			inv.Kinds = slices.DeleteFunc(inv.Kinds, func(r wire.KindReport) bool { return r.Kind == kind })
			d.applied("a", inv, 0)
			for _, st := range d.cluster("alpha").Kinds {
				if st.Kind == kind && !st.ReadAt.Equal(readAt) {
					t.Errorf("%s unread for long: %+v", kind, st)
				}
			}
			// Read, and empty: gone. Then all is there again.
			sync++
			inv.Sync = sync
			_, n := sectionOf(kind)
			d.applied("a", whole(inv), n)
			sync++
			d.applied("a", at(1, sync, house()), n)
			readAt = d.clock.Now()
		}
	})
}

// what a limit cut off is not taken for gone, but does not stay for ever either.
func TestCutListsMarkWhatIsMissing(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		cut := func(sync int64, pods ...wire.Pod) *wire.Inventory {
			inv := at(1, sync, house())
			inv.Pods = pods
			report(whole(inv), wire.KindPods, func(r *wire.KindReport) { r.Total = 5 })
			return inv
		}
		web1, web2 := house().Pods[0], house().Pods[1]
		unseen := func() map[string]time.Time {
			page, err := d.Objects(t.Context(), writer(), inventory.Query{ClusterID: d.cluster("alpha").ID, Section: inventory.SectionPods})
			must(t, err)
			since := map[string]time.Time{}
			for _, o := range page.Objects {
				since[o.Name] = o.UnseenSince
			}
			return since
		}
		check := func(when string, want map[string]time.Time) {
			t.Helper()
			if diff := cmp.Diff(want, unseen()); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
			if n := d.cluster("alpha").Counts.Pods; n != len(want) {
				t.Errorf("%s: %d pods are counted", when, n)
			}
		}
		d.applied("a", house(), 12)
		d.applied("a", cut(2, web1), 0)
		since := d.clock.Now()
		check("cut", map[string]time.Time{"web-1": {}, "web-2": since})
		d.applied("a", cut(3, web1), 0)
		check("still cut", map[string]time.Time{"web-1": {}, "web-2": since})
		d.applied("a", cut(4, web1, web2), 0)
		check("seen again", map[string]time.Time{"web-1": {}, "web-2": {}})
		d.applied("a", cut(5, web2), 0)
		web1.Restarts = 9
		d.applied("a", cut(6, web1, web2), 1)
		check("seen again, changed", map[string]time.Time{"web-1": {}, "web-2": {}})
		d.applied("a", cut(7, web1), 0)
		since = d.clock.Now()
		d.clock.Advance(inventory.KeepUnseen - time.Minute)
		d.applied("a", cut(8, web1), 0)
		check("after 24 hours", map[string]time.Time{"web-1": {}, "web-2": since})
		d.applied("a", cut(9, web1), 1)
		check("after more than 24 hours", map[string]time.Time{"web-1": {}})
		// Unread: a mark stays as it is, and the time goes on.
		d.applied("a", cut(10), 0)
		since = d.clock.Now()
		inv := cut(11)
		report(inv, wire.KindPods, func(r *wire.KindReport) { r.Unread = wire.UnreadUnavailable })
		d.applied("a", inv, 0)
		check("unread", map[string]time.Time{"web-1": since})
		// A list that is whole again tells what is gone.
		inv = at(1, 12, house())
		inv.Pods = nil
		d.applied("a", whole(inv), 1)
		check("whole again", map[string]time.Time{})
	})
}

// only what is newer than the stored pair is applied; a deposed leader publishes late.
func TestTheOrderOfInventories(t *testing.T) {
	for name, c := range map[string]struct {
		agent       string
		epoch, sync int64
		applied     bool
		dropped     int64
	}{
		"the next sync":                   {"a", 3, 6, true, 0},
		"a gap":                           {"a", 3, 60, true, 0},
		"the next epoch":                  {"b", 4, 1, true, 0},
		"a later epoch":                   {"b", 9, 9, true, 0},
		"an epoch after a restore":        {"b", 1_000_003, 1, true, 0},
		"the same again":                  {"a", 3, 5, false, 0},
		"the same pair of another agent":  {"b", 3, 5, false, 1},
		"an older sync":                   {"a", 3, 4, false, 1},
		"a deposed leader":                {"b", 2, 1000, false, 1},
		"a deposed leader's first":        {"b", 1, 1, false, 1},
		"a restarted agent without epoch": {"a", 3, 1, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			atDesks(t, func(t *testing.T, d *desk) {
				d.applied("a", at(3, 5, house()), 12)
				stored := d.cluster("alpha")
				inv := at(c.epoch, c.sync, house())
				inv.Pods = nil
				must(t, d.publish(c.agent, whole(inv)))
				got := d.cluster("alpha")
				rows, dropped := d.count.take()
				if c.applied {
					if got.Epoch != c.epoch || got.Sync != c.sync || got.AgentID != c.agent || got.Counts.Pods != 0 || len(rows) != 1 || rows[0] != 2 {
						t.Errorf("not applied: %+v", got)
					}
					return
				}
				if c.dropped > 0 {
					stored.Dropped, stored.DroppedAt, stored.DroppedReason = 1, d.clock.Now(), inventory.DropOlder
					if !slices.Equal(dropped, []string{inventory.DropOlder}) {
						t.Errorf("dropped %q", dropped)
					}
				}
				if diff := cmp.Diff(stored, got); diff != "" || len(d.names(inventory.SectionPods)) != 2 {
					t.Error(diff)
				}
			})
		})
	}
}

// An epoch that console never gave out must not use up those that it can.
func TestEpochsFarAheadAreDropped(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		for _, epoch := range []int64{1_000_001, wire.MaxOrder} {
			d.drops("b", at(epoch, 1, house()), inventory.DropEpochAhead)
		}
		d.missing("alpha")
		d.applied("a", at(3, 1, house()), 12)
		for _, epoch := range []int64{1_000_004, wire.MaxOrder} {
			d.drops("b", at(epoch, wire.MaxOrder, house()), inventory.DropEpochAhead)
		}
		if c := d.cluster("alpha"); c.Epoch != 3 || c.Dropped != 2 || c.DroppedReason != inventory.DropEpochAhead || !c.DroppedAt.Equal(d.clock.Now()) {
			t.Errorf("%+v", c)
		}
		if epoch, err := d.NextEpoch(t.Context(), "a", "alpha"); err != nil || epoch != 4 {
			t.Errorf("the next epoch is %d, %v", epoch, err)
		}
		d.applied("a", at(4, 1, house()), 0)
	})
}

// A collector that took the lead of the order and was thrown out leaves the cluster to the others.
func TestThePlaceOfARevokedCollectorBindsNobody(t *testing.T) {
	for name, out := range map[string]func(*desk) error{
		"revoked": func(d *desk) error {
			return d.db.Fleet().InTx(d.t.Context(), func(tx fleet.Tx) error { return tx.RevokeAgent(d.t.Context(), "b", d.clock.Now()) })
		},
		"deleted": func(d *desk) error {
			return d.db.Fleet().InTx(d.t.Context(), func(tx fleet.Tx) error { return tx.DeleteAgent(d.t.Context(), "b", d.clock.Now()) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			atDesks(t, func(t *testing.T, d *desk) {
				d.applied("a", at(3, 1, house()), 12)
				d.applied("b", at(9, wire.MaxOrder, house()), 0)
				d.drops("a", at(3, 2, house()), inventory.DropOlder)
				must(t, out(d))
				d.applied("a", at(3, 3, house()), 0)
				if c := d.cluster("alpha"); c.Epoch != 3 || c.Sync != 3 || c.AgentID != "a" {
					t.Errorf("%+v", c)
				}
				if epoch, err := d.NextEpoch(t.Context(), "a", "alpha"); err != nil || epoch != 4 {
					t.Errorf("the next epoch is %d, %v", epoch, err)
				}
			})
		})
	}
}

// throng is house with so many more pods that one transaction does not hold them.
func throng(pods int, restarts int64) *wire.Inventory {
	inv := house()
	for i := range pods {
		inv.Pods = append(inv.Pods, wire.Pod{Meta: wire.Meta{Namespace: "crowd", Name: fmt.Sprintf("p-%05d", i)}, Phase: "Running", Restarts: restarts})
	}
	return whole(inv)
}

// broken fails a transaction, as a console that is killed does, or does something before it, as a replica may.
type broken struct {
	inventory.Store
	before func(transaction int) error
	begun  int
}

func (b *broken) InTx(ctx context.Context, f func(inventory.Tx) error) error {
	b.begun++
	if err := b.before(b.begun); err != nil {
		return err
	}
	return b.Store.InTx(ctx, f)
}

func TestALargeInventoryIsStoredInParts(t *testing.T) {
	const pods = 25_000
	atDesks(t, func(t *testing.T, d *desk) {
		down := errors.New("killed")
		view := &broken{Store: d.db.Inventory(), before: func(n int) error {
			if n == 3 {
				return down
			}
			return nil
		}}
		s := d.on(view)
		data, err := wire.EncodeInventory(throng(pods, 0))
		must(t, err)
		receive := func(agent string, data []byte) error { return s.ReceiveLarge(t.Context(), agent, data, d.clock.Now()) }
		if err := s.Receive(t.Context(), "a", data, d.clock.Now()); !errors.Is(err, inventory.ErrLarge) || view.begun != 0 {
			t.Errorf("received beside others: %v, after %d transactions", err, view.begun)
		}
		if err := receive("a", data); !errors.Is(err, down) {
			t.Fatalf("the first delivery: %v", err)
		}
		// Nobody is told of a sync that is not whole.
		if c := d.cluster("alpha"); !c.PartlyApplied || !c.LastSyncAt.IsZero() || !c.FirstSyncAt.IsZero() || c.Counts != (inventory.Counts{}) {
			t.Errorf("in part: %+v", c)
		}
		if n := d.db.Count(t, "SELECT COUNT(*) FROM inventory_objects"); n == 0 || n >= pods {
			t.Errorf("%d objects are stored in part", n)
		}
		d.clock.Advance(time.Minute)
		must(t, receive("a", data))
		c := d.cluster("alpha")
		if c.PartlyApplied || c.Counts.Pods != pods+2 || !c.FirstSyncAt.Equal(d.clock.Now()) || !c.LastSyncAt.Equal(d.clock.Now()) {
			t.Errorf("whole: %+v", c)
		}
		if n := d.db.Count(t, "SELECT COUNT(*) FROM inventory_objects"); n != pods+12 {
			t.Errorf("%d objects", n)
		}

		// All change, and another collector's newer sync, far smaller, comes between two parts.
		view.begun, view.before = 0, func(n int) error {
			if n == 2 {
				return d.publish("b", at(2, 1, house()))
			}
			return nil
		}
		if data, err = wire.EncodeInventory(at(1, 2, throng(pods, 1))); err != nil {
			t.Fatal(err)
		}
		if err := receive("a", data); err == nil || errors.Is(err, wire.ErrMalformed) {
			t.Fatalf("overtaken: %v", err)
		}
		d.count.take()
		must(t, receive("a", data))
		if rows, dropped := d.count.take(); len(rows) != 0 || !slices.Equal(dropped, []string{inventory.DropOlder}) {
			t.Errorf("rows %v, dropped %q", rows, dropped)
		}
		if c := d.cluster("alpha"); c.PartlyApplied || c.AgentID != "b" || c.Counts.Pods != 2 || d.db.Count(t, "SELECT COUNT(*) FROM inventory_objects") != 12 {
			t.Errorf("after all: %+v", c)
		}
	})
}

// Whatever order twenty syncs arrive in, the newest is what remains.
func TestTheNewestOfManyAtOnceStays(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		var wait sync.WaitGroup
		for i := range 20 {
			inv := at(1+int64(i/10), 1+int64(i%10), house())
			inv.Pods[0].Restarts = int64(i)
			inv.Pods = append(inv.Pods, wire.Pod{Meta: wire.Meta{Namespace: "shop", Name: fmt.Sprint("only-", i)}})
			data, err := wire.EncodeInventory(whole(inv))
			must(t, err)
			wait.Go(func() {
				// As the stream does: an error means that it is delivered again.
				for range 1000 {
					if d.Receive(t.Context(), []string{"a", "b"}[i/10], data, d.clock.Now()) == nil {
						return
					}
				}
				t.Errorf("inventory %d was never taken", i)
			})
		}
		wait.Wait()
		c := d.cluster("alpha")
		if c.Epoch != 2 || c.Sync != 10 || c.AgentID != "b" || c.Counts.Pods != 3 {
			t.Errorf("%+v", c)
		}
		if diff := cmp.Diff([]string{"shop/only-19", "shop/web-1", "shop/web-2"}, d.names(inventory.SectionPods)); diff != "" {
			t.Error(diff)
		}
		rows, dropped := d.count.take()
		if len(rows)+len(dropped) != 20 || int64(len(dropped)) != c.Dropped {
			t.Errorf("%d applied, %d dropped, the cluster counts %d", len(rows), len(dropped), c.Dropped)
		}
	})
}

// between runs something after the hashes were read, as another replica may.
type between struct {
	inventory.Store
	act func()
}

func (b *between) Hashes(ctx context.Context, clusterID string) (map[inventory.Key]inventory.Stored, error) {
	found, err := b.Store.Hashes(ctx, clusterID)
	if b.act != nil {
		b.act()
	}
	return found, err
}

func TestWhatHappensMeanwhileLosesNoRow(t *testing.T) {
	for name, meanwhile := range map[string]func(*desk, *testing.T){
		"removed": func(d *desk, t *testing.T) {
			must(t, d.Remove(t.Context(), writer(), d.cluster("alpha").ID))
			d.enrolledAnew("a")
		},
		"removed and back": func(d *desk, t *testing.T) {
			must(t, d.Remove(t.Context(), writer(), d.cluster("alpha").ID))
			d.enrolledAnew("a")
			d.enrolledAnew("b")
			inv := house()
			inv.Pods = nil
			must(t, d.publish("b", whole(inv)))
		},
		"synced": func(d *desk, t *testing.T) {
			inv := at(1, 2, house())
			inv.Pods = nil
			must(t, d.publish("b", whole(inv)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			atDesks(t, func(t *testing.T, d *desk) {
				must(t, d.publish("a", house()))
				view := &between{Store: d.db.Inventory(), act: func() { meanwhile(d, t) }}
				s := d.on(view)
				data, err := wire.EncodeInventory(at(1, 3, house()))
				must(t, err)
				if err := s.Receive(t.Context(), "a", data, d.clock.Now()); err == nil || errors.Is(err, wire.ErrMalformed) {
					t.Fatalf("the first delivery: %v", err)
				}
				view.act = nil
				must(t, s.Receive(t.Context(), "a", data, d.clock.Now()))
				if got := d.names(inventory.SectionPods); len(got) != 2 || d.db.Count(t, "SELECT COUNT(*) FROM inventory_objects") != 12 {
					t.Errorf("pods %q of %d objects", got, d.db.Count(t, "SELECT COUNT(*) FROM inventory_objects"))
				}
			})
		})
	}
}

func TestWhoMayNotPublish(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		d.agent("revoked", func(a *fleet.Agent) { a.RevokedAt = d.clock.Now() })
		d.agent("node", func(a *fleet.Agent) { a.Type = fleet.TypeNodeMonitor })
		d.agent("host", func(a *fleet.Agent) { a.Type, a.ClusterSlug = fleet.TypeHost, "" })
		for agent, reason := range map[string]string{
			"nobody": inventory.DropUnknownAgent, "revoked": inventory.DropRevoked, "node": inventory.DropNotCollector, "host": inventory.DropNotCollector,
		} {
			d.drops(agent, house(), reason)
			if epoch, err := d.NextEpoch(t.Context(), agent, "alpha"); err == nil {
				t.Errorf("%s got the epoch %d", agent, epoch)
			}
		}
		d.missing("alpha")
	})
}

// under another slug than it enrolled with, nothing is stored, and the slug is noted.
func TestAnotherSlugIsDroppedAndNoted(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		noted := func() (string, time.Time) {
			a, err := d.db.Fleet().Agent(t.Context(), "a")
			must(t, err)
			return a.PublishedSlug, a.PublishedSlugAt
		}
		other := house()
		other.ClusterSlug = "beta"
		d.drops("a", other, inventory.DropOtherSlug)
		if slug, at := noted(); slug != "beta" || !at.Equal(d.clock.Now()) {
			t.Errorf("noted %q at %v", slug, at)
		}
		d.missing("alpha")
		d.missing("beta")
		d.agent("rightful", func(a *fleet.Agent) { a.ClusterSlug = "beta" })
		must(t, d.publish("rightful", other))
		beta := d.cluster("beta")
		d.count.take()
		other.Sync, other.Pods = 2, nil
		d.drops("a", whole(other), inventory.DropOtherSlug) // it cannot write into a cluster that is not its own
		if diff := cmp.Diff(beta, d.cluster("beta")); diff != "" {
			t.Error(diff)
		}
		d.applied("a", house(), 12)
		if slug, _ := noted(); slug != "" {
			t.Errorf("back under its own slug, %q is still noted", slug)
		}
		// The question for an epoch tells it, too; the epoch is that of the enrolled slug.
		for _, slug := range []string{"gamma", "ga\x00mma", strings.Repeat("g", 10_000), ""} {
			if _, err := d.NextEpoch(t.Context(), "a", slug); err != nil {
				t.Errorf("%.20q: %v", slug, err)
			}
			if got, _ := noted(); len(got) > 253 || strings.ContainsRune(got, 0) || slug == "gamma" && got != "gamma" {
				t.Errorf("%.20q is noted as %q", slug, got)
			}
		}
		if n := d.db.Count(t, "SELECT COUNT(*) FROM cluster_epochs"); n != 1 {
			t.Errorf("%d counters of epochs", n)
		}
	})
}

func TestEpochsOnlyGrow(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		next := func(agent string) int64 {
			t.Helper()
			epoch, err := d.NextEpoch(t.Context(), agent, "alpha")
			must(t, err)
			return epoch
		}
		d.agent("t", func(a *fleet.Agent) { a.EnvironmentID = "acme-test" })
		if a, b, again, test := next("a"), next("b"), next("a"), next("t"); a != 1 || b != 2 || again != 3 || test != 1 {
			t.Errorf("epochs %d, %d, %d, and %d in another environment", a, b, again, test)
		}
		// A database that was restored from an older copy knows less than the agents: the next epoch is
		// above what it sees all the same.
		d.applied("a", at(40, 1, house()), 12)
		if epoch := next("b"); epoch != 41 {
			t.Errorf("the epoch after one of 40 is %d", epoch)
		}
		must(t, d.Remove(t.Context(), writer(), d.cluster("alpha").ID))
		d.enrolledAnew("b")
		if epoch := next("b"); epoch != 42 {
			t.Errorf("the epoch after the cluster was removed is %d", epoch)
		}
	})
}

// another fingerprint under a used slug stores nothing until a person accepts it.
func TestARebuiltCluster(t *testing.T) {
	rebuilt := func(epoch, sync int64, uid string) *wire.Inventory {
		inv := at(epoch, sync, house())
		inv.ClusterUID, inv.Pods, inv.Nodes = uid, inv.Pods[:1], nil
		report(whole(inv), wire.KindNodes, func(r *wire.KindReport) { r.Unread = wire.UnreadForbidden })
		return inv
	}
	atDesks(t, func(t *testing.T, d *desk) {
		ctx := t.Context()
		d.applied("a", house(), 12)
		want0 := d.cluster("alpha")
		d.drops("b", rebuilt(2, 1, "uid-new"), inventory.DropOtherCluster)
		first := d.clock.Now()
		d.drops("b", rebuilt(2, 2, "uid-new"), inventory.DropOtherCluster)
		want0.Conflict = inventory.Conflict{UID: "uid-new", AgentID: "b", AgentName: "pod-b", FirstSeenAt: first, SeenAt: d.clock.Now()}
		want0.Dropped, want0.DroppedAt, want0.DroppedReason = 2, d.clock.Now(), inventory.DropOtherCluster
		got := d.cluster("alpha")
		if diff := cmp.Diff(want0, got); diff != "" || len(d.names(inventory.SectionPods)) != 2 {
			t.Error(diff)
		}
		// The old one may still live: it goes on, and the conflict stays in sight.
		d.applied("a", at(1, 2, house()), 0)
		if c := d.cluster("alpha"); c.Conflict.UID != "uid-new" || c.Sync != 2 {
			t.Errorf("%+v", c)
		}
		// A third fingerprint takes the place of the second.
		d.drops("b", rebuilt(2, 3, "uid-third"), inventory.DropOtherCluster)
		if c := d.cluster("alpha").Conflict; c.UID != "uid-third" || !c.FirstSeenAt.Equal(d.clock.Now()) {
			t.Errorf("%+v", c)
		}

		for name, c := range map[string]struct {
			p    access.Principal
			id   string
			uid  string
			kind problem.Kind
			code string
		}{
			"another one slipped in": {writer(), got.ID, "uid-new", problem.Conflict, "identity_not_reported"},
			"no fingerprint":         {writer(), got.ID, "", problem.Conflict, "identity_not_reported"},
			"its own":                {writer(), got.ID, "uid-alpha", problem.Conflict, "identity_not_reported"},
			"reader":                 {grant(access.Scope{ClientID: "acme"}, access.HostsRead), got.ID, "uid-third", problem.Forbidden, "permission_missing"},
			"stranger":               {grant(access.Scope{ClientID: "zeta"}, access.Permissions()...), got.ID, "uid-third", problem.NotFound, "cluster_not_found"},
			"no such cluster":        {writer(), "cls_none", "uid-third", problem.NotFound, "cluster_not_found"},
		} {
			_, err := d.AcceptIdentity(ctx, c.p, c.id, c.uid)
			if !problem.Is(err, c.kind) || problem.CodeOf(err) != c.code {
				t.Errorf("%s: %v, want %s", name, err, c.code)
			}
		}
		if c := d.cluster("alpha"); c.UID != "uid-alpha" || d.db.Audits(t, "cluster_identity_accepted") != 0 {
			t.Errorf("somebody got through: %+v", c)
		}

		accepted, err := d.AcceptIdentity(ctx, writer(), got.ID, "uid-third")
		must(t, err)
		if accepted.UID != "uid-third" || !accepted.Conflict.SeenAt.IsZero() || d.db.Audits(t, "cluster_identity_accepted") != 1 {
			t.Errorf("%+v", accepted)
		}
		_, err = d.AcceptIdentity(ctx, writer(), got.ID, "uid-third")
		want(t, err, problem.Conflict, "identity_not_reported")
		// Its next inventory is applied. The nodes, which it may not read, were of the old cluster.
		d.applied("b", rebuilt(2, 4, "uid-third"), 3)
		if c := d.cluster("alpha"); c.ID != got.ID || c.AgentID != "b" || c.Counts.Pods != 1 || c.Counts.Nodes != 0 || c.Counts.Namespaces != 2 {
			t.Errorf("%+v", c)
		}
		// Now the old one is the stranger.
		d.drops("a", at(3, 1, house()), inventory.DropOtherCluster)
		if c := d.cluster("alpha").Conflict; c.UID != "uid-alpha" || c.AgentID != "a" {
			t.Errorf("%+v", c)
		}
	})
}

// removing a cluster archives its attempt, so that the slug is free; an agent that still reports
// makes the cluster anew.
func TestRemove(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		ctx := t.Context()
		record := func(id, slug string) error {
			return d.db.Onboarding().InTx(ctx, func(tx onboarding.Tx) error {
				return tx.InsertAttempt(ctx, onboarding.Attempt{ID: id, ClientID: "acme", EnvironmentID: "acme-prod", Slug: slug, DisplayName: slug, CreatedAt: d.clock.Now()})
			})
		}
		must(t, record("onb", "alpha"))
		must(t, record("onb-beta", "beta"))
		live := d.token("live", "onb", d.clock.Now().Add(2*time.Hour))
		d.token("over", "onb", d.clock.Now())
		other := d.token("other", "onb-beta", d.clock.Now().Add(2*time.Hour))
		d.agent("node", func(a *fleet.Agent) { a.Type = fleet.TypeNodeMonitor })
		d.applied("a", house(), 12)
		c := d.cluster("alpha")
		d.drops("b", func() *wire.Inventory { inv := house(); inv.ClusterUID = "other"; return inv }(), inventory.DropOtherCluster)

		want(t, d.Remove(ctx, grant(access.Scope{ClientID: "acme"}, access.HostsRead), c.ID), problem.Forbidden, "permission_missing")
		want(t, d.Remove(ctx, grant(access.Scope{ClientID: "zeta"}, access.Permissions()...), c.ID), problem.NotFound, "cluster_not_found")
		want(t, d.Remove(ctx, grant(access.Scope{ClientID: "acme", EnvironmentID: "acme-test"}, access.Permissions()...), c.ID), problem.NotFound, "cluster_not_found")
		want(t, d.Remove(ctx, access.Principal{}, c.ID), problem.NotFound, "cluster_not_found")
		if err := record("onb2", "alpha"); !errors.Is(err, onboarding.ErrTaken) {
			t.Errorf("a second attempt on the slug: %v", err)
		}
		d.clock.Advance(time.Hour)
		for name, p := range map[string]access.Principal{"cluster_not_found": {}, "permission_missing": grant(access.Scope{ClientID: "acme"}, access.HostsRead)} {
			if _, err := d.Removal(ctx, p, c.ID); problem.CodeOf(err) != name {
				t.Errorf("what goes is told with %v, want %s", err, name)
			}
		}
		goes, err := d.Removal(ctx, writer(), c.ID)
		must(t, err)
		if goes.Cluster.ID != c.ID || goes.Attempt != "alpha" || goes.LiveTokens != 1 || len(goes.Agents) != 3 || goes.Refusal != nil {
			t.Errorf("what goes: %+v", goes)
		}
		d.cluster("alpha") // and it did not go
		must(t, d.Remove(ctx, writer(), c.ID))
		for id, revoked := range map[string]bool{live: true, other: false} {
			token, err := d.db.Enrollment().Token(ctx, id)
			must(t, err)
			if got := token.RevokedAt.Equal(d.clock.Now()); got != revoked {
				t.Errorf("token %s is revoked at %v", id, token.RevokedAt)
			}
		}
		want(t, d.Remove(ctx, writer(), c.ID), problem.NotFound, "cluster_not_found")
		d.missing("alpha")
		if n := d.db.Count(t, "SELECT COUNT(*) FROM inventory_objects") + d.db.Count(t, "SELECT COUNT(*) FROM cluster_conflicts"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		for id, archived := range map[string]bool{"onb": true, "onb-beta": false} {
			a, err := d.db.Onboarding().Attempt(ctx, id)
			must(t, err)
			if got := a.ArchivedAt.Equal(d.clock.Now()); got != archived || !archived && !a.ArchivedAt.IsZero() {
				t.Errorf("attempt %s is archived at %v", id, a.ArchivedAt)
			}
		}
		must(t, record("onb2", "alpha"))
		if n := d.db.Audits(t, "cluster_removed"); n != 1 {
			t.Errorf("%d audit rows", n)
		}
		d.drops("a", at(1, 2, house()), inventory.DropRemoved)
		if epoch, err := d.NextEpoch(ctx, "a", "alpha"); problem.CodeOf(err) != "cluster_removed" {
			t.Errorf("an agent of a removed cluster gets the epoch %d, %v", epoch, err)
		}
		d.missing("alpha")
		d.enrolledAnew("a")
		d.applied("a", at(1, 2, house()), 12)
		if again := d.cluster("alpha"); again.ID == c.ID || !again.FirstSyncAt.Equal(d.clock.Now()) || again.Dropped != 0 {
			t.Errorf("%+v", again)
		}
	})
}

// pack compresses a text as an agent would.
func pack(t *testing.T, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	must(t, err)
	return w.EncodeAll([]byte(text), nil)
}

// manyObjects keeps to the limit of every list, but not to that of all.
func manyObjects(t *testing.T, head string) []byte {
	t.Helper()
	list := `:[{"name":"n"}` + strings.Repeat(`,{"name":"n"}`, wire.MaxObjects*3/4-1) + `]`
	return pack(t, head+`,"pods"`+list+`,"services"`+list+`,"events"`+list+`}`)
}

func TestMalformedInventoriesStoreNothing(t *testing.T) {
	encode := func(change func(*wire.Inventory)) []byte {
		inv := house()
		change(inv)
		data, err := wire.EncodeInventory(inv)
		must(t, err)
		return data
	}
	head := `{"epoch":1,"sync":1,"clusterSlug":"alpha","clusterUid":"u"`
	many := make([]wire.KindReport, 65)
	cases := map[string][]byte{
		"nothing":              nil,
		"not compressed":       []byte(head + "}"),
		"cut off":              encode(func(*wire.Inventory) {})[:100],
		"not JSON":             pack(t, "hello"),
		"two values":           pack(t, head+"}"+head+"}"),
		"a list":               pack(t, "[]"),
		"wrong types":          pack(t, `{"epoch":"one"}`),
		"a number too large":   pack(t, head+`,"pods":[{"name":"p","restarts":1e99}]}`),
		"a fraction":           pack(t, head+`,"pods":[{"name":"p","restarts":1.5}]}`),
		"nested without end":   pack(t, head+`,"x":`+strings.Repeat("[", 1_000_000)),
		"nested deeply":        pack(t, head+`,"x":`+strings.Repeat(`{"a":`, 20_000)+"1"+strings.Repeat("}", 20_000)+"}"),
		"a bomb":               pack(t, head+`,"clusterName":"`+strings.Repeat("a", wire.MaxInventory)+`"}`),
		"a bomb of an object":  pack(t, head+`,"pods":[{"name":"p","containers":[{}`+strings.Repeat(",{}", 9_000_000)+`]}]}`),
		"a bomb of objects":    pack(t, head+`,"pods":[{"name":"p"}`+strings.Repeat(`,{"name":"p","containers":[{}`+strings.Repeat(",{}", 300_000)+`]}`, 30)+`]}`),
		"a bomb of fields":     pack(t, head+`,"pods":[{"name":"p"`+strings.Repeat(`,"labels":{"a":"b"}`, 3_000_000)+`}]}`),
		"too many in all":      manyObjects(t, head),
		"a list of numbers":    pack(t, head+`,"pods":[1,2]}`),
		"a list of a list":     pack(t, head+`,"pods":[[]]}`),
		"a list of nothing":    pack(t, head+`,"pods":[null]}`),
		"an object for a list": pack(t, head+`,"pods":{"name":"p"}}`),
		"a list without end":   pack(t, head+`,"pods":[{"name":"p"}`),
		"more than a message":  make([]byte, wire.MaxPayload+1),
		"epoch 0":              encode(func(inv *wire.Inventory) { inv.Epoch = 0 }),
		"epoch below zero":     encode(func(inv *wire.Inventory) { inv.Epoch = -1 }),
		"the last epoch":       encode(func(inv *wire.Inventory) { inv.Epoch = 1<<63 - 1 }),
		"sync 0":               encode(func(inv *wire.Inventory) { inv.Sync = 0 }),
		"no fingerprint":       encode(func(inv *wire.Inventory) { inv.ClusterUID = "" }),
		"NUL in the UID":       encode(func(inv *wire.Inventory) { inv.ClusterUID = "a\x00" }),
		"NUL in the name":      encode(func(inv *wire.Inventory) { inv.ClusterName = "a\x00" }),
		"name of 10 kB":        encode(func(inv *wire.Inventory) { inv.ClusterName = strings.Repeat("a", 10_000) }),
		"version of 10 kB":     encode(func(inv *wire.Inventory) { inv.Cluster.Version = strings.Repeat("1", 10_000) }),
		"object without name":  encode(func(inv *wire.Inventory) { inv.Pods[0].Name = "" }),
		"NUL in a pod":         encode(func(inv *wire.Inventory) { inv.Pods[0].Name = "a\x00" }),
		"NUL in a namespace":   encode(func(inv *wire.Inventory) { inv.Services[0].Namespace = "\x00" }),
		"NUL in an object ID":  encode(func(inv *wire.Inventory) { inv.Nodes[0].UID = "\x00" }),
		"pod name of 10 kB":    encode(func(inv *wire.Inventory) { inv.Pods[0].Name = strings.Repeat("a", 10_000) }),
		"65 kinds":             encode(func(inv *wire.Inventory) { inv.Kinds = many }),
		"kind of 10 kB":        encode(func(inv *wire.Inventory) { inv.Kinds[0].Kind = wire.Kind(strings.Repeat("k", 10_000)) }),
		"reason of 10 kB":      encode(func(inv *wire.Inventory) { inv.Kinds[0].Unread = wire.UnreadReason(strings.Repeat("r", 10_000)) }),
		"less than none":       encode(func(inv *wire.Inventory) { inv.Kinds[0].Kept = -1 }),
		"kind's text of 5 kB":  encode(func(inv *wire.Inventory) { inv.Kinds[0].Message = strings.Repeat("m", 5_000) }),
		"too many objects": encode(func(inv *wire.Inventory) {
			inv.Services = make([]wire.Service, wire.MaxObjects+1)
			for i := range inv.Services {
				inv.Services[i].Name = "s"
			}
		}),
	}
	atDesks(t, func(t *testing.T, d *desk) {
		d.applied("a", house(), 12)
		before := d.cluster("alpha")
		for name, data := range cases {
			if err := d.deliver(t.Context(), "a", data); !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := cmp.Diff(before, d.cluster("alpha")); diff != "" || d.db.Count(t, "SELECT COUNT(*) FROM inventory_objects") != 12 {
			t.Error(diff)
		}
		if rows, dropped := d.count.take(); len(rows)+len(dropped) != 0 {
			t.Errorf("rows %v, dropped %q", rows, dropped)
		}
	})
}

// What an API server would not say, but a hostile one can, is stored as far as a column holds it.
func TestHostileTextsAreHeldByBothEngines(t *testing.T) {
	long, odd := strings.Repeat("ж", 5_000), "a\x00b"
	atDesks(t, func(t *testing.T, d *desk) {
		inv := house()
		for i, text := range []string{long, odd, "'; DROP TABLE clusters; --", "\u202eabc", "<script>"} {
			name := fmt.Sprint("odd-", i)
			meta := wire.Meta{Namespace: "shop", Name: name, Labels: map[string]string{text: text}, Annotations: map[string]string{text: text}}
			inv.Pods = append(inv.Pods, wire.Pod{
				Meta: meta, Phase: text, Reason: text, NodeName: text, OwnerKind: text, OwnerName: text, Containers: []wire.Container{{Name: text, State: "waiting", Reason: text}},
			})
			inv.Nodes = append(inv.Nodes, wire.Node{Meta: meta, Ready: wire.NodeReady(text), ReadyReason: text})
			inv.Namespaces = append(inv.Namespaces, wire.Namespace{Meta: meta, Phase: text, Pods: -1})
			inv.Workloads = append(inv.Workloads, wire.Workload{Meta: meta, Kind: text, Ready: -1})
			inv.Services = append(inv.Services, wire.Service{Meta: meta, Type: text})
			inv.Events = append(inv.Events, wire.Event{Meta: meta, Type: text, InvolvedKind: text, InvolvedName: text, Message: text, Count: -1})
		}
		reports := inv.Kinds
		whole(inv)
		inv.Kinds = append(inv.Kinds[:0:0], reports...)
		inv.Kinds = append(inv.Kinds, wire.KindReport{Kind: "future", Message: "';\n"})
		d.applied("a", inv, 12+30)
		inv.Sync = 2
		d.applied("a", inv, 0) // what was cut for a column does not look changed
		c := d.cluster("alpha")
		for _, section := range inventory.Sections() {
			page, err := d.Objects(t.Context(), writer(), inventory.Query{ClusterID: c.ID, Section: section, Text: "odd-"})
			must(t, err)
			if page.Total != 5 {
				t.Errorf("%s: %d odd objects", section, page.Total)
			}
			for _, o := range page.Objects {
				if !json.Valid(o.Body) || len(o.State) > 256 || strings.ContainsRune(o.State+o.Node+o.Owner+o.Kind, 0) {
					t.Errorf("%s %s: %+v", section, o.Name, o)
				}
				got, err := d.Object(t.Context(), writer(), c.ID, o.Key)
				if err != nil || got.Hash != o.Hash {
					t.Errorf("%s %s alone: %v", section, o.Name, err)
				}
				// Its state is one of the filter's, and finds it.
				found, err := d.Objects(t.Context(), writer(), inventory.Query{ClusterID: c.ID, Section: section, State: o.State, Text: o.Name})
				if err != nil || found.Total != 1 || !slices.Contains(page.States, o.State) {
					t.Errorf("%s by state %.20q: %d, %v", section, o.State, found.Total, err)
				}
			}
		}
		// Bytes that are no UTF-8 come out of JSON as the replacement character.
		raw := `{"epoch":1,"sync":3,"clusterSlug":"alpha","clusterUid":"uid-alpha","kinds":[{"kind":"pods","kept":2,"total":2}],"pods":[{"name":"p` + "\xff" + `"},{"name":"p` + "\xfe" + `"}]}`
		must(t, d.Receive(t.Context(), "a", pack(t, raw), d.clock.Now()))
		if diff := cmp.Diff([]string{"p\ufffd"}, d.names(inventory.SectionPods)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnObjectThatIsListedTwiceCountsOnce(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		inv := house()
		for range 300 { // more than one statement's worth
			again := inv.Pods[0]
			again.Restarts = 99
			inv.Pods = append(inv.Pods, again)
		}
		d.applied("a", whole(inv), 12)
		if c := d.cluster("alpha"); c.Counts.Pods != 2 {
			t.Errorf("%d pods are counted", c.Counts.Pods)
		}
		o, err := d.Object(t.Context(), writer(), d.cluster("alpha").ID, inventory.Key{Section: inventory.SectionPods, Kind: "Pod", Namespace: "shop", Name: "web-1"})
		if err != nil || o.Restarts != 0 {
			t.Errorf("%+v, %v", o, err)
		}
	})
}

func TestNamesAndVersionsFollowTheInventory(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		nameless := house()
		nameless.ClusterName, nameless.Cluster = "", wire.ClusterInfo{}
		d.applied("a", nameless, 12)
		if c := d.cluster("alpha"); c.Name != "alpha" || c.Version != "" {
			t.Errorf("%+v", c)
		}
		d.applied("a", at(1, 2, house()), 0)
		nameless.Sync = 3
		d.applied("a", nameless, 0) // what it does not say stays
		if c := d.cluster("alpha"); c.Name != "Alpha" || c.Version != "v1.36.3" || c.Provider != "aws" {
			t.Errorf("%+v", c)
		}
		found, total, err := d.Clusters(t.Context(), writer(), inventory.ClusterQuery{Text: "ALPH"})
		if err != nil || total != 1 || len(found) != 1 {
			t.Errorf("%d found, %v", total, err)
		}
	})
}

// TestAnIdentityAcceptedBetweenPartsGetsNoRowsOfTheOldOne: the rest of an inventory is not stored under a
// fingerprint that it does not carry, and no sync is claimed for that.
func TestAnIdentityAcceptedBetweenPartsGetsNoRowsOfTheOldOne(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		must(t, d.publish("a", house()))
		rebuilt := at(2, 1, house())
		rebuilt.ClusterUID = "uid-rebuilt"
		must(t, d.publish("b", rebuilt))
		first := d.cluster("alpha").LastSyncAt
		d.clock.Advance(time.Minute)
		view := &broken{Store: d.db.Inventory(), before: func(n int) error {
			if n != 3 {
				return nil
			}
			_, err := d.AcceptIdentity(t.Context(), writer(), d.cluster("alpha").ID, "uid-rebuilt")
			return err
		}}
		data, err := wire.EncodeInventory(at(1, 2, throng(12_000, 0)))
		must(t, err)
		if err := d.on(view).ReceiveLarge(t.Context(), "a", data, d.clock.Now()); err == nil {
			t.Error("stored under another identity")
		}
		if c := d.cluster("alpha"); c.UID != "uid-rebuilt" || !c.LastSyncAt.Equal(first) || len(c.Kinds) != 0 {
			t.Errorf("uid %s, last sync %v, %d kinds", c.UID, c.LastSyncAt, len(c.Kinds))
		}
		d.count.take()
		must(t, d.ReceiveLarge(t.Context(), "a", data, d.clock.Now()))
		if rows, dropped := d.count.take(); len(rows) != 0 || !slices.Equal(dropped, []string{inventory.DropOtherCluster}) {
			t.Errorf("again: rows %v, dropped %q", rows, dropped)
		}
		rebuilt.Sync = 2
		data, err = wire.EncodeInventory(rebuilt)
		must(t, err)
		must(t, d.ReceiveLarge(t.Context(), "b", data, d.clock.Now()))
		if c := d.cluster("alpha"); c.PartlyApplied || c.Counts.Pods != 2 || d.db.Count(t, "SELECT COUNT(*) FROM inventory_objects WHERE namespace = 'crowd'") != 0 {
			t.Errorf("rebuilt: %+v", c)
		}
	})
}

// TestHashesReadBetweenPartsOfAnotherReplica: a replica that read them while another one was in the midst of an
// inventory does not take them for what is stored.
func TestHashesReadBetweenPartsOfAnotherReplica(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		const pods = 25_000
		must(t, d.publish("a", at(1, 1, throng(pods, 0))))
		down, last := errors.New("killed"), 2
		parts := &broken{Store: d.db.Inventory(), before: func(n int) error {
			if n == last {
				return down
			}
			return nil
		}}
		one := d.on(parts)
		second, err := wire.EncodeInventory(at(1, 2, throng(pods, 1)))
		must(t, err)
		if err := one.ReceiveLarge(t.Context(), "a", second, d.clock.Now()); !errors.Is(err, down) {
			t.Fatal(err)
		}
		two := d.on(&between{Store: d.db.Inventory(), act: func() {
			parts.begun, last = 0, 4
			if err := one.ReceiveLarge(t.Context(), "a", second, d.clock.Now()); !errors.Is(err, down) {
				t.Fatal(err)
			}
		}})
		third, err := wire.EncodeInventory(at(1, 3, throng(pods, 0)))
		must(t, err)
		if err := two.ReceiveLarge(t.Context(), "a", third, d.clock.Now()); err == nil {
			t.Error("stored on hashes of before")
		}
		must(t, d.ReceiveLarge(t.Context(), "a", third, d.clock.Now())) // as the stream does
		if n, c := d.db.Count(t, "SELECT COUNT(*) FROM inventory_objects WHERE restarts = 1"), d.cluster("alpha"); n != 0 || c.Sync != 3 || c.PartlyApplied {
			t.Errorf("sync %d, in part: %v, %d rows of the sync before", c.Sync, c.PartlyApplied, n)
		}
	})
}
