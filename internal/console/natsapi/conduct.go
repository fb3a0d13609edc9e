package natsapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"prxm.uz/proxima/internal/wire"
)

const (
	// lookEvery is how often the connections of agents are counted at the most, while new ones come.
	lookEvery = time.Second
	// maxSuspects bounds the agents whose suspension waits for the database; one that floods on comes again.
	maxSuspects = 64
)

// suspect is an agent that sends, or connects, far more than an agent does.
type suspect struct{ agentID, why string }

// weigh counts an inventory beside the stream, which takes whatever comes: its queue is one for all agents, so
// whoever floods it makes it drop those of others.
func (s *Server) weigh(m *nats.Msg) {
	agentID, ok := wire.AgentOf(m.Subject)
	if !ok || agentID == canaryID {
		return
	}
	s.paced("inventory", agentID, "inventories", len(m.Data))
}

// paced counts a message, and tells whether it is within the rate of its agent. Whoever floods what is suspect.
func (s *Server) paced(kind, agentID, what string, size int) bool {
	ok, flood := s.pace.allow(kind, agentID, size, s.Clock.Now())
	if flood {
		s.suspect(agentID, "it flooded "+what)
	}
	return ok
}

func (s *Server) suspect(agentID, why string) {
	select {
	case s.suspects <- suspect{agentID, why}:
	default: // it comes again
	}
}

// suspend keeps out whom the edge suspects.
func (s *Server) suspend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case found := <-s.suspects:
			work, cancel := context.WithTimeout(ctx, storeTimeout)
			if err := s.Fleet.Suspend(work, found.agentID, found.why); err != nil && ctx.Err() == nil {
				s.Logger.ErrorContext(ctx, "an agent that floods could not be suspended", "agent", found.agentID, "why", found.why, "error", err)
			}
			cancel()
		}
	}
}

// watchConnections bounds the connections of each agent, on every server to which a new one came.
func (s *Server) watchConnections(ctx context.Context) {
	if s.Control == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Control.came:
		}
		for _, server := range s.Control.arrivals() {
			crowds, err := s.Control.thin(ctx, server)
			if err != nil && ctx.Err() == nil && !errors.Is(err, nats.ErrNoResponders) {
				s.Logger.WarnContext(ctx, "connections of agents could not be counted", "server", server, "error", err)
			}
			for agentID, n := range crowds {
				s.suspect(agentID, fmt.Sprintf("it opened %d connections", n))
			}
		}
		if s.Clock.Sleep(ctx, lookEvery) != nil {
			return
		}
	}
}
