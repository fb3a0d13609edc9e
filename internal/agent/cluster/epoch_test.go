package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"prxm.uz/proxima/internal/wire"
	"prxm.uz/proxima/test/harness"
)

// An agent that lost the lead and takes it again asks console for a new epoch and counts its syncs anew.
func TestEachTimeOfLeadingHasItsEpoch(t *testing.T) {
	plane := harness.New(t).LightControlPlane()
	c := startConsole(t)
	cfg := configure(t, c, plane.Kubeconfig(), "agent-0")
	cfg.PodNamespace = "default"
	start(t, cfg)
	newest := func() wire.Inventory {
		list := c.messages["inventory.agtagent0"]
		if len(list) == 0 {
			return wire.Inventory{}
		}
		return *must(wire.DecodeInventory(list[len(list)-1]))
	}
	c.await("inventories of the first epoch", time.Minute, func() bool { inv := newest(); return inv.Epoch == 1 && inv.Sync >= 2 })

	// Another holder for longer than a leader may go without renewing.
	leases := plane.Client().CoordinationV1().Leases("default")
	lease := must(leases.Get(t.Context(), leaseName, metav1.GetOptions{}))
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("thief"), new(int32(renewDeadline/time.Second+1))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	must(leases.Update(t.Context(), lease, metav1.UpdateOptions{}))
	c.await("it to stand by", 20*time.Second, func() bool {
		s, _ := last[wire.Status](c, "status.agtagent0")
		return s.Role == wire.RoleStandby
	})
	var before int
	c.locked(func() { before = len(c.messages["inventory.agtagent0"]) })
	c.await("an inventory of the second time", 40*time.Second, func() bool { return len(c.messages["inventory.agtagent0"]) > before })
	c.locked(func() {
		if first := must(wire.DecodeInventory(c.messages["inventory.agtagent0"][before])); first.Epoch != 2 || first.Sync != 1 {
			t.Errorf("epoch %d, sync %d", first.Epoch, first.Sync)
		}
	})
}
