package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/config"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/health/part"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/console/problem"
)

// world answers every question; hang makes one wait for its context, stuck for itself.
type world struct {
	fails, hangs string
	stuck        chan struct{}
	away         bool
}

func (w *world) answer(ctx context.Context, what string) error {
	switch what {
	case w.fails:
		return errors.New("postgres://u:hunter22@db is away")
	case w.hangs:
		<-ctx.Done()
		return fmt.Errorf("asking: %w", ctx.Err())
	}
	return nil
}

func (w *world) Engine() string       { return part.PostgreSQL }
func (w *world) SchemaVersion() int64 { return 7 }
func (w *world) Ask(ctx context.Context) (part.Database, error) {
	return part.Database{Version: "17.6", Schema: 7, HasClock: true}, w.answer(ctx, "database")
}
func (w *world) Ready(ctx context.Context) error { return w.answer(ctx, "writes") }

func (w *world) Connection() part.NATS {
	return part.NATS{Connected: !w.away, Server: "nats-0", Version: "2.12.1"}
}

func (w *world) Stream(ctx context.Context) (part.Stream, error) {
	return part.Stream{Tried: true, Stores: true, Limit: 1}, w.answer(ctx, "stream")
}

func (w *world) Ingest(ctx context.Context) (part.Ingest, error) {
	return part.Ingest{}, w.answer(ctx, "ingest")
}

func (w *world) disk() (part.Disk, error) {
	if w.hangs == "disk" { // no context reaches a file system
		<-w.stuck
	}
	if w.fails == "disk" {
		return part.Disk{}, errors.New("postgres://u:hunter22@db is away")
	}
	return part.Disk{Directory: "/data", Free: 1 << 40, Total: 1 << 41}, nil
}

func (w *world) service() *Service {
	return New(Config{
		Database: w, NATS: w, Disk: w.disk, SyncInterval: time.Minute, Clock: clock.System(), Logger: slog.New(slog.DiscardHandler),
		Settings: []config.Setting{{Flag: "log-level", Value: "info"}},
	})
}

func admin() access.Principal {
	return access.Principal{UserID: "u", Grants: []access.Grant{{Permissions: []access.Permission{access.SettingsRead}}}}
}

func states(t *testing.T, r Report) string {
	t.Helper()
	var list []string
	for _, p := range r.Parts {
		list = append(list, p.ID+"="+string(p.State))
	}
	return strings.Join(list, " ")
}

func TestReport(t *testing.T) {
	r, err := (&world{}).service().Report(t.Context(), admin())
	if err != nil {
		t.Fatal(err)
	}
	want := "database=passed writes=passed schema=passed clock="
	if got := states(t, r); !strings.HasPrefix(got, want) || strings.Contains(got, "failed") || len(r.Settings) != 1 {
		t.Errorf("%s, %v", got, r.Settings)
	}
	for _, v := range r.Versions {
		if v.Value == "" {
			t.Errorf("%s has no version", v.Name)
		}
	}
}

func TestWhoMayNot(t *testing.T) {
	client := admin()
	client.Grants[0].Scope = access.Scope{ClientID: "cl"}
	for name, p := range map[string]access.Principal{"nobody": {}, "on one client": client} {
		if _, err := (&world{}).service().Report(t.Context(), p); !problem.Is(err, problem.Forbidden) && !problem.Is(err, problem.Unauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOnePartAloneFails: what one question came to takes nothing from the others, and no text of an error is shown.
func TestOnePartAloneFails(t *testing.T) {
	for fails, want := range map[string]string{
		"database": "database=failed", "writes": "writes=failed", "stream": "stream=warning", "ingest": "ingest=warning", "disk": "disk=warning",
	} {
		r, err := (&world{fails: fails}).service().Report(t.Context(), admin())
		if got := states(t, r); err != nil || !strings.Contains(got, want) || !strings.Contains(got, "nats=passed") {
			t.Errorf("%s: %s, %v", fails, got, err)
		}
		if strings.Contains(fmt.Sprintf("%+v", r), "hunter22") {
			t.Errorf("%s: the error is shown: %+v", fails, r.Parts)
		}
	}
}

func TestWithoutNATSNothingIsAskedOfIt(t *testing.T) {
	r, err := (&world{away: true, hangs: "stream"}).service().Report(t.Context(), admin())
	if got := states(t, r); err != nil || !strings.Contains(got, "nats=failed stream=blocked ingest=blocked") {
		t.Errorf("%s, %v", got, err)
	}
}

// TestWhatHangsIsNotWaitedFor: whatever hangs, the report comes within its bound, with the other parts measured.
func TestWhatHangsIsNotWaitedFor(t *testing.T) {
	for _, hangs := range []string{"database", "writes", "stream", "ingest", "disk"} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{hangs: hangs, stuck: make(chan struct{})}
			s := w.service()
			for range 2 { // the second finds the first one's question still under way
				begun := s.Clock.Now()
				r, err := s.Report(t.Context(), admin())
				if took := s.Clock.Now().Sub(begun); took != Bound || err != nil {
					t.Errorf("%s: %s, %v", hangs, took, err)
				}
				for _, p := range r.Parts {
					if p.ID == hangs && p.State == gate.Passed || p.ID == "nats" && p.State != gate.Passed {
						t.Errorf("%s hangs, and %s is %s", hangs, p.ID, p.State)
					}
				}
			}
			close(w.stuck)
			synctest.Wait()
			w.hangs = ""
			if r, err := s.Report(t.Context(), admin()); err != nil || !strings.Contains(states(t, r), hangs+"=passed") {
				t.Errorf("%s came back: %s, %v", hangs, states(t, r), err)
			}
		})
	}
}
