package clock_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"prxm.uz/proxima/internal/clock"
)

func TestSystemSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.System()
		start := c.Now()
		if err := c.Sleep(t.Context(), 90*time.Second); err != nil {
			t.Fatal(err)
		}
		if got := c.Now().Sub(start); got != 90*time.Second {
			t.Errorf("slept %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an ended context gave %v", err)
		}
		if err := c.Sleep(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a sleep of zero with an ended context gave %v", err)
		}
	})
}

func TestSystemTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.System()
		start := c.Now()
		timer := c.NewTimer(time.Minute)
		if !timer.Reset(2 * time.Minute) {
			t.Error("Reset of a waiting timer reported false")
		}
		if got := (<-timer.C()).Sub(start); got != 2*time.Minute {
			t.Errorf("the timer fired after %v", got)
		}
		if timer.Stop() {
			t.Error("Stop of a fired timer reported true")
		}
		ticker := c.NewTicker(time.Minute)
		defer ticker.Stop()
		<-ticker.C()
		ticker.Reset(time.Second)
		before := c.Now()
		if got := (<-ticker.C()).Sub(before); got != time.Second {
			t.Errorf("ticked after %v", got)
		}
	})
}

func TestJitterStaysInRange(t *testing.T) {
	const d = 10 * time.Second
	low, high := d, d
	for range 10_000 {
		got := clock.Jitter(d, 0.2)
		if got < 8*time.Second || got > 12*time.Second {
			t.Fatalf("Jitter(10s, 0.2) = %v", got)
		}
		low, high = min(low, got), max(high, got)
	}
	if low > 9*time.Second || high < 11*time.Second {
		t.Errorf("10,000 draws lie between %v and %v: not spread", low, high)
	}
	for _, fraction := range []float64{0, -1, math.NaN()} {
		if got := clock.Jitter(d, fraction); got != d {
			t.Errorf("Jitter(10s, %v) = %v", fraction, got)
		}
	}
	if got := clock.Jitter(d, 7); got < 0 || got > 2*d {
		t.Errorf("Jitter(10s, 7) = %v", got)
	}
	if got := clock.Jitter(-d, 0.5); got != -d {
		t.Errorf("Jitter(-10s, 0.5) = %v", got)
	}
}

func TestBackoffGrowsToItsLimit(t *testing.T) {
	for failures, middle := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 30 * time.Second, 1_000_000: 30 * time.Second,
	} {
		for range 1000 {
			got := clock.Backoff(failures, time.Second, 30*time.Second)
			if got < middle/2 || got > min(30*time.Second, middle+middle/2) {
				t.Fatalf("Backoff(%d) = %v, want about %v", failures, got, middle)
			}
		}
	}
}
