package load

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"prxm.uz/proxima/internal/wire"
)

// watched is the cluster of one agent: of a shape as many are, with names of its own.
type watched struct {
	slug string
	draw *rand.Rand
	last int // the number of the pod that came last
	inv  wire.Inventory
}

const (
	podsPerWorkload  = 4
	podsPerNode      = 20
	podsPerNamespace = 25
	eventsPerPods    = 4
)

func newWatched(slug string, pods int, draw *rand.Rand) *watched {
	w := &watched{slug: slug, draw: draw}
	w.inv = wire.Inventory{
		Capability: wire.CapabilityVersion, ClusterName: slug, ClusterSlug: slug, ClusterUID: "uid-of-" + slug,
		Cluster: wire.ClusterInfo{Version: "v1.36.3", Platform: "linux/amd64"},
	}
	for i := range max(1, pods/podsPerNode) {
		w.inv.Nodes = append(w.inv.Nodes, w.node(i))
	}
	for i := range max(1, pods/podsPerNamespace) {
		w.inv.Namespaces = append(w.inv.Namespaces, wire.Namespace{Meta: w.meta("", fmt.Sprintf("team-%d", i)), Phase: "Active", Pods: podsPerNamespace})
	}
	for range pods {
		w.inv.Pods = append(w.inv.Pods, w.pod())
	}
	for i := range max(1, pods/podsPerWorkload) {
		w.inv.Workloads = append(w.inv.Workloads, wire.Workload{
			Meta: w.meta(w.namespace(i*podsPerWorkload), fmt.Sprintf("app-%d", i)), Kind: "Deployment",
			Desired: podsPerWorkload, Ready: podsPerWorkload, Available: podsPerWorkload, Updated: podsPerWorkload, Containers: []wire.Container{w.container()},
		})
		w.inv.Services = append(w.inv.Services, wire.Service{
			Meta: w.meta(w.namespace(i*podsPerWorkload), fmt.Sprintf("app-%d", i)), Type: "ClusterIP", ClusterIPs: []string{w.address()},
			Ports: []wire.ServicePort{{Name: "http", Protocol: "TCP", Port: 80, TargetPort: "http"}}, Selector: map[string]string{"app": fmt.Sprintf("app-%d", i)},
		})
	}
	for i := range pods / eventsPerPods {
		w.inv.Events = append(w.inv.Events, wire.Event{
			Meta: w.meta(w.namespace(i*eventsPerPods), fmt.Sprintf("event-%d", i)), Type: "Normal", Reason: "Pulled", Message: "the image is there already",
			InvolvedKind: "Pod", InvolvedName: w.inv.Pods[i*eventsPerPods].Name, Count: 1, FirstSeen: time.Now().UTC(), LastSeen: time.Now().UTC(),
		})
	}
	for kind, n := range map[wire.Kind]int{
		wire.KindNodes: len(w.inv.Nodes), wire.KindNamespaces: len(w.inv.Namespaces), wire.KindDeployments: len(w.inv.Workloads), wire.KindStatefulSets: 0,
		wire.KindDaemonSets: 0, wire.KindPods: len(w.inv.Pods), wire.KindServices: len(w.inv.Services), wire.KindEvents: len(w.inv.Events),
	} {
		w.inv.Kinds = append(w.inv.Kinds, wire.KindReport{Kind: kind, Kept: n, Total: n})
	}
	return w
}

// objects is how many rows console stores of it.
func (w *watched) objects() int {
	return len(w.inv.Nodes) + len(w.inv.Namespaces) + len(w.inv.Workloads) + len(w.inv.Pods) + len(w.inv.Services) + len(w.inv.Events)
}

// change replaces one pod of a hundred, as a rollout does.
func (w *watched) change() {
	for range max(1, len(w.inv.Pods)/100) {
		i := w.draw.IntN(len(w.inv.Pods))
		w.inv.Pods = slices.Delete(w.inv.Pods, i, i+1)
		w.inv.Pods = append(w.inv.Pods, w.pod())
	}
}

func (w *watched) pod() wire.Pod {
	n := w.last
	w.last++
	name := fmt.Sprintf("app-%d-%08x", n/podsPerWorkload, w.draw.Uint32())
	return wire.Pod{
		Meta: w.meta(w.namespace(n), name), Phase: "Running", NodeName: fmt.Sprintf("node-%d", w.draw.IntN(len(w.inv.Nodes))), IP: w.address(), QOSClass: "Burstable",
		OwnerKind: "ReplicaSet", OwnerName: fmt.Sprintf("app-%d-7d4b9", n/podsPerWorkload), WorkloadKind: "Deployment", WorkloadName: fmt.Sprintf("app-%d", n/podsPerWorkload),
		ReadyContainers: 1, LongRunning: 1, Scheduled: amounts(250, 256<<20), Running: amounts(250, 256<<20), StartedAt: time.Now().UTC(), Containers: []wire.Container{w.container()},
	}
}

func (w *watched) node(i int) wire.Node {
	return wire.Node{
		Meta: w.meta("", fmt.Sprintf("node-%d", i)), Ready: wire.NodeReadyTrue, InternalIP: w.address(), Hostname: fmt.Sprintf("node-%d", i), KubeletVersion: "v1.36.3",
		OSImage: "Debian GNU/Linux 12", Architecture: "amd64", Runtime: "containerd://1.6.20", Capacity: amounts(8000, 32<<30), Allocatable: amounts(7800, 30<<30),
		Conditions: []wire.Condition{{Type: "Ready", Status: "True", Reason: "KubeletReady", Since: time.Now().UTC()}, {Type: "MemoryPressure", Status: "False", Since: time.Now().UTC()}},
	}
}

func (w *watched) container() wire.Container {
	return wire.Container{
		Name: "app", Image: fmt.Sprintf("registry.example/team/app:%08x", w.draw.Uint32()), Role: wire.ContainerApp, Requests: amounts(250, 256<<20),
		Limits: amounts(500, 512<<20), Ready: true, State: "running",
	}
}

func (w *watched) meta(namespace, name string) wire.Meta {
	return wire.Meta{
		Namespace: namespace, Name: name, UID: fmt.Sprintf("%016x-%016x", w.draw.Uint64(), w.draw.Uint64()), CreatedAt: time.Now().UTC(),
		Labels: map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": w.slug},
	}
}

func (w *watched) namespace(pod int) string {
	return fmt.Sprintf("team-%d", pod/podsPerNamespace%len(w.inv.Namespaces))
}

func (w *watched) address() string {
	n := w.draw.Uint32()
	return fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)
}

func amounts(millis, bytes int64) wire.Resources {
	return wire.Resources{CPUMillis: &millis, MemoryBytes: &bytes}
}
