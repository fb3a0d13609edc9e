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

// content is what a message holds: the inventory without its lists, the rows of their objects, and the keys of
// those that are stored just as they were sent.
type content struct {
	inv  *wire.Inventory
	rows []Object
	same []Key
}

// read reads a message, given what is stored. An object whose text is the stored one is not looked into: agents
// write objects as this console does, and most do not change from one inventory to the next. Unless the message
// may be large, one with more than quickObjects or quickBytes is ErrLarge.
func read(data []byte, stored map[Key]Stored, large bool) (content, error) {
	b := builder{stored: make(map[text]Key, len(stored)), large: large}
	for k, s := range stored {
		b.stored[text{k.Section, s.Hash}] = k
	}
	inv, err := wire.ReadInventory(data, b.known, b.take)
	return content{inv: inv, rows: b.rows, same: b.same}, err
}

// text stands for the body of an object in its section.
type text struct {
	section Section
	hash    [16]byte
}

type builder struct {
	stored map[text]Key
	rows   []Object
	same   []Key
	bytes  int // of all bodies
	large  bool
}

// known tells that an object is stored with this text.
func (b *builder) known(list string, body []byte) (bool, error) {
	if len(b.stored) == 0 { // a first inventory is not hashed twice
		return false, nil
	}
	k, ok := b.stored[text{Section(list), hash(body)}]
	if !ok {
		return false, nil
	}
	b.same = append(b.same, k)
	return true, b.count(body)
}

func hash(body []byte) (h [16]byte) {
	sum := sha256.Sum256(body)
	copy(h[:], sum[:])
	return h
}

// count holds all bodies to what an agent, which writes them in the same form, could have sent: a text of
// empty objects grows many times when written out.
func (b *builder) count(body []byte) error {
	if b.bytes += len(body); b.bytes > wire.MaxInventory {
		return fmt.Errorf("%w: the objects are larger than %d bytes", wire.ErrMalformed, wire.MaxInventory)
	}
	if !b.large && (len(b.rows)+len(b.same) >= quickObjects || b.bytes > quickBytes) {
		return ErrLarge
	}
	return nil
}

func (b *builder) take(whole any) error {
	switch whole := whole.(type) {
	case *wire.Node:
		return b.add(nodeObject(whole), whole)
	case *wire.Namespace:
		return b.add(namespaceObject(whole), whole)
	case *wire.Workload:
		return b.add(workloadObject(whole), whole)
	case *wire.Pod:
		return b.add(podObject(whole), whole)
	case *wire.Service:
		return b.add(serviceObject(whole), whole)
	case *wire.Event:
		return b.add(eventObject(whole), whole)
	}
	return fmt.Errorf("no row is made of %T", whole)
}

func (b *builder) add(o Object, whole any) error {
	body, err := json.Marshal(whole)
	if err != nil {
		return fmt.Errorf("%w: %s %s: %w", wire.ErrMalformed, o.Section, o.Name, err)
	}
	if err := b.count(body); err != nil {
		return err
	}
	o.Body, o.Hash = body, hash(body)
	o.State, o.Node, o.Owner = column(o.State), column(o.Node), column(o.Owner)
	b.rows = append(b.rows, o)
	return nil
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
