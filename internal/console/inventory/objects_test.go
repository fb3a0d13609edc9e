package inventory_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/wire"
	"prxm.uz/proxima/test/storetest"
)

// crowd is an inventory with thirty objects in each section, whose columns repeat so that ties decide.
func crowd() *wire.Inventory {
	inv := house()
	base := storetest.Noon()
	for i := range 30 {
		meta := wire.Meta{Namespace: fmt.Sprint("ns-", i%4), Name: fmt.Sprintf("%s-%02d", []string{"b", "a", "Z", "é"}[i%4], i/2)}
		if i%5 > 0 { // a fifth has no age
			meta.CreatedAt = base.Add(-time.Duration(i%7) * time.Hour)
		}
		bare := meta
		bare.Namespace = ""
		n := int64(i % 6)
		inv.Nodes = append(inv.Nodes, wire.Node{
			Meta: bare, Ready: []wire.NodeReady{wire.NodeReadyTrue, wire.NodeReadyFalse, wire.NodeReadyUnknown}[i%3],
			Allocatable: wire.Resources{CPUMillis: &n, MemoryBytes: new(int64(1<<40) - n)},
		})
		inv.Namespaces = append(inv.Namespaces, wire.Namespace{Meta: bare, Phase: []string{"Active", "Terminating"}[i%2], Pods: int(n)})
		inv.Workloads = append(inv.Workloads, wire.Workload{Meta: meta, Kind: []string{"Deployment", "StatefulSet", "DaemonSet"}[i%3], Desired: n, Ready: n / 2})
		inv.Pods = append(inv.Pods, wire.Pod{
			Meta: meta, Phase: []string{"Running", "Pending"}[i%2], NodeName: fmt.Sprint("node-", i%3), OwnerKind: "Job", OwnerName: fmt.Sprint("job-", i%4),
			Restarts: n * 10, Running: wire.Resources{CPUMillis: &n, MemoryBytes: new(n << 30)},
		})
		inv.Services = append(inv.Services, wire.Service{Meta: meta, Type: []string{"ClusterIP", "LoadBalancer"}[i%2]})
		inv.Events = append(inv.Events, wire.Event{
			Meta: meta, Type: []string{"Normal", "Warning"}[i%2], Count: n, InvolvedKind: "Pod", InvolvedName: fmt.Sprint("pod-", i%3), LastSeen: meta.CreatedAt,
		})
	}
	return whole(inv)
}

// order is the slow, obvious model of a sort key; unknown ages come last either way.
func order(key string, desc bool) func(a, b inventory.Object) int {
	turn := func(n int) int {
		if desc {
			return -n
		}
		return n
	}
	return func(a, b inventory.Object) int {
		var by int
		switch key {
		case "name":
			by = turn(cmp.Compare(a.Name, b.Name))
		case "namespace":
			by = turn(cmp.Compare(a.Namespace, b.Namespace))
		case "kind":
			by = turn(cmp.Compare(a.Kind, b.Kind))
		case "state":
			by = turn(cmp.Compare(a.State, b.State))
		case "node":
			by = turn(cmp.Compare(a.Node, b.Node))
		case "owner":
			by = turn(cmp.Compare(a.Owner, b.Owner))
		case "restarts":
			by = turn(cmp.Compare(a.Restarts, b.Restarts))
		case "ready":
			by = turn(cmp.Compare(a.Ready, b.Ready))
		case "cpu":
			by = turn(cmp.Compare(a.CPUMillis, b.CPUMillis))
		case "memory":
			by = turn(cmp.Compare(a.MemoryBytes, b.MemoryBytes))
		case "count":
			by = turn(cmp.Compare(a.Count, b.Count))
		case "age":
			switch {
			case a.At.IsZero() && b.At.IsZero():
			case a.At.IsZero():
				return 1
			case b.At.IsZero():
				return -1
			default:
				by = turn(b.At.Compare(a.At)) // the younger is of the lesser age
			}
		default:
			panic("no model of " + key)
		}
		return cmp.Or(by, turn(cmp.Compare(a.Name, b.Name)), turn(cmp.Compare(a.Namespace, b.Namespace)), turn(cmp.Compare(a.Kind, b.Kind)))
	}
}

func keysOf(objects []inventory.Object) []inventory.Key {
	keys := make([]inventory.Key, len(objects))
	for i, o := range objects {
		keys[i] = o.Key
	}
	return keys
}

