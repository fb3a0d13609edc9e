package faults

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // another process's view of the database file

	"prxm.uz/proxima/test/harness"
)

// outage is how long a part of Console is away.
const outage = 10 * time.Second

// consoleRows are what happens to Console itself.
func consoleRows() []row {
	const section = "Console"
	return []row{
		{
			section: section, name: "It restarts between each two steps", gate: 4, state: passed,
			arrange: func(s *scene) {
				s.attempt()
				s.restart()
				s.agent(nil)
				for _, step := range []int{2, 3, 4} {
					s.await(step, passed)
					s.restart()
				}
				s.syncedAfter(time.Now())
			},
		},
		{
			section: section, name: "Another process locks the SQLite file for ten seconds", gate: 4, state: passed,
			arrange: func(s *scene) {
				s.synced()
				release := s.lock(filepath.Join(s.console.DataDir, "console.db"))
				s.until(time.Now().Add(outage))
				release()
				s.syncedAfter(time.Now())
			},
		},
		{
			section: section, name: "Another process locks the SQLite file, and goes on", gate: 4, state: warning, says: []string{"last inventory that was stored", "cannot store"},
			cure: []string{"Mend this Console first"}, never: []string{"pod’s log"},
			arrange: func(s *scene) {
				s.synced()
				s.lock(filepath.Join(s.console.DataDir, "console.db"))
				s.unready("database")
			},
		},
		{
			section: section, name: "Another process locks the SQLite file, and no heartbeat was stored for long", gate: 3, state: warning, says: []string{"last heartbeat that was stored", "cannot store"},
			cure: []string{"Mend this Console first"}, never: []string{"pod’s log"},
			arrange: func(s *scene) {
				s.synced()
				s.lock(filepath.Join(s.console.DataDir, "console.db"))
				s.later(6 * time.Minute)
			},
		},
		{
			section: section, name: "PostgreSQL is gone for ten seconds", gate: 4, state: passed,
			arrange: func(s *scene) {
				postgres := s.h.Postgres()
				s.attemptOn(harness.ConsoleOptions{Env: map[string]string{"PROXIMA_DATABASE_URL": s.h.Database(postgres)}})
				s.agent(nil)
				s.await(4, passed)
				began := time.Now()
				if err := postgres.Kill(); err != nil {
					s.Fatal(err)
				}
				s.unready("database")
				s.refuses()
				s.until(began.Add(outage))
				if err := postgres.Restart(s.h.Context()); err != nil {
					s.Fatal(err)
				}
				s.syncedAfter(time.Now())
			},
		},
		{
			section: section, name: "Its disk is full", gate: 4, state: warning, says: []string{"last inventory that was stored", "cannot store"}, cure: []string{"Mend this Console first"},
			arrange: func(s *scene) { s.full("", "database") },
		},
		{
			section: section, name: "The disk of NATS is full", gate: 4, state: warning, says: []string{"longer ago", "reports that its last sync failed"}, cure: []string{"Mend what the collector reports"},
			arrange: func(s *scene) { s.full("nats", "NATS") },
		},
		{
			section: section, name: "A NATS server of your own is gone for ten seconds", gate: 4, state: passed,
			arrange: func(s *scene) {
				nats, env := s.h.OwnNATS()
				s.attemptOn(harness.ConsoleOptions{Env: env})
				a := s.agent(nil)
				s.await(4, passed)
				began := time.Now()
				if err := nats.Kill(); err != nil {
					s.Fatal(err)
				}
				s.logged(a, "nats connection lost")
				s.unready("NATS")
				s.until(began.Add(outage))
				if err := nats.Restart(s.h.Context()); err != nil {
					s.Fatal(err)
				}
				s.syncedAfter(time.Now())
			},
		},
	}
}

// lock keeps every other process from writing to an SQLite file until release.
func (s *scene) lock(path string) (release func()) {
	s.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := db.Close(); err != nil {
			s.Error(err)
		}
	})
	tx, err := db.BeginTx(context.WithoutCancel(s.Context()), nil) // released before the console ends
	if err != nil {
		s.Fatal(err)
	}
	return s.endsBy(tx.Rollback)
}

// full starts a console whose directory, or what lies below it, is a small file system of its own, fills that
// after the first sync, and waits until /readyz names the part.
func (s *scene) full(below, part string) {
	s.Helper()
	data := s.TempDir()
	dir := filepath.Join(data, below)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.Fatal(err)
	}
	s.mount(dir, "64m")
	s.attemptOn(harness.ConsoleOptions{DataDir: data})
	a := s.agent(nil)
	s.await(4, passed)
	s.fill(dir)
	s.logged(a, "sync failed")
	s.unready(part)
	s.endsBy(func() error { return os.Remove(filepath.Join(dir, filler)) })
}

// filesystem is a new one of that size.
func (s *scene) filesystem(size string) string {
	s.Helper()
	dir := s.TempDir()
	s.mount(dir, size)
	return dir
}

// mount needs root, and a container that may mount.
func (s *scene) mount(dir, size string) {
	s.Helper()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		s.Skipf("no file system can be mounted here (%v), so a disk cannot be filled: run as root", err)
	}
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			s.Error(err)
		}
	})
}

// filler is the file that takes all room.
const filler = "filler"

// fill leaves no byte free.
func (s *scene) fill(dir string) {
	s.Helper()
	f, err := os.Create(filepath.Join(dir, filler))
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	for piece := 1 << 20; piece > 0; {
		if _, err := f.Write(make([]byte, piece)); errors.Is(err, syscall.ENOSPC) {
			piece /= 2
		} else if err != nil {
			s.Fatal(err)
		}
	}
}

// unready waits until /readyz says no, and keeps what it says.
func (s *scene) unready(part string) {
	s.Helper()
	err := s.console.Process().Await(s.h.Context(), "/readyz to say no", func(ctx context.Context) error {
		status, body, err := s.console.API("").Send(ctx, http.MethodGet, "/readyz", nil, http.NoBody)
		if err != nil {
			return err
		}
		if status == http.StatusOK || !strings.Contains(body, part) {
			return fmt.Errorf("%d %s", status, body)
		}
		s.told = append(s.told, told{who: "Console’s /readyz", text: strings.TrimSpace(body)})
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

// refuses keeps what the API says of the attempt.
func (s *scene) refuses() {
	s.Helper()
	_, err := s.console.Status(s.Context(), s.recorded.Onboarding.ID)
	problem, ok := errors.AsType[*harness.ProblemError](err)
	if !ok {
		s.Fatalf("the API answers: %v", err)
	}
	t := told{who: fmt.Sprintf("Console’s API, status %d", problem.Status)}
	if d := problem.Problem.Detail; d != nil {
		t.text = *d
	}
	if c := problem.Problem.Cure; c != nil {
		t.cure = *c
	}
	s.told = append(s.told, t)
}
