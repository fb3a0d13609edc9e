package web

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/wire"
)

// objectData is the page of one object.
type objectData struct {
	base
	clusterHead
	Object inventory.Object
	State  fact
	// Facts are its fields in words.
	Facts      []pair
	Links      []link
	Containers []wire.Container
	Observed   bool // the containers' state was observed; a workload's template has none
	Conditions []wire.Condition
	Taints     []wire.Taint
	Labels     []string
	Notes      []pair // annotations, as the agent scrubbed them
	Raw        string
}

// pair is a name with its value.
type pair struct {
	Name, Value string
	At          time.Time
}

// link leads to a related list.
type link struct{ Label, Address string }

func (s *server) object(v *visit) error {
	section, err := sectionOf(v.r)
	if err != nil {
		return err
	}
	head, err := s.head(v, section)
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	o, err := s.Inventory.Object(v.ctx(), v.who, head.Cluster.ID, inventory.Key{
		Section: section, Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name"),
	})
	if err != nil {
		return err
	}
	page := objectData{
		base: s.base(v, o.Name+" in "+head.Cluster.Name, "clusters"), clusterHead: head, Object: o,
		State: fact{Class: stateClass(o), Word: o.State}, Raw: indented(o.Body),
	}
	page.fill()
	return v.render(http.StatusOK, objectView(page))
}

// indented is the stored JSON with line ends; as it came where it is no JSON.
func indented(raw []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}

// fill writes the fields of the object's kind.
func (d *objectData) fill() {
	var meta wire.Meta
	switch d.Object.Section {
	case inventory.SectionNodes:
		meta = d.fillNode(body[wire.Node](d.Object))
	case inventory.SectionNamespaces:
		meta = d.fillNamespace(body[wire.Namespace](d.Object))
	case inventory.SectionWorkloads:
		meta = d.fillWorkload(body[wire.Workload](d.Object))
	case inventory.SectionPods:
		meta = d.fillPod(body[wire.Pod](d.Object))
	case inventory.SectionServices:
		meta = d.fillService(body[wire.Service](d.Object))
	case inventory.SectionEvents:
		meta = d.fillEvent(body[wire.Event](d.Object))
	}
	d.when("Created", meta.CreatedAt)
	d.say("UID", meta.UID)
	d.Labels = sorted(meta.Labels)
	for _, name := range slices.Sorted(maps.Keys(meta.Annotations)) {
		d.Notes = append(d.Notes, pair{Name: name, Value: meta.Annotations[name]})
	}
}

func (d *objectData) fillNode(n wire.Node) wire.Meta {
	d.Conditions, d.Taints = n.Conditions, n.Taints
	d.say("Ready, reason", n.ReadyReason)
	if n.Unschedulable {
		d.say("Scheduling", "cordoned: takes no new pods")
	}
	d.say("Roles", strings.Join(n.Roles, ", "))
	d.say("Kubelet", n.KubeletVersion)
	d.say("System", strings.TrimSpace(n.OSImage+" "+n.Architecture))
	d.say("Runtime", n.Runtime)
	d.say("Internal address", n.InternalIP)
	d.say("External address", n.ExternalIP)
	d.say("Provider ID", n.ProviderID)
	d.say("Capacity", amounts(n.Capacity))
	d.say("Allocatable", amounts(n.Allocatable))
	d.to("Pods on this node", inventory.SectionPods, url.Values{"node": {d.Object.Name}})
	return n.Meta
}

func (d *objectData) fillNamespace(n wire.Namespace) wire.Meta {
	d.say("Pods", grouped(n.Pods))
	d.say("Workloads", grouped(n.Workloads))
	d.say("Services", grouped(n.Services))
	for _, s := range []inventory.Section{inventory.SectionPods, inventory.SectionWorkloads, inventory.SectionServices, inventory.SectionEvents} {
		d.to(sectionTitle(s)+" in it", s, url.Values{"namespace": {d.Object.Name}})
	}
	return n.Meta
}

