// Package clock is the one place that reads the wall clock, makes timers and draws guessable random
// numbers. Everything else receives a [Clock], so that tests and the demo can move time.
//
// It refuses to know anything else of the product, and holds no state of its own.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and waits. All implementations may be used from several goroutines at once.
type Clock interface {
	// Now returns the current time. Take it once per decision and pass the value on: two reads in
	// one decision may differ.
	Now() time.Time

	// NewTimer returns a timer that delivers the time once, d from now. A d of zero or less
	// delivers at once.
	NewTimer(d time.Duration) Timer

	// NewTicker returns a ticker that delivers the time every d. A slow receiver loses ticks. It
	// panics when d is not positive.
	NewTicker(d time.Duration) Ticker

	// Sleep waits for d. It returns early, with the context's error, when ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// Timer delivers one point in time. It behaves as [time.Timer] does since Go 1.23: after Stop or
// Reset no stale value arrives on C.
type Timer interface {
	// C returns the channel on which the time is delivered.
	C() <-chan time.Time
	// Stop prevents the delivery, and reports whether it was still to come.
	Stop() bool
	// Reset lets the timer fire d from now, and reports whether a delivery was still to come.
	Reset(d time.Duration) bool
}

// Ticker delivers a point in time at every interval. It behaves as [time.Ticker] does.
type Ticker interface {
	// C returns the channel on which the ticks are delivered.
	C() <-chan time.Time
	// Stop ends the ticks. It does not close the channel.
	Stop()
	// Reset starts anew with the interval d. It panics when d is not positive.
	Reset(d time.Duration)
}

// System returns the machine's own clock.
func System() Clock { return systemClock{} }

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

func (systemClock) NewTicker(d time.Duration) Ticker { return systemTicker{time.NewTicker(d)} }

func (c systemClock) Sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, c, d) }

type systemTimer struct{ timer *time.Timer }

func (t systemTimer) C() <-chan time.Time        { return t.timer.C }
func (t systemTimer) Stop() bool                 { return t.timer.Stop() }
func (t systemTimer) Reset(d time.Duration) bool { return t.timer.Reset(d) }

type systemTicker struct{ ticker *time.Ticker }

func (t systemTicker) C() <-chan time.Time   { return t.ticker.C }
func (t systemTicker) Stop()                 { t.ticker.Stop() }
func (t systemTicker) Reset(d time.Duration) { t.ticker.Reset(d) }

// sleep is Sleep for every clock whose timers can be trusted. An ended context wins over a wait of
// zero, so that a loop around Sleep always notices that it should stop.
func sleep(ctx context.Context, c Clock, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d <= 0 {
		return nil
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C():
		return nil
	}
}
