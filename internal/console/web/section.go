package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/wire"
)

// sectionPageSize is how many objects a page shows.
const sectionPageSize = 100

// sectionData is one list of a cluster.
type sectionData struct {
	base
	clusterHead
	Section    inventory.Section
	List       list
	Pager      pager
	Columns    []column
	Rows       []row
	Namespaces []string
	States     []string
	Kinds      []string
	Filtered   bool
	// Unread are the kinds of this section that the last sync could not read; their rows are older.
	Unread []inventory.KindState
	Cut    []inventory.KindState
}

// column is one column of a list.
type column struct {
	Key     string // what it sorts by, "" if it does not
	Label   string
	Numeric bool
}

// cell is one value. A cell with a class carries a state; one with a time is an age.
type cell struct {
	Text    string
	Faint   string // said after the text, quieter
	Class   string
	Address string
	At      time.Time
	Numeric bool
	Wide    bool
}

// row is one object; its first cell names it.
type row struct {
	Name    string
	Sub     string
	Address string
	Cells   []cell
	// UnseenSince is set while the object is missing from lists that were cut.
	UnseenSince time.Time
}

// filters are the names under which a section's filters stand in the address.
func sectionFilters() []string { return []string{"q", "namespace", "state", "kind", "node"} }

func (s *server) section(v *visit) error {
	section, err := sectionOf(v.r)
	if err != nil {
		return err
	}
	columns := columnsOf(section)
	l := readList(v.r, sectionPageSize, inventory.SortKeys(section))
	found, err := s.Inventory.Objects(v.ctx(), v.who, inventory.Query{
		ClusterID: v.r.PathValue("id"), Section: section, Text: l.get("q"), Namespace: l.get("namespace"),
		State: l.get("state"), Kind: l.get("kind"), Node: l.get("node"),
		Sort: l.Sort, Desc: l.Desc, Limit: l.Size, Offset: l.offset(),
	})
	if err != nil {
		return err
	}
	head := s.headOf(v, found.Cluster, section)
	page := sectionData{
		base: s.base(v, sectionTitle(section)+" of "+head.Cluster.Name, "clusters"), clusterHead: head, Section: section,
		List: l, Pager: l.pager(len(found.Objects), found.Total), Columns: columns,
		Namespaces: found.Namespaces, States: found.States, Filtered: l.filtered(sectionFilters()...),
	}
	if page.Pager.beyond() {
		v.goTo(l.page(page.Pager.Pages))
		return nil
	}
	if section == inventory.SectionWorkloads {
		page.Kinds = []string{"Deployment", "StatefulSet", "DaemonSet"}
	}
	for _, k := range unreadKinds(head.Cluster) {
		if slices.Contains(kindsOf(section), k.Kind) {
			page.Unread = append(page.Unread, k)
		}
	}
	for _, k := range cutKinds(head.Cluster) {
		if slices.Contains(kindsOf(section), k.Kind) {
			page.Cut = append(page.Cut, k)
		}
	}
	for _, o := range found.Objects {
		page.Rows = append(page.Rows, rowOf(head.Cluster.ID, o))
	}
	page.announce(v, l, page.count())
	return v.render(http.StatusOK, sectionView(page))
}

// count says how many of how many objects the list shows.
func (d sectionData) count() string {
	noun := strings.ToLower(sectionTitle(d.Section))
	found := plural(d.Pager.Total, strings.TrimSuffix(noun, "s"), noun)
	switch {
	case !d.Cluster.Counted() && d.Pager.Total == 0 && !d.Filtered:
		return "no " + noun + " yet"
	case !d.Cluster.Counted():
		return found + " so far"
	case d.Filtered:
		return grouped(d.Pager.Total) + " of " + countOf(d.Cluster, d.Section) + " " + noun
	}
	return found
}

func sectionTitle(s inventory.Section) string {
	switch s {
	case inventory.SectionNodes:
		return "Nodes"
	case inventory.SectionNamespaces:
		return "Namespaces"
	case inventory.SectionWorkloads:
		return "Workloads"
	case inventory.SectionPods:
		return "Pods"
	case inventory.SectionServices:
		return "Services"
	case inventory.SectionEvents:
		return "Events"
	}
	return string(s)
}

// countOf is how many rows of a section are stored, "–" while nobody counted them.
func countOf(c inventory.Cluster, s inventory.Section) string {
	if !c.Counted() {
		return "–"
	}
	return grouped(countIn(c.Counts, s))
}

func countIn(c inventory.Counts, s inventory.Section) int {
	switch s {
	case inventory.SectionNodes:
		return c.Nodes
	case inventory.SectionNamespaces:
		return c.Namespaces
	case inventory.SectionWorkloads:
		return c.Workloads
	case inventory.SectionPods:
		return c.Pods
	case inventory.SectionServices:
		return c.Services
	case inventory.SectionEvents:
		return c.Events
	}
	return 0
}

