package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"
)

// FuzzDecodeInventory: whatever an agent sends is an inventory or malformed, and an inventory that was read is
// the same when it is written and read again.
func FuzzDecodeInventory(f *testing.F) {
	const head = `{"capability":1,"epoch":3,"sync":7,"clusterSlug":"alpha","clusterUid":"u","collectedAt":"2026-03-01T12:00:00Z"`
	for _, seed := range []string{
		head + `}`, head + `,"pods":[{"namespace":"shop","name":"web","labels":{"a":"b"}}],"kinds":[{"kind":"pods","kept":1,"total":1}]}`,
		head + `,"nodes":[null,{}],"nodes":[]}`, head + `,"events":{},"services":[[]]}`, head + `,"workloads":[{"name":"\ud800\u0000"}]}`, head + `}{}`,
		`[]`, `null`, ``, head, head + `,"pods":` + strings.Repeat("[", 200), head + `,"epoch":1e99}`, head + `,"pods":[{"name":"a","restarts":` + strings.Repeat("9", 5000) + `}]}`, head + `,"collectedAt":"0000-13-01"}`,
	} {
		f.Add([]byte(seed), true)
	}
	f.Add([]byte("\x28\xb5\x2f\xfd\x00"), false)
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte, pack bool) {
		if pack { // as an agent does
			text = packer.EncodeAll(text, nil)
		}
		inv, err := DecodeInventory(text)
		if err != nil {
			if !errors.Is(err, ErrMalformed) || len(err.Error()) > longestReason+100 {
				t.Fatalf("refused as %.500v", err)
			}
			return
		}
		again, err := EncodeInventory(inv)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		back, err := DecodeInventory(again)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		// An empty map and none are one and the same on the wire.
		if diff := cmp.Diff(inv, back, cmpopts.EquateEmpty(), sameTime()); diff != "" {
			t.Error(diff)
		}
	})
}

// FuzzDecode: a small message is malformed, or what its type says: the same when it is written and read again.
// That holds of what console reads, and of what an agent reads of console.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"capability":1,"sentAt":"2026-03-01T12:00:00Z","clusterSlug":"alpha","epoch":1,"lastSync":{"number":1,"finishedAt":"2026-03-01T12:00:00Z","error":"\u0000"}}`,
		`{"capability":1,"sentAt":"2026-03-01T12:00:00Z","version":"0.9.0","role":"leader","template":1,"syncIntervalSeconds":-9223372036854775808}`,
		`{"want":"epoch","clusterSlug":"alpha"}`, `{"epoch":7,"code":"refused","message":"\ud800"}`, `{"name":"renew_credentials"}`, `{"ok":true,"code":"busy"}`,
		`{"capability":1e300}`, `{"sentAt":"9999-99-99"}`, `[]`, `null`, ``, `{`, strings.Repeat(`{"lastSync":`, 100), `{"epoch":` + strings.Repeat("9", 5000) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, fresh := range []func() any{
			func() any { return &Heartbeat{} }, func() any { return &Status{} }, func() any { return &ConfigRequest{} },
			func() any { return &ConfigReply{} }, func() any { return &Command{} }, func() any { return &CommandReply{} },
		} {
			message := fresh()
			err := Decode(text, message)
			if v, ok := message.(interface{ Validate() error }); ok && err == nil {
				err = v.Validate()
			}
			if err != nil {
				if !errors.Is(err, ErrMalformed) || len(err.Error()) > longestReason+100 {
					t.Errorf("%T: refused as %.500v", message, err)
				}
				continue
			}
			again, err := json.Marshal(message)
			if err != nil {
				t.Fatalf("%T: what was read cannot be written: %v", message, err)
			}
			back := fresh()
			if err := Decode(again, back); err != nil {
				t.Fatalf("%T: what was written cannot be read: %v", message, err)
			}
			if diff := cmp.Diff(message, back, sameTime()); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func sameTime() cmp.Option { return cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }) }
