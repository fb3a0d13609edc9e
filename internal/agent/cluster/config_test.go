package cluster

import (
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/onboarding/gate"
)

// TestHeartbeatInterval refuses an interval with which gate 3 would call a live agent silent.
func TestHeartbeatInterval(t *testing.T) {
	if longest := longestHeartbeat + longestHeartbeat/20; 2*longest >= gate.HeartbeatWindow {
		t.Errorf("two heartbeats take up to %s with their jitter; gate 3 waits %s for one", 2*longest, gate.HeartbeatWindow)
	}
	for interval, want := range map[time.Duration]string{
		time.Second:                    "",
		longestHeartbeat:               "",
		time.Second - time.Millisecond: "PROXIMA_HEARTBEAT_INTERVAL is 999ms; it must lie between 1s and 2m0s, so that",
		longestHeartbeat + time.Second: "PROXIMA_HEARTBEAT_INTERVAL is 2m1s; it must lie between 1s and 2m0s, so that two heartbeats fall into the 5 minutes after which Console calls an agent silent; without it, it is 30s",
	} {
		c := &Config{SyncInterval: time.Minute, PodLimit: 1, HeartbeatInterval: interval}
		got := ""
		if err := c.Validate(); err != nil {
			got = err.Error()
		}
		if got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, not %q", interval, got, want)
		}
	}
}
