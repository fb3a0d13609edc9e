package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// eagerly is GOGC of the consoles, so that little has to be allocated before garbage is collected.
const eagerly = "10"

// What a console may hold more after a row than before it: the connections of its database's pools and of the
// harness, and what it keeps of agents and clusters on purpose.
const (
	moreGoroutines = 12
	moreFiles      = 8
	moreHeap       = 2 << 20
)

// usage is what a console holds.
type usage struct {
	goroutines, files, heap float64
	collections             float64 // of garbage, so far
}

func (u usage) String() string {
	return fmt.Sprintf("%.0f goroutines, %.0f open files, %.1f MiB of heap", u.goroutines, u.files, u.heap/(1<<20))
}

// usage is what the console holds once garbage was collected.
func (s *scene) usage() usage {
	s.Helper()
	first, err := s.measure(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	now := first
	err = s.console.Process().Await(s.h.Context(), "garbage to be collected", func(ctx context.Context) (err error) {
		if now, err = s.measure(ctx); err == nil && now.collections == first.collections {
			err = errors.New("not yet")
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return now
}

func (s *scene) measure(ctx context.Context) (usage, error) {
	token, err := s.console.APIToken(ctx)
	if err != nil {
		return usage{}, err
	}
	status, body, err := s.console.API(token).Send(ctx, http.MethodGet, "/metrics", nil, http.NoBody)
	if err != nil || status != http.StatusOK {
		return usage{}, fmt.Errorf("metrics: status %d, %w", status, err)
	}
	var u usage
	for line := range strings.Lines(body) {
		for name, value := range map[string]*float64{
			"go_goroutines ": &u.goroutines, "process_open_fds ": &u.files, "go_memstats_heap_alloc_bytes ": &u.heap,
			"go_gc_duration_seconds_count ": &u.collections,
		} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				if _, err := fmt.Sscan(rest, value); err != nil {
					return usage{}, fmt.Errorf("metric %s: %w", line, err)
				}
			}
		}
	}
	return u, nil
}

// leave ends the agents, and waits until the console holds no more than before.
func (s *scene) leave() {
	s.Helper()
	for _, end := range s.ends {
		end()
	}
	for _, a := range s.agents {
		if err := a.Kill(); err != nil {
			s.Error(err)
		}
	}
	if s.Failed() || s.Skipped() {
		return
	}
	var now usage
	err := s.console.Process().Await(s.h.Context(), "what the console holds to be as before", func(ctx context.Context) (err error) {
		if now, err = s.measure(ctx); err != nil {
			return err
		}
		if now.goroutines > s.before.goroutines+moreGoroutines || now.files > s.before.files+moreFiles || now.heap > s.before.heap+moreHeap {
			return fmt.Errorf("%v; before %v", now, s.before)
		}
		return nil
	})
	if err != nil {
		s.Error(err)
	}
	s.Logf("before: %v; after: %v", s.before, now)
}
