package inventory

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"

	"prxm.uz/proxima/internal/wire"
)

// TestWhatIsStoredAsItWasSentIsNotLookedInto: the objects of an agent of this version are known by their text, each
// in its own section; one that is written otherwise has the same hash once it was read.
func TestWhatIsStoredAsItWasSentIsNotLookedInto(t *testing.T) {
	replicas := int64(3)
	sent := &wire.Inventory{
		Epoch: 1, Sync: 1, ClusterUID: "u",
		Nodes:      []wire.Node{{Meta: wire.Meta{Name: "n", Labels: map[string]string{"b": "<&>", "a": "\u2028"}}, Ready: wire.NodeReadyTrue, Allocatable: wire.Resources{CPUMillis: &replicas}}},
		Namespaces: []wire.Namespace{{Meta: wire.Meta{Name: "shop"}, Phase: "Active"}},
		Workloads:  []wire.Workload{{Meta: wire.Meta{Namespace: "shop", Name: "web"}, Kind: "Deployment", Desired: replicas}},
		Pods:       []wire.Pod{{Meta: wire.Meta{Namespace: "shop", Name: "web-1"}}, {Meta: wire.Meta{Namespace: "shop", Name: "web-2"}}},
		Services:   []wire.Service{{Meta: wire.Meta{Namespace: "shop", Name: "web"}, Type: "ClusterIP"}},
		Events:     []wire.Event{{Meta: wire.Meta{Namespace: "shop", Name: "web.1"}, Count: 7}},
	}
	encode := func() []byte {
		data, err := wire.EncodeInventory(sent)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	take := func(data []byte, stored map[Key]Stored) content {
		got, err := read(data, stored, false)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	stored := map[Key]Stored{}
	for _, o := range take(encode(), nil).rows {
		stored[o.Key] = Stored{Hash: o.Hash}
	}
	if got := take(encode(), stored); len(got.rows) != 0 || len(got.same) != 7 {
		t.Errorf("%d objects are known, of %d rows are made", len(got.same), len(got.rows))
	}
	sent.Pods[1].Restarts++
	if got := take(encode(), stored); len(got.rows) != 1 || got.rows[0].Name != "web-2" || len(got.same) != 6 {
		t.Errorf("%d objects are known, rows: %+v", len(got.same), got.rows)
	}
	sent.Pods[1].Restarts--

	plain, err := zstd.NewReader(bytes.NewReader(encode()))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := plain.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	pack, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	spaced := pack.EncodeAll(bytes.ReplaceAll(text.Bytes(), []byte(`"web-2"`), []byte(` "web-2"`)), nil)
	if got := take(spaced, stored); len(got.rows) != 1 || got.rows[0].Hash != stored[got.rows[0].Key].Hash {
		t.Errorf("written otherwise: %+v", got.rows)
	}
	for k, s := range stored { // a pod's text is no service
		delete(stored, k)
		if k.Section == SectionPods {
			k.Section = SectionServices
			stored[k] = s
		}
	}
	if got := take(encode(), stored); len(got.same) != 0 {
		t.Errorf("known in another section: %+v", got.same)
	}
}
