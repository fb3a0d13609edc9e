package harness_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"prxm.uz/proxima/test/harness"
)

// Two whole clusters come up side by side, run pods on simulated nodes, and are
// gone afterwards.
func TestControlPlanesSideBySide(t *testing.T) {
	t.Parallel()
	type result struct {
		cluster *harness.ControlPlane
		err     error
	}
	h := harness.New(t)
	ctx := h.Context()
	results := make(chan result)
	for range 2 {
		go func() {
			began := time.Now()
			c, err := harness.StartControlPlane(ctx, harness.ControlPlaneOptions{Log: h})
			if err != nil {
				results <- result{nil, err}
				return
			}
			up := time.Since(began)
			err = runWorkload(ctx, c)
			t.Logf("up in %s, workload runs after %s", up.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
			results <- result{c, err}
		}()
	}
	for range 2 {
		r := <-results
		if r.cluster == nil {
			t.Error(r.err)
			continue
		}
		if r.err != nil {
			t.Error(r.err)
		}
		processes, dir := r.cluster.Processes(), r.cluster.Directory()
		if len(processes) != 5 {
			t.Errorf("%d processes, want 5", len(processes))
		}
		began := time.Now()
		if err := r.cluster.Stop(); err != nil {
			t.Error(err)
		}
		t.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
		for _, p := range processes {
			if err := syscall.Kill(p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("%s (process %d) is still there: %v", p.Name(), p.PID(), err)
			}
		}
		for _, path := range []string{dir, dir + ".lock"} {
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there: %v", path, err)
			}
		}
	}
}

func runWorkload(ctx context.Context, c *harness.ControlPlane) error {
	if err := c.AddNodes(ctx, 20); err != nil {
		return err
	}
	if err := c.AddDeployment(ctx, "shop", "web", 40); err != nil {
		return err
	}
	if err := c.AwaitPodsRunning(ctx, 40); err != nil {
		return err
	}
	out, err := c.Shell(ctx, "kubectl version -o json && kubectl -n shop rollout status deployment/web && kubectl -n shop logs deployment/web")
	if err != nil {
		return err
	}
	for _, want := range []string{`"gitVersion": "v1.36.3"`, "successfully rolled out", "hello from a simulated pod"} {
		if !strings.Contains(out, want) {
			return fmt.Errorf("kubectl printed %q, without %q", out, want)
		}
	}
	return nil
}

// The light cluster enforces permissions and survives what is done to its API
// server.
func TestLightControlPlane(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	ctx := h.Context()
	c := h.LightControlPlane()
	if err := c.AddNodes(ctx, 3); err != nil {
		t.Fatal(err)
	}

	t.Run("a service account is nobody else", func(t *testing.T) {
		_, err := c.Kubectl(ctx, "", "create", "serviceaccount", "reader")
		if err != nil {
			t.Fatal(err)
		}
		path, err := c.ServiceAccountKubeconfig(ctx, "default", "reader")
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("nodes without a role: %v, want forbidden", err)
		}
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},
		}
		if _, err := c.Client().RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Kubectl(ctx, "", "create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=default:reader"); err != nil {
			t.Fatal(err)
		}
		err = harness.Await(ctx, "the role to be known", func(ctx context.Context) error {
			nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err == nil && len(nodes.Items) != 3 {
				t.Errorf("%d nodes, want 3", len(nodes.Items))
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		token, err := c.ServiceAccountToken(ctx, "default", "reader")
		if err != nil {
			t.Fatal(err)
		}
		who, err := c.Kubectl(ctx, "", "--token="+token, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
		if err != nil || who != "system:serviceaccount:default:reader" {
			t.Errorf("kubectl --token is %q (%v), want the service account", who, err)
		}
	})

	t.Run("pods are what one writes", func(t *testing.T) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "still"},
			Spec:       corev1.PodSpec{NodeName: "fake-0001", Containers: []corev1.Container{{Name: "main", Image: "registry.example/still:1"}}},
		}
		pod, err := c.Client().CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Status.Phase = corev1.PodRunning
		if _, err := c.Client().CoreV1().Pods("default").UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := c.AwaitPodsRunning(ctx, 1); err != nil {
			t.Error(err)
		}
	})

	t.Run("a paused API server answers nothing", func(t *testing.T) {
		if err := c.Pause(); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		if _, err := c.Client().CoreV1().Nodes().List(short, metav1.ListOptions{}); err == nil {
			t.Error("a paused API server answered")
		}
		if err := c.Resume(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil {
			t.Errorf("after Resume: %v", err)
		}
	})

	t.Run("a stopped API server comes back with what it knew", func(t *testing.T) {
		server := c.Server()
		if err := c.StopAPIServer(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
			t.Error("a stopped API server answered")
		}
		if err := c.StartAPIServer(ctx); err != nil {
			t.Fatal(err)
		}
		nodes, err := c.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 3 || c.Server() != server {
			t.Errorf("after StartAPIServer: %d nodes at %s (%v), want 3 at %s", len(nodes.Items), c.Server(), err, server)
		}
	})
}

// An API server that cannot start says why, and nothing stays.
func TestControlPlaneThatCannotStart(t *testing.T) {
	t.Parallel()
	_, err := harness.StartControlPlane(harness.New(t).Context(), harness.ControlPlaneOptions{
		Light: true, APIServerArgs: []string{"--no-such-flag"},
	})
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") || !strings.Contains(err.Error(), "kube-apiserver ended by itself") {
		t.Errorf("the error is %v; want the early exit and the log's end", err)
	}
}
