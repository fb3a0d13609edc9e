package inventory_test

import (
	"fmt"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/wire"
	"prxm.uz/proxima/test/storetest"
)

// city is a cluster of 500 nodes and 5,000 pods as they are: with labels, containers and conditions.
func city() *wire.Inventory {
	inv := house()
	made := storetest.Noon().Add(-24 * time.Hour)
	amounts := func(cpu, memory int64) wire.Resources { return wire.Resources{CPUMillis: &cpu, MemoryBytes: &memory} }
	for i := range 500 {
		name := fmt.Sprintf("ip-10-0-%d-%d.example.internal", i/250, i%250)
		node := wire.Node{
			Meta:  wire.Meta{Name: name, UID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), CreatedAt: made, Labels: map[string]string{"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": fmt.Sprint("zone-", i%3), "node.kubernetes.io/instance-type": "m6i.2xlarge"}},
			Ready: wire.NodeReadyTrue, InternalIP: fmt.Sprintf("10.0.%d.%d", i/250, i%250), KubeletVersion: "v1.36.3", OSImage: "Linux", Architecture: "amd64", Runtime: "containerd://1.7.22",
			Capacity: amounts(8000, 32<<30), Allocatable: amounts(7910, 31<<30),
		}
		for _, kind := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
			node.Conditions = append(node.Conditions, wire.Condition{Type: kind, Status: "False", Reason: "KubeletHas", Message: "kubelet has sufficient of it", Since: made})
		}
		inv.Nodes = append(inv.Nodes, node)
	}
	for i := range 5000 {
		workload := fmt.Sprintf("service-%03d", i/10)
		pod := wire.Pod{
			Meta:  wire.Meta{Namespace: fmt.Sprintf("team-%02d", i/10%40), Name: fmt.Sprintf("%s-7c9d8b6f5-%05d", workload, i), UID: fmt.Sprintf("00000000-0000-4000-9000-%012d", i), CreatedAt: made, Labels: map[string]string{"app.kubernetes.io/name": workload, "pod-template-hash": "7c9d8b6f5"}},
			Phase: "Running", NodeName: inv.Nodes[i%502].Name, IP: fmt.Sprintf("10.1.%d.%d", i/250, i%250), QOSClass: "Burstable", OwnerKind: "ReplicaSet", OwnerName: workload + "-7c9d8b6f5",
			WorkloadKind: "Deployment", WorkloadName: workload, ReadyContainers: 2, LongRunning: 2, Running: amounts(300, 384<<20), Scheduled: amounts(300, 384<<20), StartedAt: made,
		}
		for _, name := range []string{"app", "proxy"} {
			pod.Containers = append(pod.Containers, wire.Container{Name: name, Image: "registry.example/" + workload + "/" + name + ":1.2.3", Role: wire.ContainerApp, Requests: amounts(150, 192<<20), Limits: amounts(300, 384<<20), Ready: true, State: "running"})
		}
		inv.Pods = append(inv.Pods, pod)
	}
	return whole(inv)
}

// receive takes an inventory in and returns the number of rows written.
func (d *desk) receive(agentID string, data []byte) int {
	if err := d.Receive(d.t.Context(), agentID, data, d.clock.Now()); err != nil {
		d.t.Fatal(err)
	}
	rows, dropped := d.count.take()
	if len(rows) != 1 || len(dropped) != 0 {
		d.t.Fatalf("rows %v, dropped %q", rows, dropped)
	}
	return rows[0]
}

func encode(b *testing.B, inv *wire.Inventory) []byte {
	b.Helper()
	data, err := wire.EncodeInventory(inv)
	must(b, err)
	return data
}

// BenchmarkFirstSync receives the first inventory of a cluster, from its bytes to the commit.
func BenchmarkFirstSync(b *testing.B) {
	engines.Bench(b, func(b *testing.B, db *storetest.Database) {
		d, inv, rows := newDesk(b, db), city(), 0
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			slug := fmt.Sprint("city-", i)
			d.agent(slug, func(a *fleet.Agent) { a.ClusterSlug = slug })
			inv.ClusterSlug = slug
			data := encode(b, inv)
			b.SetBytes(int64(len(data)))
			b.StartTimer()
			rows += d.receive(slug, data)
		}
		b.ReportMetric(float64(rows)/float64(b.N), "rows/op")
	})
}

// BenchmarkOnePercentChanged receives inventories of a known cluster in which 1 % of the pods and
// nodes changed.
func BenchmarkOnePercentChanged(b *testing.B) {
	engines.Bench(b, func(b *testing.B, db *storetest.Database) {
		d, inv, rows := newDesk(b, db), city(), 0
		d.receive("a", encode(b, inv))
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			inv.Sync++
			for j := range 50 {
				inv.Pods[(i*50+j)%5000].Restarts++
			}
			for j := range 5 {
				inv.Nodes[(i*5+j)%500].Unschedulable = !inv.Nodes[(i*5+j)%500].Unschedulable
			}
			data := encode(b, inv)
			b.SetBytes(int64(len(data)))
			b.StartTimer()
			rows += d.receive("a", data)
		}
		b.ReportMetric(float64(rows)/float64(b.N), "rows/op")
	})
}

// BenchmarkNothingChanged is what most syncs of a quiet cluster cost.
func BenchmarkNothingChanged(b *testing.B) {
	engines.Bench(b, func(b *testing.B, db *storetest.Database) {
		d, inv, rows := newDesk(b, db), city(), 0
		d.receive("a", encode(b, inv))
		for b.Loop() {
			b.StopTimer()
			inv.Sync++
			data := encode(b, inv)
			b.StartTimer()
			rows += d.receive("a", data)
		}
		b.ReportMetric(float64(rows)/float64(b.N), "rows/op")
	})
}
