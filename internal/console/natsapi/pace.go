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
	// paceFlood is how much beyond that makes a flood, as much again being forgiven as is allowed: no fault of an
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
	allowed *rate.Limiter
	beyond  *rate.Limiter // what is not allowed
}

func newBeyond() *rate.Limiter { return rate.NewLimiter(pacePerSecond, paceFlood) }

func newPace() *pace { return &pace{senders: map[string]*sender{}} }

// allow counts one message, and reports whether it is within the rate of its agent, or else one of a flood.
func (p *pace) allow(kind, agentID string, size int, now time.Time) (ok, flood bool) {
	key, weight := kind+" "+agentID, 1+size/paceBytes
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.senders[key]
	if s == nil {
		p.makeRoom(now)
		s = &sender{allowed: rate.NewLimiter(pacePerSecond, paceBurst), beyond: newBeyond()}
		p.senders[key] = s
	}
	if s.allowed.AllowN(now, weight) {
		return true, false
	}
	if s.beyond.AllowN(now, weight) {
		return false, false
	}
	s.beyond = newBeyond() // one flood is told once
	return false, true
}

// makeRoom bounds the table: whoever was quiet long enough to have all its room again is forgotten. The lock is
// held.
func (p *pace) makeRoom(now time.Time) {
	if len(p.senders) < maxBuffered {
		return
	}
	for key, s := range p.senders {
		if s.allowed.TokensAt(now) >= paceBurst && s.beyond.TokensAt(now) >= paceFlood {
			delete(p.senders, key)
		}
	}
	if len(p.senders) >= maxBuffered {
		clear(p.senders)
	}
}