func TestEverySectionSortsByEveryKey(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		must(t, d.publish("a", crowd()))
		id := d.cluster("alpha").ID
		for _, section := range inventory.Sections() {
			ask := func(q inventory.Query) inventory.Page {
				t.Helper()
				q.ClusterID, q.Section = id, section
				page, err := d.Objects(t.Context(), writer(), q)
				must(t, err)
				return page
			}
			all := ask(inventory.Query{Limit: 500}).Objects
			if len(all) < 31 {
				t.Fatalf("%s has %d objects", section, len(all))
			}
			for _, key := range inventory.SortKeys(section) {
				for _, desc := range []bool{false, true} {
					want := slices.SortedFunc(slices.Values(all), order(key, desc))
					if diff := gocmp.Diff(keysOf(want), keysOf(ask(inventory.Query{Sort: key, Desc: desc, Limit: 500}).Objects)); diff != "" {
						t.Errorf("%s by %s, desc %v: %s", section, key, desc, diff)
					}
					var paged []inventory.Object
					for offset := 0; offset < len(all); offset += 7 {
						page := ask(inventory.Query{Sort: key, Desc: desc, Limit: 7, Offset: offset})
						if page.Total != len(all) {
							t.Errorf("a page of %s says there are %d", section, page.Total)
						}
						paged = append(paged, page.Objects...)
					}
					if diff := gocmp.Diff(keysOf(want), keysOf(paged)); diff != "" {
						t.Errorf("pages of %s by %s, desc %v: %s", section, key, desc, diff)
					}
				}
			}
			if diff := gocmp.Diff(keysOf(ask(inventory.Query{Sort: inventory.SortKeys(section)[0]}).Objects), keysOf(ask(inventory.Query{}).Objects)); diff != "" {
				t.Errorf("%s without a key: %s", section, diff)
			}
			for _, key := range []string{"colour", "name; DROP TABLE clusters", "NAME"} {
				_, err := d.Objects(t.Context(), writer(), inventory.Query{ClusterID: id, Section: section, Sort: key})
				want(t, err, problem.Invalid, "invalid_sort")
			}
		}
		_, err := d.Objects(t.Context(), writer(), inventory.Query{ClusterID: id, Section: "secrets"})
		want(t, err, problem.NotFound, "section_not_found")
	})
}

