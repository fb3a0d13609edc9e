// Package collector owns the reading of a cluster: it lists each kind page by page, maps every page to
// the wire form and drops it, so that the memory of a sync is that of its inventory (design section 6).
// Secrets and ConfigMaps are not read (B-26), environment variables of containers neither. It knows
// neither NATS nor who leads.
//
// What a failure means is X-26: a kind that is forbidden or not served is reported unread and the rest
// goes on; a reason that passes fails the sync; after three failed syncs in a row that kind counts as
// unread. Events never fail a sync.
package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"prxm.uz/proxima/internal/agent/kubeapi"
	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/wire"
)

// MaxEvents is how many events one sync keeps: the most recent ones (B-69).
const MaxEvents = 1000

// Options say what to read and how.
type Options struct {
	Client *kubeapi.Client
	// PodLimit is the largest number of pods in an inventory (B-61).
	PodLimit int
	// Exclude names namespaces of which nothing is read into the inventory (B-62).
	Exclude     []string
	ClusterName string
	ClusterSlug string
	Clock       clock.Clock
	Log         *slog.Logger
}

// Collector reads one cluster. Collect must not run twice at once.
type Collector struct {
	opts     Options
	scrub    scrubber
	failures map[wire.Kind]int               // failed syncs in a row
	warned   map[wire.Kind]wire.UnreadReason // what was logged already
}

// New makes a collector.
func New(opts Options) *Collector {
	return &Collector{opts: opts, scrub: newScrubber(), failures: make(map[wire.Kind]int), warned: make(map[wire.Kind]wire.UnreadReason)}
}

// Collect reads everything once. The caller sets epoch and sync number. An error means that nothing
// may be published.
func (c *Collector) Collect(ctx context.Context) (*wire.Inventory, error) {
	inv := &wire.Inventory{
		Capability: wire.CapabilityVersion, ClusterName: c.opts.ClusterName, ClusterSlug: c.opts.ClusterSlug, CollectedAt: c.opts.Clock.Now().UTC(),
	}
	if err := c.cluster(ctx, inv); err != nil {
		return nil, err
	}
	steps := []func(context.Context, *wire.Inventory) (wire.KindReport, error){
		c.nodes, c.namespaces, c.deployments, c.statefulSets, c.daemonSets, c.services, c.pods, c.events,
	}
	// After the first failure the other kinds are still read, so that each kind's count of failed syncs
	// in a row is its own.
	var failed error
	for _, step := range steps {
		report, err := step(ctx, inv)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		inv.Kinds = append(inv.Kinds, report)
	}
	if failed != nil {
		return nil, failed
	}
	return inv, nil
}

// cluster reads the fingerprint and the version. Without the fingerprint nothing is published: it also
// tells an API server that cannot be reached from one that refuses some kinds.
func (c *Collector) cluster(ctx context.Context, inv *wire.Inventory) error {
	system, err := c.opts.Client.Core.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the UID of namespace kube-system cannot be read, and without it no inventory can be told from another cluster's: grant get on namespaces: %w", err)
	case err != nil:
		return fmt.Errorf("read namespace kube-system: %w", kubeapi.Explain(err))
	}
	inv.ClusterUID = string(system.UID)
	version, err := c.opts.Client.Version(ctx)
	if err != nil {
		return fmt.Errorf("read the API server's version: %w", kubeapi.Explain(err))
	}
	inv.Cluster.Version, inv.Cluster.Platform = clean(version.GitVersion, wire.MaxName), clean(version.Platform, wire.MaxName)
	return nil
}

func (c *Collector) excluded(namespace string) bool {
	return slices.Contains(c.opts.Exclude, namespace)
}

// done fills in how many objects were kept, of how many.
func done(report wire.KindReport, err error, kept, total int) (wire.KindReport, error) {
	if err == nil && report.Unread == "" {
		report.Kept, report.Total = kept, total
	}
	return report, err
}

func (c *Collector) nodes(ctx context.Context, inv *wire.Inventory) (wire.KindReport, error) {
	report, err := c.read(ctx, wire.KindNodes, func() { inv.Nodes = nil }, func(ctx context.Context, opts metav1.ListOptions) (string, error) {
		list, err := c.opts.Client.Core.Nodes().List(ctx, opts)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			inv.Nodes = append(inv.Nodes, c.scrub.node(&list.Items[i]))
		}
		return list.Continue, nil
	})
	for i := range inv.Nodes {
		if inv.Cluster.Provider = provider(inv.Nodes[i].ProviderID); inv.Cluster.Provider != "" {
			break
		}
	}
	return done(report, err, len(inv.Nodes), len(inv.Nodes))
}

func (c *Collector) namespaces(ctx context.Context, inv *wire.Inventory) (wire.KindReport, error) {
	report, err := c.read(ctx, wire.KindNamespaces, func() { inv.Namespaces = nil }, func(ctx context.Context, opts metav1.ListOptions) (string, error) {
		list, err := c.opts.Client.Core.Namespaces().List(ctx, opts)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if !c.excluded(list.Items[i].Name) {
				inv.Namespaces = append(inv.Namespaces, c.scrub.namespace(&list.Items[i]))
			}
		}
		return list.Continue, nil
	})
	return done(report, err, len(inv.Namespaces), len(inv.Namespaces))
}

// workloads reads one of the three kinds that share a list.
func (c *Collector) workloads(ctx context.Context, inv *wire.Inventory, kind wire.Kind, page func(context.Context, metav1.ListOptions, func(wire.Workload)) (string, error)) (wire.KindReport, error) {
	start := len(inv.Workloads)
	report, err := c.read(ctx, kind, func() { inv.Workloads = inv.Workloads[:start] }, func(ctx context.Context, opts metav1.ListOptions) (string, error) {
		return page(ctx, opts, func(w wire.Workload) {
			if !c.excluded(w.Namespace) {
				inv.Workloads = append(inv.Workloads, w)
			}
		})
	})
	n := len(inv.Workloads) - start
	return done(report, err, n, n)
}

