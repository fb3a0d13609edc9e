package collector

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"prxm.uz/proxima/internal/wire"
)

// A whole cluster becomes an inventory: what each kind says (B-10 to B-17), how many of what a namespace holds
// (B-12), nothing of a namespace that is left out (B-62), and no annotation of any kind unscrubbed (B-110).
func TestAWholeCluster(t *testing.T) {
	answers := map[string][]string{}
	for path, list := range objects[map[string]any](t, "whole.yaml")[0] {
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		answers[path] = []string{"200 " + string(text)}
	}
	c, _ := against(t, answers)
	c.opts.Exclude = []string{"hidden", "other"}
	got, err := c.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	meta := func(uid, namespace, name string) wire.Meta {
		return wire.Meta{UID: uid, Namespace: namespace, Name: name, Annotations: map[string]string{"app/token": redacted}}
	}
	labelled := func(m wire.Meta, key, value string) wire.Meta {
		m.Labels = map[string]string{key: value}
		return m
	}
	hour := func(h int) time.Time { return time.Date(2026, 3, 1, h, 0, 0, 0, time.UTC) }
	want := &wire.Inventory{
		Capability: wire.CapabilityVersion, ClusterName: "C", ClusterSlug: "c", ClusterUID: "u-1",
		Cluster: wire.ClusterInfo{Version: "v1.36.3", Platform: "linux/amd64", Provider: "aws"},
		Kinds: []wire.KindReport{
			{Kind: wire.KindNodes, Kept: 1, Total: 1},
			{Kind: wire.KindNamespaces, Kept: 1, Total: 1},
			{Kind: wire.KindDeployments, Kept: 1, Total: 1},
			{Kind: wire.KindStatefulSets, Kept: 1, Total: 1},
			{Kind: wire.KindDaemonSets, Kept: 1, Total: 1},
			{Kind: wire.KindServices, Kept: 1, Total: 1},
			{Kind: wire.KindPods, Kept: 3, Total: 3},
			{Kind: wire.KindEvents, Kept: 1, Total: 1},
		},
		Nodes: []wire.Node{{
			Meta: labelled(meta("n-1", "", "node-a"), "node-role.kubernetes.io/worker", ""), Ready: wire.NodeReadyUnknown, Roles: []string{"worker"},
			InternalIP: "10.0.0.1", ExternalIP: "203.0.113.9", Hostname: "node-a.example", ProviderID: "aws:///eu-west-1a/i-0abc",
		}},
		Namespaces: []wire.Namespace{{Meta: labelled(meta("s-1", "", "shop"), "team", "a"), Phase: "Active", Pods: 3, Workloads: 3, Services: 1}},
		Workloads: []wire.Workload{
			{Meta: meta("d-1", "shop", "web"), Kind: "Deployment", Desired: 5, Ready: 4, Available: 3, Updated: 2, Strategy: "RollingUpdate", Paused: true},
			{Meta: meta("t-1", "shop", "db"), Kind: "StatefulSet", Desired: 1, Ready: 7, Available: 6, Updated: 8, Strategy: "OnDelete"},
			{Meta: meta("e-1", "shop", "logs"), Kind: "DaemonSet", Desired: 14, Ready: 13, Available: 12, Updated: 11, Strategy: "RollingUpdate"},
		},
		Services: []wire.Service{{
			Meta: meta("v-1", "shop", "web"), Type: "LoadBalancer", ClusterIPs: []string{"10.96.0.7", "fd00::7"}, Selector: map[string]string{"app": "web"},
			Ports:        []wire.ServicePort{{Name: "http", Protocol: "TCP", Port: 80, TargetPort: "8080", NodePort: 30080}},
			LoadBalancer: []string{"203.0.113.10", "lb.example"},
		}},
		Pods: []wire.Pod{
			{
				Meta: labelled(meta("p-1", "shop", "web-6d4f-x"), "pod-template-hash", "6d4f"), Phase: "Running", NodeName: "node-a", IP: "10.1.0.1", QOSClass: "BestEffort",
				OwnerKind: "ReplicaSet", OwnerName: "web-6d4f", WorkloadKind: "Deployment", WorkloadName: "web", LongRunning: 1,
				Containers: []wire.Container{{Name: "app", Image: "web:1", Role: wire.ContainerApp}},
			},
			{Meta: wire.Meta{UID: "p-2", Namespace: "shop", Name: "db-0"}, OwnerKind: "StatefulSet", OwnerName: "db", WorkloadKind: "StatefulSet", WorkloadName: "db"},
			{Meta: wire.Meta{UID: "p-3", Namespace: "shop", Name: "own-1"}, OwnerKind: "ReplicaSet", OwnerName: "own"},
		},
		Events: []wire.Event{{
			Meta: meta("g-1", "shop", "ev"), Type: "Warning", Reason: "BackOff", Message: "pull of https://" + redacted + "@registry.example/x failed",
			InvolvedKind: "Pod", InvolvedName: "web-6d4f-x", Source: "kubelet", Count: 3, FirstSeen: hour(11), LastSeen: hour(12),
		}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(wire.Inventory{}, "CollectedAt"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A list that a limit cut says how many there were: pods beyond the limit, events beyond the most recent
// thousand (B-69). The namespace counts them all.
func TestCutListsSayOfHowMany(t *testing.T) {
	items := func(n int, item func(i int) string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = item(i)
		}
		return strings.Join(list, ",")
	}
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c, _ := against(t, map[string][]string{
		"/api/v1/namespaces": {`200 {"kind":"NamespaceList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`},
		"/api/v1/pods": {`200 {"kind":"PodList","apiVersion":"v1","items":[` + items(5, func(i int) string {
			return fmt.Sprintf(`{"metadata":{"name":"p%d","namespace":"a"}}`, i)
		}) + `]}`},
		"/api/v1/events": {`200 {"kind":"EventList","apiVersion":"v1","items":[` + items(1003, func(i int) string {
			return fmt.Sprintf(`{"metadata":{"name":"e%d","namespace":"a"},"lastTimestamp":%q}`, i, begun.Add(time.Duration(i)*time.Second).Format(time.RFC3339))
		}) + `]}`},
	})
	c.opts.PodLimit = 2
	inv, err := c.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []wire.KindReport{{Kind: wire.KindPods, Kept: 2, Total: 5}, {Kind: wire.KindEvents, Kept: 1000, Total: 1003}} {
		if got := report(inv, want.Kind); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if len(inv.Pods) != 2 || inv.Namespaces[0].Pods != 5 {
		t.Errorf("%d pods, %d counted", len(inv.Pods), inv.Namespaces[0].Pods)
	}
	if n := len(inv.Events); n != 1000 || inv.Events[0].Name != "e1002" || inv.Events[n-1].Name != "e3" {
		t.Errorf("%d events, from %s to %s", n, inv.Events[0].Name, inv.Events[n-1].Name)
	}
}

// Events that cannot be read fail no sync, not even the first.
func TestEventsFailNoSync(t *testing.T) {
	c, _ := against(t, map[string][]string{"/api/v1/events": {broken}})
	inv, err := c.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := report(inv, wire.KindEvents); got.Unread != wire.UnreadUnavailable {
		t.Errorf("%+v", got)
	}
}

// No list is asked for whole: one answer is a page, so that a sync's memory is that of its inventory.
func TestListsAreReadInPages(t *testing.T) {
	const next = `200 {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"100"},"items":[{"metadata":{"name":"p3","namespace":"a"}}]}`
	c, s := against(t, map[string][]string{"/api/v1/pods": {firstPage, next}})
	inv, err := c.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(inv.Pods); n != 3 {
		t.Errorf("%d pods", n)
	}
	if diff := cmp.Diff([]string{"limit=200", "continue=T1&limit=200"}, s.queries["/api/v1/pods"]); diff != "" {
		t.Error(diff)
	}
	for path, queries := range s.queries {
		if path != "/version" && path != "/api/v1/namespaces/kube-system" && !strings.HasSuffix(queries[0], "limit=200") {
			t.Errorf("%s?%s", path, queries[0])
		}
	}
}
