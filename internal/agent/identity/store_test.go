package identity

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func enrolledState(t *testing.T) State {
	t.Helper()
	state, err := NewPending("collector", "agent-0", "prod")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	state.AgentID, state.ClientID, state.Environment = "agt1", "cl1", Environment{"env1", "Production"}
	state.Credential = Credential{JWT: "jwt", Template: 1, IssuedAt: now, ExpiresAt: now.Add(7 * 24 * time.Hour), ReceivedAt: now}
	state.NATSURLs, state.EnrolledAt = []string{"tls://a:4222"}, now
	return state
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, dir)
	if _, err := s.Load("collector"); !errors.Is(err, ErrNone) {
		t.Fatal(err)
	}
	want := enrolledState(t)
	if err := s.Save(want); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load("collector")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(s.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// A state cut short at any byte is refused and stays on disk (D-25).
func TestEveryTruncationIsRefusedAndKept(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Save(enrolledState(t)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) - 1 { // without the last newline it is whole
		if err := os.WriteFile(s.Path(), whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load("collector"); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
		if info, err := os.Stat(s.Path()); err != nil || info.Size() != int64(n) {
			t.Fatalf("the file was touched: %v", err)
		}
	}
}

// A kill while the new content is written leaves the old identity.
func TestKillWhileWriting(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	want := enrolledState(t)
	if err := s.Save(want); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, newName), []byte(`{"version":1,"agent`), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load("collector")
	if err != nil || got.AgentID != want.AgentID {
		t.Fatal(got, err)
	}
	want.Credential.JWT = "another"
	if err := s.Save(want); err != nil {
		t.Fatal(err)
	}
	if got, err = s.Load("collector"); err != nil || got.Credential.JWT != "another" {
		t.Fatal(got, err)
	}
	if info, err := os.Stat(s.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestWrongTypeIsRefusedAndKept(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Save(enrolledState(t)); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(s.Path())
	_, err := s.Load("k8s-node-monitor")
	if !errors.Is(err, ErrWrongType) || !strings.Contains(err.Error(), "PROXIMA_AGENT_DATA_DIR") {
		t.Error(err)
	}
	if after, _ := os.ReadFile(s.Path()); string(before) != string(after) {
		t.Error("the file was touched")
	}
}

func TestDirectoryIsNotShared(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if _, err := Open(dir); !errors.Is(err, ErrLocked) {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}

func TestRenewalCountsFromArrival(t *testing.T) {
	c := enrolledState(t).Credential
	c.ReceivedAt = c.IssuedAt.Add(-time.Hour) // this clock is an hour behind
	if got := c.RenewAt().Sub(c.ReceivedAt); got != 84*time.Hour {
		t.Error(got)
	}
	if c.Expired(c.ReceivedAt.Add(167*time.Hour)) || !c.Expired(c.ReceivedAt.Add(168*time.Hour)) {
		t.Error("expiry")
	}
}
