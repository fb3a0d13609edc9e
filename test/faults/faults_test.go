// Package faults proves that the gates tell the truth about what is broken. Each row of its table sets one
// fault up for real, with the real programs against a real API server, and holds the gate's state, sentence
// and cure to what a person needs who reads them at night.
//
//	go test ./test/faults -v -run TestFaults        # prints the table with what was seen
//	go test ./test/faults -run TestFaults -update   # writes docs/troubleshooting.md from it
package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/test/harness"
)

var update = flag.Bool("update", false, "write docs/troubleshooting.md anew")

// row is one fault. arrange sets it up and leaves it standing; the gate must then come to the state.
type row struct {
	section string
	name    string
	gate    int
	state   console.GateState
	// says must all stand in the sentence, cure in the action, and never in neither.
	says, cure, never []string
	arrange           func(*scene)
}

// scene is where a row takes place: a console of its own whose clock can be moved, one attempt, and an API
// server that all rows share.
type scene struct {
	*testing.T

	h        *harness.T
	plane    *harness.ControlPlane
	second   *harness.ControlPlane // another cluster
	console  *harness.Console
	place    harness.Place
	recorded console.OnboardingRecorded
	clock    string   // the console's
	says     []string // that the row cannot know beforehand
	told     []told
	agents   []*harness.Agent
	proxies  []string      // addresses, for the page
	ends     []func()      // end the fault, which the product is to outlive
	ahead    time.Duration // the console's clock
	before   usage         // of the console, when the attempt was recorded
}

// settings make waits short. Console judges by its own interval of syncs.
func settings() map[string]string {
	return map[string]string{"PROXIMA_K8S_SYNC_INTERVAL": "5s"}
}

func rows() []row {
	return slices.Concat(tokenRows(), networkRows(), proxyRows(), agentRows(), replicaRows(), identityRows(), kubernetesRows(), consoleRows())
}

// seen is what a row came to, for the table.
type seen struct {
	row
	sentence, action, command string
	told                      []told
}

// told is what something other than the gates says of a fault: the agent's log, or Console itself.
type told struct{ who, text, cure string }

// atOnce is how many rows play at once: they mostly wait, on few cores as on many.
const atOnce = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestFaults(t *testing.T) {
	h := harness.New(t)
	plane, second := h.LightControlPlane(), h.LightControlPlane()
	table := make([]seen, len(rows()))
	whole := t.Run("rows", func(t *testing.T) {
		for i, r := range rows() {
			t.Run(r.section+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				s := &scene{T: t, h: harness.New(t), plane: plane, second: second, clock: filepath.Join(t.TempDir(), "clock")}
				defer s.leave()
				table[i] = s.play(r)
				s.outlive()
			})
		}
	})
	if !whole || slices.ContainsFunc(table, func(r seen) bool { return r.sentence == "" }) {
		return // the page is made of a whole table, by a run without -run or skipped rows
	}
	page := troubleshooting(table)
	path := filepath.Join("..", "..", "docs", "troubleshooting.md")
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), page); diff != "" {
		t.Errorf("docs/troubleshooting.md says something else: run go test ./test/faults -update\n%s", diff)
	}
}