// kindsOf are the kinds whose reading a section depends on.
func kindsOf(s inventory.Section) []wire.Kind {
	switch s {
	case inventory.SectionNodes:
		return []wire.Kind{wire.KindNodes}
	case inventory.SectionNamespaces:
		return []wire.Kind{wire.KindNamespaces}
	case inventory.SectionWorkloads:
		return []wire.Kind{wire.KindDeployments, wire.KindStatefulSets, wire.KindDaemonSets}
	case inventory.SectionPods:
		return []wire.Kind{wire.KindPods}
	case inventory.SectionServices:
		return []wire.Kind{wire.KindServices}
	case inventory.SectionEvents:
		return []wire.Kind{wire.KindEvents}
	}
	return nil
}

// columnsOf lists the columns of a section; the first names the object.
func columnsOf(s inventory.Section) []column {
	switch s {
	case inventory.SectionNodes:
		return []column{
			{"name", "Name", false},
			{"state", "Ready", false},
			{"", "Roles", false},
			{"", "Kubelet", false},
			{"cpu", "CPU", true},
			{"memory", "Memory", true},
			{"", "Address", false},
			{"", "System", false},
			{"age", "Age", true},
		}
	case inventory.SectionNamespaces:
		return []column{
			{"name", "Name", false},
			{"state", "Phase", false},
			{"count", "Pods", true},
			{"", "Workloads", true},
			{"", "Services", true},
			{"age", "Age", true},
		}
	case inventory.SectionWorkloads:
		return []column{
			{"name", "Name", false},
			{"kind", "Kind", false},
			{"state", "State", false},
			{"ready", "Ready", true},
			{"", "Updated", true},
			{"", "Available", true},
			{"namespace", "Namespace", false},
			{"", "Images", false},
			{"age", "Age", true},
		}
	case inventory.SectionPods:
		return []column{
			{"name", "Name", false},
			{"state", "Status", false},
			{"", "Ready", true},
			{"restarts", "Restarts", true},
			{"namespace", "Namespace", false},
			{"owner", "Owner", false},
			{"node", "Node", false},
			{"cpu", "CPU req.", true},
			{"memory", "Memory req.", true},
			{"age", "Age", true},
		}
	case inventory.SectionServices:
		return []column{
			{"name", "Name", false},
			{"namespace", "Namespace", false},
			{"state", "Type", false},
			{"", "Cluster IP", false},
			{"", "Ports", false},
			{"", "Outside", false},
			{"age", "Age", true},
		}
	case inventory.SectionEvents:
		return []column{
			{"", "Reason", false},
			{"state", "Type", false},
			{"owner", "Object", false},
			{"", "Message", false},
			{"count", "Count", true},
			{"age", "Last seen", true},
		}
	}
	return nil
}

// body reads the stored object. What cannot be read leaves its columns empty; those that lists sort
// and filter by are stored beside it.
func body[T any](o inventory.Object) T {
	var out T
	if err := json.Unmarshal(o.Body, &out); err != nil {
		var none T
		return none
	}
	return out
}

func objectPath(clusterID string, k inventory.Key) string {
	q := url.Values{"kind": {k.Kind}, "name": {k.Name}}
	if k.Namespace != "" {
		q.Set("namespace", k.Namespace)
	}
	return sectionPath(clusterID, k.Section) + "/object?" + q.Encode()
}

