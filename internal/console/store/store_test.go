package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	migrations "prxm.uz/proxima/db"
	"prxm.uz/proxima/internal/console/tenancy"
)

// newestMigration is the greatest number in db/migrations.
func newestMigration(t *testing.T) int64 {
	t.Helper()
	files, err := fs.Glob(migrations.Migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	newest := int64(0)
	for _, name := range files {
		number := int64(0)
		for _, digit := range filepath.Base(name)[:4] {
			number = number*10 + int64(digit-'0')
		}
		newest = max(newest, number)
	}
	return newest
}

func TestOpenPreparesEveryQuery(t *testing.T) {
	// Open prepares the whole of sqlgen; on SQLite on the writer and on the reader that cannot write.
	both(t, func(t *testing.T, db *DB) {
		if err := db.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if db.SchemaVersion() != newestMigration(t) {
			t.Errorf("schema version %d", db.SchemaVersion())
		}
	})
}

func TestOpenWantsOneDatabase(t *testing.T) {
	for _, cfg := range []Config{{}, {URL: "postgres://x", Path: "y"}} {
		if db, err := Open(t.Context(), cfg); err == nil {
			t.Errorf("%+v was opened", cfg)
			_ = db.Close()
		}
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	// The suite's own databases are closed first, so that the refusal is of a second start.
	refused := func(t *testing.T, cfg Config) {
		t.Helper()
		db, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.writer.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)")
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		db, err = Open(t.Context(), cfg)
		if err == nil {
			_ = db.Close()
		}
		if !errors.Is(err, errNewerSchema) || !strings.Contains(err.Error(), "9999") {
			t.Errorf("got %v", err)
		}
	}
	t.Run("sqlite", func(t *testing.T) { refused(t, Config{Path: filepath.Join(t.TempDir(), "p.db")}) })
	t.Run("postgres", func(t *testing.T) { refused(t, Config{URL: emptyPostgres(t)}) })
}

func emptyPostgres(t *testing.T) string {
	t.Helper()
	url, drop, err := postgresServer.NewDatabase(t.Context())
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
	return url
}

// Replicas share PostgreSQL alone: a SQLite file belongs to one process, which the lock on the data
// directory ensures.
func TestReplicasThatStartTogetherMigrateOnce(t *testing.T) {
	cfg := Config{URL: emptyPostgres(t), Connections: 4}
	done := make(chan error)
	for range 6 {
		go func() {
			db, err := Open(t.Context(), cfg)
			if err == nil {
				err = errors.Join(db.Ready(t.Context()), db.Close())
			}
			done <- err
		}()
	}
	for range 6 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestTheSQLiteFileIsPrivateAndOddPathsWork(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?c#d%41")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "p.db")
	open(t, Config{Path: path})
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode().Perm())
		}
	}
}

func TestReadersOfSQLiteCannotWrite(t *testing.T) {
	db := openSQLiteCopy(t)
	if _, err := db.reader.ExecContext(t.Context(), "DELETE FROM users"); err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Errorf("got %v", err)
	}
}

func TestReadsInATransactionSeeItsWrites(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		stop := errors.New("stop")
		err := db.Tenancy().InTx(ctx, func(x tenancy.Tx) error {
			if err := x.InsertClient(ctx, tenancy.Client{ID: "c", Name: "c", CreatedAt: noon}); err != nil {
				return err
			}
			if _, err := x.Client(ctx, "c"); err != nil {
				t.Errorf("inside: %v", err)
			}
			if _, err := db.Tenancy().Client(ctx, "c"); !errors.Is(err, tenancy.ErrNotFound) {
				t.Errorf("outside: %v", err)
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
		if _, err := db.Tenancy().Client(ctx, "c"); !errors.Is(err, tenancy.ErrNotFound) {
			t.Errorf("after the rollback: %v", err)
		}
	})
}

// Each of these works on one engine alone, or generates code that is silently wrong.
func TestQueriesStayInTheSubset(t *testing.T) {
	var files []string
	for _, pattern := range []string{"queries/*.sql", "../../../db/migrations/*.sql", "*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, forbidden := range []string{
			"sqlc.slice", "ANY(", "::", "ILIKE", "now()", "CURRENT_TIMESTAMP", "TIMESTAMPTZ", " INTEGER", "SERIAL", "NUMERIC", "JSONB",
			"DISTINCT ON", "LATERAL", "SKIP LOCKED", "GREATEST(", "AS BYTEA",
		} {
			if strings.Contains(string(content), forbidden) {
				t.Errorf("%s uses %q", name, forbidden)
			}
		}
	}
}
