package collector

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"prxm.uz/proxima/internal/wire"
)

func (s scrubber) pod(p *corev1.Pod) wire.Pod {
	out := wire.Pod{
		Meta: s.meta(&p.ObjectMeta), Phase: string(p.Status.Phase), Reason: p.Status.Reason, NodeName: p.Spec.NodeName,
		IP: p.Status.PodIP, QOSClass: string(p.Status.QOSClass), StartedAt: instant(p.Status.StartTime),
	}
	if p.DeletionTimestamp != nil && out.Reason == "" {
		out.Reason = "Terminating"
	}
	_, out.Static = p.Annotations[corev1.MirrorPodAnnotationKey]
	if owner := metav1.GetControllerOf(p); owner != nil {
		out.OwnerKind, out.OwnerName = owner.Kind, owner.Name
		out.WorkloadKind, out.WorkloadName = workloadOf(owner, p.Labels)
	}
	out.Containers = containers(&p.Spec)
	observe(out.Containers, p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses)
	for i := range out.Containers {
		c := &out.Containers[i]
		if c.Role != wire.ContainerApp && c.Role != wire.ContainerSidecar {
			continue
		}
		out.LongRunning++
		out.Restarts += c.Restarts
		if c.Ready {
			out.ReadyContainers++
		}
	}
	out.Scheduled, out.Running = requests(&p.Spec, out.Containers)
	return out
}

// workloadOf names what stands above a pod's owner. The deployment controller names a ReplicaSet after
// the Deployment and the pods' label pod-template-hash, so ReplicaSets need not be listed.
func workloadOf(owner *metav1.OwnerReference, labels map[string]string) (kind, name string) {
	switch owner.Kind {
	case "ReplicaSet":
		if hash := labels["pod-template-hash"]; hash != "" {
			if deployment, ok := strings.CutSuffix(owner.Name, "-"+hash); ok {
				return "Deployment", deployment
			}
		}
	case "StatefulSet", "DaemonSet", "Job":
		return owner.Kind, owner.Name
	}
	return "", ""
}

// containers lists a pod's or template's containers, the init containers first.
func containers(spec *corev1.PodSpec) []wire.Container {
	out := make([]wire.Container, 0, len(spec.InitContainers)+len(spec.Containers)+len(spec.EphemeralContainers))
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		role := wire.ContainerInit
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			role = wire.ContainerSidecar
		}
		out = append(out, wire.Container{Name: c.Name, Image: c.Image, Role: role, Requests: resources(c.Resources.Requests), Limits: resources(c.Resources.Limits)})
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		out = append(out, wire.Container{Name: c.Name, Image: c.Image, Role: wire.ContainerApp, Requests: resources(c.Resources.Requests), Limits: resources(c.Resources.Limits)})
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i]
		out = append(out, wire.Container{Name: c.Name, Image: c.Image, Role: wire.ContainerEphemeral})
	}
	return out
}

// observe adds what the kubelet reported; container names are unique within a pod.
func observe(containers []wire.Container, lists ...[]corev1.ContainerStatus) {
	for _, list := range lists {
		for i := range list {
			status := &list[i]
			for j := range containers {
				if c := &containers[j]; c.Name == status.Name {
					c.Ready, c.Restarts = status.Ready, int64(status.RestartCount)
					c.State, c.Reason = state(&status.State)
				}
			}
		}
	}
}

func state(s *corev1.ContainerState) (name, reason string) {
	switch {
	case s.Running != nil:
		return "running", ""
	case s.Waiting != nil:
		return "waiting", clean(s.Waiting.Reason, wire.MaxName)
	case s.Terminated != nil:
		return "terminated", clean(s.Terminated.Reason, wire.MaxName)
	}
	return "", ""
}

// requests sums what the scheduler counts and what runs for long. Requests stated for the pod as a
// whole take the place of its containers', and the runtime's overhead is added to both.
func requests(spec *corev1.PodSpec, containers []wire.Container) (scheduled, running wire.Resources) {
	var sidecars, starting wire.Resources
	for i := range containers {
		switch c := &containers[i]; c.Role {
		case wire.ContainerApp:
			running = add(running, c.Requests)
		case wire.ContainerSidecar:
			sidecars = add(sidecars, c.Requests)
			starting = larger(starting, sidecars)
		case wire.ContainerInit:
			starting = larger(starting, add(sidecars, c.Requests))
		case wire.ContainerEphemeral: // has none
		}
	}
	running = add(running, sidecars)
	scheduled = larger(running, starting)
	if spec.Resources != nil {
		whole := resources(spec.Resources.Requests)
		scheduled, running = override(scheduled, whole), override(running, whole)
	}
	if len(spec.Overhead) > 0 {
		overhead := resources(spec.Overhead)
		scheduled, running = add(scheduled, overhead), add(running, overhead)
	}
	return scheduled, running
}

func override(sum, whole wire.Resources) wire.Resources {
	if whole.CPUMillis != nil {
		sum.CPUMillis = whole.CPUMillis
	}
	if whole.MemoryBytes != nil {
		sum.MemoryBytes = whole.MemoryBytes
	}
	return sum
}
