package cluster

import (
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/wire"
	"prxm.uz/proxima/test/harness"
)

// presenceClock is the machine's, but for timers of about half a minute: these fire when the test says so.
type presenceClock struct {
	clock.Clock
	asked chan time.Duration
	fire  chan time.Time
}

func (c presenceClock) NewTimer(d time.Duration) clock.Timer {
	if d < 20*time.Second || d > 40*time.Second {
		return c.Clock.NewTimer(d)
	}
	c.asked <- d
	return presenceTimer{c.Clock.NewTimer(time.Hour), c.fire}
}

type presenceTimer struct {
	clock.Timer
	fire chan time.Time
}

func (t presenceTimer) C() <-chan time.Time { return t.fire }

// TestPresence: leader and standby alike say every 30 s that they are there, a twentieth more or less so
// that a fleet does not speak at once, and in between only when their role changes.
func TestPresence(t *testing.T) {
	plane := harness.New(t).LightControlPlane()
	c := startConsole(t)
	clocks := map[string]presenceClock{}
	for _, name := range []string{"agent-0", "agent-1"} {
		cfg := configure(t, c, plane.Kubeconfig(), name)
		cfg.PodNamespace = "default"
		clocks[name] = presenceClock{clock.System(), make(chan time.Duration, 16), make(chan time.Time)}
		startAt(t, cfg, clocks[name])
	}
	subject := func(name string) string { return "status.agt" + strings.ReplaceAll(name, "-", "") }
	c.await("a leader and a standby", time.Minute, func() bool {
		a, m := last[wire.Status](c, subject("agent-0"))
		b, n := last[wire.Status](c, subject("agent-1"))
		return m > 0 && n > 0 && (a.Role == wire.RoleLeader) != (b.Role == wire.RoleLeader)
	})
	for name, own := range clocks {
		for range 3 {
			_, before := lastLocked[wire.Status](c, subject(name))
			for first := true; first || len(own.asked) > 0; first = false {
				if d := <-own.asked; d < 28500*time.Millisecond || d > 31500*time.Millisecond {
					t.Errorf("%s waits %v", name, d)
				}
			}
			own.fire <- time.Now()
			c.await(name+" to say that it is there", 10*time.Second, func() bool {
				_, now := last[wire.Status](c, subject(name))
				return now > before
			})
		}
	}
}

func lastLocked[T any](c *console, subject string) (v T, n int) {
	c.locked(func() { v, n = last[T](c, subject) })
	return v, n
}
