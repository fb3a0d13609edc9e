package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"prxm.uz/proxima/internal/wire"
	"prxm.uz/proxima/test/harness"
)

// maxPeak is the goal. Near 28 MiB are pages of the program file, which the kernel may drop, and near 27 MiB
// are its own.
const maxPeak = 60 << 20

// TestMemoryOfALargeCluster starts the real program against 5,000 pods and 500 nodes.
func TestMemoryOfALargeCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("creates 5,500 objects")
	}
	plane := harness.New(t).LightControlPlane()
	c := startConsole(t)
	cfg := plane.RESTConfig()
	cfg.QPS, cfg.Burst = 5000, 5000
	fill(t, must(kubernetes.NewForConfig(cfg)), 500, 5000)

	binary := filepath.Join(t.TempDir(), "agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "prxm.uz/proxima/cmd/proxima-cluster-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as the product is built
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Env = append(os.Environ(), "PROXIMA_CLUSTER_NAME=Prod", "PROXIMA_BACKEND_URL="+c.http.URL, "PROXIMA_INSTALL_TOKEN="+token, "PROXIMA_AGENT_DATA_DIR="+t.TempDir(),
		"PROXIMA_K8S_SYNC_INTERVAL=2s", "KUBECONFIG="+plane.Kubeconfig(), "PROXIMA_METRICS_ADDR=127.0.0.1:0", "POD_NAME=")
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.String())
		}
	})
	c.await("five inventories", 2*time.Minute, func() bool { return len(c.messages["inventory.agtprod"]) >= 5 })
	memory := residentMemory(t, cmd.Process.Pid)
	peak := memory["VmHWM"]
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit after SIGTERM: %v", err)
	}
	inv, err := wire.DecodeInventory(c.messages["inventory.agtprod"][0])
	if err != nil || len(inv.Pods) != 5000 || len(inv.Nodes) != 500 {
		t.Fatalf("inventory: %v", err)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("5,000 pods, 500 nodes: peak RSS %.1f MiB (after the last sync %.1f MiB of the program file, %.1f MiB its own), %d bytes a message, CPU %v for %d syncs",
		float64(peak)/(1<<20), float64(memory["RssFile"])/(1<<20), float64(memory["RssAnon"])/(1<<20), len(c.messages["inventory.agtprod"][0]), cpu, len(c.messages["inventory.agtprod"]))
	if peak > maxPeak {
		t.Errorf("peak RSS %d MiB, %d MiB are allowed", peak>>20, maxPeak>>20)
	}
}

// residentMemory reads the sizes of a running process by the kernel's names, in bytes: VmHWM is the peak.
func residentMemory(t *testing.T, pid int) map[string]int64 {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(line, ":")
		amount, found := strings.CutSuffix(strings.TrimSpace(value), " kB")
		if !found {
			continue
		}
		if sizes[name], err = strconv.ParseInt(amount, 10, 64); err != nil {
			t.Fatal(err)
		}
		sizes[name] <<= 10
	}
	return sizes
}

// fill makes nodes and pods as a busy cluster has them.
func fill(t *testing.T, client kubernetes.Interface, nodes, pods int) {
	t.Helper()
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(32)
	if _, err := client.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil && !strings.Contains(err.Error(), "exists") {
		t.Fatal(err)
	}
	for i := range nodes {
		g.Go(func() error { return makeNode(ctx, client, i) })
	}
	for i := range pods {
		g.Go(func() error { return makePod(ctx, client, i, nodes) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

func makeNode(ctx context.Context, client kubernetes.Interface, i int) error {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", i), Labels: map[string]string{"kubernetes.io/os": "linux", "topology.kubernetes.io/zone": "a", "node-role.kubernetes.io/worker": ""}},
		Spec:       corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///eu-west-1a/i-%04d", i)},
	}
	made, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Status.Capacity, made.Status.Allocatable = amounts, amounts
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		made.Status.Conditions = append(made.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"})
	}
	_, err = client.CoreV1().Nodes().UpdateStatus(ctx, made, metav1.UpdateOptions{})
	return err
}

func makePod(ctx context.Context, client kubernetes.Interface, i, nodes int) error {
	requests := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
	set := fmt.Sprintf("app-%03d-7c9f8d6b5", i/20)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%05d", set, i), Namespace: "default",
			Labels:          map[string]string{"app.kubernetes.io/name": fmt.Sprintf("app-%03d", i/20), "pod-template-hash": "7c9f8d6b5", "team": "shop"},
			Annotations:     map[string]string{"checksum/config": strings.Repeat("a1b2", 16), "prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, UID: "00000000-0000-4000-8000-000000000001", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%04d", i%nodes), AutomountServiceAccountToken: new(false), Containers: []corev1.Container{
			{Name: "app", Image: fmt.Sprintf("registry.example/shop/app-%03d:1.2.3", i/20), Resources: requests, Env: []corev1.EnvVar{{Name: "A", Value: strings.Repeat("x", 200)}}},
			{Name: "proxy", Image: "registry.example/mesh/proxy:1.0", Resources: requests},
		}},
	}
	made, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	made.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.%d.%d.1", i/250, i%250), StartTime: &now}
	for _, name := range []string{"app", "proxy"} {
		made.Status.ContainerStatuses = append(made.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, Ready: true, RestartCount: int32(i % 3), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}})
	}
	_, err = client.CoreV1().Pods("default").UpdateStatus(ctx, made, metav1.UpdateOptions{})
	return err
}
