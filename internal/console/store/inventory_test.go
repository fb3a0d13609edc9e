package store

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/wire"
)

func TestClustersComeBackWithNamesAndCollectors(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Inventory()
		house(t, db)
		putToken(t, db, token("t"))
		for i, heard := range []time.Duration{time.Minute, 3 * time.Minute, 0} {
			a := collector(fmt.Sprint("agent", i), "alpha", "t")
			a.EnrolledAt = after(time.Duration(i) * time.Second)
			if heard > 0 {
				a.HeartbeatAt = after(heard)
			}
			putAgent(t, db, a)
		}
		node := collector("node", "alpha", "t") // no collector: does not count
		node.Type, node.HeartbeatAt, node.EnrolledAt = fleet.TypeNodeMonitor, after(time.Hour), noon.Add(-time.Hour)
		putAgent(t, db, node)

		want := cluster("c", "alpha")
		want.AgentID = "agent0"
		want.Platform, want.Provider = "linux/amd64", "aws"
		want.Kinds = []inventory.KindState{{KindReport: wire.KindReport{Kind: wire.KindPods, Kept: 1, Total: 2}, ReadAt: noon}}
		want.Counts = inventory.Counts{Nodes: 1, Namespaces: 2, Workloads: 3, Pods: 4, Services: 5, Events: 6}
		want.Dropped, want.DroppedAt, want.DroppedReason = 2, noon, "older"
		want.Conflict = inventory.Conflict{UID: "other", AgentID: "agent1", FirstSeenAt: noon, SeenAt: after(time.Minute)}
		putCluster(t, db, want)
		want.ClientName, want.EnvironmentName, want.AgentName = "Client acme", "prod", "name-agent0"
		want.Conflict.AgentName = "name-agent1"
		want.Collectors, want.EnrolledAt, want.HeartbeatAt = 3, noon, after(3*time.Minute)
		expect := func(got inventory.Cluster, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
		expect(s.Cluster(ctx, "c"))
		expect(s.ClusterBySlug(ctx, "acme-prod", "alpha"))
		all, err := s.ClustersByUID(ctx, "acme", "uid-c")
		if err != nil || len(all) != 1 {
			t.Fatalf("%d, %v", len(all), err)
		}
		expect(all[0], nil)

		want.Conflict, want.Sync, want.Version = inventory.Conflict{}, 2, "v1.37.0"
		want.Counts.Pods = 9
		write(t, db, func(x *tx) error { return x.UpdateCluster(ctx, want) })
		expect(s.Cluster(ctx, "c"))

		write(t, db, func(x *tx) error { return x.DeleteAgent(ctx, "agent0", noon) })
		want.AgentName, want.Collectors, want.EnrolledAt = "", 2, after(time.Second)
		expect(s.Cluster(ctx, "c"))
		if _, err := s.Cluster(ctx, "none"); !errors.Is(err, inventory.ErrNotFound) {
			t.Errorf("no cluster: %v", err)
		}
		if _, err := s.Agent(ctx, "none"); !errors.Is(err, inventory.ErrNotFound) {
			t.Errorf("no agent: %v", err)
		}
	})
}

