// Package store owns console's database: it implements what the domain packages state that they need,
// on SQLite or PostgreSQL, with one set of queries for both. A file per noun; the generated code is
// hidden in internal/sqlgen, its SQL lies in queries. It decides nothing: a rule that is not a
// constraint of a table belongs to a domain package.
//
// Every write runs in one serializable transaction that is tried again when the engine says that it
// collided with another; reads outside of a transaction go to a pool that cannot write.
package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/store/internal/sqlgen"
)

// Config says where the database is. Exactly one of URL and Path is set.
type Config struct {
	// URL is a PostgreSQL connection string: postgres://user:password@host:5432/name.
	URL string
	// Path is the SQLite file. It is made, mode 0600, if it is not there; its directory must exist,
	// and belongs to one process at a time.
	Path string
	// Connections bounds the pool on PostgreSQL; zero is 16.
	Connections int
	// Logger receives what migrations did and retries that were needed. Nil discards.
	Logger *slog.Logger
	// Clock paces retries. Nil is the machine's own.
	Clock clock.Clock
	// Around, where not nil, stands around what opens connections; tests count statements there.
	Around func(driver.Connector) driver.Connector
}

func (c Config) open(connector driver.Connector) *sql.DB {
	if c.Around != nil {
		connector = c.Around(connector)
	}
	return sql.OpenDB(connector)
}

// DB is an open database. All methods may be used from several goroutines at once.
type DB struct {
	engine engine
	writer *sql.DB
	reader *sql.DB // the writer itself on PostgreSQL
	write  *sqlgen.Queries
	read   *sqlgen.Queries
	logger *slog.Logger
	clock  clock.Clock
	schema int64

	failures atomic.Int64  // transactions that met a database that is away, locked or full
	proving  chan struct{} // holds one while Ready asks; guards last
	last     proof
}

type engine int

const (
	engineSQLite engine = iota + 1
	enginePostgres
)

// Open opens the database, brings its schema up to date, and prepares every query. It refuses a
// database whose schema is newer than this build knows. Several processes may open one PostgreSQL
// database at once: one migrates, the others wait for it.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	if (cfg.URL == "") == (cfg.Path == "") {
		return nil, errors.New("set either the URL of a PostgreSQL database or the path of a SQLite file, and not both")
	}
	db := &DB{logger: cfg.Logger, clock: cfg.Clock, proving: make(chan struct{}, 1)}
	if db.logger == nil {
		db.logger = slog.New(slog.DiscardHandler)
	}
	if db.clock == nil {
		db.clock = clock.System()
	}
	var err error
	if cfg.URL != "" {
		err = db.openPostgres(ctx, cfg)
	} else {
		err = db.openSQLite(ctx, cfg)
	}
	if err == nil {
		err = db.migrate(ctx)
	}
	if err == nil {
		err = db.prepare(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (db *DB) prepare(ctx context.Context) (err error) {
	if db.write, err = sqlgen.Prepare(ctx, db.writer); err != nil {
		return fmt.Errorf("prepare the queries: %w", err)
	}
	if db.reader == db.writer {
		db.read = db.write
		return nil
	}
	if db.read, err = sqlgen.Prepare(ctx, db.reader); err != nil {
		return fmt.Errorf("prepare the queries for reading: %w", err)
	}
	return nil
}

// SchemaVersion is the number of the newest migration that the database has.
func (db *DB) SchemaVersion() int64 { return db.schema }

// Close ends all connections. Transactions under way fail.
func (db *DB) Close() error {
	var errs []error
	if db.read != nil && db.read != db.write {
		errs = append(errs, db.read.Close())
	}
	if db.write != nil {
		errs = append(errs, db.write.Close())
	}
	if db.reader != nil && db.reader != db.writer {
		errs = append(errs, db.reader.Close())
	}
	if db.writer != nil {
		errs = append(errs, db.writer.Close())
	}
	return errors.Join(errs...)
}

// maxTries bounds how often a transaction is run. On PostgreSQL 64 racers on one row need up to about
// as many rounds as the pool has connections.
const maxTries = 30

// inTx runs f in one serializable transaction, and again while the engine says that it collided.
func (db *DB) inTx(ctx context.Context, f func(*tx) error) error {
	for try := 1; ; try++ {
		err := db.tryTx(ctx, f)
		if err == nil || try == maxTries || !collided(err) {
			if down(err) {
				db.failures.Add(1)
			}
			return unavailable(err)
		}
		db.logger.DebugContext(ctx, "transaction collided, trying again", "try", try, "error", err)
		if wait := db.clock.Sleep(ctx, clock.Backoff(try, time.Millisecond, 100*time.Millisecond)); wait != nil {
			return errors.Join(wait, unavailable(err))
		}
	}
}

func (db *DB) tryTx(ctx context.Context, f func(*tx) error) error {
	// SQLite has no other level, and its driver refuses to be asked for one; its writers are in line.
	options := &sql.TxOptions{}
	if db.engine == enginePostgres {
		options.Isolation = sql.LevelSerializable
	}
	sqlTx, err := db.writer.BeginTx(ctx, options)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer sqlTx.Rollback()
	t := &tx{reads: reads{q: db.write.WithTx(sqlTx), raw: sqlTx}, engine: db.engine}
	if err := f(t); err != nil {
		return err
	}
	if err := sqlTx.Commit(); err != nil {
		return fmt.Errorf("commit a transaction: %w", err)
	}
	return nil
}

// snapshot runs several reads on one state of the database.
func (db *DB) snapshot(ctx context.Context, f func(reads) error) error {
	options := &sql.TxOptions{ReadOnly: true}
	if db.engine == enginePostgres {
		options.Isolation = sql.LevelRepeatableRead
	}
	sqlTx, err := db.reader.BeginTx(ctx, options)
	if err != nil {
		return fmt.Errorf("begin reading: %w", unavailable(err))
	}
	defer sqlTx.Rollback() // nothing was written: there is nothing to commit
	return unavailable(f(reads{q: db.read.WithTx(sqlTx), raw: sqlTx}))
}

// plain reads outside of any transaction.
func (db *DB) plain() reads { return reads{q: db.read, raw: db.reader} }

// querier is what a statement that was built at run time needs.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// reads holds the lookups that stores and transactions share.
type reads struct {
	q   *sqlgen.Queries
	raw querier
}

// tx implements the Tx of every domain package.
type tx struct {
	reads
	engine engine
}
