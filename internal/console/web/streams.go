package web

import (
	"sync"

	"prxm.uz/proxima/internal/console/problem"
)

// How many status streams may be open: each measures every two seconds.
const (
	streamsOfUser = 16
	streamsOfAll  = 256
)

// streams counts the open status streams of this process, by user.
type streams struct {
	mu   sync.Mutex
	open map[string]int
	all  int
}

// enter counts one more, until leave is called.
func (s *streams) enter(userID string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[userID] >= streamsOfUser || s.all >= streamsOfAll {
		e := problem.New(problem.TooMany, "too_many_streams", "Too many status pages are open.").
			WithCure("Close some of them. This page still shows what was measured when it was loaded.")
		e.RetryAfterSeconds = 15
		return nil, e
	}
	if s.open == nil {
		s.open = map[string]int{}
	}
	s.open[userID]++
	s.all++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.open[userID]--; s.open[userID] == 0 {
			delete(s.open, userID)
		}
	}, nil
}
