// Package kills proves that what console has answered for outlives SIGKILL. People and agents ask it for
// things without a pause, one program after the other is killed at a moment that a seed draws, and after each
// kill what is stored is counted against what was acknowledged.
//
//	go test ./test/kills -v                       # twenty kills, with a seed of its own
//	go test ./test/kills -v -kills 200 -seed 42   # the kills of one seed again
package kills

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/console/store"
	"prxm.uz/proxima/test/harness"
	"prxm.uz/proxima/test/storetest"
)

var (
	count = flag.Int("kills", 20, "how many times something is killed, over both houses")
	seed  = flag.Uint64("seed", 0, "which kills; 0 draws a seed")
)

const (
	// workers ask at the same time.
	workers = 3
	// longest is how long they ask at most before the kill.
	longest = 700 * time.Millisecond
	// together is how often, of ten kills, a second program is killed at the same moment.
	together = 3
	// newcomers is after how many kills, on average, an agent is killed as it begins.
	newcomers = 4
	// recovers is how long the house may take to stand again.
	recovers = time.Minute
)

func TestKills(t *testing.T) {
	drawn := *seed
	for drawn == 0 {
		drawn = rand.Uint64() >> 32
	}
	t.Logf("seed %d: go test ./test/kills -v -kills %d -seed %d", drawn, *count, drawn)
	plane, other := harness.New(t).LightControlPlane(), harness.New(t).LightControlPlane()
	for i, build := range []func(*testing.T, *harness.T) *house{embedded, external} {
		h := harness.New(t)
		house := build(t, h)
		t.Run(house.name, func(t *testing.T) {
			t.Parallel()
			house.run(t, harness.New(t), plane, other, rand.New(rand.NewPCG(drawn, uint64(i))), *count/2)
		})
	}
}

// victim is a program that can be killed and brought back.
type victim struct {
	name   string
	kill   func() error
	revive func(context.Context) error
}

// house is a console with all that it stands on.
type house struct {
	name    string
	console *harness.Console
	agent   *harness.Agent
	db      *storetest.Database
	victims []victim // each after what it needs to start
	place   harness.Place
	ledger  ledger
}

// syncInterval is console's and the agents'.
const syncInterval = "1s"

// intervals are the agents'.
func intervals() map[string]string {
	return map[string]string{"PROXIMA_K8S_SYNC_INTERVAL": syncInterval, "PROXIMA_HEARTBEAT_INTERVAL": "1s"}
}

// settings are console's; the test is the reverse proxy.
func settings() map[string]string {
	return map[string]string{"PROXIMA_K8S_SYNC_INTERVAL": syncInterval, "PROXIMA_TRUSTED_PROXIES": "127.0.0.1"}
}

// embedded is a console with SQLite and its own NATS.
func embedded(t *testing.T, h *harness.T) *house {
	c := h.Console(harness.ConsoleOptions{Env: settings()})
	return &house{
		name: "sqlite", console: c, db: storetest.Beside(t, store.Config{Path: filepath.Join(c.DataDir, "console.db")}),
		victims: []victim{{"console", c.Kill, c.Start}},
	}
}

// external is a console beside PostgreSQL and a NATS server.
func external(t *testing.T, h *harness.T) *house {
	nats, env := h.OwnNATS()
	postgres := h.Postgres()
	maps.Copy(env, settings())
	env["PROXIMA_DATABASE_URL"] = h.Database(postgres)
	c := h.Console(harness.ConsoleOptions{Env: env})
	return &house{
		name: "postgres", console: c, db: storetest.Beside(t, store.Config{URL: env["PROXIMA_DATABASE_URL"]}),
		victims: []victim{{"PostgreSQL", postgres.Kill, postgres.Restart}, {"NATS", nats.Kill, nats.Restart}, {"console", c.Kill, c.Start}},
	}
}

