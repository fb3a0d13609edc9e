package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"
)

// DecodeInventory reads what EncodeInventory wrote into memory as a whole. What comes from a stranger is
// for ReadInventory.
func DecodeInventory(data []byte) (*Inventory, error) {
	var lists Inventory
	inv, err := ReadInventory(data, func(string, []byte) (bool, error) { return false, nil }, func(object any) error {
		switch o := object.(type) {
		case *Node:
			lists.Nodes = append(lists.Nodes, *o)
		case *Namespace:
			lists.Namespaces = append(lists.Namespaces, *o)
		case *Workload:
			lists.Workloads = append(lists.Workloads, *o)
		case *Pod:
			lists.Pods = append(lists.Pods, *o)
		case *Service:
			lists.Services = append(lists.Services, *o)
		case *Event:
			lists.Events = append(lists.Events, *o)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	inv.Nodes, inv.Namespaces, inv.Workloads = lists.Nodes, lists.Namespaces, lists.Workloads
	inv.Pods, inv.Services, inv.Events = lists.Pods, lists.Services, lists.Events
	return inv, nil
}

// ReadInventory reads what EncodeInventory wrote, one object at a time: a few kilobytes on the wire may
// stand for gigabytes of structures. It calls known with the name of the list and the text of each object, which
// is valid only during the call; where that answers false, it calls take with the *Node, *Namespace, *Workload,
// *Pod, *Service or *Event. It returns the inventory without its lists. It holds the message to the limits of
// this package, but for what known says of an object, and answers ErrMalformed for anything else; an error of known or
// take ends the reading and is answered as it is.
func ReadInventory(data []byte, known func(list string, text []byte) (bool, error), take func(object any) error) (*Inventory, error) {
	if len(data) > MaxPayload {
		return nil, fmt.Errorf("%w: inventory has %d bytes, %d are allowed", ErrMalformed, len(data), MaxPayload)
	}
	zr, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxInventory), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return nil, malformed("inventory: " + err.Error())
	}
	defer zr.Close()
	limited := &io.LimitedReader{R: zr, N: MaxInventory + 1}
	r := inventoryReader{
		// What a text holds twice counts as encoding/json has it: the last of members, U+FFFD for bytes.
		text:  jsontext.NewDecoder(limited, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		known: known, take: take, counts: make(map[Kind]int),
	}
	inv, err := r.inventory()
	switch {
	case err == nil:
		return inv, nil
	case r.refused != nil:
		return nil, r.refused
	case limited.N <= 0:
		return nil, fmt.Errorf("%w: inventory is larger than %d bytes after decompression", ErrMalformed, MaxInventory)
	case errors.Is(err, ErrMalformed):
		return nil, err
	default:
		return nil, malformed("inventory: " + err.Error())
	}
}

type inventoryReader struct {
	text    *jsontext.Decoder
	known   func(list string, text []byte) (bool, error)
	take    func(object any) error
	counts  map[Kind]int // objects by list
	all     int
	refused error // of known or take
}

func (r *inventoryReader) inventory() (*Inventory, error) {
	if err := r.expect('{'); err != nil {
		return nil, err
	}
	head := []byte{'{'} // whatever is not a list
	for r.text.PeekKind() == '"' {
		name, err := r.text.ReadToken()
		if err != nil {
			return nil, err
		}
		list := r.list(name.String())
		if list == nil {
			if head, err = r.member(head, name.String()); err != nil {
				return nil, err
			}
			continue
		}
		if err := list(); err != nil {
			return nil, err
		}
	}
	if err := r.expect('}'); err != nil {
		return nil, err
	}
	if _, err := r.text.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: inventory: bytes after the end", ErrMalformed)
	}
	var inv Inventory
	if err := json.Unmarshal(append(head, '}'), &inv); err != nil {
		return nil, err
	}
	return &inv, inv.validate()
}

// member appends a member to head. One too long for head is passed over: it is a list that an agent newer
// than this console sends.
func (r *inventoryReader) member(head []byte, name string) ([]byte, error) {
	value, err := r.text.ReadValue()
	if err != nil || len(head)+len(name)+len(value) > MaxObject {
		return head, err
	}
	if len(head) > 1 {
		head = append(head, ',')
	}
	if head, err = jsontext.AppendQuote(head, name); err != nil {
		return nil, err
	}
	return append(append(head, ':'), value...), nil
}

// list answers what reads the list of that name, or nil if there is none.
func (r *inventoryReader) list(name string) func() error {
	switch name {
	case "nodes":
		return func() error { return readList(r, KindNodes, func(o *Node) *Meta { return &o.Meta }) }
	case "namespaces":
		return func() error { return readList(r, KindNamespaces, func(o *Namespace) *Meta { return &o.Meta }) }
	case "workloads":
		return func() error { return readList(r, "workloads", func(o *Workload) *Meta { return &o.Meta }) }
	case "pods":
		return func() error { return readList(r, KindPods, func(o *Pod) *Meta { return &o.Meta }) }
	case "services":
		return func() error { return readList(r, KindServices, func(o *Service) *Meta { return &o.Meta }) }
	case "events":
		return func() error { return readList(r, KindEvents, func(o *Event) *Meta { return &o.Meta }) }
	}
	return nil
}

func readList[T any](r *inventoryReader, kind Kind, meta func(*T) *Meta) error {
	if err := r.expect('['); err != nil {
		return err
	}
	for r.text.PeekKind() != ']' {
		value, err := r.text.ReadValue()
		if err != nil {
			return err
		}
		r.counts[kind]++
		r.all++
		switch {
		case r.counts[kind] > MaxObjects:
			return fmt.Errorf("%w: %s has more than %d objects", ErrMalformed, kind, MaxObjects)
		case r.all > MaxAllObjects:
			return fmt.Errorf("%w: inventory has more than %d objects", ErrMalformed, MaxAllObjects)
		case len(value) > MaxObject:
			return fmt.Errorf("%w: %s: object %d has %d bytes, %d are allowed", ErrMalformed, kind, r.counts[kind], len(value), MaxObject)
		}
		known, err := r.known(string(kind), value)
		if r.refused = err; err != nil {
			return err
		}
		if known {
			continue
		}
		object := new(T)
		if err := json.Unmarshal(value, object); err != nil {
			return err
		}
		if err := meta(object).validate(kind, r.counts[kind]); err != nil {
			return err
		}
		if r.refused = r.take(object); r.refused != nil {
			return r.refused
		}
	}
	return r.expect(']')
}

func (r *inventoryReader) expect(kind jsontext.Kind) error {
	token, err := r.text.ReadToken()
	if err == nil && token.Kind() != kind {
		err = fmt.Errorf("%w: inventory: %v at byte %d, not %v", ErrMalformed, token.Kind(), r.text.InputOffset(), kind)
	}
	return err
}
