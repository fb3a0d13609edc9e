// Package load measures what a fleet of agents costs a console, and holds it to having lost nothing: each agent
// enrolls, has a key, a credential and a connection of its own, and publishes inventories that change.
//
//	go test ./test/load -v     # a small fleet, for some seconds
//	make load                  # the fleet of docs/benchmarks.md
package load

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/console/store"
	"prxm.uz/proxima/test/harness"
	"prxm.uz/proxima/test/storetest"
)

var (
	agents    = flag.Int("agents", 20, "how many agents, each with a cluster")
	pods      = flag.Int("pods", 200, "how many pods each cluster has")
	attempts  = flag.Int("attempts", 40, "how many attempts are stored, those of the agents included")
	syncEvery = flag.Duration("sync", 2*time.Second, "how often an agent publishes its inventory, 1 % of which changed")
	beatEvery = flag.Duration("heartbeat", time.Second, "how often an agent sends heartbeat and presence")
	steady    = flag.Duration("steady", 5*time.Second, "for how long the fleet is watched once it is complete")
)

const (
	// heard counts the agents that said something since.
	heard = "SELECT COUNT(*) FROM agents WHERE presence_at > $1 AND heartbeat_at > $1"
	// clients is how many clients share the clusters.
	clients = 10
	// atOnce is how many agents enroll at the same time.
	atOnce = 8
	// looks is how often the status of one attempt is asked for.
	looks = 100
	// settles is how long the fleet may take to be where it should be.
	settles = 5 * time.Minute
)

func TestLoad(t *testing.T) {
	for name, settings := range map[string]func(*harness.T) map[string]string{
		"sqlite": func(*harness.T) map[string]string { return map[string]string{} },
		"postgres": func(h *harness.T) map[string]string {
			return map[string]string{"PROXIMA_DATABASE_URL": h.Database(h.Postgres())}
		},
	} {
		t.Run(name, func(t *testing.T) { newFleet(t, settings(harness.New(t))).measure() })
	}
}

// fleet is a console with its agents.
type fleet struct {
	*testing.T

	console  *harness.Console
	db       *storetest.Database
	agents   []*agent
	postgres bool
	watched  string // an attempt whose status is asked for
	figures  figures
}