// run kills. The agents of newcomers watch a cluster of their own.
func (h *house) run(t *testing.T, verbs *harness.T, plane, other *harness.ControlPlane, draw *rand.Rand, kills int) {
	place, err := h.console.NewPlace(t.Context(), "Halden Energy", "prod")
	if err != nil {
		t.Fatal(err)
	}
	h.place = place
	recorded, err := h.console.Record(t.Context(), place, "Watched")
	if err != nil {
		t.Fatal(err)
	}
	h.ledger.begin(recorded)
	h.agent = verbs.Agent(plane.DirectAgent(h.console, recorded, intervals()))
	h.victims = append(h.victims, victim{"agent", h.agent.Kill, h.agent.Start})
	h.inventoryIsWhole(t, plane)

	for k := range kills {
		chosen := h.choose(draw)
		after := time.Duration(draw.Int64N(int64(longest)))
		name := fmt.Sprintf("%s-%d", h.name, k)
		if err := plane.AddNamespace(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		t.Logf("kill %d: %s after %s", k, names(chosen), after.Round(time.Millisecond))
		h.killWhileWorking(t, chosen, after, draw)
		h.stands(t)
		if draw.IntN(newcomers) == 0 {
			h.newcomer(t, verbs, other, fmt.Sprintf("newcomer-%d", k), time.Duration(draw.Int64N(int64(longest))))
		}
		h.ledger.settle(t, h)
		h.ledger.holds(t, h)
		h.inventoryIsWhole(t, plane)
		if t.Failed() {
			t.Fatalf("after kill %d of %s", k, names(chosen))
		}
	}
	t.Logf("%s: %d kills, %s", h.name, kills, h.ledger.String())
}

func names(victims []victim) string {
	var all []string
	for _, v := range victims {
		all = append(all, v.name)
	}
	return strings.Join(all, " and ")
}

// choose draws one victim, or two.
func (h *house) choose(draw *rand.Rand) []victim {
	order := draw.Perm(len(h.victims))
	n := 1
	if draw.IntN(10) < together {
		n = 2
	}
	var chosen []victim
	for _, i := range order[:n] {
		chosen = append(chosen, h.victims[i])
	}
	return chosen
}

// killWhileWorking lets the workers ask, kills, and brings back what was killed.
func (h *house) killWhileWorking(t *testing.T, chosen []victim, after time.Duration, draw *rand.Rand) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	for range workers {
		own := rand.New(rand.NewPCG(draw.Uint64(), draw.Uint64()))
		group.Go(func() { h.ledger.work(ctx, h, own) })
	}
	<-time.After(after)
	for _, v := range chosen {
		if err := v.kill(); err != nil {
			t.Errorf("kill %s: %v", v.name, err)
		}
	}
	cancel()
	group.Wait()
	revive, done := context.WithTimeout(t.Context(), recovers)
	defer done()
	for _, v := range h.victims {
		if !slices.ContainsFunc(chosen, func(c victim) bool { return c.name == v.name }) {
			continue
		}
		if err := v.revive(revive); err != nil {
			t.Fatalf("%s does not come back: %v", v.name, err)
		}
	}
}

// newcomer starts an agent, kills it while it enrolls or soon after, and starts it again: it is one agent, which
// used its token once.
func (h *house) newcomer(t *testing.T, verbs *harness.T, plane *harness.ControlPlane, name string, after time.Duration) {
	t.Helper()
	t.Logf("and an agent %s after it lives", after.Round(time.Millisecond))
	recorded, err := h.console.Record(t.Context(), h.place, name)
	if err != nil {
		t.Fatal(err)
	}
	h.ledger.asked[name] = true
	h.ledger.running++
	a := verbs.Agent(plane.DirectAgent(h.console, recorded, intervals()))
	<-time.After(after)
	if err := a.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), recovers)
	defer cancel()
	if _, err := h.console.AwaitGate(ctx, recorded.Onboarding.ID, 3, console.GateStatePassed); err != nil {
		t.Fatal(err)
	}
	if err := a.Process().Stop(); err != nil {
		t.Error(err)
	}
}

// stands waits until console and agent say that they are ready.
func (h *house) stands(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), recovers)
	defer cancel()
	if err := h.console.Process().AwaitReady(ctx, h.console.URL+"/readyz"); err != nil {
		t.Fatal(err)
	}
	if err := h.agent.AwaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

// inventoryIsWhole waits until console stores the namespaces that the API server has, each once.
func (h *house) inventoryIsWhole(t *testing.T, plane *harness.ControlPlane) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), recovers)
	defer cancel()
	var want, got []string
	err := harness.Await(ctx, "the inventory", func(ctx context.Context) error {
		list, err := plane.Client().CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		want = want[:0]
		for i := range list.Items {
			want = append(want, list.Items[i].Name)
		}
		slices.Sort(want)
		got = h.db.Texts(t, "SELECT o.name FROM inventory_objects o JOIN clusters c ON c.id = o.cluster_id WHERE c.slug = 'watched' AND o.section = 'namespaces' ORDER BY o.name")
		if !slices.Equal(want, got) {
			return errors.New("not yet what the API server has")
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v: %v, want %v", err, got, want)
	}
	for number := 1; number <= 4; number++ {
		if _, err := h.console.AwaitGate(ctx, h.ledger.watched, number, console.GateStatePassed); err != nil {
			t.Fatal(err)
		}
	}
}
