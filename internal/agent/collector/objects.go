package collector

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"prxm.uz/proxima/internal/wire"
)

// instant is zero for a time that is absent or zero, so that year 1 never crosses the wire.
func instant(t *metav1.Time) time.Time {
	if t == nil || t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

func (s scrubber) node(n *corev1.Node) wire.Node {
	out := wire.Node{
		Meta: s.meta(&n.ObjectMeta), Ready: wire.NodeReadyUnknown, Unschedulable: n.Spec.Unschedulable,
		KubeletVersion: n.Status.NodeInfo.KubeletVersion, OSImage: n.Status.NodeInfo.OSImage, Architecture: n.Status.NodeInfo.Architecture,
		Runtime: n.Status.NodeInfo.ContainerRuntimeVersion, ProviderID: n.Spec.ProviderID,
		Capacity: resources(n.Status.Capacity), Allocatable: resources(n.Status.Allocatable),
	}
	const role = "node-role.kubernetes.io/"
	for key := range n.Labels {
		if name, ok := strings.CutPrefix(key, role); ok && name != "" {
			out.Roles = append(out.Roles, name)
		}
	}
	slices.Sort(out.Roles)
	for i := range n.Status.Addresses {
		a := &n.Status.Addresses[i]
		switch a.Type {
		case corev1.NodeInternalIP:
			out.InternalIP = cmp.Or(out.InternalIP, a.Address) // the first is the primary one
		case corev1.NodeExternalIP:
			out.ExternalIP = cmp.Or(out.ExternalIP, a.Address)
		case corev1.NodeHostName:
			out.Hostname = cmp.Or(out.Hostname, a.Address)
		}
	}
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if c.Type == corev1.NodeReady {
			switch c.Status {
			case corev1.ConditionTrue:
				out.Ready = wire.NodeReadyTrue
			case corev1.ConditionFalse:
				out.Ready = wire.NodeReadyFalse
			case corev1.ConditionUnknown:
			}
			if out.Ready != wire.NodeReadyTrue {
				out.ReadyReason = clean(cmp.Or(c.Reason, c.Message), wire.MaxName)
			}
		}
		out.Conditions = append(out.Conditions, s.condition(string(c.Type), string(c.Status), c.Reason, c.Message, &c.LastTransitionTime))
	}
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		out.Taints = append(out.Taints, wire.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

func (s scrubber) condition(kind, status, reason, message string, since *metav1.Time) wire.Condition {
	return wire.Condition{Type: kind, Status: status, Reason: reason, Message: s.text(message), Since: instant(since)}
}

func (s scrubber) namespace(n *corev1.Namespace) wire.Namespace {
	return wire.Namespace{Meta: s.meta(&n.ObjectMeta), Phase: string(n.Status.Phase)}
}

func (s scrubber) deployment(d *appsv1.Deployment) wire.Workload {
	out := wire.Workload{
		Meta: s.meta(&d.ObjectMeta), Kind: "Deployment", Desired: replicas(d.Spec.Replicas), Ready: int64(d.Status.ReadyReplicas),
		Available: int64(d.Status.AvailableReplicas), Updated: int64(d.Status.UpdatedReplicas), Strategy: string(d.Spec.Strategy.Type),
		Paused: d.Spec.Paused, Containers: containers(&d.Spec.Template.Spec),
	}
	for i := range d.Status.Conditions {
		c := &d.Status.Conditions[i]
		out.Conditions = append(out.Conditions, s.condition(string(c.Type), string(c.Status), c.Reason, c.Message, &c.LastTransitionTime))
	}
	return out
}

func (s scrubber) statefulSet(d *appsv1.StatefulSet) wire.Workload {
	out := wire.Workload{
		Meta: s.meta(&d.ObjectMeta), Kind: "StatefulSet", Desired: replicas(d.Spec.Replicas), Ready: int64(d.Status.ReadyReplicas),
		Available: int64(d.Status.AvailableReplicas), Updated: int64(d.Status.UpdatedReplicas), Strategy: string(d.Spec.UpdateStrategy.Type),
		Containers: containers(&d.Spec.Template.Spec),
	}
	for i := range d.Status.Conditions {
		c := &d.Status.Conditions[i]
		out.Conditions = append(out.Conditions, s.condition(string(c.Type), string(c.Status), c.Reason, c.Message, &c.LastTransitionTime))
	}
	return out
}

func (s scrubber) daemonSet(d *appsv1.DaemonSet) wire.Workload {
	out := wire.Workload{
		Meta: s.meta(&d.ObjectMeta), Kind: "DaemonSet", Desired: int64(d.Status.DesiredNumberScheduled), Ready: int64(d.Status.NumberReady),
		Available: int64(d.Status.NumberAvailable), Updated: int64(d.Status.UpdatedNumberScheduled), Strategy: string(d.Spec.UpdateStrategy.Type),
		Containers: containers(&d.Spec.Template.Spec),
	}
	for i := range d.Status.Conditions {
		c := &d.Status.Conditions[i]
		out.Conditions = append(out.Conditions, s.condition(string(c.Type), string(c.Status), c.Reason, c.Message, &c.LastTransitionTime))
	}
	return out
}

// replicas is one where nothing is stated, as the API documents.
func replicas(stated *int32) int64 {
	if stated == nil {
		return 1
	}
	return int64(*stated)
}

func (s scrubber) service(v *corev1.Service) wire.Service {
	out := wire.Service{
		Meta: s.meta(&v.ObjectMeta), Type: string(v.Spec.Type), ClusterIPs: v.Spec.ClusterIPs,
		ExternalName: v.Spec.ExternalName, Selector: v.Spec.Selector,
	}
	if len(out.ClusterIPs) == 0 && v.Spec.ClusterIP != "" {
		out.ClusterIPs = []string{v.Spec.ClusterIP}
	}
	for i := range v.Spec.Ports {
		p := &v.Spec.Ports[i]
		out.Ports = append(out.Ports, wire.ServicePort{Name: p.Name, Protocol: string(p.Protocol), Port: p.Port, TargetPort: p.TargetPort.String(), NodePort: p.NodePort})
	}
	for i := range v.Status.LoadBalancer.Ingress {
		in := &v.Status.LoadBalancer.Ingress[i]
		out.LoadBalancer = append(out.LoadBalancer, cmp.Or(in.IP, in.Hostname))
	}
	return out
}

func (s scrubber) event(e *corev1.Event) wire.Event {
	out := wire.Event{
		Meta: s.meta(&e.ObjectMeta), Type: e.Type, Reason: clean(e.Reason, wire.MaxName), Message: s.text(e.Message),
		InvolvedKind: e.InvolvedObject.Kind, InvolvedName: e.InvolvedObject.Name,
		Source: cmp.Or(e.Source.Component, e.ReportingController), Count: int64(e.Count), LastSeen: lastSeen(e),
	}
	if e.Series != nil {
		out.Count = max(out.Count, int64(e.Series.Count))
	}
	out.Count = max(out.Count, 1)
	out.FirstSeen = instant(&e.FirstTimestamp)
	if out.FirstSeen.IsZero() {
		out.FirstSeen = micro(&e.EventTime)
	}
	if out.FirstSeen.IsZero() {
		out.FirstSeen = instant(&e.CreationTimestamp)
	}
	return out
}

// lastSeen is the time of an event: recorders of different age fill different fields (inv-05).
func lastSeen(e *corev1.Event) time.Time {
	if e.Series != nil {
		if t := micro(&e.Series.LastObservedTime); !t.IsZero() {
			return t
		}
	}
	if t := instant(&e.LastTimestamp); !t.IsZero() {
		return t
	}
	if t := micro(&e.EventTime); !t.IsZero() {
		return t
	}
	if t := instant(&e.FirstTimestamp); !t.IsZero() {
		return t
	}
	return instant(&e.CreationTimestamp)
}

func micro(t *metav1.MicroTime) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// provider is derived from the scheme of a node's providerID, such as aws:///eu-west-1a/i-0abc.
func provider(providerID string) string {
	scheme, _, ok := strings.Cut(providerID, "://")
	if !ok {
		return ""
	}
	return clean(scheme, 63)
}
