package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/console/web/internal/fake"
)

// stream reads server-sent events.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
}

// message is the next event: its id and its data.
func (s stream) message() (id, data string) {
	s.t.Helper()
	var b strings.Builder
	for s.lines.Scan() {
		line := s.lines.Text()
		switch {
		case line == "" && b.Len() > 0:
			return id, b.String()
		case strings.HasPrefix(line, "id: "):
			id = line[4:]
		case strings.HasPrefix(line, "data: "):
			b.WriteString(line[6:] + "\n")
		}
	}
	s.t.Fatalf("the stream ended: %v", s.lines.Err())
	return "", ""
}

func open(t *testing.T, s *site, path, lastID string) stream {
	t.Helper()
	r := s.request(http.MethodGet, path, nil)
	if lastID != "" {
		r.Header.Set("Last-Event-Id", lastID)
	}
	res, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
	})
	if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || !strings.HasPrefix(got, "text/event-stream") {
		t.Fatalf("status %d, type %q", res.StatusCode, got)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return stream{t, lines}
}

// pass lets one gate of the waiting attempt pass.
func pass(w *fake.World, i int, at time.Time) {
	w.Lock()
	defer w.Unlock()
	status := w.Attempts["ob_waiting"]
	status.Inventory.Gates[i] = fake.Passed(at).Gates[i]
	status.Inventory.Done = status.Inventory.Passed() == len(status.Inventory.Gates)
	status.CheckedAt, status.ClusterID = at, "ck_halden"
	w.Attempts["ob_waiting"] = status
}

func TestStreamSendsWhatChanged(t *testing.T) {
	now := clocktest.New(start())
	s := serve(t, fake.Full(now.Now), now, fake.Admin)
	events := open(t, s, "/clusters/add/ob_waiting/events?seen=passed,waiting,waiting,waiting", "")

	id, data := events.message()
	if id != "passed,waiting,waiting,waiting" {
		t.Errorf("id %q", id)
	}
	for _, want := range []string{`hx-target="#inventory-1"`, `hx-target="#inventory-4"`, `id="inventory-head"`, `id="status-head"`} {
		if !strings.Contains(data, want) {
			t.Errorf("the first message lacks %s", want)
		}
	}
	if strings.Contains(data, `hx-target="#changes"`) {
		t.Error("a change is told where none was")
	}

	pass(s.world, 1, start())
	tick(t, now)
	id, data = events.message()
	if id != "passed,passed,waiting,waiting" {
		t.Errorf("id %q", id)
	}
	if !strings.Contains(data, `class="gate passed" id="inventory-2"`) || strings.Contains(data, `hx-target="#inventory-3" `) {
		t.Errorf("not the changed gate alone:\n%s", data)
	}
	if !strings.Contains(data, "Agent enrolled as a collector: Waiting → <strong>Passed</strong>") {
		t.Errorf("the log has no line:\n%s", data)
	}

	tick(t, now)
	if _, data = events.message(); strings.Contains(data, `hx-target="#inventory-2" `) || strings.Contains(data, `hx-target="#changes"`) || !strings.Contains(data, `hx-target="#inventory-2-at"`) {
		t.Errorf("an unchanged gate is sent again:\n%s", data)
	}

	pass(s.world, 2, start())
	pass(s.world, 3, start())
	tick(t, now)
	_, data = events.message()
	third, fourth := strings.Index(data, "Heartbeat fresh: Waiting"), strings.Index(data, "First inventory sync landed: Waiting")
	if third < 0 || fourth < 0 || fourth > third {
		t.Error("of two lines the lower gate is put on top last")
	}
	if !strings.Contains(data, `id="done"`) || !strings.Contains(data, `id="open-cluster"`) {
		t.Errorf("the end is not told:\n%s", data)
	}
}

// tick moves the clock to the next measurement, once the stream waits for it.
func tick(t *testing.T, now *clocktest.Manual) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := now.AwaitWaiters(ctx, 2); err != nil {
		t.Fatal(err)
	}
	now.Advance(measureEvery)
}

// TestReconnectTellsWhatWasMissed: the browser says what it saw last, and gets the lines since.
func TestReconnectTellsWhatWasMissed(t *testing.T) {
	now := clocktest.New(start())
	s := serve(t, fake.Full(now.Now), now, fake.Admin)
	pass(s.world, 1, start())
	events := open(t, s, "/clusters/add/ob_waiting/events?seen=waiting,waiting,waiting,waiting", "passed,waiting,waiting,waiting")
	if _, data := events.message(); strings.Count(data, `hx-target="#changes"`) != 1 {
		t.Errorf("not one line:\n%s", data)
	}
}

func TestStreamEnds(t *testing.T) {
	now := clocktest.New(start())
	s := serve(t, fake.Full(now.Now), now, fake.Admin)
	events := open(t, s, "/clusters/add/ob_waiting/events", "")
	events.message()
	s.world.Lock()
	delete(s.world.Users, fake.Admin) // the account goes while the page is open
	s.world.Unlock()
	tick(t, now)
	for events.lines.Scan() {
		if strings.HasPrefix(events.lines.Text(), "data:") {
			t.Fatal("gates are sent to an account that is gone")
		}
	}
	a := s.get("/clusters/add/ob_nothing/events", http.StatusSeeOther)
	if a.Header.Get("Location") != "/signin" {
		t.Errorf("a stranger is sent to %q", a.Header.Get("Location"))
	}
}

func TestBaselineIgnoresMadeUpStates(t *testing.T) {
	track := gate.Track{Gates: []gate.Gate{{State: gate.Passed}, {State: gate.Waiting}}}
	for seen, want := range map[string]int{"": 0, "x": 0, "nonsense,<b>": 0, "failed,waiting": 1, "failed,failed,failed": 0} {
		if got := len(changes(baseline(track, seen), track, start())); got != want {
			t.Errorf("seen %q: %d changes, want %d", seen, got, want)
		}
	}
}

// Where console stops, or the browser goes away, while a message is put together, nothing is wrong: the log says
// so of a part that cannot be rendered alone.
func TestAStreamThatIsLeftIsNoError(t *testing.T) {
	now := clocktest.New(start())
	page := statusData{Status: fake.Full(now.Now).Attempts["ob_waiting"]}
	var log bytes.Buffer
	s := &server{Config: Config{Clock: now, Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	gone, leave := context.WithCancel(t.Context())
	leave()
	v := &visit{w: httptest.NewRecorder(), r: httptest.NewRequestWithContext(gone, http.MethodGet, "/", http.NoBody), now: now.Now()}
	if err := s.send(v, page, statusData{}, gate.Track{}); !errors.Is(err, context.Canceled) {
		t.Errorf("sent: %v", err)
	}
	if log.Len() > 0 {
		t.Errorf("the log:\n%s", log.String())
	}
}

// One person's tabs do not slow everybody down.
func TestStreamsAreBounded(t *testing.T) {
	now := clocktest.New(start())
	s := serve(t, fake.Full(now.Now), now, fake.Admin)
	const path = "/clusters/add/ob_waiting/events"
	for range streamsOfUser {
		open(t, s, path, "").message()
	}
	res, err := s.client.Do(s.request(http.MethodGet, path, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "15" {
		t.Errorf("one more: status %d, Retry-After %q, %v", res.StatusCode, res.Header.Get("Retry-After"), err)
	}
}
