package inventory

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"prxm.uz/proxima/internal/wire"
)

// objectsOf turns an inventory's lists into rows.
func objectsOf(inv *wire.Inventory) ([]Object, error) {
	n := len(inv.Nodes) + len(inv.Namespaces) + len(inv.Workloads) + len(inv.Pods) + len(inv.Services) + len(inv.Events)
	b := builder{out: make([]Object, 0, n)}
	for i := range inv.Nodes {
		b.add(nodeObject(&inv.Nodes[i]), &inv.Nodes[i])
	}
	for i := range inv.Namespaces {
		b.add(namespaceObject(&inv.Namespaces[i]), &inv.Namespaces[i])
	}
	for i := range inv.Workloads {
		b.add(workloadObject(&inv.Workloads[i]), &inv.Workloads[i])
	}
	for i := range inv.Pods {
		b.add(podObject(&inv.Pods[i]), &inv.Pods[i])
	}
	for i := range inv.Services {
		b.add(serviceObject(&inv.Services[i]), &inv.Services[i])
	}
	for i := range inv.Events {
		b.add(eventObject(&inv.Events[i]), &inv.Events[i])
	}
	return b.out, b.err
}

type builder struct {
	out []Object
	err error
}

func (b *builder) add(o Object, whole any) {
	body, err := json.Marshal(whole)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("%w: %s %s: %w", wire.ErrMalformed, o.Section, o.Name, err)
		return
	}
	o.Body = body
	sum := sha256.Sum256(body)
	copy(o.Hash[:], sum[:])
	o.State, o.Node, o.Owner = column(o.State), column(o.Node), column(o.Owner)
	b.out = append(b.out, o)
}

// column makes a text fit for a column of either database: no NUL, valid UTF-8, at most 253 bytes.
func column(s string) string {
	if len(s) > wire.MaxName {
		s = s[:wire.MaxName]
	}
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "�")
	}
	return s
}

func object(section Section, kind string, m *wire.Meta) Object {
	return Object{Key: Key{Section: section, Kind: column(kind), Namespace: m.Namespace, Name: m.Name}, UID: m.UID, At: m.CreatedAt}
}

func amount(v *int64) int64 {
	if v == nil {
		return 0
	}
	return *v
}

func nodeObject(n *wire.Node) Object {
	o := object(SectionNodes, "Node", &n.Meta)
	switch {
	case n.Ready == wire.NodeReadyTrue && n.Unschedulable:
		o.State = "Ready, cordoned"
	case n.Ready == wire.NodeReadyTrue:
		o.State = "Ready"
	case n.Ready == wire.NodeReadyFalse:
		o.State = "Not ready"
	default:
		o.State = "Unknown"
	}
	o.CPUMillis, o.MemoryBytes = amount(n.Allocatable.CPUMillis), amount(n.Allocatable.MemoryBytes)
	return o
}

func namespaceObject(n *wire.Namespace) Object {
	o := object(SectionNamespaces, "Namespace", &n.Meta)
	o.State, o.Count = n.Phase, int64(n.Pods)
	return o
}

func workloadObject(w *wire.Workload) Object {
	o := object(SectionWorkloads, w.Kind, &w.Meta)
	o.Ready, o.Desired = w.Ready, w.Desired
	switch {
	case w.Paused:
		o.State = "Paused"
	case w.Desired == 0:
		o.State = "Scaled to zero"
	case w.Ready >= w.Desired:
		o.State = "Ready"
	default:
		o.State = "Not ready"
	}
	return o
}

func podObject(p *wire.Pod) Object {
	o := object(SectionPods, "Pod", &p.Meta)
	o.State = podState(p)
	o.Node = p.NodeName
	switch {
	case p.WorkloadName != "":
		o.Owner = p.WorkloadKind + "/" + p.WorkloadName
	case p.OwnerName != "":
		o.Owner = p.OwnerKind + "/" + p.OwnerName
	}
	o.Restarts = p.Restarts
	o.Ready, o.Desired = int64(p.ReadyContainers), int64(p.LongRunning)
	o.CPUMillis, o.MemoryBytes = amount(p.Running.CPUMillis), amount(p.Running.MemoryBytes)
	if !p.StartedAt.IsZero() {
		o.At = p.StartedAt
	}
	return o
}

// podState is the word a person looks for: the pod's own reason, else a container's, else the phase.
func podState(p *wire.Pod) string {
	if p.Reason != "" {
		return p.Reason
	}
	for _, c := range p.Containers {
		if c.State == "waiting" && c.Reason != "" && c.Reason != "PodInitializing" && c.Reason != "ContainerCreating" {
			return c.Reason
		}
	}
	return p.Phase
}

func serviceObject(s *wire.Service) Object {
	o := object(SectionServices, "Service", &s.Meta)
	o.State = s.Type
	return o
}

func eventObject(e *wire.Event) Object {
	o := object(SectionEvents, "Event", &e.Meta)
	o.State, o.Count = e.Type, e.Count
	if e.InvolvedName != "" {
		o.Owner = e.InvolvedKind + "/" + e.InvolvedName
	}
	o.At = time.Time{}
	if !e.LastSeen.IsZero() {
		o.At = e.LastSeen
	}
	return o
}
