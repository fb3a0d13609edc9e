package harness

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tokenSeconds is the lifetime of the service account tokens handed out: longer
// than any test.
const tokenSeconds = 24 * 60 * 60

// AddNodes adds n simulated nodes, named fake-0001 and so on from where the last
// call ended, and returns when all are Ready. Each has 32 CPUs, 256 GiB and room
// for 110 pods.
func (c *ControlPlane) AddNodes(ctx context.Context, n int) error {
	c.mu.Lock()
	first := c.nodes + 1
	c.nodes += n
	last := c.nodes
	c.mu.Unlock()
	err := inParallel(8, n, func(i int) error {
		_, err := c.client.CoreV1().Nodes().Create(ctx, c.fakeNode(first+i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("add nodes: %w", err)
	}
	return c.await(ctx, fmt.Sprintf("%d nodes to be Ready", last), func(ctx context.Context) error {
		nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "type=kwok", ResourceVersion: "0"})
		if err != nil {
			return err
		}
		ready := 0
		for i := range nodes.Items {
			if nodeReady(&nodes.Items[i]) {
				ready++
			}
		}
		if ready < last {
			return fmt.Errorf("%d of %d are", ready, last)
		}
		return nil
	})
}

func nodeReady(n *corev1.Node) bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (c *ControlPlane) fakeNode(number int) *corev1.Node {
	name := fmt.Sprintf("fake-%04d", number)
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				"type": "kwok", corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				corev1.LabelTopologyZone: "zone-" + strconv.Itoa(number%3),
			},
			Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0"},
		},
		Status: corev1.NodeStatus{Allocatable: room, Capacity: room},
	}
	if c.light { // nobody else will say so
		now := metav1.Now()
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Simulated",
			LastHeartbeatTime: now, LastTransitionTime: now,
		}}
	}
	return node
}

// AddNamespace creates a namespace unless it exists.
func (c *ControlPlane) AddNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	return ignoreExists(err)
}

// AddDeployment creates a Deployment, and its namespace where that does not exist.
// Its pods ask for 100m CPU and 64 MiB. It does not wait for them: see
// [ControlPlane.AwaitPodsRunning].
func (c *ControlPlane) AddDeployment(ctx context.Context, namespace, name string, replicas int32) error {
	if err := c.AddNamespace(ctx, namespace); err != nil {
		return fmt.Errorf("add deployment %s/%s: %w", namespace, name, err)
	}
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "main", Image: "registry.example/" + name + ":1.0",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
					}},
				}}},
			},
		},
	}
	if _, err := c.client.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("add deployment %s/%s: %w", namespace, name, err)
	}
	return nil
}

// AwaitPodsRunning returns when at least n pods of all namespaces run.
func (c *ControlPlane) AwaitPodsRunning(ctx context.Context, n int) error {
	return c.await(ctx, fmt.Sprintf("%d pods to run", n), func(ctx context.Context) error {
		pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running", ResourceVersion: "0"})
		if err != nil {
			return err
		}
		if running := len(pods.Items); running < n {
			return fmt.Errorf("%d of %d do", running, n)
		}
		return nil
	})
}

// ServiceAccountToken returns a token of the service account, good for a day.
func (c *ControlPlane) ServiceAccountToken(ctx context.Context, namespace, name string) (string, error) {
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of service account %s/%s: %w", namespace, name, err)
	}
	return answer.Status.Token, nil
}

// ServiceAccountKubeconfig writes a kubeconfig with which one is that service
// account and nothing else, and returns its path. It lives as long as the cluster.
func (c *ControlPlane) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (path string, err error) {
	token, err := c.ServiceAccountToken(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	path = c.path(strings.Join([]string{"sa", namespace, name}, "_") + ".kubeconfig")
	if err := c.WriteKubeconfig(path, c.Server(), token); err != nil {
		return "", fmt.Errorf("kubeconfig of service account %s/%s: %w", namespace, name, err)
	}
	return path, nil
}

// inParallel calls f for 0 to n-1 from several goroutines and returns the errors.
func inParallel(workers, n int, f func(i int) error) error {
	next := make(chan int)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for range min(workers, n) {
		wg.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}