func TestListsOfClusters(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Inventory()
		house(t, db)
		putToken(t, db, token("t"))
		// beta's version is younger by number and older by text; gamma was never synced.
		for i, c := range []inventory.Cluster{cluster("1", "alpha"), cluster("2", "beta"), cluster("3", "gamma")} {
			c.Counts = inventory.Counts{Nodes: 3 - i, Pods: i}
			c.Version = []string{"v1.9.0", "v1.10.0", ""}[i]
			c.LastSyncAt = []time.Time{noon, after(time.Hour), {}}[i]
			if i == 2 {
				c.EnvironmentID = "acme-test"
			}
			putCluster(t, db, c)
		}
		a := collector("a", "beta", "t")
		a.HeartbeatAt = noon
		putAgent(t, db, a)
		for name, c := range map[string]struct {
			query inventory.ClusterQuery
			want  string
		}{
			"default":      {inventory.ClusterQuery{}, "123"},
			"name":         {inventory.ClusterQuery{Sort: "name", Desc: true}, "321"},
			"nodes":        {inventory.ClusterQuery{Sort: "nodes"}, "321"},
			"pods":         {inventory.ClusterQuery{Sort: "pods", Desc: true}, "321"},
			"version":      {inventory.ClusterQuery{Sort: "version"}, "312"},
			"inventory":    {inventory.ClusterQuery{Sort: "inventory"}, "123"},
			"newest first": {inventory.ClusterQuery{Sort: "inventory", Desc: true}, "213"},
			"heartbeat":    {inventory.ClusterQuery{Sort: "heartbeat", Desc: true}, "231"},
			"enrolled":     {inventory.ClusterQuery{Sort: "enrolled"}, "213"},
			"text":         {inventory.ClusterQuery{Text: "BET"}, "2"},
			"environment":  {inventory.ClusterQuery{EnvironmentID: "acme-test"}, "3"},
			"reach":        {inventory.ClusterQuery{Reach: access.Reach{Scopes: []access.Scope{{ClientID: "acme", EnvironmentID: "acme-prod"}}}}, "12"},
			"client":       {inventory.ClusterQuery{ClientID: "zeta"}, ""},
		} {
			if name != "reach" {
				c.query.Reach = access.Reach{All: true}
			}
			if name == "heartbeat" {
				c.want = "2" + "31" // without a heartbeat: last, in the turned order of names
			}
			c.query.Limit = 10
			found, total, err := s.Clusters(ctx, c.query)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var ids strings.Builder
			for _, one := range found {
				ids.WriteString(one.ID)
			}
			if ids.String() != c.want || total != len(c.want) {
				t.Errorf("%s: got %s of %d, want %s", name, ids.String(), total, c.want)
			}
		}
		if _, _, err := s.Clusters(ctx, inventory.ClusterQuery{Reach: access.Reach{All: true}, Sort: "name; DROP TABLE clusters"}); err == nil {
			t.Error("an unknown sort key was taken")
		}
		if found, total, err := s.Clusters(ctx, inventory.ClusterQuery{}); err != nil || total != 0 || len(found) != 0 {
			t.Errorf("without any reach: %v, %d, %v", found, total, err)
		}
	})
}

func TestEverySortKeyOfTheDomainIsServed(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		house(t, db)
		for _, section := range inventory.Sections() {
			for _, key := range inventory.SortKeys(section) {
				if _, err := db.Inventory().Objects(t.Context(), inventory.Query{ClusterID: "c", Section: section, Sort: key, Limit: 1}); err != nil {
					t.Errorf("%s by %s: %v", section, key, err)
				}
			}
		}
		for _, key := range inventory.ClusterSortKeys() {
			if _, _, err := db.Inventory().Clusters(t.Context(), inventory.ClusterQuery{Reach: access.Reach{All: true}, Sort: key}); err != nil {
				t.Errorf("clusters by %s: %v", key, err)
			}
		}
	})
}

