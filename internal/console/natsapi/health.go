package natsapi

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"prxm.uz/proxima/internal/console/health/part"
	"prxm.uz/proxima/internal/wire"
)

// lastInventory is the last inventory that this process stored, or dropped as known.
type lastInventory struct {
	at  time.Time
	lag time.Duration // from its arrival in NATS
}

// Connection tells how Console is connected.
func (s *Server) Connection() part.NATS {
	if !s.Conn.IsConnected() {
		return part.NATS{}
	}
	return part.NATS{
		Connected: true, Server: s.Conn.ConnectedServerName(), Address: s.Conn.ConnectedAddr(), Version: s.Conn.ConnectedServerVersion(),
	}
}

// Stream asks for the stream of inventories.
func (s *Server) Stream(ctx context.Context) (part.Stream, error) {
	stream, err := s.JetStream.Stream(ctx, wire.StreamInventory)
	if err != nil {
		return part.Stream{}, fmt.Errorf("look up the stream %s: %w", wire.StreamInventory, err)
	}
	canary := wire.InventorySubject(canaryID)
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(canary))
	if err != nil {
		return part.Stream{}, fmt.Errorf("look up the size of the stream %s: %w", wire.StreamInventory, err)
	}
	state := info.State
	out := part.Stream{
		Name: wire.StreamInventory, Limit: info.Config.MaxBytes,
		Bytes:       int64(min(state.Bytes, 1<<62)),
		Inventories: int(min(state.Msgs-min(state.Msgs, state.Subjects[canary]), uint64(1<<31))),
	}
	if last := s.canary.Load(); last != nil {
		out.Tried, out.Stores = true, last.err == nil
	}
	return out, nil
}

// Ingest asks how much waits to be stored, by all replicas together.
func (s *Server) Ingest(ctx context.Context) (part.Ingest, error) {
	consumer, err := s.JetStream.Consumer(ctx, wire.StreamInventory, consumerName)
	if err != nil {
		return part.Ingest{}, fmt.Errorf("look up the consumer of %s: %w", wire.StreamInventory, err)
	}
	info := consumer.CachedInfo()
	out := part.Ingest{
		Waiting: int(min(info.NumPending, 1<<31)) + info.NumAckPending,
		Again:   info.NumRedelivered,
	}
	if last := s.stored.Load(); last != nil {
		out.StoredAt, out.Lag = last.at, last.lag
	}
	return out, nil
}
