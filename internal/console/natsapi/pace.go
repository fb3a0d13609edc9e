package natsapi

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"prxm.uz/proxima/internal/wire"
)

const (
	// paceBurst and pacePerSecond are what one agent may send of each kind of message: an agent sends one every
	// few seconds at the most, and asks again after a failure with growing waits.
	paceBurst     = 100
	pacePerSecond = 2
	// paceFlood is how much beyond that, with nothing within it in between, makes a flood: no fault of an
	// agent's network or of its clock comes near.
	paceFlood = 1000
	// paceBytes is what counts as one more message, so that large ones count for more.
	paceBytes = wire.MaxPayload / 32
)

// pace holds each agent to a rate, so that one that floods costs the others nothing but what it takes to
// drop its messages. It counts in this process alone.
type pace struct {
	mu      sync.Mutex
	senders map[string]*sender // by kind and agent
}

type sender struct {
	limiter *rate.Limiter
	beyond  int // since the last message within the rate
}

func newPace() *pace { return &pace{senders: map[string]*sender{}} }

// allow counts one message, and reports whether it is within the rate of its agent, or else one of a flood.
func (p *pace) allow(kind, agentID string, size int, now time.Time) (ok, flood bool) {
	key, weight := kind+" "+agentID, 1+size/paceBytes
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.senders[key]
	if s == nil {
		p.makeRoom(now)
		s = &sender{limiter: rate.NewLimiter(pacePerSecond, paceBurst)}
		p.senders[key] = s
	}
	if s.limiter.AllowN(now, weight) {
		s.beyond = 0
		return true, false
	}
	if s.beyond += weight; s.beyond < paceFlood {
		return false, false
	}
	s.beyond = 0
	return false, true
}

// makeRoom bounds the table: whoever was quiet long enough to have a full burst is forgotten. The lock is
// held.
func (p *pace) makeRoom(now time.Time) {
	if len(p.senders) < maxBuffered {
		return
	}
	for key, s := range p.senders {
		if s.limiter.TokensAt(now) >= paceBurst {
			delete(p.senders, key)
		}
	}
	if len(p.senders) >= maxBuffered {
		clear(p.senders)
	}
}
