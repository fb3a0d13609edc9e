package web

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/console/problem"
)

const (
	// measureEvery is how often an open status page measures again.
	measureEvery = 2 * time.Second
	// streamFor bounds one stream; the browser connects anew.
	streamFor = 5 * time.Minute
	// writeWithin is how long a browser may take to accept what was sent.
	writeWithin = 30 * time.Second
)

// statusData is step 3: the gates, as they were measured for this answer.
type statusData struct {
	base
	onboarding.Status
	MayWrite bool
}

// seen is the list of states that this page shows, for the stream to find what changed since.
func (d statusData) seen() string {
	states := make([]string, len(d.Inventory.Gates))
	for i, g := range d.Inventory.Gates {
		states[i] = string(g.State)
	}
	return strings.Join(states, ",")
}

// install is the address of the printed command; an archived attempt has none.
func (d statusData) install() string {
	if !d.Attempt.ArchivedAt.IsZero() {
		return ""
	}
	return d.path() + "/install"
}

func (d statusData) path() string { return "/clusters/add/" + d.Attempt.ID }

func (s *server) status(v *visit) error {
	page, err := s.measure(v, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, statusView(page))
}

// measure asks for the present state; it is never the stored one.
func (s *server) measure(v *visit, id string) (statusData, error) {
	status, err := s.Onboarding.Status(v.ctx(), v.who, id)
	if err != nil {
		return statusData{}, err
	}
	page := statusData{
		base: s.base(v, "Status: "+status.Attempt.DisplayName, "clusters"), Status: status,
		MayWrite: v.who.Allows(access.HostsWrite, status.Attempt.Scope()),
	}
	page.Narrow, page.Refresh = true, 15
	return page, nil
}

// change is one line of the page's log.
type change struct {
	At       time.Time
	Title    string
	From, To gate.State
}

// events streams what changes on a status page. Each message holds the parts that changed, as
// fragments with the ids of what they replace, and a line for the log where a state changed. The
// message's id is the list of states, so that a browser that reconnects misses no line.
func (s *server) events(v *visit) error {
	page, err := s.measure(v, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	leave, err := s.streams.enter(v.who.UserID)
	if err != nil {
		return err
	}
	defer leave()
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // reverse proxies that hold answers back
	v.w.WriteHeader(http.StatusOK)
	if v.r.Method == http.MethodHead {
		return nil
	}
	defer func() { // the connection may serve another request
		_ = http.NewResponseController(v.w).SetWriteDeadline(time.Time{})
	}()

	seen := v.r.Header.Get("Last-Event-Id")
	if seen == "" {
		seen = v.r.URL.Query().Get("seen")
	}
	ticker := s.Clock.NewTicker(measureEvery)
	defer ticker.Stop()
	end := s.Clock.NewTimer(streamFor)
	defer end.Stop()

	before := baseline(page.Inventory, seen)
	shown := statusData{} // nothing yet: the first message brings everything
	for {
		if err := s.send(v, page, shown, before); err != nil {
			return nil
		}
		shown, before = page, page.Inventory
		select {
		case <-v.ctx().Done():
			return nil
		case <-end.C():
			return nil
		case <-ticker.C():
		}
		if page, err = s.again(v, shown); err != nil {
			return nil
		}
	}
}

// again measures for a stream that is open. Its caller may have been signed out, or have lost the right, in
// the meantime.
func (s *server) again(v *visit, shown statusData) (statusData, error) {
	v.now = s.Clock.Now()
	alive, err := s.Sessions.Alive(v.ctx())
	if err == nil && !alive {
		err = access.ErrUnauthenticated()
	}
	var who access.Principal
	if err == nil {
		who, err = s.Access.Principal(v.ctx(), v.who.UserID)
	}
	if err == nil {
		who.RemoteAddr, v.who = v.who.RemoteAddr, who
		var page statusData
		if page, err = s.measure(v, shown.Attempt.ID); err == nil {
			return page, nil
		}
	}
	if p, ok := errors.AsType[*problem.Error](err); (!ok || p.Kind == problem.Unavailable) && !v.left(err) {
		s.Logger.WarnContext(v.ctx(), "status stream ended", "attempt", shown.Attempt.ID, "error", err)
	}
	return statusData{}, err
}

// baseline is the track as the browser last saw it, in its states alone. States that it made up count
// as not seen.
func baseline(track gate.Track, seen string) gate.Track {
	states := strings.Split(seen, ",")
	if len(states) != len(track.Gates) {
		return track
	}
	before := gate.Track{Gates: slices.Clone(track.Gates)}
	for i, state := range states {
		if slices.Contains(gate.States(), gate.State(state)) {
			before.Gates[i].State = gate.State(state)
		}
	}
	return before
}

// changes lists the gates whose state is not the one before, the lowest gate first.
func changes(before, after gate.Track, at time.Time) []change {
	var out []change
	for i, g := range after.Gates {
		if i < len(before.Gates) && before.Gates[i].State != g.State {
			out = append(out, change{At: at, Title: g.Title, From: before.Gates[i].State, To: g.State})
		}
	}
	return out
}

// send writes one message: what differs between page and shown.
func (s *server) send(v *visit, page, shown statusData, before gate.Track) error {
	var parts []templ.Component
	for i, g := range page.Inventory.Gates {
		if i < len(shown.Inventory.Gates) && reflect.DeepEqual(g, shown.Inventory.Gates[i]) {
			parts = append(parts, gateTimePart(page, g))
			continue
		}
		parts = append(parts, gatePart(page, g))
	}
	if headDiffers(page, shown) {
		parts = append(parts, trackHeadPart(page), trackFootPart(page), statusHeadPart(page))
	}
	lines := changes(before, page.Inventory, page.CheckedAt)
	slices.Reverse(lines) // each is put on top, and the lowest gate belongs there
	for _, line := range lines {
		parts = append(parts, changePart(line))
	}
	var b bytes.Buffer
	for _, part := range parts {
		if err := part.Render(v.ctx(), &b); err != nil {
			if !v.left(err) {
				s.Logger.ErrorContext(v.ctx(), "part of a status page not rendered", "error", err)
			}
			return err
		}
	}
	return v.event(page.seen(), b.String())
}

// headDiffers tells whether anything but the gates themselves changed.
func headDiffers(page, shown statusData) bool {
	return page.Inventory.Passed() != shown.Inventory.Passed() || page.Inventory.Done != shown.Inventory.Done ||
		page.Inventory.Owner != shown.Inventory.Owner || page.ClusterID != shown.ClusterID ||
		page.MayWrite != shown.MayWrite || len(shown.Inventory.Gates) == 0 ||
		!page.Attempt.AbandonedAt.Equal(shown.Attempt.AbandonedAt) || !page.Attempt.ArchivedAt.Equal(shown.Attempt.ArchivedAt)
}

// event writes one server-sent event and pushes it out. Line ends within the data are lines of their
// own, as the format asks; a carriage return would end one too.
func (v *visit) event(id, data string) error {
	out := http.NewResponseController(v.w)
	deadline := time.Now().Add(writeWithin) //nolint:forbidigo // the kernel reads a socket's deadline by the machine's clock
	if err := out.SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "id: %s\n", id)
	for line := range strings.Lines(strings.ReplaceAll(data, "\r", "&#13;")) {
		fmt.Fprintf(&b, "data: %s\n", strings.TrimSuffix(line, "\n"))
	}
	b.WriteString("\n")
	if _, err := v.w.Write([]byte(b.String())); err != nil {
		return err
	}
	return out.Flush()
}
