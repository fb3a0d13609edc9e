package natsapi

import (
	"testing"
	"time"
)

// TestAFloodBetweenSmallMessagesIsOne: small messages that are within the rate do not excuse the large ones.
func TestAFloodBetweenSmallMessagesIsOne(t *testing.T) {
	for name, tt := range map[string]struct {
		every  time.Duration
		sizes  []int // one after the other, each time
		lasts  time.Duration
		floods bool
	}{
		"a heartbeat and a small inventory every few seconds": {5 * time.Second, []int{200, 40_000}, 24 * time.Hour, false},
		"the largest inventory every minute":                  {time.Minute, []int{8 << 20}, 24 * time.Hour, false},
		"a burst after an outage":                             {time.Hour, sizes(900, 200), 24 * time.Hour, false},
		"large ones":                                          {50 * time.Millisecond, []int{8 << 20}, 10 * time.Second, true},
		"large ones, a small one within the rate in between":  {500 * time.Millisecond, append(sizes(10, 8<<20), 10), 20 * time.Second, true},
		"more than twice the rate, for long":                  {100 * time.Millisecond, []int{10}, 10 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, now, floods := newPace(), time.Unix(0, 0), 0
			for end := now.Add(tt.lasts); now.Before(end); now = now.Add(tt.every) {
				for _, size := range tt.sizes {
					if _, flood := p.allow("inventory", "agt_a", size, now); flood {
						floods++
					}
				}
			}
			if (floods > 0) != tt.floods {
				t.Errorf("%d floods", floods)
			}
		})
	}
}

func sizes(n, size int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = size
	}
	return out
}