func (d *objectData) fillWorkload(w wire.Workload) wire.Meta {
	d.Containers, d.Conditions = w.Containers, w.Conditions
	d.say("Replicas", grouped(w.Ready)+" of "+grouped(w.Desired)+" ready, "+grouped(w.Updated)+" updated, "+grouped(w.Available)+" available")
	d.say("Strategy", w.Strategy)
	if w.Paused {
		d.say("Rollout", "paused")
	}
	d.to("Pods with its name", inventory.SectionPods, url.Values{"namespace": {d.Object.Namespace}, "q": {d.Object.Name}})
	return w.Meta
}

func (d *objectData) fillPod(p wire.Pod) wire.Meta {
	d.Containers, d.Observed = p.Containers, true
	d.say("Phase", p.Phase)
	d.say("Reason", p.Reason)
	d.say("Node", p.NodeName)
	d.say("Address", p.IP)
	d.say("Owner", strings.TrimSpace(p.OwnerKind+" "+p.OwnerName))
	d.say("Workload", strings.TrimSpace(p.WorkloadKind+" "+p.WorkloadName))
	d.say("QoS class", p.QOSClass)
	d.say("Restarts", grouped(p.Restarts))
	d.say("Requests, scheduled", amounts(p.Scheduled))
	d.say("Requests, running", amounts(p.Running))
	d.when("Started", p.StartedAt)
	if p.NodeName != "" {
		d.Links = append(d.Links, link{"Its node", objectPath(d.Cluster.ID, inventory.Key{Section: inventory.SectionNodes, Kind: "Node", Name: p.NodeName})})
	}
	d.to("Events about it", inventory.SectionEvents, url.Values{"namespace": {d.Object.Namespace}, "q": {d.Object.Name}})
	return p.Meta
}

func (d *objectData) fillService(s wire.Service) wire.Meta {
	d.say("Type", s.Type)
	d.say("Cluster IP", strings.Join(s.ClusterIPs, ", "))
	d.say("Ports", ports(s.Ports))
	d.say("External name", s.ExternalName)
	d.say("Load balancer", strings.Join(s.LoadBalancer, ", "))
	d.say("Selector", strings.Join(sorted(s.Selector), ", "))
	return s.Meta
}

func (d *objectData) fillEvent(e wire.Event) wire.Meta {
	d.say("Reason", e.Reason)
	d.say("Message", e.Message)
	d.say("Object", strings.TrimSpace(e.InvolvedKind+" "+e.InvolvedName))
	d.say("Source", e.Source)
	d.say("Count", grouped(e.Count))
	d.when("First seen", e.FirstSeen)
	d.when("Last seen", e.LastSeen)
	return e.Meta
}

// to adds a link to a section, filtered.
func (d *objectData) to(label string, s inventory.Section, query url.Values) {
	d.Links = append(d.Links, link{label, sectionPath(d.Cluster.ID, s) + "?" + query.Encode()})
}

// say adds a field that has a value.
func (d *objectData) say(name, value string) {
	if value != "" {
		d.Facts = append(d.Facts, pair{Name: name, Value: value})
	}
}

// when adds a field that is a time.
func (d *objectData) when(name string, at time.Time) {
	if !at.IsZero() {
		d.Facts = append(d.Facts, pair{Name: name, At: at})
	}
}

// sorted writes a map as key=value in the order of its keys.
func sorted(m map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return out
}

// amounts writes what was stated of resources.
func amounts(r wire.Resources) string {
	var out []string
	if r.CPUMillis != nil {
		out = append(out, cpu(*r.CPUMillis)+" CPU")
	}
	if r.MemoryBytes != nil {
		out = append(out, memory(*r.MemoryBytes)+" memory")
	}
	if r.EphemeralBytes != nil {
		out = append(out, memory(*r.EphemeralBytes)+" ephemeral storage")
	}
	if r.Pods != nil {
		out = append(out, plural(*r.Pods, "pod", "pods"))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Extended)) {
		out = append(out, grouped(r.Extended[name])+" "+name)
	}
	return strings.Join(out, ", ")
}
