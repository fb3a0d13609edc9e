package httpapi

import (
	"sync"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/problem"
)

// What one address may ask of the endpoints that need no principal: a whole node pool behind one
// address enrolls at once, each agent with a handful of requests.
const (
	limitBurst     = 600
	limitPerSecond = 20
	limitEntries   = 20_000
)

// limiter is a token bucket per address, in this process alone: with n replicas an address gets up to
// n times as much, which loosens the limit and breaks nothing (what must hold across replicas, failed
// sign-ins, is counted in SQL). When the table is full, full buckets go first, and then all.
type limiter struct {
	clock clock.Clock

	mu      sync.Mutex
	buckets map[string]bucket
}

type bucket struct {
	left float64
	at   time.Time
}

func newLimiter(c clock.Clock) *limiter { return &limiter{clock: c, buckets: map[string]bucket{}} }

// take counts one request of the address, and answers TooMany where none is left.
func (l *limiter) take(address string) error {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.buckets[address]
	if !ok {
		l.makeRoom(now)
		b = bucket{left: limitBurst, at: now}
	}
	b.left, b.at = b.filled(now), now
	if b.left < 1 {
		l.buckets[address] = b
		e := problem.New(problem.TooMany, "too_many_requests", "This address sends more requests than console takes.").
			WithCure("Wait a moment and try again.")
		e.RetryAfterSeconds = 1
		return e
	}
	b.left--
	l.buckets[address] = b
	return nil
}

func (b bucket) filled(now time.Time) float64 {
	return min(limitBurst, b.left+max(0, now.Sub(b.at).Seconds())*limitPerSecond)
}

func (l *limiter) makeRoom(now time.Time) {
	if len(l.buckets) < limitEntries {
		return
	}
	for address, b := range l.buckets {
		if b.filled(now) >= limitBurst {
			delete(l.buckets, address)
		}
	}
	if len(l.buckets) >= limitEntries {
		clear(l.buckets)
	}
}
