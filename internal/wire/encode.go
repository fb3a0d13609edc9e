package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Limits of what a decoder takes from the other side.
const (
	// MaxPayload is the largest NATS message, 8 MiB (B-95); headers count towards it.
	MaxPayload = 8 << 20
	// MaxInventory is the largest inventory after decompression, in bytes: 50,000 pods are near 40 MiB.
	MaxInventory = 96 << 20
	// MaxMessage is the largest message of any other kind, in bytes.
	MaxMessage = 64 << 10
	// MaxObject is the longest JSON of one object, in bytes. No API server stores objects of 1.5 MiB, and an
	// inventory has but a part of each.
	MaxObject = 1 << 20
	// MaxObjects is the largest number of objects in one list of an inventory, MaxAllObjects in all of them.
	MaxObjects    = 100_000
	MaxAllObjects = 200_000
	// MaxOrder is the largest epoch or sync number: there is always a greater one to hand out.
	MaxOrder = 1 << 53
	// MaxName is the longest name, slug, UID or reason, in bytes.
	MaxName = 253
)

// ErrMalformed marks a message that breaks its form or a limit; its text names which.
var ErrMalformed = errors.New("malformed message")

// window is how far back the compressor looks for repetitions, in bytes. Its usual 4 MiB raise an agent's
// peak memory by 5 MiB and find no more: what resembles an object stands near it.
const window = 1 << 20

// EncodeInventory compresses an inventory for the wire.
func EncodeInventory(inv *Inventory) ([]byte, error) {
	var buf bytes.Buffer
	zw, err := zstd.NewWriter(&buf, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(window))
	if err != nil {
		return nil, fmt.Errorf("open the compressor: %w", err)
	}
	if err := writeInventory(zw, inv); err != nil {
		return nil, fmt.Errorf("encode inventory: %w", err)
	}
	if err := zw.Close(); err != nil {
		return nil, fmt.Errorf("compress inventory: %w", err)
	}
	return buf.Bytes(), nil
}

// writeInventory writes the JSON of an inventory object by object: encoding/json would hold the whole
// text, several times as large as what it describes once compressed.
func writeInventory(w io.Writer, inv *Inventory) error {
	head := *inv
	head.Nodes, head.Namespaces, head.Workloads, head.Pods, head.Services, head.Events = nil, nil, nil, nil, nil, nil
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if _, err := w.Write(text[:len(text)-1]); err != nil { // without the closing brace
		return err
	}
	if err := firstError(
		writeList(w, "nodes", inv.Nodes), writeList(w, "namespaces", inv.Namespaces), writeList(w, "workloads", inv.Workloads),
		writeList(w, "pods", inv.Pods), writeList(w, "services", inv.Services), writeList(w, "events", inv.Events),
	); err != nil {
		return err
	}
	_, err = io.WriteString(w, "}\n")
	return err
}

func writeList[T any](w io.Writer, name string, list []T) error {
	if len(list) == 0 {
		return nil
	}
	separator := `,"` + name + `":[`
	for i := range list {
		text, err := json.Marshal(&list[i])
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, separator); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		separator = ","
	}
	_, err := io.WriteString(w, "]")
	return err
}

// Decode reads a small JSON message, such as a Heartbeat, into v, and answers ErrMalformed where it
// does not fit.
func Decode(data []byte, v any) error {
	if len(data) > MaxMessage {
		return fmt.Errorf("%w: %d bytes, %d are allowed", ErrMalformed, len(data), MaxMessage)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return malformed(err.Error())
	}
	return nil
}

// longestReason bounds what an error quotes of a decoder, in bytes: that may hold a value of the sender's whole.
const longestReason = 512

func malformed(reason string) error {
	if len(reason) > longestReason {
		reason = strings.ToValidUTF8(reason[:longestReason], "") + "…"
	}
	return fmt.Errorf("%w: %s", ErrMalformed, reason)
}
