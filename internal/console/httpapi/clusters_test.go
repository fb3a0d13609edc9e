package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/inventory"
)

// What nobody counted is absent, not zero; and while an inventory is stored in parts the answer says so.
func TestAnInventoryThatIsStoredInPart(t *testing.T) {
	c := newConsole(t)
	c.fixtures()
	reader := c.token(c.admin.UserID, time.Hour)
	answered := func(change func(*inventory.Cluster)) map[string]any {
		t.Helper()
		must(t, c.store.Inventory().InTx(t.Context(), func(tx inventory.Tx) error {
			stored, err := tx.Cluster(t.Context(), "cl1")
			must(t, err)
			change(&stored)
			return tx.UpdateCluster(t.Context(), stored)
		}))
		r, one := c.call(reader, http.MethodGet, "/api/v1/clusters/cl1", "")
		if r.StatusCode != http.StatusOK {
			t.Fatalf("%d: %v", r.StatusCode, one)
		}
		_, list := c.call(reader, http.MethodGet, "/api/v1/clusters", "")
		listed := as[map[string]any](as[[]any](list["items"])[0])
		for _, name := range []string{"counts", "partlyStored", "lastSyncAt"} {
			if _, in := one[name]; in != (listed[name] != nil) {
				t.Errorf("the list and the cluster differ in %s: %v, %v", name, listed[name], one[name])
			}
		}
		return one
	}
	synced := c.clock.Now()
	first := answered(func(x *inventory.Cluster) {
		x.FirstSyncAt, x.LastSyncAt, x.PartlyApplied = time.Time{}, time.Time{}, true
	})
	if first["counts"] != nil || first["partlyStored"] != true {
		t.Errorf("a first inventory in part: %v", first)
	}
	later := answered(func(x *inventory.Cluster) {
		x.FirstSyncAt, x.LastSyncAt, x.Counts = synced, synced, inventory.Counts{Pods: 7}
	})
	if got := as[map[string]any](later["counts"]); got["pods"] != 7.0 || later["partlyStored"] != true {
		t.Errorf("a later inventory in part: %v", later)
	}
	whole := answered(func(x *inventory.Cluster) { x.PartlyApplied = false })
	if _, in := whole["partlyStored"]; in || whole["counts"] == nil {
		t.Errorf("whole: %v", whole)
	}
}
