package clocktest_test

import (
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock/clocktest"
)

func TestManual(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := clocktest.New(start)
	timer, ticker := c.NewTimer(90*time.Second), c.NewTicker(time.Minute)
	slept := make(chan error, 1)
	go func() { slept <- c.Sleep(t.Context(), 2*time.Minute) }()
	if err := c.AwaitWaiters(t.Context(), 3); err != nil {
		t.Fatal(err)
	}

	c.Advance(time.Minute)
	if got := (<-ticker.C()).Sub(start); got != time.Minute {
		t.Errorf("ticked at %v", got)
	}
	select {
	case <-timer.C():
		t.Error("the timer fired early")
	default:
	}
	c.Advance(time.Minute)
	if got := (<-timer.C()).Sub(start); got != 90*time.Second {
		t.Errorf("the timer fired at %v", got)
	}
	if got := (<-ticker.C()).Sub(start); got != 2*time.Minute {
		t.Errorf("ticked at %v", got)
	}
	if err := <-slept; err != nil {
		t.Error(err)
	}
	if got := c.Now().Sub(start); got != 2*time.Minute {
		t.Errorf("stands at %v", got)
	}

	ticker.Stop()
	c.Set(start.Add(time.Hour))
	select {
	case <-ticker.C():
		t.Error("a stopped ticker ticked")
	default:
	}
	if timer.Reset(0) {
		t.Error("Reset of a fired timer reported true")
	}
	<-timer.C()
}