func newFleet(t *testing.T, env map[string]string) *fleet {
	env["PROXIMA_TRUSTED_PROXIES"] = "127.0.0.1" // the agents say where they call from
	h := harness.New(t)
	product, err := harness.BuildProduct(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	c := h.Console(harness.ConsoleOptions{Program: product.Console, Env: env})
	return &fleet{T: t, console: c, postgres: env["PROXIMA_DATABASE_URL"] != "", db: storetest.Beside(t, store.Config{URL: env["PROXIMA_DATABASE_URL"], Path: filepath.Join(c.DataDir, "console.db")})}
}

func (f *fleet) measure() {
	ctx, cancel := context.WithCancel(f.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	f.record()
	f.phase("enrolment", func() {
		f.enroll(ctx, &running)
		f.arrived()
	})
	f.phase("steady", func() { f.watch(ctx) })
	f.phase("restart", f.restart)
	for _, a := range f.agents {
		if n := a.refusals.Load(); n > 0 {
			f.Errorf("%s was refused %d times", a.cluster.slug, n)
		}
	}
	cancel()
	running.Wait()
	f.holds()
	f.Logf("\n%s", f.figures.table())
}

// record makes the attempts; the first belong to the agents.
func (f *fleet) record() {
	var places []harness.Place
	for i := range clients {
		place, err := f.console.NewPlace(f.Context(), fmt.Sprintf("Client %d", i), "prod")
		if err != nil {
			f.Fatal(err)
		}
		places = append(places, place)
	}
	for i := range max(*attempts, *agents) {
		recorded, err := f.console.Record(f.Context(), places[i%clients], fmt.Sprintf("Cluster %d", i))
		if err != nil {
			f.Fatal(err)
		}
		if i < *agents {
			f.agents = append(f.agents, newAgent(i, recorded))
		}
	}
	f.watched = f.agents[0].recorded.Onboarding.ID
}

func newAgent(number int, recorded console.OnboardingRecorded) *agent {
	draw := rand.New(rand.NewPCG(uint64(number), 1))
	return &agent{
		recorded: recorded, address: fmt.Sprintf("10.0.%d.%d", number>>8, number&255), every: intervals{sync: *syncEvery, heartbeat: *beatEvery},
		cluster: newWatched(recorded.Onboarding.Slug, *pods, draw),
	}
}

func (f *fleet) enroll(ctx context.Context, running *sync.WaitGroup) {
	group, enrolling := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, a := range f.agents {
		group.Go(func() error {
			if err := a.enroll(enrolling, f.console.URL); err != nil {
				return err
			}
			running.Go(func() { a.run(ctx) })
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		f.Fatal(err)
	}
}

// arrived waits until each agent was heard and each cluster has an inventory.
func (f *fleet) arrived() {
	f.await("the first inventory of each cluster", func(context.Context) error {
		if err := f.counts(len(f.agents), heard, 0); err != nil {
			return err
		}
		return f.counts(len(f.agents), "SELECT COUNT(*) FROM clusters WHERE last_sync_at IS NOT NULL AND NOT partly_applied")
	})
}

// watch lets the fleet be, and asks for the status of one attempt meanwhile.
func (f *fleet) watch(ctx context.Context) {
	over := time.After(*steady)
	next := time.NewTicker(*steady / looks)
	defer next.Stop()
	for {
		select {
		case <-over:
			return
		case <-next.C:
			began := time.Now()
			status, err := f.console.Status(ctx, f.watched)
			if err != nil {
				f.Fatal(err)
			}
			f.figures.status = append(f.figures.status, time.Since(began))
			for _, g := range status.Inventory.Gates {
				if g.State != console.GateStatePassed {
					f.Errorf("gate %d of %s is %s: %s", g.Number, status.Onboarding.Slug, g.State, g.Sentence)
				}
			}
		}
	}
}

// restart kills the console: all agents lose their connection at once.
func (f *fleet) restart() {
	connections := make([]int64, len(f.agents))
	for i, a := range f.agents {
		connections[i] = a.connections.Load()
	}
	if err := f.console.Kill(); err != nil {
		f.Fatal(err)
	}
	began := time.Now()
	if err := f.console.Start(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.figures.ready = time.Since(began)
	f.await("all agents to come back", func(context.Context) error {
		away := 0
		for i, a := range f.agents {
			if a.connections.Load() == connections[i] {
				away++
			}
		}
		return nothing(away, "agents are away")
	})
	f.figures.back = time.Since(began)
	f.await("all agents to be heard", func(context.Context) error {
		return f.counts(len(f.agents), heard, began.UnixMicro())
	})
	f.figures.heard = time.Since(began)
	f.await("an inventory of each since", func(context.Context) error {
		return f.counts(len(f.agents), "SELECT COUNT(*) FROM clusters WHERE last_sync_at > $1", began.UnixMicro())
	})
}

// holds counts what is stored against what was sent.
func (f *fleet) holds() {
	f.await("the newest inventory of each cluster", func(context.Context) error {
		var want []string
		objects := 0
		for _, a := range f.agents {
			epoch, number := a.newest()
			want = append(want, fmt.Sprintf("%s %d.%d", a.cluster.slug, epoch, number))
			objects += a.cluster.objects()
		}
		slices.Sort(want)
		got := f.db.Texts(f.T, "SELECT slug || ' ' || epoch || '.' || sync_number FROM clusters WHERE NOT partly_applied")
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("stored %v, want %v", got, want)
		}
		return f.counts(objects, "SELECT COUNT(*) FROM inventory_objects")
	})
	if err := f.counts(0, "SELECT COUNT(*) FROM agents WHERE suspended_at IS NOT NULL OR revoked_at IS NOT NULL"); err != nil {
		f.Error(err)
	}
	if err := f.counts(len(f.agents), "SELECT COALESCE(SUM(uses), 0) FROM install_tokens"); err != nil {
		f.Error(err)
	}
}

func (f *fleet) counts(want int, query string, args ...any) error {
	if n := f.db.Count(f.T, query, args...); n != want {
		return fmt.Errorf("%d of %d: %s", n, want, query)
	}
	return nil
}

func nothing(n int, what string) error {
	if n > 0 {
		return fmt.Errorf("%d %s", n, what)
	}
	return nil
}

func (f *fleet) await(what string, check func(context.Context) error) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), settles)
	defer cancel()
	if err := f.console.Process().Await(ctx, what, check); err != nil {
		f.Fatal(err)
	}
}
