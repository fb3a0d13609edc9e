package wire

import (
	"errors"
	"reflect"
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
		`[]`, `null`, ``, head, head + `,"pods":` + strings.Repeat("[", 200), head + `,"epoch":1e99}`, head + `,"collectedAt":"0000-13-01"}`,
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
			if !errors.Is(err, ErrMalformed) || len(err.Error()) > 4<<10 {
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
		if diff := cmp.Diff(inv, back, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
			t.Error(diff)
		}
	})
}

// FuzzDecode: a small message is what its type says, or malformed.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"capability":1,"sentAt":"2026-03-01T12:00:00Z","clusterSlug":"alpha","epoch":1,"lastSync":{"number":1,"finishedAt":"2026-03-01T12:00:00Z","error":"\u0000"}}`,
		`{"capability":1,"sentAt":"2026-03-01T12:00:00Z","version":"0.9.0","role":"leader","template":1,"syncIntervalSeconds":-9223372036854775808}`,
		`{"want":"epoch","clusterSlug":"alpha"}`, `{"capability":1e300}`, `{"sentAt":"9999-99-99"}`, `[]`, `null`, ``, `{`, strings.Repeat(`{"lastSync":`, 100),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, into := range []any{&Heartbeat{}, &Status{}, &ConfigRequest{}} {
			err := Decode(text, into)
			if v, ok := into.(interface{ Validate() error }); ok && err == nil {
				err = v.Validate()
			}
			if err != nil && !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: refused as %v", reflect.TypeOf(into), err)
			}
		}
	})
}
