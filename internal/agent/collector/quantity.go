package collector

import (
	corev1 "k8s.io/api/core/v1"

	"prxm.uz/proxima/internal/wire"
)

// resources maps amounts to integers, rounded up: memory may well be stated in thousandths of a byte.
func resources(list corev1.ResourceList) wire.Resources {
	var r wire.Resources
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU:
			r.CPUMillis = new(quantity.MilliValue())
		case corev1.ResourceMemory:
			r.MemoryBytes = new(quantity.Value())
		case corev1.ResourceEphemeralStorage:
			r.EphemeralBytes = new(quantity.Value())
		case corev1.ResourcePods:
			r.Pods = new(quantity.Value())
		default:
			if r.Extended == nil {
				r.Extended = map[string]int64{}
			}
			r.Extended[string(name)] = quantity.Value()
		}
	}
	return r
}

// add returns a + b; a field that neither states stays unstated.
func add(a, b wire.Resources) wire.Resources {
	return combine(a, b, func(x, y int64) int64 { return x + y })
}

// larger returns the greater of each field.
func larger(a, b wire.Resources) wire.Resources {
	return combine(a, b, func(x, y int64) int64 { return max(x, y) })
}

func combine(a, b wire.Resources, f func(x, y int64) int64) wire.Resources {
	out := wire.Resources{
		CPUMillis: field(a.CPUMillis, b.CPUMillis, f), MemoryBytes: field(a.MemoryBytes, b.MemoryBytes, f),
		EphemeralBytes: field(a.EphemeralBytes, b.EphemeralBytes, f), Pods: field(a.Pods, b.Pods, f),
	}
	if len(a.Extended)+len(b.Extended) > 0 {
		out.Extended = map[string]int64{}
		for name, x := range a.Extended {
			out.Extended[name] = f(x, b.Extended[name])
		}
		for name, y := range b.Extended {
			if _, done := a.Extended[name]; !done {
				out.Extended[name] = f(0, y)
			}
		}
	}
	return out
}

func field(x, y *int64, f func(x, y int64) int64) *int64 {
	switch {
	case x == nil && y == nil:
		return nil
	case x == nil:
		return new(f(0, *y))
	case y == nil:
		return new(f(*x, 0))
	}
	return new(f(*x, *y))
}
