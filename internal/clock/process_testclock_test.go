//go:build testclock

package clock_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock"
)

// shift moves the clock as the harness does: a new file renamed over the old one.
func shift(t *testing.T, path, offset string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(offset+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestProcessFollowsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offset")
	c := clock.Process(func(name string) string {
		if name != clock.FileVariable {
			t.Errorf("looked up %q", name)
		}
		return path
	})
	near := func(want time.Duration) {
		t.Helper()
		if got := time.Until(c.Now()); got < want-time.Minute || got > want+time.Minute {
			t.Errorf("the clock is %v ahead, want about %v", got, want)
		}
	}
	near(0)
	shift(t, path, "24h")
	near(24 * time.Hour)
	shift(t, path, "48h")
	near(48 * time.Hour)
	shift(t, path, "nonsense")
	near(48 * time.Hour)
	shift(t, path, "-1h")
	near(-time.Hour)
}

func TestTimersFollowTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offset")
	c := clock.FromFile(path)
	timer, ticker := c.NewTimer(time.Hour), c.NewTicker(time.Hour)
	defer ticker.Stop()
	stopped := c.NewTimer(time.Hour)
	if !stopped.Stop() {
		t.Error("Stop of a waiting timer reported false")
	}
	slept := make(chan error, 1)
	go func() { slept <- c.Sleep(t.Context(), time.Hour) }()
	select {
	case <-timer.C():
		t.Fatal("fired an hour early")
	case <-time.After(5 * time.Millisecond):
	}
	// The sleeper may start after the first shift, so shift until it is done.
	deadline := time.After(10 * time.Second)
	var timerFired, tickerFired, sleeperDone bool
	for ahead := 2 * time.Hour; !timerFired || !tickerFired || !sleeperDone; ahead += 2 * time.Hour {
		shift(t, path, ahead.String())
		select {
		case <-timer.C():
			timerFired = true
		case <-ticker.C():
			tickerFired = true
		case err := <-slept:
			if err != nil {
				t.Fatal(err)
			}
			sleeperDone = true
		case <-deadline:
			t.Fatalf("timer %v ticker %v sleeper %v", timerFired, tickerFired, sleeperDone)
		}
	}
	select {
	case <-stopped.C():
		t.Error("a stopped timer fired")
	default:
	}
	if timer.Reset(0) {
		t.Error("Reset of a fired timer reported true")
	}
	<-timer.C()
}

func TestProcessWithoutTheVariableIsTheSystemClock(t *testing.T) {
	if c := clock.Process(func(string) string { return "" }); c != clock.System() {
		t.Errorf("got %T", c)
	}
}
