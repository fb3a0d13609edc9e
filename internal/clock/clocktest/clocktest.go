// Package clocktest owns the clock that stands still until a test moves it. For code whose timers
// meet no I/O, testing/synctest is simpler; this one is for tests that run real parts beside it.
package clocktest

import (
	"context"
	"sync"
	"time"

	"prxm.uz/proxima/internal/clock" //nolint:depguard // the fake implements the interface beside it; the room as a whole stands alone
)

// Manual is a clock that moves only by Advance and Set. It may be used from several goroutines.
type Manual struct {
	mu      sync.Mutex
	now     time.Time
	alarms  map[*alarm]struct{}
	changed chan struct{} // closed and replaced whenever the set of alarms grows
}

var _ clock.Clock = (*Manual)(nil)

// New returns a clock that stands at now.
func New(now time.Time) *Manual {
	return &Manual{now: now, alarms: map[*alarm]struct{}{}, changed: make(chan struct{})}
}

// Now returns the time at which the clock stands.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Advance moves the clock by d and fires what became due, in the order of time.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moveTo(m.now.Add(d))
}

// Set moves the clock to now, backwards too, and fires what became due.
func (m *Manual) Set(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moveTo(now)
}

// AwaitWaiters returns when at least n timers, tickers or sleepers wait for the clock, or with the
// context's error. Call it before Advance when another goroutine makes the timer.
func (m *Manual) AwaitWaiters(ctx context.Context, n int) error {
	for {
		m.mu.Lock()
		count, changed := len(m.alarms), m.changed
		m.mu.Unlock()
		if count >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// moveTo visits each point in time at which something is due, so that a ticker ticks at its own
// times. The lock is held.
func (m *Manual) moveTo(end time.Time) {
	for {
		var next *alarm
		for a := range m.alarms {
			if !a.due.After(end) && (next == nil || a.due.Before(next.due)) {
				next = a
			}
		}
		if next == nil {
			m.now = end
			return
		}
		if next.due.After(m.now) {
			m.now = next.due
		}
		next.fire()
	}
}

// NewTimer implements [clock.Clock].
func (m *Manual) NewTimer(d time.Duration) clock.Timer {
	a := &alarm{clock: m, channel: make(chan time.Time, 1)}
	a.Reset(d)
	return a
}

// NewTicker implements [clock.Clock].
func (m *Manual) NewTicker(d time.Duration) clock.Ticker {
	t := ticker{&alarm{clock: m, channel: make(chan time.Time, 1)}}
	t.Reset(d)
	return t
}

// Sleep implements [clock.Clock].
func (m *Manual) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d <= 0 {
		return nil
	}
	t := m.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C():
		return nil
	}
}

// alarm is a timer, or with an interval a ticker. Its fields are guarded by the clock's lock.
type alarm struct {
	clock    *Manual
	channel  chan time.Time
	due      time.Time
	interval time.Duration // zero for a timer
}

func (a *alarm) fire() {
	if a.interval > 0 {
		a.due = a.due.Add(a.interval)
	} else {
		delete(a.clock.alarms, a)
	}
	select {
	case a.channel <- a.clock.now:
	default: // the receiver is slow: it loses this tick
	}
}

func (a *alarm) C() <-chan time.Time { return a.channel }

func (a *alarm) Stop() bool {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	return a.halt()
}

func (a *alarm) Reset(d time.Duration) bool { return a.start(d, 0) }

// halt takes the alarm off the clock and takes back what nobody received. The lock is held.
func (a *alarm) halt() bool {
	_, was := a.clock.alarms[a]
	delete(a.clock.alarms, a)
	select {
	case <-a.channel:
		was = true
	default:
	}
	return was
}

func (a *alarm) start(d, interval time.Duration) bool {
	m := a.clock
	m.mu.Lock()
	defer m.mu.Unlock()
	was := a.halt()
	a.due, a.interval = m.now.Add(d), interval
	m.alarms[a] = struct{}{}
	close(m.changed)
	m.changed = make(chan struct{})
	if d <= 0 {
		a.fire()
	}
	return was
}

type ticker struct{ alarm *alarm }

func (t ticker) C() <-chan time.Time { return t.alarm.channel }
func (t ticker) Stop()               { t.alarm.Stop() }

func (t ticker) Reset(d time.Duration) {
	if d <= 0 {
		panic("clocktest: a ticker's interval must be positive, got " + d.String())
	}
	t.alarm.start(d, d)
}
