// Package faults proves that the gates tell the truth about what is broken. Each row of its table sets one
// fault up for real, with the real programs against a real API server, and holds the gate's state, sentence
// and cure to what a person needs who reads them at night.
//
//	go test ./test/faults -v -run TestFaults        # prints the table with what was seen
//	go test ./test/faults -run TestFaults -update   # writes docs/troubleshooting.md from it
package faults

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	console  *harness.Console
	place    harness.Place
	recorded console.OnboardingRecorded
	clock    string // the console's
}

// settings make waits short. Console judges by its own interval of syncs.
func settings() map[string]string {
	return map[string]string{"PROXIMA_K8S_SYNC_INTERVAL": "5s", "PROXIMA_HEARTBEAT_INTERVAL": "2s"}
}

func rows() []row {
	return slices.Concat(tokenRows(), networkRows(), agentRows())
}

// seen is what a row came to, for the table.
type seen struct {
	row
	sentence, action, command string
}

func TestFaults(t *testing.T) {
	plane := harness.New(t).LightControlPlane()
	table := make([]seen, len(rows()))
	t.Run("rows", func(t *testing.T) {
		for i, r := range rows() {
			t.Run(r.section+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				g := play(t, plane, r)
				table[i] = seen{row: r, sentence: g.Sentence}
				if g.Action != nil {
					table[i].action = g.Action.Text
					if g.Action.Command != nil {
						table[i].command = *g.Action.Command
					}
				}
			})
		}
	})
	if t.Failed() {
		return
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
	if string(want) != page {
		t.Errorf("docs/troubleshooting.md says something else: run go test ./test/faults -update\n%s", page)
	}
}

func play(t *testing.T, plane *harness.ControlPlane, r row) console.Gate {
	t.Helper()
	s := &scene{T: t, h: harness.New(t), plane: plane, clock: filepath.Join(t.TempDir(), "clock")}
	r.arrange(s)
	if s.console == nil {
		t.Fatal("the row starts no console")
	}
	g, err := s.console.AwaitGate(s.h.Context(), s.recorded.Onboarding.ID, r.gate, r.state)
	if err != nil {
		t.Fatal(err)
	}
	action := ""
	if g.Action != nil {
		action = g.Action.Text
	}
	for _, part := range r.says {
		if !strings.Contains(g.Sentence, part) {
			t.Errorf("the sentence does not say %q", part)
		}
	}
	for _, part := range r.cure {
		if !strings.Contains(action, part) {
			t.Errorf("the action does not say %q", part)
		}
	}
	for _, part := range r.never {
		if strings.Contains(g.Sentence+" "+action, part) {
			t.Errorf("sentence or action say %q", part)
		}
	}
	if g.State == console.GateStateFailed && action == "" {
		t.Error("a failed gate without an action")
	}
	t.Logf("gate %d %s\n  %s\n  %s", g.Number, g.State, g.Sentence, action)
	return g
}

// attempt starts a console, and records an attempt there.
func (s *scene) attempt() { s.attemptOn(harness.ConsoleOptions{}) }

func (s *scene) attemptOn(o harness.ConsoleOptions) {
	s.Helper()
	env := settings()
	for name, value := range o.Env {
		env[name] = value
	}
	env["PROXIMA_TEST_CLOCK_FILE"] = s.clock
	o.Env = env
	s.console = s.h.Console(o)
	var err error
	if s.place, err = s.console.NewPlace(s.Context(), "Halden Energy", "prod"); err != nil {
		s.Fatal(err)
	}
	s.record("Halden prod")
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
	env := settings()
	for name, value := range change {
		env[name] = value
	}
	return s.h.Agent(s.plane.DirectAgent(s.console, s.recorded, env))
}

// await waits until a gate of the attempt is in a state.
func (s *scene) await(number int, state console.GateState) {
	s.Helper()
	if _, err := s.console.AwaitGate(s.h.Context(), s.recorded.Onboarding.ID, number, state); err != nil {
		s.Fatal(err)
	}
}

// logged waits until the agent has logged a text.
func (s *scene) logged(a *harness.Agent, text string) {
	s.Helper()
	if err := a.AwaitLog(s.h.Context(), text); err != nil {
		s.Fatal(err)
	}
}

// later moves the console's clock.
func (s *scene) later(by time.Duration) { s.setClock(s.clock, by) }

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

// troubleshooting is docs/troubleshooting.md.
func troubleshooting(table []seen) string {
	var b strings.Builder
	b.WriteString("# Troubleshooting\n\nWhat the gates say about each fault, as a test saw them say it against real servers. Names, ages and\naddresses are examples.\n")
	section := ""
	for _, r := range table {
		if r.section != section {
			section = r.section
			fmt.Fprintf(&b, "\n## %s\n", section)
		}
		fmt.Fprintf(&b, "\n### %s\n\nGate %d, %s: %s\n", r.name, r.gate, r.state, steady(r.sentence))
		if r.action != "" {
			fmt.Fprintf(&b, "\nDo: %s\n", steady(r.action))
		}
		if r.command != "" {
			fmt.Fprintf(&b, "\n```sh\n%s\n```\n", steady(r.command))
		}
	}
	return b.String()
}
