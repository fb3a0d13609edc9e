package faults

import (
	"context"
	"errors"
	"fmt"
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
	m, err := s.console.Metrics(ctx)
	return usage{
		goroutines: m["go_goroutines"], files: m["process_open_fds"], heap: m["go_memstats_heap_alloc_bytes"], collections: m["go_gc_duration_seconds_count"],
	}, err
}

// What an agent of such a small cluster holds at the most, whatever it went through.
const (
	agentGoroutines = 40
	agentFiles      = 24
)

// agentsHoldLittle looks at the agents that outlived the fault.
func (s *scene) agentsHoldLittle() {
	s.Helper()
	for _, a := range s.agents {
		if !a.Process().Running() {
			continue
		}
		var goroutines, files float64
		err := a.Process().Await(s.h.Context(), "what the agent holds to be little", func(ctx context.Context) error {
			m, err := a.Metrics(ctx)
			if err != nil {
				return err
			}
			if goroutines, files = m["go_goroutines"], m["process_open_fds"]; goroutines > agentGoroutines || files > agentFiles {
				return fmt.Errorf("%.0f goroutines, %.0f open files", goroutines, files)
			}
			return nil
		})
		if err != nil {
			s.Error(err)
		}
		s.Logf("an agent holds %.0f goroutines, %.0f open files", goroutines, files)
	}
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
