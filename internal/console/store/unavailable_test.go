package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/console/tenancy"
	"prxm.uz/proxima/test/harness"
)

// ownPostgres is a server that the test may kill, with an empty database.
func ownPostgres(t *testing.T) (server *harness.Postgres, url string) {
	t.Helper()
	server, err := harness.StartPostgres(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	if url, _, err = server.NewDatabase(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server, url
}

// TestPostgresIsGone stops a server of its own: what reads and what writes say so, and go on once it is
// back.
func TestPostgresIsGone(t *testing.T) {
	server, url := ownPostgres(t)
	db, err := Open(t.Context(), Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	write(t, db, func(x *tx) error {
		return x.InsertClient(t.Context(), tenancy.Client{ID: "a", Name: "a", CreatedAt: noon})
	})
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // connections that broke, and then some that cannot be made
		wantUnavailable(t, "a read", reading(t, db), url)
		wantUnavailable(t, "a write", inserting(t, db, "b"), url)
		wantUnavailable(t, "a list", db.snapshot(t.Context(), func(r reads) error {
			_, err := r.User(t.Context(), "nobody")
			return err
		}), url)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(reading(t, db), inserting(t, db, "b")); err != nil {
		t.Errorf("the database is back: %v", err)
	}
}

// TestSQLiteTakesNoWrites: where the file cannot grow, and where a writer waits for too long.
func TestSQLiteTakesNoWrites(t *testing.T) {
	db := openSQLiteCopy(t)
	write(t, db, func(x *tx) error {
		return x.InsertClient(t.Context(), tenancy.Client{ID: "a", Name: "a", CreatedAt: noon})
	})
	if _, err := db.writer.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // as many as there are
		t.Fatal(err)
	}
	wantUnavailable(t, "a full disk", inserting(t, db, strings.Repeat("b", 1<<20)), "no URL")
	if err := reading(t, db); err != nil {
		t.Errorf("reads go on: %v", err)
	}
	held, err := db.writer.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	waiting, enough := context.WithTimeout(t.Context(), time.Millisecond)
	defer enough()
	wantUnavailable(t, "a writer that waits", db.inTx(waiting, func(*tx) error { return nil }), "no URL")
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Tenancy().Client(ctx, "a"); problem.CodeOf(err) != "" {
		t.Errorf("a caller that left: %v", err)
	}
}

func reading(t *testing.T, db *DB) error {
	_, err := db.Tenancy().Client(t.Context(), "a")
	return err
}

func inserting(t *testing.T, db *DB, id string) error {
	return db.inTx(t.Context(), func(x *tx) error {
		return x.InsertClient(t.Context(), tenancy.Client{ID: id, Name: id, CreatedAt: noon})
	})
}

func wantUnavailable(t *testing.T, what string, err error, secret string) {
	t.Helper()
	p, ok := errors.AsType[*problem.Error](err)
	if !ok || p.Kind != problem.Unavailable || p.Code != "database_unavailable" || p.RetryAfterSeconds == 0 {
		t.Fatalf("%s: %v", what, err)
	}
	if shown := p.Message + p.Cure; !strings.Contains(shown, "database") || strings.Contains(shown, secret) {
		t.Errorf("%s shows %q", what, shown)
	}
}
