package store

import (
	"context"
	"path/filepath"
	"testing"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/test/harness"
)

// TestReadyNoticesAWriteThatFailed: a file that takes no writes is found by the next question after any
// transaction met it, and its return by the next question a second later. Meanwhile reads go on.
func TestReadyNoticesAWriteThatFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console.db")
	at := clocktest.New(noon)
	db, err := Open(t.Context(), Config{Path: path, Clock: at})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	ready := func(want bool) {
		t.Helper()
		if err := db.Ready(t.Context()); (err == nil) != want {
			t.Errorf("ready: %v", err)
		}
	}
	ready(true)

	if _, err := db.writer.ExecContext(t.Context(), "PRAGMA query_only = 1"); err != nil {
		t.Fatal(err)
	}
	ready(true) // proved a moment ago, and nothing has failed since
	if err := inserting(t, db, "a"); err == nil {
		t.Fatal("the file took a write")
	}
	ready(false)
	if err := reading(t, db); problem.CodeOf(err) == "database_unavailable" {
		t.Errorf("reads go on: %v", err)
	}
	if _, err := db.writer.ExecContext(t.Context(), "PRAGMA query_only = 0"); err != nil {
		t.Fatal(err)
	}
	ready(false) // asked a moment ago
	at.Advance(disprovenFor)
	ready(true)
}

// TestReadyWritesToAnIdleDatabase: where nothing else writes, the question itself finds out.
func TestReadyWritesToAnIdleDatabase(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		if err := db.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		first, err := db.GetSetting(t.Context(), lastProof)
		if err != nil {
			t.Fatal(err)
		}
		db.last.at = db.last.at.Add(-provenFor)
		if err := db.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if second, err := db.GetSetting(t.Context(), lastProof); err != nil || string(second) == string(first) {
			t.Errorf("%s, then %s: %v", first, second, err)
		}
	})
}

// TestReadyWithPostgresGone stops the server between two questions, without any write that fails.
func TestReadyWithPostgresGone(t *testing.T) {
	server, url := ownPostgres(t)
	at := clocktest.New(noon)
	db, err := Open(t.Context(), Config{URL: url, Clock: at})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	at.Advance(provenFor)
	wantUnavailable(t, "the question", db.Ready(t.Context()), url)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := harness.Await(t.Context(), "the database to be ready", func(ctx context.Context) error {
		at.Advance(disprovenFor)
		return db.Ready(ctx)
	}); err != nil {
		t.Fatal(err)
	}
}
