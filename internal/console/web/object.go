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
	o, id := d.Object, d.Cluster.ID
	to := func(label string, s inventory.Section, query url.Values) {
		d.Links = append(d.Links, link{label, sectionPath(id, s) + "?" + query.Encode()})
	}
	var meta wire.Meta
	switch o.Section {
	case inventory.SectionNodes:
		n := body[wire.Node](o)
		meta, d.Conditions, d.Taints = n.Meta, n.Conditions, n.Taints
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
		to("Pods on this node", inventory.SectionPods, url.Values{"node": {o.Name}})
	case inventory.SectionNamespaces:
		n := body[wire.Namespace](o)
		meta = n.Meta
		d.say("Pods", grouped(n.Pods))
		d.say("Workloads", grouped(n.Workloads))
		d.say("Services", grouped(n.Services))
		for _, s := range []inventory.Section{inventory.SectionPods, inventory.SectionWorkloads, inventory.SectionServices, inventory.SectionEvents} {
			to(sectionTitle(s)+" in it", s, url.Values{"namespace": {o.Name}})
		}
	case inventory.SectionWorkloads:
		w := body[wire.Workload](o)
		meta, d.Containers, d.Conditions = w.Meta, w.Containers, w.Conditions
		d.say("Replicas", grouped(w.Ready)+" of "+grouped(w.Desired)+" ready, "+grouped(w.Updated)+" updated, "+grouped(w.Available)+" available")
		d.say("Strategy", w.Strategy)
		if w.Paused {
			d.say("Rollout", "paused")
		}
		to("Pods with its name", inventory.SectionPods, url.Values{"namespace": {o.Namespace}, "q": {o.Name}})
	case inventory.SectionPods:
		p := body[wire.Pod](o)
		meta, d.Containers, d.Observed = p.Meta, p.Containers, true
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
			d.Links = append(d.Links, link{"Its node", objectPath(id, inventory.Key{Section: inventory.SectionNodes, Kind: "Node", Name: p.NodeName})})
		}
		to("Events about it", inventory.SectionEvents, url.Values{"namespace": {o.Namespace}, "q": {o.Name}})
	case inventory.SectionServices:
		s := body[wire.Service](o)
		meta = s.Meta
		d.say("Type", s.Type)
		d.say("Cluster IP", strings.Join(s.ClusterIPs, ", "))
		d.say("Ports", ports(s.Ports))
		d.say("External name", s.ExternalName)
		d.say("Load balancer", strings.Join(s.LoadBalancer, ", "))
		d.say("Selector", strings.Join(sorted(s.Selector), ", "))
	case inventory.SectionEvents:
		e := body[wire.Event](o)
		meta = e.Meta
		d.say("Reason", e.Reason)
		d.say("Message", e.Message)
		d.say("Object", strings.TrimSpace(e.InvolvedKind+" "+e.InvolvedName))
		d.say("Source", e.Source)
		d.say("Count", grouped(e.Count))
		d.when("First seen", e.FirstSeen)
		d.when("Last seen", e.LastSeen)
	}
	d.when("Created", meta.CreatedAt)
	d.say("UID", meta.UID)
	d.Labels = sorted(meta.Labels)
	for _, name := range slices.Sorted(maps.Keys(meta.Annotations)) {
		d.Notes = append(d.Notes, pair{Name: name, Value: meta.Annotations[name]})
	}
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
