package natsapi

import (
	"context"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"

	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/wire"
)

func (s *Server) takeHeartbeat(m *nats.Msg) {
	var h wire.Heartbeat
	agentID, ok := s.decode("heartbeat", m, &h)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if keep(s, s.pulses, agentID, "heartbeat") {
		s.pulses[agentID] = fleet.Pulse{AgentID: agentID, ReceivedAt: s.Clock.Now(), Heartbeat: h}
	}
}

func (s *Server) takeStatus(m *nats.Msg) {
	var status wire.Status
	agentID, ok := s.decode("status", m, &status)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if keep(s, s.presence, agentID, "status") {
		s.presence[agentID] = fleet.Presence{AgentID: agentID, ReceivedAt: s.Clock.Now(), Status: status}
	}
}

func (s *Server) decode(kind string, m *nats.Msg, into interface{ Validate() error }) (agentID string, ok bool) {
	agentID, ok = s.accept(kind, m)
	if !ok {
		return "", false
	}
	err := wire.Decode(m.Data, into)
	if err == nil {
		err = into.Validate()
	}
	if err != nil {
		s.metrics.malformed.WithLabelValues(kind).Inc()
		s.Logger.Debug("message refused", "kind", kind, "agent", agentID, "error", err)
		return "", false
	}
	return agentID, true
}

// keep tells whether the batch has room: one entry for each agent, the newest wins. The lock is held.
func keep[T any](s *Server, batch map[string]T, agentID, kind string) bool {
	if _, there := batch[agentID]; there || len(batch) < maxBuffered {
		return true
	}
	s.metrics.dropped.WithLabelValues(kind).Inc()
	return false
}

// flushBatches writes once a second, so that a thousand agents cost one transaction.
func (s *Server) flushBatches(ctx context.Context) {
	ticker := s.Clock.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			work, cancel := context.WithTimeout(ctx, storeTimeout)
			s.flush(work)
			cancel()
		}
	}
}

// flush stores the batch; what the database did not take waits for the next one, unless something
// newer of the same agent came.
func (s *Server) flush(ctx context.Context) {
	s.mu.Lock()
	presence, pulses := s.presence, s.pulses
	s.presence, s.pulses = map[string]fleet.Presence{}, map[string]fleet.Pulse{}
	s.mu.Unlock()
	store(ctx, s, "status", presence, s.Fleet.RecordPresence, func() map[string]fleet.Presence { return s.presence })
	store(ctx, s, "heartbeat", pulses, s.Fleet.RecordPulses, func() map[string]fleet.Pulse { return s.pulses })
}

func store[T any](ctx context.Context, s *Server, kind string, batch map[string]T, record func(context.Context, []T) error, waiting func() map[string]T) {
	if len(batch) == 0 {
		return
	}
	start := s.Clock.Now()
	err := record(ctx, slices.Collect(maps.Values(batch)))
	s.metrics.seconds.WithLabelValues(kind).Observe(s.Clock.Now().Sub(start).Seconds())
	if err == nil {
		return
	}
	s.metrics.failed.WithLabelValues(kind).Inc()
	s.Logger.ErrorContext(ctx, "batch could not be stored, it waits for the next", "kind", kind, "agents", len(batch), "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := waiting()
	for agentID, entry := range batch {
		if _, newer := now[agentID]; !newer && keep(s, now, agentID, kind) {
			now[agentID] = entry
		}
	}
}
