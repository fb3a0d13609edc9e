// Package storetest gives the tests of packages beside console's store a fresh, real database of each
// engine. The store's own suite lies beside the store; a package there could not use this one, since
// this one imports it.
package storetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx, for Count and Dump
	"modernc.org/sqlite"

	"prxm.uz/proxima/internal/console/store"
	"prxm.uz/proxima/internal/console/tenancy"
	"prxm.uz/proxima/test/harness"
)

// Noon is when every story begins. It has no part below a second, which credentials cut off.
func Noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// Engines holds one migrated database of each engine, of which every test gets a copy.
type Engines struct {
	dir      string
	postgres *harness.Postgres
	template *harness.PostgresTemplate
}

// Database is one test's own database.
type Database struct {
	*store.DB
	raw *sql.DB
}

// Main runs a package's tests on engines and returns the exit code; TestMain calls it. Engines is
// filled before the first test, and ends with the last.
func Main(m *testing.M, e *Engines) (code int, err error) {
	ctx := context.Background()
	defer func() { err = errors.Join(err, e.stop()) }()
	if err := e.start(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// startedBefore names, to the workers of a fuzz test, the directory and the template of the process that started
// them. They inherit it: initdb for each would outlast a short time of fuzzing.
const startedBefore = "STORETEST_STARTED"

func (e *Engines) start(ctx context.Context) (err error) {
	if dir, template, ok := strings.Cut(os.Getenv(startedBefore), " "); ok {
		e.dir = dir
		e.template, err = harness.TemplateAt(template)
		return err
	}
	if e.dir, err = os.MkdirTemp("", "proxima-storetest"); err != nil {
		return err
	}
	if err := migrate(ctx, store.Config{Path: e.sqlite()}); err != nil {
		return err
	}
	if e.postgres, err = harness.StartPostgres(ctx); err != nil {
		return err
	}
	e.template, err = e.postgres.NewTemplate(ctx, func(ctx context.Context, url string) error {
		return migrate(ctx, store.Config{URL: url})
	})
	if err != nil {
		return err
	}
	return os.Setenv(startedBefore, e.dir+" "+e.template.Address())
}

func (e *Engines) sqlite() string { return filepath.Join(e.dir, "template.db") }

func migrate(ctx context.Context, cfg store.Config) error {
	db, err := store.Open(ctx, cfg)
	if err != nil {
		return err
	}
	return db.Close()
}

func (e *Engines) stop() error {
	if e.postgres == nil && e.template != nil {
		return nil // they are another's
	}
	var err error
	if e.postgres != nil {
		err = e.postgres.Stop()
	}
	if e.dir != "" {
		err = errors.Join(err, os.RemoveAll(e.dir))
	}
	return err
}

// Each runs a test on a fresh database of each engine.
func (e *Engines) Each(t *testing.T, f func(*testing.T, *Database)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { f(t, e.SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { f(t, e.Postgres(t)) })
}

// Bench runs a benchmark on a fresh database of each engine.
func (e *Engines) Bench(b *testing.B, f func(*testing.B, *Database)) {
	b.Helper()
	b.Run("sqlite", func(b *testing.B) { f(b, e.SQLite(b)) })
	b.Run("postgres", func(b *testing.B) { f(b, e.Postgres(b)) })
}

// SQLite opens a fresh SQLite database, which ends with the test.
func (e *Engines) SQLite(tb testing.TB) *Database {
	tb.Helper()
	template, err := os.ReadFile(e.sqlite())
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "proxima.db")
	if err := os.WriteFile(path, template, 0o600); err != nil {
		tb.Fatal(err)
	}
	cfg := store.Config{Path: path}
	return open(tb, cfg, beside(tb, cfg))
}

// Beside opens the database of a console that runs, to be read and disturbed beside it. The store's own methods
// are not there.
func Beside(tb testing.TB, cfg store.Config) *Database {
	tb.Helper()
	raw := beside(tb, cfg)
	raw.SetMaxIdleConns(0) // the server may have been killed since
	tb.Cleanup(func() {
		if err := raw.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &Database{raw: raw}
}

func beside(tb testing.TB, cfg store.Config) *sql.DB {
	tb.Helper()
	if cfg.URL != "" {
		raw, err := sql.Open("pgx", cfg.URL)
		if err != nil {
			tb.Fatal(err)
		}
		return raw
	}
	drv := &sqlite.Driver{}
	if err := drv.RegisterCollationUtf8("C", strings.Compare); err != nil { // as the store does
		tb.Fatal(err)
	}
	return sql.OpenDB(connector{drv, cfg.Path + "?_pragma=busy_timeout(10000)"})
}

// connector opens a SQLite file beside the store.
type connector struct {
	driver *sqlite.Driver
	path   string
}

// Connect implements driver.Connector.
func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.path) }

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return c.driver }

// Postgres opens a fresh PostgreSQL database, which ends with the test.
func (e *Engines) Postgres(tb testing.TB) *Database {
	tb.Helper()
	url, drop, err := e.template.NewDatabase(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 30*time.Second)
		defer cancel()
		if err := drop(ctx); err != nil {
			tb.Errorf("drop the database: %v", err)
		}
	})
	cfg := store.Config{URL: url}
	return open(tb, cfg, beside(tb, cfg))
}

