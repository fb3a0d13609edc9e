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
	// canaryID stands for console itself among the agents of the stream.
	canaryID      = "console"
	canaryEvery   = 20 * time.Second
	canaryTimeout = 5 * time.Second
	// canaryMisses is how many canaries in a row may get lost before a stream of console's own counts as
	// broken.
	canaryMisses = 3
)

// watchStream stores a small message every so often and looks whether it was stored. A stream whose disk
// was full once answers every question as if it were well, and stores nothing more: the server keeps the
// fault until the stream is opened anew.
func (s *Server) watchStream(ctx context.Context) {
	ticker := s.Clock.NewTicker(s.CanaryEvery)
	defer ticker.Stop()
	for misses := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if !s.consuming.Load() {
			misses = 0 // the stream is being made
			continue
		}
		before, known := s.lastStored(ctx)
		err := s.sendCanary(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && known && s.storedSince(ctx, before) {
			s.Logger.WarnContext(ctx, "the stream of inventories is slow, but stores", "error", err, "cure", "see under Agents whether one sends far more than the others, or give NATS a faster disk")
			err = nil
		}
		s.canary.Store(&canaryResult{err: err})
		if err == nil {
			misses = 0
			continue
		}
		misses++
		s.Logger.ErrorContext(ctx, "the stream of inventories stores nothing", "error", err, "cure", "free space on the disk of NATS and in its limits, and descriptors for its process")
		if misses >= canaryMisses && s.OwnStream {
			misses = 0
			s.reopen(ctx)
		}
	}
}

type canaryResult struct{ err error }

// lastStored is the sequence of the last message that the stream stored; false where that is not known.
func (s *Server) lastStored(ctx context.Context) (sequence uint64, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := s.JetStream.Stream(ctx, wire.StreamInventory)
	if err != nil {
		return 0, false
	}
	return stream.CachedInfo().State.LastSeq, true
}

func (s *Server) storedSince(ctx context.Context, before uint64) bool {
	last, ok := s.lastStored(ctx)
	return ok && last > before
}

// sendCanary answers nil once the stream has said that it stored the message.
func (s *Server) sendCanary(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, canaryTimeout)
	defer cancel()
	stored, err := s.Conn.SubscribeSync(wire.StoredSubject(canaryID))
	if err != nil {
		return fmt.Errorf("listen for what is stored: %w", err)
	}
	defer func() { _ = stored.Unsubscribe() }() // fails only where the connection is closed
	if err := s.Conn.Publish(wire.InventorySubject(canaryID), nil); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	switch _, err = stored.NextMsgWithContext(ctx); {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("the stream %s did not store a message within %v", wire.StreamInventory, canaryTimeout)
	default:
		return err
	}
}

// reopen deletes the stream, which is then made anew. What waits in it is lost; each agent sends its
// inventory again with its next sync.
func (s *Server) reopen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := s.JetStream.DeleteStream(ctx, wire.StreamInventory); err != nil {
		s.Logger.ErrorContext(ctx, "the stream of inventories could not be opened anew", "error", err)
		return
	}
	s.Logger.WarnContext(ctx, "the stream of inventories was deleted and is made anew; agents send what was in it with their next sync")
}
