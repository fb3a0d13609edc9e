package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	migrations "prxm.uz/proxima/db"
)

// migrate brings the schema up to date. On PostgreSQL a row in a table is the lock, since locks of a
// session do not work behind a pooler of transactions.
func (db *DB) migrate(ctx context.Context) error {
	folder, err := fs.Sub(migrations.Migrations, "migrations")
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	dialect := goose.DialectSQLite3
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true), goose.WithSlog(db.logger)}
	if db.engine == enginePostgres {
		dialect = goose.DialectPostgres
		locker, err := lock.NewPostgresTableLocker(
			// A migration of several minutes is waited for; a migrator that died frees the lock in 30 s.
			lock.WithTableLockTimeout(200*time.Millisecond, 1500),
			lock.WithTableLogger(db.logger),
		)
		if err != nil {
			return fmt.Errorf("prepare the lock of migrations: %w", err)
		}
		options = append(options, goose.WithLocker(locker))
	}
	provider, err := goose.NewProvider(dialect, db.writer, folder, options...)
	if err != nil {
		return fmt.Errorf("prepare the migrations: %w", err)
	}
	sources := provider.ListSources()
	newest := sources[len(sources)-1].Version
	if err := db.refuseNewer(ctx, provider, newest); err != nil {
		return err
	}
	if db.schema < newest {
		if _, err := provider.Up(ctx); err != nil {
			return fmt.Errorf("migrate the database: %w", err)
		}
	}
	// Another process of a newer release may have migrated meanwhile.
	return db.refuseNewer(ctx, provider, newest)
}

// errNewerSchema marks a database that a later release has migrated.
var errNewerSchema = errors.New("the database's schema is newer than this build")

func (db *DB) refuseNewer(ctx context.Context, provider *goose.Provider, newest int64) error {
	version, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if version > newest {
		return fmt.Errorf("%w: it is at version %d and this build knows %d; start the release that migrated it, or a later one", errNewerSchema, version, newest)
	}
	db.schema = version
	return nil
}