func open(tb testing.TB, cfg store.Config, raw *sql.DB) *Database {
	tb.Helper()
	db, err := store.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(raw.Close(), db.Close()); err != nil {
			tb.Errorf("close the database: %v", err)
		}
	})
	return &Database{DB: db, raw: raw}
}

// House makes the clients acme and zeta with the environments prod and test each, named like
// acme-prod; ids and names are the same.
func (d *Database) House(tb testing.TB) {
	tb.Helper()
	ctx := tb.Context()
	err := d.Tenancy().InTx(ctx, func(tx tenancy.Tx) error {
		for _, c := range []string{"acme", "zeta"} {
			if err := tx.InsertClient(ctx, tenancy.Client{ID: c, Name: c, CreatedAt: Noon()}); err != nil {
				return err
			}
			for _, e := range []string{"prod", "test"} {
				if err := tx.InsertEnvironment(ctx, tenancy.Environment{ID: c + "-" + e, ClientID: c, Name: e, CreatedAt: Noon()}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// Count answers a query for one number, beside the store's own methods.
func (d *Database) Count(tb testing.TB, query string, args ...any) int {
	tb.Helper()
	var n int
	if err := d.raw.QueryRowContext(tb.Context(), query, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return n
}

// Texts answers a query for one column of texts.
func (d *Database) Texts(tb testing.TB, query string, args ...any) (found []string) {
	tb.Helper()
	rows, err := d.raw.QueryContext(tb.Context(), query, args...)
	if err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			tb.Fatalf("%s: %v", query, err)
		}
		found = append(found, text)
	}
	if err := rows.Err(); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return found
}

// Exec changes the database beside the store's own methods, as a fault would.
func (d *Database) Exec(tb testing.TB, statement string, args ...any) {
	tb.Helper()
	if _, err := d.raw.ExecContext(tb.Context(), statement, args...); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

// Audits counts the audit rows of an action.
func (d *Database) Audits(tb testing.TB, action string) int {
	tb.Helper()
	return d.Count(tb, "SELECT COUNT(*) FROM audit_events WHERE action = $1", action)
}

// Dump reads every value of a table as text, row by row: to look for what must not be stored.
func (d *Database) Dump(tb testing.TB, table string) [][]string {
	tb.Helper()
	rows, err := d.raw.QueryContext(tb.Context(), "SELECT * FROM "+table)
	if err != nil {
		tb.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		tb.Fatal(err)
	}
	var all [][]string
	for rows.Next() {
		values, row := make([]sql.RawBytes, len(columns)), make([]string, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			tb.Fatal(err)
		}
		for i, v := range values {
			row[i] = string(v)
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}