func (c *Collector) deployments(ctx context.Context, inv *wire.Inventory) (wire.KindReport, error) {
	return c.workloads(ctx, inv, wire.KindDeployments, func(ctx context.Context, opts metav1.ListOptions, keep func(wire.Workload)) (string, error) {
		list, err := c.opts.Client.Apps.Deployments(metav1.NamespaceAll).List(ctx, opts)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			keep(c.scrub.deployment(&list.Items[i]))
		}
		return list.Continue, nil
	})
}

func (c *Collector) statefulSets(ctx context.Context, inv *wire.Inventory) (wire.KindReport, error) {
	return c.workloads(ctx, inv, wire.KindStatefulSets, func(ctx context.Context, opts metav1.ListOptions, keep func(wire.Workload)) (string, error) {
		list, err := c.opts.Client.Apps.StatefulSets(metav1.NamespaceAll).List(ctx, opts)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			keep(c.scrub.statefulSet(&list.Items[i]))
		}
		return list.Continue, nil
	})
}

func (c *Collector) daemonSets(ctx context.Context, inv *wire.Inventory) (wire.KindReport, error) {
	return c.workloads(ctx, inv, wire.KindDaemonSets, func(ctx context.Context, opts metav1.ListOptions, keep func(wire.Workload)) (string, error) {
		list, err := c.opts.Client.Apps.DaemonSets(metav1.NamespaceAll).List(ctx, opts)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			keep(c.scrub.daemonSet(&list.Items[i]))
		}
		return list.Continue, nil
	})
}

func (c *Collector) services(ctx context.Context, inv *wire.Inventory) (wire.KindReport, error) {
	report, err := c.read(ctx, wire.KindServices, func() { inv.Services = nil }, func(ctx context.Context, opts metav1.ListOptions) (string, error) {
		list, err := c.opts.Client.Core.Services(metav1.NamespaceAll).List(ctx, opts)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if !c.excluded(list.Items[i].Namespace) {
				inv.Services = append(inv.Services, c.scrub.service(&list.Items[i]))
			}
		}
		return list.Continue, nil
	})
	c.count(inv)
	return done(report, err, len(inv.Services), len(inv.Services))
}

// count fills in the namespaces' workloads and services; pods are counted as they are read, since not
// all of them are kept.
func (c *Collector) count(inv *wire.Inventory) {
	index := indexed(inv)
	for i := range inv.Workloads {
		if n := index[inv.Workloads[i].Namespace]; n != nil {
			n.Workloads++
		}
	}
	for i := range inv.Services {
		if n := index[inv.Services[i].Namespace]; n != nil {
			n.Services++
		}
	}
}

func indexed(inv *wire.Inventory) map[string]*wire.Namespace {
	index := make(map[string]*wire.Namespace, len(inv.Namespaces))
	for i := range inv.Namespaces {
		index[inv.Namespaces[i].Name] = &inv.Namespaces[i]
	}
	return index
}

func (c *Collector) pods(ctx context.Context, inv *wire.Inventory) (wire.KindReport, error) {
	kept := top[wire.Pod]{limit: c.opts.PodLimit, before: podBefore}
	index := indexed(inv)
	reset := func() {
		kept.reset()
		for _, n := range index {
			n.Pods = 0
		}
	}
	report, err := c.read(ctx, wire.KindPods, reset, func(ctx context.Context, opts metav1.ListOptions) (string, error) {
		list, err := c.opts.Client.Core.Pods(metav1.NamespaceAll).List(ctx, opts)
		if err != nil {
			return "", err
		}
		if remaining := list.RemainingItemCount; remaining != nil && opts.Continue == "" {
			kept.expect(len(list.Items) + int(*remaining))
		}
		for i := range list.Items {
			c.keepPod(&list.Items[i], &kept, index)
		}
		return list.Continue, nil
	})
	inv.Pods = kept.items
	if kept.total > len(kept.items) {
		inv.Pods = kept.sorted()
		c.opts.Log.WarnContext(ctx, "more pods than the limit, the rest was cut", "pods", kept.total, "kept", len(kept.items), "cure", "raise PROXIMA_K8S_POD_LIMIT, or leave namespaces out with PROXIMA_K8S_EXCLUDE_NAMESPACES")
	}
	return done(report, err, len(kept.items), kept.total)
}

func (c *Collector) keepPod(p *corev1.Pod, kept *top[wire.Pod], index map[string]*wire.Namespace) {
	if c.excluded(p.Namespace) {
		return
	}
	if n := index[p.Namespace]; n != nil {
		n.Pods++
	}
	kept.offer(podProbe(p), func() wire.Pod { return c.scrub.pod(p) })
}

func (c *Collector) events(ctx context.Context, inv *wire.Inventory) (wire.KindReport, error) {
	kept := top[wire.Event]{limit: MaxEvents, before: eventBefore}
	report, err := c.read(ctx, wire.KindEvents, kept.reset, func(ctx context.Context, opts metav1.ListOptions) (string, error) {
		list, err := c.opts.Client.Core.Events(metav1.NamespaceAll).List(ctx, opts)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			e := &list.Items[i]
			if !c.excluded(e.Namespace) {
				kept.offer(eventProbe(e, lastSeen(e)), func() wire.Event { return c.scrub.event(e) })
			}
		}
		return list.Continue, nil
	})
	inv.Events = kept.sorted()
	return done(report, err, len(kept.items), kept.total)
}
