//go:build testclock

package clock

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"
)

// FileVariable names the environment variable that holds the path of the offset file. It exists only
// in builds with the tag testclock.
const FileVariable = "PROXIMA_TEST_CLOCK_FILE"

// pollInterval is how often a waiting timer of a shifted clock looks whether time was moved.
const pollInterval = 20 * time.Millisecond

// Process returns the clock that a program should run on: one that follows the file named by
// [FileVariable], or the machine's own when the variable is empty.
func Process(getenv func(string) string) Clock {
	if path := getenv(FileVariable); path != "" {
		return FromFile(path)
	}
	return System()
}

// FromFile returns a clock that runs ahead of the machine's by the Go duration ("90m", "-1h") that
// the file at path holds. The file is looked at on every reading, so rewriting it moves the time of a
// running process; write it anew and rename it into place, so that nobody reads half a number. While
// the file is missing, the shift is zero; while it cannot be read as a duration, the last shift stays.
//
// Timers and tickers follow: when time is moved past their end they fire at most 20 ms later.
func FromFile(path string) Clock { return &fileClock{path: path} }

type fileClock struct {
	path string

	mu     sync.Mutex
	seen   os.FileInfo // as of the last time that the content was read
	offset time.Duration
}

func (c *fileClock) Now() time.Time { return time.Now().Add(c.shift()) }

func (c *fileClock) shift() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.path)
	if err != nil {
		if os.IsNotExist(err) {
			c.seen, c.offset = nil, 0
		}
		return c.offset
	}
	if c.seen != nil && os.SameFile(c.seen, info) && c.seen.ModTime().Equal(info.ModTime()) && c.seen.Size() == info.Size() {
		return c.offset
	}
	content, err := os.ReadFile(c.path)
	if err != nil {
		return c.offset
	}
	if d, err := time.ParseDuration(strings.TrimSpace(string(content))); err == nil {
		c.seen, c.offset = info, d
	}
	return c.offset
}

func (c *fileClock) NewTimer(d time.Duration) Timer {
	t := &fileTimer{clock: c, channel: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

func (c *fileClock) NewTicker(d time.Duration) Ticker {
	t := &fileTicker{fileTimer{clock: c, channel: make(chan time.Time, 1)}}
	t.Reset(d)
	return t
}

func (c *fileClock) Sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, c, d) }

// fileTimer polls, since nobody tells it when the file changes. Each Reset starts a generation with a
// goroutine of its own; an older generation ends at its next look.
type fileTimer struct {
	clock   *fileClock
	channel chan time.Time

	mu      sync.Mutex
	stop    chan struct{} // of the running generation; nil when nothing is to come
	pending bool
}

func (t *fileTimer) C() <-chan time.Time { return t.channel }

func (t *fileTimer) Stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.halt()
}

func (t *fileTimer) Reset(d time.Duration) bool { return t.start(d, false) }

// halt ends the running generation and takes back what nobody received. The lock is held.
func (t *fileTimer) halt() bool {
	was := t.pending
	if t.stop != nil {
		close(t.stop)
		t.stop = nil
	}
	t.pending = false
	select {
	case <-t.channel:
		was = true
	default:
	}
	return was
}

func (t *fileTimer) start(d time.Duration, again bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.halt()
	stop := make(chan struct{})
	t.stop, t.pending = stop, true
	go t.run(stop, t.clock.Now().Add(d), d, again)
	return was
}

func (t *fileTimer) run(stop <-chan struct{}, end time.Time, interval time.Duration, again bool) {
	for {
		left := end.Sub(t.clock.Now())
		if left > 0 {
			select {
			case <-stop:
				return
			case <-time.After(min(left, pollInterval)):
			}
			continue
		}
		if !t.deliver(stop, again) {
			return
		}
		end = end.Add(interval)
		if now := t.clock.Now(); end.Before(now) { // time jumped over several ticks: one is enough
			end = now.Add(interval)
		}
	}
}

// deliver hands out the time unless the generation was ended, and reports whether another is to come.
func (t *fileTimer) deliver(stop <-chan struct{}, again bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-stop:
		return false
	default:
	}
	select {
	case t.channel <- t.clock.Now():
	default: // the receiver is slow: it loses this tick
	}
	if !again {
		t.pending, t.stop = false, nil
	}
	return again
}

type fileTicker struct{ timer fileTimer }

func (t *fileTicker) C() <-chan time.Time { return t.timer.channel }
func (t *fileTicker) Stop()               { t.timer.Stop() }

func (t *fileTicker) Reset(d time.Duration) {
	if d <= 0 {
		panic("clock: a ticker's interval must be positive, got " + d.String())
	}
	t.timer.start(d, true)
}
