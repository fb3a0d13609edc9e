package wire

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What is written object by object is what encoding/json would write at once.
func TestInventoryRoundTrip(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	meta := Meta{Name: "a", Namespace: "b", UID: "u", CreatedAt: now, Labels: map[string]string{"k": "<v>"}}
	for name, inv := range map[string]*Inventory{
		"empty": {Epoch: 1, Sync: 1, ClusterUID: "u", CollectedAt: now},
		"full": {
			Capability: 1, Epoch: 2, Sync: 3, ClusterName: "C", ClusterSlug: "c", ClusterUID: "u", CollectedAt: now,
			Kinds: []KindReport{{Kind: KindPods, Kept: 2, Total: 3}},
			Nodes: []Node{{Meta: meta, Ready: NodeReadyTrue}}, Namespaces: []Namespace{{Meta: meta, Pods: 2}},
			Workloads: []Workload{{Meta: meta, Kind: "Deployment"}}, Pods: []Pod{{Meta: meta, Phase: "Running"}, {Meta: meta}},
			Services: []Service{{Meta: meta, Type: "ClusterIP"}}, Events: []Event{{Meta: meta, Count: 1, LastSeen: now}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := EncodeInventory(inv)
			if err != nil {
				t.Fatal(err)
			}
			got, err := DecodeInventory(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(inv, got); diff != "" {
				t.Error(diff)
			}
			var text bytes.Buffer
			if err := writeInventory(&text, inv); err != nil {
				t.Fatal(err)
			}
			var pieces, whole map[string]any
			at, err := json.Marshal(inv)
			if err != nil {
				t.Fatal(err)
			}
			if json.Unmarshal(text.Bytes(), &pieces) != nil || json.Unmarshal(at, &whole) != nil || !cmp.Equal(pieces, whole) {
				t.Error(cmp.Diff(whole, pieces))
			}
		})
	}
}