// play sets the fault up and waits until the gate says of it what the row wants.
func (s *scene) play(r row) seen {
	s.Helper()
	r.arrange(s)
	if s.console == nil {
		s.Fatal("the row starts no console")
	}
	says := slices.Concat(r.says, s.says)
	var g console.Gate
	err := s.console.Process().Await(s.h.Context(), fmt.Sprintf("gate %d to be %s", r.gate, r.state), func(ctx context.Context) error {
		var err error
		if g, err = s.gate(ctx, r.gate); err != nil {
			return err
		}
		if g.State != r.state {
			return fmt.Errorf("it is %s: %s", g.State, g.Sentence)
		}
		for _, part := range says {
			if !strings.Contains(g.Sentence, part) {
				return fmt.Errorf("the sentence does not say %q: %s", part, g.Sentence)
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	out := seen{row: r, sentence: s.plain(g.Sentence)}
	if g.Action != nil {
		out.action = s.plain(g.Action.Text)
		if g.Action.Command != nil {
			out.command = s.plain(*g.Action.Command)
		}
	}
	for _, t := range s.told {
		out.told = append(out.told, told{t.who, s.plain(t.text), s.plain(t.cure)})
	}
	for _, part := range r.cure {
		if !strings.Contains(out.action, part) {
			s.Errorf("the action does not say %q", part)
		}
	}
	for _, part := range r.never {
		if strings.Contains(g.Sentence+" "+out.action, part) {
			s.Errorf("sentence or action say %q", part)
		}
	}
	if g.State == console.GateStateFailed && out.action == "" {
		s.Error("a failed gate without an action")
	}
	s.Logf("gate %d %s\n  %s\n  %s\n  %s\n  %v", r.gate, r.state, out.sentence, out.action, out.command, out.told)
	return out
}

// gate measures one gate of the attempt.
func (s *scene) gate(ctx context.Context, number int) (console.Gate, error) {
	status, err := s.console.Status(ctx, s.recorded.Onboarding.ID)
	for _, g := range status.Inventory.Gates {
		if err == nil && g.Number == number {
			return g, nil
		}
	}
	return console.Gate{}, errors.Join(err, fmt.Errorf("no gate %d", number))
}

// attempt starts a console, and records an attempt there.
func (s *scene) attempt() { s.attemptOn(harness.ConsoleOptions{}) }

func (s *scene) attemptOn(o harness.ConsoleOptions) {
	s.Helper()
	env := settings()
	maps.Copy(env, o.Env)
	env["GOGC"] = eagerly
	env["PROXIMA_TEST_CLOCK_FILE"] = s.clock
	o.Env = env
	s.console = s.h.Console(o)
	var err error
	if s.place, err = s.console.NewPlace(s.Context(), "Halden Energy", "prod"); err != nil {
		s.Fatal(err)
	}
	s.record("Halden prod")
	s.before = s.usage()
}

// record records an attempt, or records it again.
func (s *scene) record(name string) {
	s.Helper()
	var err error
	if s.recorded, err = s.console.Record(s.Context(), s.place, name); err != nil {
		s.Fatal(err)
	}
}

// agent starts a collector of the attempt, with some variables changed.
func (s *scene) agent(change map[string]string) *harness.Agent {
	s.Helper()
	return s.start(s.options(change))
}

// options are those of a collector of the attempt, with some variables changed.
func (s *scene) options(change map[string]string) harness.AgentOptions {
	env := settings()
	env["PROXIMA_HEARTBEAT_INTERVAL"] = "2s"
	maps.Copy(env, change)
	return s.plane.DirectAgent(s.console, s.recorded, env)
}

func (s *scene) start(o harness.AgentOptions) *harness.Agent {
	s.Helper()
	a := s.h.Agent(o)
	s.agents = append(s.agents, a)
	return a
}

// synced makes an attempt, and starts a collector of it whose first inventory is stored.
func (s *scene) synced() *harness.Agent {
	s.Helper()
	s.attempt()
	a := s.agent(nil)
	s.await(4, passed)
	return a
}

// await waits until a gate of the attempt is in a state.
func (s *scene) await(number int, state console.GateState) {
	s.Helper()
	if _, err := s.console.AwaitGate(s.h.Context(), s.recorded.Onboarding.ID, number, state); err != nil {
		s.Fatal(err)
	}
}

// logged waits until the agent has logged a line that holds the text, and keeps the line for the page.
func (s *scene) logged(a *harness.Agent, text string) {
	s.Helper()
	if err := a.AwaitLog(s.h.Context(), text); err != nil {
		s.Fatal(err)
	}
	log, err := os.ReadFile(a.Process().LogPath())
	if err != nil {
		s.Fatal(err)
	}
	s.tell(string(log), text)
}

// dies starts an agent that must end by itself, with the text as its last word.
func (s *scene) dies(o harness.AgentOptions, text string) {
	s.Helper()
	if o.Program == "" {
		o.Program = s.h.Product().ClusterAgent
	}
	a, err := harness.StartAgent(s.h.Context(), o)
	if err != nil { // it was gone before it answered
		s.tell(err.Error(), text)
		return
	}
	defer func() {
		if err := a.Stop(); err != nil {
			s.Error(err)
		}
	}()
	if err := a.Process().Wait(s.h.Context()); err == nil || s.h.Context().Err() != nil {
		s.Fatalf("the agent did not end with an error: %v", err)
	}
	s.tell(a.Process().LogTail(), text)
}

// tell keeps the first line of a log that holds the text.
func (s *scene) tell(log, text string) {
	s.Helper()
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			if l, ok := parseLine(line); ok {
				if !slices.Contains(s.told, l) {
					s.told = append(s.told, l)
				}
				return
			}
		}
	}
	s.Fatalf("no line of the log says %q:\n%s", text, log)
}

// later moves the console's clock.
func (s *scene) later(by time.Duration) {
	s.setClock(s.clock, by)
	s.ahead = by
}

// endsBy is how the fault ends after the gate was looked at, or before. Then gate 4 must pass again.
func (s *scene) endsBy(end func() error) (now func()) {
	now = sync.OnceFunc(func() {
		if err := end(); err != nil {
			s.Error(err)
		}
	})
	s.ends = append(s.ends, now)
	return now
}

// outlive ends the fault, and waits until all is well.
func (s *scene) outlive() {
	s.Helper()
	for _, end := range s.ends {
		end()
	}
	if len(s.ends) > 0 {
		s.syncedAfter(time.Now().Add(s.ahead))
		s.await(4, passed)
		s.agentsHoldLittle()
	}
}

func (s *scene) setClock(path string, ahead time.Duration) {
	s.Helper()
	if err := os.WriteFile(path+".new", []byte(ahead.String()), 0o600); err != nil {
		s.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		s.Fatal(err)
	}
}

// call asks the console's API as its administrator.
func (s *scene) call(method, path string, body, out any) {
	s.Helper()
	if _, err := s.console.Do(s.Context(), method, path, body, out); err != nil {
		s.Fatal(err)
	}
}

// agentID is the only agent's.
func (s *scene) agentID() string {
	s.Helper()
	var list console.AgentList
	s.call(http.MethodGet, "/api/v1/fleet/agents", nil, &list)
	if len(list.Items) != 1 {
		s.Fatalf("%d agents", len(list.Items))
	}
	return list.Items[0].ID
}
