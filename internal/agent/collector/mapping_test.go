package collector

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"prxm.uz/proxima/internal/wire"
)

// objects reads the documents of a case.
func objects[T any](t *testing.T, name string) []T {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		var object T
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

// inv-05: an event of the newer recorder has only eventTime.
func TestEventWithoutTimestamps(t *testing.T) {
	list := objects[corev1.EventList](t, "inv-05.json")[0]
	kept := top[wire.Event]{limit: MaxEvents, before: eventBefore}
	for i := range list.Items {
		e := &list.Items[i]
		kept.offer(eventProbe(e, lastSeen(e)), func() wire.Event { return newScrubber().event(e) })
	}
	got := kept.sorted()
	if len(got) != 2 || got[0].Name != "ev-new" || got[1].Name != "ev-old" {
		t.Fatalf("order: %+v", got)
	}
	if want := time.Date(2026, 1, 10, 11, 59, 0, 123456000, time.UTC); !got[0].LastSeen.Equal(want) || got[0].Count != 1 || got[0].Source != "default-scheduler" {
		t.Errorf("ev-new: %+v", got[0])
	}
	for _, e := range got {
		if e.FirstSeen.Year() < 2026 || e.LastSeen.Year() < 2026 {
			t.Errorf("%s has a time of year 1: %+v", e.Name, e)
		}
	}
}

// inv-09: a mirror pod is owned by its node and belongs to no workload.
func TestMirrorPod(t *testing.T) {
	p := newScrubber().pod(&objects[corev1.Pod](t, "inv-09.yaml")[0])
	if !p.Static || p.OwnerKind != "Node" || p.OwnerName != "node-a" || p.WorkloadKind != "" || p.WorkloadName != "" {
		t.Errorf("%+v", p)
	}
}

// inv-11: sidecar, init and ephemeral containers are told apart, and requests are the scheduler's.
func TestSidecarInitAndEphemeral(t *testing.T) {
	pod := objects[corev1.Pod](t, "inv-11.yaml")[0]
	p := newScrubber().pod(&pod)
	if diff := cmp.Diff(wire.Resources{CPUMillis: new(int64(2100)), MemoryBytes: new(int64(384 << 20))}, p.Scheduled); diff != "" {
		t.Errorf("scheduled: %s", diff)
	}
	if diff := cmp.Diff(wire.Resources{CPUMillis: new(int64(300)), MemoryBytes: new(int64(384 << 20))}, p.Running); diff != "" {
		t.Errorf("running: %s", diff)
	}
	type brief struct {
		Role     wire.ContainerRole
		Restarts int64
		State    string
	}
	got := map[string]brief{}
	for _, c := range p.Containers {
		got[c.Name] = brief{c.Role, c.Restarts, c.State}
	}
	want := map[string]brief{
		"proxy": {wire.ContainerSidecar, 3, "running"}, "migrate": {wire.ContainerInit, 2, "terminated"},
		"app": {wire.ContainerApp, 1, "running"}, "debugger": {wire.ContainerEphemeral, 0, "terminated"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if p.LongRunning != 2 || p.ReadyContainers != 2 || p.Restarts != 4 {
		t.Errorf("long-running %d, ready %d, restarts %d", p.LongRunning, p.ReadyContainers, p.Restarts)
	}
	if probe := podProbe(&pod); probe.Restarts != p.Restarts || probe.Phase != p.Phase {
		t.Errorf("the probe differs from the pod: %+v", probe)
	}
}

// inv-13: a condition has three values, and may be absent.
func TestNodeReadiness(t *testing.T) {
	nodes := objects[corev1.Node](t, "inv-13.yaml")
	lost, bare, cordoned := newScrubber().node(&nodes[0]), newScrubber().node(&nodes[1]), newScrubber().node(&nodes[2])
	if lost.Ready != wire.NodeReadyUnknown || lost.ReadyReason != "NodeStatusUnknown" || lost.Conditions[1].Status != "Unknown" || len(lost.Taints) != 1 {
		t.Errorf("lost: %+v", lost)
	}
	if bare.Ready != wire.NodeReadyUnknown {
		t.Errorf("bare: %+v", bare)
	}
	if cordoned.Ready != wire.NodeReadyTrue || !cordoned.Unschedulable || cordoned.InternalIP != "" || cordoned.Hostname != "node-cordoned" {
		t.Errorf("cordoned: %+v", cordoned)
	}
}

// qty-01: the suffix m is a thousandth for memory too.
func TestQuantitiesInThousandths(t *testing.T) {
	n := newScrubber().node(&objects[corev1.Node](t, "qty-01.yaml")[0])
	extended := map[string]int64{"nvidia.com/gpu": 1, "hugepages-2Mi": 0}
	want := wire.Resources{CPUMillis: new(int64(3920)), MemoryBytes: new(int64(8127364813)), EphemeralBytes: new(int64(42384372068)), Pods: new(int64(110)), Extended: extended}
	if diff := cmp.Diff(want, n.Allocatable); diff != "" {
		t.Errorf("allocatable: %s", diff)
	}
	want = wire.Resources{CPUMillis: new(int64(4000)), MemoryBytes: new(int64(16655572992)), EphemeralBytes: new(int64(47093746742)), Pods: new(int64(110)), Extended: extended}
	if diff := cmp.Diff(want, n.Capacity); diff != "" {
		t.Errorf("capacity: %s", diff)
	}
}

func TestScrubbing(t *testing.T) {
	got := newScrubber().annotations(map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": "{}", "big": strings.Repeat("x", 513), "keep": "me", "empty-token": "",
		"app/db-password": "hush", "vault/secret": "hush", "note": "see https://bob:hush@git.example/x", "conf": "user=a password=hush",
		"pem": "-----BEGIN RSA PRIVATE KEY-----hush", "h": "Bearer hushhushhush", "checksum/config": "0a1b", "nul": "a\x00b",
	})
	want := map[string]string{
		"keep": "me", "empty-token": "", "app/db-password": redacted, "vault/secret": redacted, "note": "see https://" + redacted + "@git.example/x",
		"conf": redacted, "pem": redacted, "h": redacted, "checksum/config": "0a1b", "nul": "ab",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	many := map[string]string{}
	for i := range 100 {
		many[strings.Repeat("a", i+1)] = "v"
	}
	if n := len(newScrubber().annotations(many)); n != maxAnnotations {
		t.Errorf("%d annotations kept", n)
	}
}

// B-61: beyond the limit pods that do not run are kept first, then those with the most restarts.
func TestPodLimitOrder(t *testing.T) {
	kept := top[wire.Pod]{limit: 3, before: podBefore}
	add := func(name, phase string, restarts int64) {
		p := wire.Pod{Phase: phase, Restarts: restarts}
		p.Name = name
		kept.offer(p, func() wire.Pod { return p })
	}
	add("calm", "Running", 0)
	add("busy", "Running", 9)
	add("calm2", "Running", 0)
	add("pending", "Pending", 0)
	add("failed", "Failed", 2)
	add("calm3", "Running", 1)
	var names []string
	for _, p := range kept.sorted() {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"failed", "pending", "busy"}, names); diff != "" || kept.total != 6 {
		t.Errorf("total %d: %s", kept.total, diff)
	}
}
