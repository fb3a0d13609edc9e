package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// defaultConnections bounds the pool on PostgreSQL where the configuration does not.
const defaultConnections = 16

func (db *DB) openPostgres(ctx context.Context, cfg Config) error {
	db.engine = enginePostgres
	conf, err := pgx.ParseConfig(cfg.URL)
	if err != nil {
		// The parser's error holds the connection string with its password masked.
		return fmt.Errorf("the database URL cannot be read: %w", err)
	}
	db.writer = stdlib.OpenDB(*conf)
	n := cfg.Connections
	if n <= 0 {
		n = defaultConnections
	}
	db.writer.SetMaxOpenConns(n)
	db.writer.SetMaxIdleConns(n)
	db.writer.SetConnMaxIdleTime(5 * time.Minute)
	db.reader = db.writer
	if err := db.writer.PingContext(ctx); err != nil {
		return fmt.Errorf("reach PostgreSQL at %s: %w", conf.Host, err)
	}
	return nil
}

// SQLSTATE codes of PostgreSQL.
const (
	pgSerialization = "40001"
	pgDeadlock      = "40P01"
	pgUnique        = "23505"
	pgForeignKey    = "23503"
	pgRestrict      = "23001"
	pgCheck         = "23514"
)

func pgCode(err error) (string, bool) {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code, true
	}
	return "", false
}