// rowOf shows one object in its section's columns.
func rowOf(clusterID string, o inventory.Object) row {
	r := row{Name: o.Name, Address: objectPath(clusterID, o.Key), UnseenSince: o.UnseenSince}
	state := cell{Text: o.State, Class: stateClass(o)}
	born := cell{At: o.At, Numeric: true}
	filter := func(s inventory.Section, name, value string) string {
		return sectionPath(clusterID, s) + "?" + url.Values{name: {value}}.Encode()
	}
	number := func(n int64) cell { return cell{Text: grouped(n), Numeric: true} }
	ofDesired := cell{Text: grouped(o.Ready) + "/" + grouped(o.Desired), Numeric: true}
	namespace := cell{Text: o.Namespace, Address: filter(o.Section, "namespace", o.Namespace)}

	switch o.Section {
	case inventory.SectionNodes:
		n := body[wire.Node](o)
		r.Cells = []cell{
			state,
			{Text: strings.Join(n.Roles, ", ")},
			{Text: n.KubeletVersion},
			{Text: cpu(o.CPUMillis), Numeric: true},
			{Text: memory(o.MemoryBytes), Numeric: true},
			{Text: n.InternalIP},
			{Text: n.OSImage, Faint: n.Architecture},
			born,
		}
	case inventory.SectionNamespaces:
		n := body[wire.Namespace](o)
		pods := number(o.Count)
		pods.Address = filter(inventory.SectionPods, "namespace", o.Name)
		r.Cells = []cell{state, pods, number(int64(n.Workloads)), number(int64(n.Services)), born}
	case inventory.SectionWorkloads:
		w := body[wire.Workload](o)
		r.Cells = []cell{{Text: o.Kind}, state, ofDesired, number(w.Updated), number(w.Available), namespace, {Text: images(w.Containers), Wide: true}, born}
	case inventory.SectionPods:
		kind, owner, _ := strings.Cut(o.Owner, "/")
		node := cell{Text: o.Node}
		if o.Node != "" {
			node.Address = objectPath(clusterID, inventory.Key{Section: inventory.SectionNodes, Kind: "Node", Name: o.Node})
		}
		r.Cells = []cell{
			state, ofDesired, number(o.Restarts), namespace,
			{Text: owner, Faint: kind},
			node,
			{Text: cpu(o.CPUMillis), Numeric: true},
			{Text: memory(o.MemoryBytes), Numeric: true},
			born,
		}
	case inventory.SectionServices:
		svc := body[wire.Service](o)
		outside := strings.Join(svc.LoadBalancer, ", ")
		r.Cells = []cell{
			namespace,
			{Text: cmp.Or(svc.Type, o.State)},
			{Text: strings.Join(svc.ClusterIPs, ", ")},
			{Text: ports(svc.Ports)},
			{Text: cmp.Or(outside, svc.ExternalName)},
			born,
		}
	case inventory.SectionEvents:
		e := body[wire.Event](o)
		r.Name = cmp.Or(e.Reason, o.Name)
		kind, name, _ := strings.Cut(o.Owner, "/")
		object := cell{Text: name, Faint: kind}
		if o.Namespace != "" && name != "" {
			object.Text = o.Namespace + "/" + name
		}
		r.Cells = []cell{state, object, {Text: e.Message, Wide: true}, number(o.Count), born}
	}
	return r
}

// stateClass gives a state its colour and shape. It is a translation of Kubernetes' own words and
// judges nothing about the cluster.
func stateClass(o inventory.Object) string {
	if o.Section == inventory.SectionServices {
		return ""
	}
	switch state := strings.ToLower(o.State); {
	case state == "", state == "normal":
		return ""
	case state == "warning":
		return "warning"
	case state == "not ready":
		if o.Section == inventory.SectionNodes {
			return "failed"
		}
		return "warning"
	case strings.Contains(state, "backoff"), strings.HasPrefix(state, "err"), strings.HasSuffix(state, "error"),
		slices.Contains([]string{"failed", "oomkilled", "evicted", "deadlineexceeded", "invalidimagename", "unexpectedadmissionerror"}, state):
		return "failed"
	case slices.Contains([]string{"unknown", "nodelost", "containerstatusunknown"}, state):
		return "unknown"
	case state == "running" && o.Ready < o.Desired:
		return "warning"
	case strings.HasPrefix(state, "ready"), slices.Contains([]string{"running", "succeeded", "completed", "active"}, state):
		return "passed"
	default: // Pending, Terminating, Paused and their like: neither good nor bad
		return "waiting"
	}
}

// images lists the images of a workload's own containers.
func images(containers []wire.Container) string {
	var out []string
	for _, c := range containers {
		if c.Image != "" && c.Role != wire.ContainerInit && !slices.Contains(out, c.Image) {
			out = append(out, c.Image)
		}
	}
	return strings.Join(out, ", ")
}

// ports writes a service's ports as kubectl does: "80/TCP, 443:30443/TCP".
func ports(all []wire.ServicePort) string {
	var out []string
	for _, p := range all {
		text := strconv.Itoa(int(p.Port))
		if p.NodePort != 0 {
			text += ":" + strconv.Itoa(int(p.NodePort))
		}
		out = append(out, text+"/"+cmp.Or(p.Protocol, "TCP"))
	}
	return strings.Join(out, ", ")
}

// warningOf shows an event on the overview.
func warningOf(clusterID string, o inventory.Object) eventRow {
	e := body[wire.Event](o)
	object := e.InvolvedKind + " " + e.InvolvedName
	if o.Namespace != "" {
		object = e.InvolvedKind + " " + o.Namespace + "/" + e.InvolvedName
	}
	return eventRow{
		Reason: cmp.Or(e.Reason, o.Name), Object: strings.TrimSpace(object), Message: e.Message, Count: o.Count, At: o.At,
		Address: objectPath(clusterID, o.Key),
	}
}