// names lists what a query finds.
func names(t *testing.T, db *DB, q inventory.Query) (all []string, total int) {
	t.Helper()
	q.ClusterID, q.Section = "c", inventory.SectionPods
	if q.Limit == 0 {
		q.Limit = 500
	}
	page, err := db.Inventory().Objects(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Objects {
		all = append(all, o.Namespace+"/"+o.Name)
	}
	return all, page.Total
}

func TestHostileTextFindsOnlyItself(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		house(t, db)
		c := cluster("c", "alpha")
		putCluster(t, db, c)
		odd := []string{`a%b`, `a_b`, `a\b`, `axb`, `a'b`, `a"b`, `a$1b`, `a?b`, `a;--b`, `ÄÖ`, `a/*b`}
		var objects []inventory.Object
		for _, name := range odd {
			objects = append(objects, pod("ns", name, 0))
		}
		apply(t, db, inventory.Change{ClusterID: c.ID, Upsert: objects})
		for _, name := range odd {
			found, total := names(t, db, inventory.Query{Text: name})
			if total != 1 || !slices.Equal(found, []string{"ns/" + name}) {
				t.Errorf("%q finds %q of %d", name, found, total)
			}
		}
		for text, want := range map[string]int{`%`: 1, `_`: 1, `\`: 1, `%%`: 0, `A`: 10, `äö`: 1, `Äö`: 1, `ns/a`: 10, `s/axb`: 1, `' OR 1=1 --`: 0} {
			if _, total := names(t, db, inventory.Query{Text: text}); total != want {
				t.Errorf("%q finds %d, want %d", text, total, want)
			}
		}
		for _, q := range []inventory.Query{{Namespace: "' OR ''='"}, {State: "%"}, {Kind: `"`}, {Node: `\`}} {
			if found, total := names(t, db, q); total != 0 {
				t.Errorf("%+v finds %q", q, found)
			}
		}
	})
}

func TestPagesOfObjectsAreStableAndComplete(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		house(t, db)
		c := cluster("c", "alpha")
		putCluster(t, db, c)
		objects := pods(107)
		for i := range objects {
			objects[i].State = []string{"Running", "Pending", "Failed"}[i%3]
			objects[i].Node = fmt.Sprint("node-", i%4)
			objects[i].At = after(time.Duration(i%10) * time.Minute)
			if i%10 == 9 {
				objects[i].At = time.Time{}
			}
		}
		service := pod("ns-00", "pod-00000", 0) // the same name in another section
		service.Section, service.Kind = inventory.SectionServices, "Service"
		apply(t, db, inventory.Change{ClusterID: c.ID, Upsert: append(objects, service)})
		for _, key := range inventory.SortKeys(inventory.SectionPods) {
			for _, desc := range []bool{false, true} {
				whole, total := names(t, db, inventory.Query{Sort: key, Desc: desc})
				if total != 107 || len(whole) != 107 {
					t.Fatalf("by %s: %d of %d", key, len(whole), total)
				}
				var paged []string
				for offset := 0; offset < 107; offset += 10 {
					page, _ := names(t, db, inventory.Query{Sort: key, Desc: desc, Limit: 10, Offset: offset})
					paged = append(paged, page...)
				}
				if diff := cmp.Diff(whole, paged); diff != "" {
					t.Errorf("by %s, %v: %s", key, desc, diff)
				}
			}
		}
		page, err := db.Inventory().Objects(t.Context(), inventory.Query{ClusterID: "c", Section: inventory.SectionPods, Sort: "age", Limit: 500, State: "Failed", Node: "node-2"})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Namespaces) != 20 || !slices.Equal(page.States, []string{"Failed", "Pending", "Running"}) {
			t.Errorf("filters offer %q and %q", page.Namespaces, page.States)
		}
		unknown := false
		for i, o := range page.Objects {
			if o.State != "Failed" || o.Node != "node-2" {
				t.Errorf("%s is %s on %s", o.Name, o.State, o.Node)
			}
			if unknown && !o.At.IsZero() || i > 0 && !o.At.IsZero() && o.At.After(page.Objects[i-1].At) {
				t.Errorf("by age: %v is behind %v", o.At, page.Objects[i-1].At)
			}
			unknown = o.At.IsZero()
		}
	})
}

// stored reads every object of the cluster c, by key.
func stored(t testing.TB, db *DB) map[inventory.Key]inventory.Object {
	t.Helper()
	found, err := rows(t.Context(), db.reader, selectObjects, nil, scanObject)
	if err != nil {
		t.Fatal(err)
	}
	all := map[inventory.Key]inventory.Object{}
	for _, o := range found {
		all[o.Key] = o
	}
	return all
}

func TestAChangeOfFiveThousandObjects(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		house(t, db)
		c := cluster("c", "alpha")
		putCluster(t, db, c)
		objects := pods(5000)
		apply(t, db, inventory.Change{ClusterID: c.ID, Upsert: objects})
		want := map[inventory.Key]inventory.Object{}
		for _, o := range objects {
			want[o.Key] = o
		}
		check := func(when string) {
			t.Helper()
			// Comparing by cmp would take seconds: it only explains what is found.
			got := stored(t, db)
			if len(got) != len(want) {
				t.Fatalf("%s: %d objects, want %d", when, len(got), len(want))
			}
			for k, o := range want {
				if !reflect.DeepEqual(got[k], o) {
					t.Fatalf("%s: %s", when, cmp.Diff(o, got[k]))
				}
			}
			hashes, err := db.Inventory().Hashes(t.Context(), "c")
			if err != nil {
				t.Fatal(err)
			}
			wantHashes := map[inventory.Key]inventory.Stored{}
			for k, o := range want {
				wantHashes[k] = inventory.Stored{Hash: o.Hash, UnseenSince: o.UnseenSince}
			}
			if !maps.Equal(wantHashes, hashes) {
				t.Fatalf("%s: hashes differ", when)
			}
		}
		check("at first")

		// 1 % changes, 150 vanish (more than go one by one), 150 are missing from a cut list.
		change := inventory.Change{ClusterID: c.ID, UnseenSince: after(time.Hour)}
		for _, o := range objects[:50] {
			changed := pod(o.Namespace, o.Name, o.Restarts+1)
			change.Upsert = append(change.Upsert, changed)
			want[o.Key] = changed
		}
		for _, o := range objects[50:200] {
			change.Delete = append(change.Delete, o.Key)
			delete(want, o.Key)
		}
		for _, o := range objects[200:350] {
			change.Unseen = append(change.Unseen, o.Key)
			o.UnseenSince = after(time.Hour)
			want[o.Key] = o
		}
		apply(t, db, change)
		check("after the change")

		// What is still missing keeps its time; what is seen again, changed or not, is cleared.
		change = inventory.Change{ClusterID: c.ID, UnseenSince: after(2 * time.Hour)}
		for i, o := range objects[200:350] {
			switch {
			case i < 10:
				change.Unseen = append(change.Unseen, o.Key)
			case i < 20:
				changed := pod(o.Namespace, o.Name, o.Restarts+1)
				change.Upsert = append(change.Upsert, changed)
				want[o.Key] = changed
			default:
				change.Clear = append(change.Clear, o.Key)
				want[o.Key] = o
			}
		}
		apply(t, db, change)
		check("after being seen again")

		got, err := db.Inventory().Object(t.Context(), "c", objects[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[objects[0].Key], got); diff != "" {
			t.Error(diff)
		}
		if _, err := db.Inventory().Object(t.Context(), "c", objects[100].Key); !errors.Is(err, inventory.ErrNotFound) {
			t.Errorf("a deleted object: %v", err)
		}
	})
}

func TestEpochsAreHandedOutOnce(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Inventory()
		house(t, db)
		next := func(environmentID, slug string) (epoch int64, err error) {
			err = s.InTx(ctx, func(x inventory.Tx) error {
				epoch, err = x.NextEpoch(ctx, environmentID, slug, 1)
				return err
			})
			return epoch, err
		}
		handed := make(chan []int64)
		for range 8 {
			go func() {
				var mine []int64
				for range 5 {
					epoch, err := next("acme-prod", "alpha")
					if err != nil {
						t.Error(err)
					}
					mine = append(mine, epoch)
				}
				handed <- mine
			}()
		}
		var all []int64
		for range 8 {
			mine := <-handed
			if !slices.IsSorted(mine) {
				t.Errorf("one caller got %v", mine)
			}
			all = append(all, mine...)
		}
		slices.Sort(all)
		for i, epoch := range all {
			if epoch != int64(i+1) {
				t.Fatalf("handed out %v", all)
			}
		}
		// The counter survives the cluster.
		putCluster(t, db, cluster("c", "alpha"))
		write(t, db, func(x *tx) error { return x.DeleteCluster(ctx, "c", noon) })
		if epoch, err := next("acme-prod", "alpha"); err != nil || epoch != 41 {
			t.Errorf("epoch %d, %v", epoch, err)
		}
		if epoch, err := next("acme-test", "alpha"); err != nil || epoch != 1 {
			t.Errorf("the first epoch elsewhere is %d, %v", epoch, err)
		}
		if _, err := next("nowhere", "alpha"); !errors.Is(err, inventory.ErrNotFound) {
			t.Errorf("an epoch in no environment: %v", err)
		}
	})
}

func TestVersionOrder(t *testing.T) {
	versions := []string{"", "v1.2.3", "v1.9.0", "v1.10.0", "v1.10.0-eks-1", "v1.36.3", "v2.0.0"}
	if !slices.IsSortedFunc(versions, func(a, b string) int { return strings.Compare(versionOrder(a), versionOrder(b)) }) {
		t.Errorf("out of order: %q", versions)
	}
}
