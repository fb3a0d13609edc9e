package natsapi_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/health/part"
)

// TestWhatHealthAsks: the facts follow what is stored, what waits and what failed, and the connection.
func TestWhatHealthAsks(t *testing.T) {
	w := newWorld(t, 0)
	d := newDomain()
	var broken atomic.Bool
	d.answer = func(string) error {
		if broken.Load() {
			return errors.New("the database is away")
		}
		return nil
	}
	s, stop := w.serve(d)
	defer stop()
	if c := s.Connection(); !c.Connected || c.Version == "" || c.Server != "proxima-console" {
		t.Errorf("connection: %+v", c)
	}
	eventually(t, "the first try", func() bool { return stream(t, s).Tried })
	if got := stream(t, s); got.Inventories != 0 || got.Limit != 256<<20 || !got.Stores {
		t.Errorf("console's own message is no inventory: %+v", got)
	}

	nc := w.connect(w.agent("agt_a"))
	publish(t, nc, "inventory.agt_a", "one")
	eventually(t, "the inventory", func() bool { i := ingest(t, s); return !i.StoredAt.IsZero() && i.Waiting == 0 })
	if got := stream(t, s); got.Inventories != 1 || got.Bytes == 0 {
		t.Errorf("after one inventory: %+v", got)
	}
	broken.Store(true)
	publish(t, nc, "inventory.agt_a", "two")
	eventually(t, "a second try", func() bool { i := ingest(t, s); return i.Waiting > 0 && i.Again > 0 })
	broken.Store(false)
	eventually(t, "the second inventory", func() bool { i := ingest(t, s); return i.Waiting == 0 && i.Again == 0 })

	w.console.Conn.Close()
	if c := s.Connection(); c.Connected || c.Server != "" {
		t.Errorf("after the end: %+v", c)
	}
	over, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Stream(over); err == nil {
		t.Error("a stream is told of without a connection")
	}
	if _, err := s.Ingest(over); err == nil {
		t.Error("ingest is told of without a connection")
	}
}

type asked interface {
	Stream(ctx context.Context) (part.Stream, error)
	Ingest(ctx context.Context) (part.Ingest, error)
}

func stream(t *testing.T, s asked) part.Stream {
	t.Helper()
	out, err := s.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func ingest(t *testing.T, s asked) part.Ingest {
	t.Helper()
	out, err := s.Ingest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}
