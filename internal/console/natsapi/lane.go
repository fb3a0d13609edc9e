package natsapi

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// slowAfter is how long it may take to refuse an agent's inventory before its next ones wait in the lane, and
	// within which one in the lane shows that they need not.
	slowAfter = time.Second
	// maxWaiting bounds the inventories that the lane holds in memory; the rest waits in the stream.
	maxWaiting = 4
	// laneTimeout ends what would never end.
	laneTimeout = 30 * time.Minute
	// holdEvery is well within ackWait.
	holdEvery = 30 * time.Second
	// laneFull is when an inventory for which the lane has no room comes again.
	laneFull = 10 * time.Second
)

// lane takes the inventories that would hold up those of others: one at a time, and each agent in turn. Of an
// agent the newest alone waits.
type lane struct {
	mu      sync.Mutex
	waiting []delivery // the next one first, one for each agent
	working *delivery
	slow    map[string]bool // agents whose last inventory took long
	came    chan struct{}
}

func newLane() *lane { return &lane{slow: map[string]bool{}, came: make(chan struct{}, 1)} }

// wants tells whether the agent's inventories go by the lane, so that no two of them are in work at once.
func (l *lane) wants(agentID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slow[agentID] || l.working != nil && l.working.agentID == agentID || l.find(agentID) >= 0
}

func (l *lane) find(agentID string) int {
	return slices.IndexFunc(l.waiting, func(d delivery) bool { return d.agentID == agentID })
}

// note remembers whether an agent's inventory took long.
func (l *lane) note(agentID string, slow bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !slow:
		delete(l.slow, agentID)
	case len(l.slow) < maxBuffered:
		l.slow[agentID] = true
	}
}

// offer takes an inventory in, unless there is no room. It answers the older one of the agent whose place it
// took, if any: the stream does not hold that one any more.
func (l *lane) offer(d delivery) (replaced *delivery, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.find(d.agentID); i >= 0 {
		old := l.waiting[i]
		l.waiting[i] = d
		return &old, true
	}
	if len(l.waiting) == maxWaiting {
		return nil, false
	}
	l.waiting = append(l.waiting, d)
	select {
	case l.came <- struct{}{}:
	default:
	}
	return nil, true
}

// next takes the first of those that wait into work; false if none waits.
func (l *lane) next() (d delivery, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.working = nil
	if len(l.waiting) == 0 {
		return d, false
	}
	d = l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	l.working = &d
	return d, true
}

// held are the deliveries that JetStream must not deliver again yet.
func (l *lane) held() []delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.waiting)
	if l.working != nil {
		all = append(all, *l.working)
	}
	return all
}

// takeLarge works through the lane until ctx ends.
func (s *Server) takeLarge(ctx context.Context) {
	for ctx.Err() == nil {
		d, ok := s.lane.next()
		if !ok {
			select {
			case <-ctx.Done():
			case <-s.lane.came:
			}
			continue
		}
		start := s.Clock.Now()
		err := s.receive(ctx, d, laneTimeout, s.Inventory.ReceiveLarge)
		s.lane.note(d.agentID, s.Clock.Now().Sub(start) > slowAfter)
		s.finish(ctx, d, err)
	}
	for {
		d, ok := s.lane.next()
		if !ok {
			return
		}
		s.settle(ctx, d.agentID, d.message.Nak()) // another replica, or the next start, takes it at once
	}
}

// holdLarge keeps JetStream from delivering again what is in the lane.
func (s *Server) holdLarge(ctx context.Context) {
	ticker := s.Clock.NewTicker(holdEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			for _, d := range s.lane.held() {
				_ = d.message.InProgress() // it may be done by now
			}
		}
	}
}

// toLane puts an inventory into the lane, or lets it come again where there is no room.
func (s *Server) toLane(ctx context.Context, d delivery) {
	switch replaced, ok := s.lane.offer(d); {
	case !ok:
		s.settle(ctx, d.agentID, d.message.NakWithDelay(laneFull))
	case replaced != nil:
		s.settle(ctx, d.agentID, replaced.message.Ack())
	}
}
