package collector

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"prxm.uz/proxima/internal/wire"
)

// top keeps the best n of a stream and never holds more. Total counts what was offered.
type top[T any] struct {
	limit  int
	total  int
	before func(a, b *T) bool // a is to be kept rather than b
	items  []T
}

func (t *top[T]) reset() { t.total, t.items = 0, nil }

// expect makes room for n objects at once: a list that grows piece by piece is held twice while it is moved.
func (t *top[T]) expect(n int) { t.items = slices.Grow(t.items, max(0, min(n, t.limit)-len(t.items))) }

// offer asks for the object only if it will be kept: probe holds just what before compares.
func (t *top[T]) offer(probe T, whole func() T) {
	t.total++
	if len(t.items) < t.limit {
		t.items = append(t.items, whole())
		if len(t.items) == t.limit {
			heap.Init((*worstFirst[T])(t))
		}
		return
	}
	if t.before(&probe, &t.items[0]) {
		t.items[0] = whole()
		heap.Fix((*worstFirst[T])(t), 0)
	}
}

// worstFirst orders the heap so that the one to give up next is at its root.
type worstFirst[T any] top[T]

func (h *worstFirst[T]) Len() int           { return len(h.items) }
func (h *worstFirst[T]) Less(i, j int) bool { return h.before(&h.items[j], &h.items[i]) }
func (h *worstFirst[T]) Swap(i, j int)      { h.items[i], h.items[j] = h.items[j], h.items[i] }
func (h *worstFirst[T]) Push(any)           {} // the heap never grows
func (h *worstFirst[T]) Pop() any           { return nil }

// podBefore is the order of B-61: pods that do not run first, then by restarts descending. Names break
// ties, so that two syncs of an unchanged cluster keep the same pods.
func podBefore(a, b *wire.Pod) bool {
	aRuns, bRuns := a.Phase == string(corev1.PodRunning), b.Phase == string(corev1.PodRunning)
	if aRuns != bRuns {
		return bRuns
	}
	return cmp.Or(cmp.Compare(b.Restarts, a.Restarts), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}

// podProbe is what podBefore compares, at no more cost than a sum.
func podProbe(p *corev1.Pod) wire.Pod {
	probe := wire.Pod{Phase: string(p.Status.Phase)}
	probe.Namespace, probe.Name = p.Namespace, p.Name
	for i := range p.Status.ContainerStatuses {
		probe.Restarts += int64(p.Status.ContainerStatuses[i].RestartCount)
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			continue
		}
		for j := range p.Status.InitContainerStatuses {
			if s := &p.Status.InitContainerStatuses[j]; s.Name == c.Name {
				probe.Restarts += int64(s.RestartCount)
			}
		}
	}
	return probe
}

// eventBefore is the order of B-69: the most recent first.
func eventBefore(a, b *wire.Event) bool {
	if c := a.LastSeen.Compare(b.LastSeen); c != 0 {
		return c > 0
	}
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}

func eventProbe(e *corev1.Event, seen time.Time) wire.Event {
	probe := wire.Event{LastSeen: seen}
	probe.Namespace, probe.Name = e.Namespace, e.Name
	return probe
}

// sorted puts what a heap left in disorder back into the order of before.
func (t *top[T]) sorted() []T {
	slices.SortFunc(t.items, func(a, b T) int {
		if t.before(&a, &b) {
			return -1
		}
		return 1
	})
	return t.items
}
