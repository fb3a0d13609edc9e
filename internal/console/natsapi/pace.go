package natsapi

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// paceBurst and pacePerSecond are what one agent may send of each kind of small message: an agent sends
	// one every few seconds at the most, and asks again after a failure with growing waits.
	paceBurst     = 100
	pacePerSecond = 2
)

// pace holds each agent to a rate, so that one that floods costs the others nothing but what it takes to
// drop its messages. It counts in this process alone.
type pace struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter // by kind and agent
}

func newPace() *pace { return &pace{limiters: map[string]*rate.Limiter{}} }

// allow counts one message, and reports whether it may be taken.
func (p *pace) allow(kind, agentID string, now time.Time) bool {
	key := kind + " " + agentID
	p.mu.Lock()
	l := p.limiters[key]
	if l == nil {
		p.makeRoom(now)
		l = rate.NewLimiter(pacePerSecond, paceBurst)
		p.limiters[key] = l
	}
	p.mu.Unlock()
	return l.AllowN(now, 1)
}

// makeRoom bounds the table: whoever was quiet long enough to have a full burst is forgotten. The lock is
// held.
func (p *pace) makeRoom(now time.Time) {
	if len(p.limiters) < maxBuffered {
		return
	}
	for key, l := range p.limiters {
		if l.TokensAt(now) >= paceBurst {
			delete(p.limiters, key)
		}
	}
	if len(p.limiters) >= maxBuffered {
		clear(p.limiters)
	}
}
