package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"prxm.uz/proxima/test/harness"
)

// The suite runs on both engines. Each engine's schema is made once and copied for every test.
var (
	sqliteTemplate   string
	postgresServer   *harness.Postgres
	postgresTemplate *harness.PostgresTemplate
)

func TestMain(m *testing.M) {
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runSuite(m *testing.M) (code int, err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "proxima-store")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	migrate := func(ctx context.Context, cfg Config) error {
		db, err := Open(ctx, cfg)
		if err != nil {
			return err
		}
		return db.Close()
	}
	sqliteTemplate = filepath.Join(dir, "template.db")
	if err := migrate(ctx, Config{Path: sqliteTemplate}); err != nil {
		return 1, err
	}
	if postgresServer, err = harness.StartPostgres(ctx); err != nil {
		return 1, err
	}
	defer func() {
		if stop := postgresServer.Stop(); err == nil {
			err = stop
		}
	}()
	postgresTemplate, err = postgresServer.NewTemplate(ctx, func(ctx context.Context, url string) error {
		return migrate(ctx, Config{URL: url})
	})
	if err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// both runs a test on a fresh database of each engine.
func both(t *testing.T, f func(*testing.T, *DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { f(t, openSQLiteCopy(t)) })
	t.Run("postgres", func(t *testing.T) { f(t, openPostgresCopy(t)) })
}

func openSQLiteCopy(t testing.TB) *DB {
	t.Helper()
	template, err := os.ReadFile(sqliteTemplate)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "proxima.db")
	if err := os.WriteFile(path, template, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, Config{Path: path})
}

func openPostgresCopy(t testing.TB) *DB {
	t.Helper()
	url, drop, err := postgresTemplate.NewDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) //nolint:usetesting // the test's own context has ended by then
		defer cancel()
		if err := drop(ctx); err != nil {
			t.Errorf("drop the database: %v", err)
		}
	})
	return open(t, Config{URL: url})
}

func open(t testing.TB, cfg Config) *DB {
	t.Helper()
	db, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}