func TestFiltersNarrow(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		inv := house()
		for _, name := range []string{"50%", "5000", "a_b", "axb", `back\slash`, "UPPER", "Ünïcode", "quo'te"} {
			inv.Pods = append(inv.Pods, wire.Pod{Meta: wire.Meta{Namespace: "odd", Name: name}, Phase: "Running", NodeName: "node-9"})
		}
		must(t, d.publish("a", whole(inv)))
		id := d.cluster("alpha").ID
		for name, c := range map[string]struct {
			q     inventory.Query
			names string
		}{
			"percent":          {inventory.Query{Text: "%"}, "50%"},
			"underscore":       {inventory.Query{Text: "_"}, "a_b"},
			"underscore in":    {inventory.Query{Text: "a_b"}, "a_b"},
			"backslash":        {inventory.Query{Text: `\`}, `back\slash`},
			"quote":            {inventory.Query{Text: "'"}, "quo'te"},
			"other case":       {inventory.Query{Text: "upper"}, "UPPER"},
			"beyond ASCII":     {inventory.Query{Text: "ÜNÏ"}, "Ünïcode"},
			"namespace/name":   {inventory.Query{Text: "shop/web"}, "web-1 web-2"},
			"nothing":          {inventory.Query{Text: "no such"}, ""},
			"namespace":        {inventory.Query{Namespace: "shop"}, "web-1 web-2"},
			"namespace's part": {inventory.Query{Namespace: "sho"}, ""},
			"state":            {inventory.Query{State: "Pending"}, "web-2"},
			"node":             {inventory.Query{Node: "node-1"}, "web-1"},
			"all at once":      {inventory.Query{Namespace: "odd", State: "Running", Node: "node-9", Kind: "Pod", Text: "50"}, "50% 5000"},
			"another kind":     {inventory.Query{Kind: "Deployment"}, ""},
			"NUL":              {inventory.Query{Text: "\x00"}, ""},
			"NUL in state":     {inventory.Query{State: "\x00"}, ""},
			"not UTF-8":        {inventory.Query{Text: "\xff"}, ""},
			"beyond the end":   {inventory.Query{Offset: 1 << 40}, ""},
		} {
			q := c.q
			q.ClusterID, q.Section, q.Sort = id, inventory.SectionPods, "name"
			page, err := d.Objects(t.Context(), writer(), q)
			must(t, err)
			var names []string
			for _, o := range page.Objects {
				names = append(names, o.Name)
			}
			if got := strings.Join(names, " "); got != c.names || q.Offset == 0 && page.Total != len(names) {
				t.Errorf("%s: %q of %d, want %q", name, got, page.Total, c.names)
			}
		}
		page, err := d.Objects(t.Context(), writer(), inventory.Query{ClusterID: id, Section: inventory.SectionPods, Limit: 3, Offset: -5})
		must(t, err)
		if !slices.Equal(page.Namespaces, []string{"odd", "shop"}) || !slices.Equal(page.States, []string{"Pending", "Running"}) || len(page.Objects) != 3 || page.Total != 10 {
			t.Errorf("%d of %d; the filters offer %q and %q", len(page.Objects), page.Total, page.Namespaces, page.States)
		}
		for _, k := range []inventory.Key{
			{Section: inventory.SectionPods, Kind: "Pod", Namespace: "shop", Name: "none"},
			{Section: inventory.SectionPods, Kind: "Pod", Name: "web-1"},
			{Section: inventory.SectionPods, Kind: "Pod", Namespace: "shop", Name: "web-1\x00"},
			{Section: "\xff", Kind: "Pod", Namespace: "shop", Name: "web-1"},
		} {
			_, err := d.Object(t.Context(), writer(), id, k)
			want(t, err, problem.NotFound, "object_not_found")
		}
	})
}

// Two clients with the same names everywhere: neither finds anything of the other.
func TestClientsNeverSeeEachOther(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		ctx := t.Context()
		d.agent("z", func(a *fleet.Agent) { a.ClientID, a.EnvironmentID = "zeta", "zeta-prod" })
		d.agent("t", func(a *fleet.Agent) { a.EnvironmentID = "acme-test" })
		for _, agent := range []string{"a", "z", "t"} {
			must(t, d.publish(agent, house())) // even the fingerprint is the same
		}
		theirs, err := d.db.Inventory().ClusterBySlug(ctx, "zeta-prod", "alpha")
		must(t, err)
		mine, elsewhere := d.cluster("alpha"), grant(access.Scope{ClientID: "acme", EnvironmentID: "acme-test"}, access.Permissions()...)
		pod := inventory.Key{Section: inventory.SectionPods, Kind: "Pod", Namespace: "shop", Name: "web-1"}
		for name, c := range map[string]struct {
			p  access.Principal
			id string
		}{
			"acme in zeta":        {grant(access.Scope{ClientID: "acme"}, access.Permissions()...), theirs.ID},
			"the next room":       {elsewhere, mine.ID},
			"without hosts:read":  {grant(access.Scope{ClientID: "acme"}, access.AgentsRead, access.ClientsRead), mine.ID},
			"nobody":              {access.Principal{}, mine.ID},
			"no cluster has this": {writer(), "cls_none"},
		} {
			check := func(what string, err error) {
				t.Helper()
				if !problem.Is(err, problem.NotFound) || problem.CodeOf(err) != "cluster_not_found" {
					t.Errorf("%s, %s: %v", name, what, err)
				}
			}
			_, err := d.Cluster(ctx, c.p, c.id)
			check("cluster", err)
			_, err = d.Objects(ctx, c.p, inventory.Query{ClusterID: c.id, Section: inventory.SectionPods})
			check("objects", err)
			_, err = d.Object(ctx, c.p, c.id, pod)
			check("object", err)
			_, err = d.AcceptIdentity(ctx, c.p, c.id, "uid")
			check("accept", err)
			check("remove", d.Remove(ctx, c.p, c.id))
		}
		for name, c := range map[string]struct {
			p    access.Principal
			q    inventory.ClusterQuery
			want []string
		}{
			"all of the console": {grant(access.Scope{}, access.HostsRead), inventory.ClusterQuery{}, []string{"acme-prod", "acme-test", "zeta-prod"}},
			"one client":         {writer(), inventory.ClusterQuery{}, []string{"acme-prod", "acme-test"}},
			"one environment":    {elsewhere, inventory.ClusterQuery{}, []string{"acme-test"}},
			"asked for another":  {writer(), inventory.ClusterQuery{ClientID: "zeta"}, nil},
			"a forged reach":     {writer(), inventory.ClusterQuery{Reach: access.Reach{All: true}}, []string{"acme-prod", "acme-test"}},
			"no right":           {grant(access.Scope{}, access.AgentsRead), inventory.ClusterQuery{}, nil},
			"nobody":             {access.Principal{}, inventory.ClusterQuery{}, nil},
			"NUL":                {writer(), inventory.ClusterQuery{Text: "\x00"}, nil},
		} {
			found, total, err := d.Clusters(ctx, c.p, c.q)
			must(t, err)
			var environments []string
			for _, cluster := range found {
				environments = append(environments, cluster.EnvironmentID)
			}
			slices.Sort(environments)
			if diff := gocmp.Diff(c.want, environments); diff != "" || total != len(c.want) {
				t.Errorf("%s: of %d %s", name, total, diff)
			}
		}
		// Removing one leaves the others whole.
		must(t, d.Remove(ctx, writer(), mine.ID))
		if n := d.db.Count(t, "SELECT COUNT(*) FROM inventory_objects"); n != 24 {
			t.Errorf("%d objects are left", n)
		}
		page, err := d.Objects(ctx, elsewhere, inventory.Query{ClusterID: d.clusterIn("acme-test").ID, Section: inventory.SectionPods})
		if err != nil || page.Total != 2 {
			t.Errorf("%d pods, %v", page.Total, err)
		}
	})
}

func (d *desk) clusterIn(environmentID string) inventory.Cluster {
	d.t.Helper()
	c, err := d.db.Inventory().ClusterBySlug(d.t.Context(), environmentID, "alpha")
	must(d.t, err)
	return c
}

func TestClustersSortByEveryKey(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		for i, slug := range []string{"beta", "gamma", "delta"} {
			d.agent(slug, func(a *fleet.Agent) {
				a.ClusterSlug, a.EnrolledAt = slug, storetest.Noon().Add(time.Duration(i+1)*time.Hour)
				a.HeartbeatAt = storetest.Noon().Add(-time.Duration(i+1) * time.Hour)
			})
			inv := house()
			inv.ClusterSlug, inv.ClusterName, inv.ClusterUID = slug, strings.ToUpper(slug), slug
			inv.Cluster.Version = []string{"v1.9.0", "v1.10.0", "v1.10.0-eks-1"}[i]
			inv.Nodes, inv.Pods = inv.Nodes[:i%2], inv.Pods[:1-i%2]
			must(t, d.publish(slug, whole(inv)))
		}
		must(t, d.publish("a", house())) // alpha: no heartbeat, enrolled first, synced last
		for sort, want := range map[string]string{
			"":          "alpha beta delta gamma",
			"name":      "alpha beta delta gamma",
			"enrolled":  "alpha beta gamma delta",
			"heartbeat": "delta gamma beta alpha",
			"inventory": "beta gamma delta alpha",
			"nodes":     "beta delta gamma alpha",
			"pods":      "gamma beta delta alpha",
			"version":   "beta gamma delta alpha",
		} {
			for _, desc := range []bool{false, true} {
				found, total, err := d.Clusters(t.Context(), writer(), inventory.ClusterQuery{Sort: sort, Desc: desc})
				must(t, err)
				var slugs []string
				for _, c := range found {
					slugs = append(slugs, c.Slug)
				}
				expect := strings.Fields(want)
				if desc {
					slices.Reverse(expect)
					if sort == "heartbeat" { // an unknown time is last either way
						expect = append(expect[1:], expect[0])
					}
				}
				if sort == "" || sort == "name" { // by bytes: capitals before the rest
					slices.SortFunc(expect, func(a, b string) int { return cmp.Compare(named(a), named(b)) })
					if desc {
						slices.Reverse(expect)
					}
				}
				if diff := gocmp.Diff(expect, slugs); diff != "" || total != 4 {
					t.Errorf("by %q, desc %v: %s", sort, desc, diff)
				}
			}
		}
		_, _, err := d.Clusters(t.Context(), writer(), inventory.ClusterQuery{Sort: "uid"})
		want(t, err, problem.Invalid, "invalid_sort")
	})
}

func named(slug string) string {
	if slug == "alpha" {
		return "Alpha"
	}
	return strings.ToUpper(slug)
}

// The field's cases, as far as console has a part in them: what the collector made of the objects is
// kept to the last digit, and sorts and reads as it should.
func TestCasesFromTheField(t *testing.T) {
	parse := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339Nano, text)
		must(t, err)
		return at
	}
	atDesks(t, func(t *testing.T, d *desk) {
		inv := house()
		inv.Events = []wire.Event{ // inv-05
			{Meta: wire.Meta{Namespace: "shop", Name: "ev-old"}, Count: 12, FirstSeen: parse("2026-01-10T10:00:00Z"), LastSeen: parse("2026-01-10T11:00:00Z")},
			{Meta: wire.Meta{Namespace: "shop", Name: "ev-new"}, Count: 1, LastSeen: parse("2026-01-10T11:59:00.123456Z")},
			{Meta: wire.Meta{Namespace: "shop", Name: "ev-undated"}},
		}
		inv.Pods = []wire.Pod{
			{Meta: wire.Meta{Namespace: "kube-system", Name: "edge-proxy-node-a"}, OwnerKind: "Node", OwnerName: "node-a", Static: true, NodeName: "node-a", Phase: "Running"}, // inv-09
			{ // inv-11
				Meta: wire.Meta{Namespace: "shop", Name: "web-1"}, Phase: "Running", Restarts: 4, ReadyContainers: 2, LongRunning: 2,
				Scheduled: wire.Resources{CPUMillis: new(int64(2100)), MemoryBytes: new(int64(384 << 20))}, Running: wire.Resources{CPUMillis: new(int64(300)), MemoryBytes: new(int64(384 << 20))},
				Containers: []wire.Container{{Name: "app", Role: wire.ContainerApp}, {Name: "debugger", Role: wire.ContainerEphemeral, State: "terminated", Reason: "Error"}},
			},
		}
		inv.Nodes = []wire.Node{
			{Meta: wire.Meta{Name: "node-lost"}, Ready: wire.NodeReadyUnknown, ReadyReason: "NodeStatusUnknown"}, // inv-13
			{Meta: wire.Meta{Name: "node-bare"}, Ready: wire.NodeReadyUnknown},
			{Meta: wire.Meta{Name: "node-cordoned"}, Ready: wire.NodeReadyTrue, Unschedulable: true},
			{Meta: wire.Meta{Name: "node-a"}, Ready: wire.NodeReadyTrue, Allocatable: wire.Resources{CPUMillis: new(int64(3920)), MemoryBytes: new(int64(8127364813))}}, // qty-01
		}
		must(t, d.publish("a", whole(inv)))
		c := d.cluster("alpha")
		rows := map[string]inventory.Object{}
		for _, section := range []inventory.Section{inventory.SectionEvents, inventory.SectionPods, inventory.SectionNodes} {
			page, err := d.Objects(t.Context(), writer(), inventory.Query{ClusterID: c.ID, Section: section})
			must(t, err)
			for _, o := range page.Objects {
				rows[o.Name] = o
			}
			if section == inventory.SectionEvents {
				if got := keysOf(page.Objects); got[0].Name != "ev-new" || got[1].Name != "ev-old" || got[2].Name != "ev-undated" {
					t.Errorf("inv-05: events in the order %v", got)
				}
			}
		}
		if o := rows["ev-new"]; !o.At.Equal(parse("2026-01-10T11:59:00.123456Z")) || o.Count != 1 || !rows["ev-undated"].At.IsZero() {
			t.Errorf("inv-05: %+v", o)
		}
		if o := rows["edge-proxy-node-a"]; o.Owner != "Node/node-a" || o.Node != "node-a" || c.Counts.Pods != 2 {
			t.Errorf("inv-09: %+v", o)
		}
		if o := rows["web-1"]; o.CPUMillis != 300 || o.MemoryBytes != 384<<20 || o.Restarts != 4 || o.Ready != 2 || o.Desired != 2 || o.State != "Running" {
			t.Errorf("inv-11: %+v", o)
		}
		for name, state := range map[string]string{"node-lost": "Unknown", "node-bare": "Unknown", "node-cordoned": "Ready, cordoned", "node-a": "Ready"} {
			if rows[name].State != state {
				t.Errorf("inv-13: %s is %q", name, rows[name].State)
			}
		}
		if o := rows["node-a"]; o.MemoryBytes != 8127364813 || o.CPUMillis != 3920 {
			t.Errorf("qty-01: %+v", o)
		}
	})
}
