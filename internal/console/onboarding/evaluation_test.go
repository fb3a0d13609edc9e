package onboarding_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/onboarding"
)

// watched tells of each round what came of asking for the lease.
type watched struct {
	onboarding.Store
	rounds chan bool
}

func (w watched) Lease(ctx context.Context, name, holder string, now, until time.Time) (bool, error) {
	mine, err := w.Store.Lease(ctx, name, holder, now, until)
	w.rounds <- mine
	return mine, err
}

// noting tells of each ticker that is made.
type noting struct {
	clock.Clock
	every chan time.Duration
}

func (n noting) NewTicker(d time.Duration) clock.Ticker {
	n.every <- d
	return n.Clock.NewTicker(d)
}

// Open attempts are judged every 30 s, and by one replica alone: another takes over once the lease of the
// one that did it has lapsed.
func TestOneReplicaEvaluatesEvery30Seconds(t *testing.T) {
	inOffices(t, func(t *testing.T, o *office) {
		attempt := o.record("Alpha").Attempt.ID
		rounds, every := make(chan bool, 1), make(chan time.Duration, 1)
		begun := o.clock.Now()
		if mine, err := o.db.Onboarding().Lease(t.Context(), "onboarding-evaluation", "another replica", begun, begun.Add(75*time.Second)); err != nil || !mine {
			t.Fatal(mine, err)
		}
		replica := onboarding.New(onboarding.Config{
			Store: watched{o.db.Onboarding(), rounds}, Environments: o.db.Enrollment(), Clock: noting{o.clock, every}, Logger: slog.New(slog.DiscardHandler),
			PublicURL: "https://console.example", SyncInterval: 5 * time.Minute,
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); replica.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })

		if d := <-every; d != 30*time.Second {
			t.Errorf("judged every %v", d)
		}
		next := func() bool {
			select {
			case mine := <-rounds:
				return mine
			case <-time.After(20 * time.Second):
				t.Fatal("no round")
				return false
			}
		}
		got := []bool{next()}
		for range 4 { // a round that asks for the lease has ended the one before
			a, err := o.db.Onboarding().Attempt(t.Context(), attempt)
			must(t, err)
			if !a.LastCheckedAt.IsZero() && !slices.Contains(got, true) {
				t.Error("judged while another replica holds the lease")
			}
			o.clock.Advance(30 * time.Second)
			got = append(got, next())
		}
		if !slices.Equal(got, []bool{false, false, false, true, true}) {
			t.Errorf("held the lease in the rounds: %v", got)
		}
		if a, err := o.db.Onboarding().Attempt(t.Context(), attempt); err != nil || a.LastCheckedAt.IsZero() {
			t.Errorf("not judged by the one that took over: %v", err)
		}
	})
}
