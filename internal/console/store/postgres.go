package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
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
		return fmt.Errorf("the URL cannot be read%s; write it as postgres://user:password@host:5432/name, and what is neither letter nor digit in the password as %% and two hexadecimal digits", unreadable(cfg.URL, err))
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
		return fmt.Errorf("reach PostgreSQL at %s: %w; see that it runs, takes connections from here, and knows the user, password and database of postgres://user:password@host:5432/name", conf.Host, err)
	}
	return nil
}

// unreadable is why a URL cannot be read, "" where the reason may quote a part of the password: of what is no
// URL nobody can tell which part that is. The parser's own text quotes the URL.
func unreadable(address string, err error) string {
	reason := errors.Unwrap(err)
	if _, parse := url.Parse(address); parse != nil || reason == nil {
		return ""
	}
	return ": " + reason.Error()
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

// pgDown tells of a connection that cannot be made or broke, of a server that starts, stops or has run out
// of something, and of one that takes no writes. Classes 08, 53 and 58 are of connections, of resources
// and of the server's system.
func pgDown(err error) bool {
	if code, ok := pgCode(err); ok {
		switch code {
		case "57P01", "57P02", "57P03", "25006":
			return true
		}
		return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "53") || strings.HasPrefix(code, "58")
	}
	_, network := errors.AsType[net.Error](err)
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return network || connecting || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func pgCode(err error) (string, bool) {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code, true
	}
	return "", false
}
