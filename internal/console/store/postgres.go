package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// defaultConnections bounds the pool on PostgreSQL where the configuration does not.
const defaultConnections = 16

func (db *DB) openPostgres(ctx context.Context, cfg Config) error {
	db.engine = enginePostgres
	conf, err := parsePostgres(cfg.URL)
	if err != nil {
		return fmt.Errorf("%w; write it as postgres://user:password@host:5432/name, and what is neither letter nor digit in the password as %% and two hexadecimal digits", err)
	}
	lost := &losses{}
	conf.Tracer = lost
	db.writer = cfg.open(stdlib.GetConnector(*conf, stdlib.OptionShouldPing(lost.doubtful)))
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

// losses counts connections that were lost or could not be made. A server that stopped closed all of them, so that
// after a loss each is tried before it is used again.
type losses struct{ n atomic.Int64 }

// lossesKnown is where a connection keeps how many losses there were when it was tried last.
const lossesKnown = "losses"

func (l *losses) doubtful(_ context.Context, p stdlib.ShouldPingParams) bool {
	known, now := p.Conn.PgConn().CustomData(), l.n.Load()
	doubtful := p.IdleDuration > time.Second || known[lossesKnown] != any(now)
	known[lossesKnown] = now // one that does not answer is thrown away
	return doubtful
}

// TraceQueryStart implements pgx.QueryTracer.
func (*losses) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (l *losses) TraceQueryEnd(_ context.Context, c *pgx.Conn, d pgx.TraceQueryEndData) {
	if d.Err != nil && c.IsClosed() {
		l.n.Add(1)
	}
}

// TraceConnectStart implements pgx.ConnectTracer.
func (*losses) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

// TraceConnectEnd implements pgx.ConnectTracer.
func (l *losses) TraceConnectEnd(_ context.Context, d pgx.TraceConnectEndData) {
	if d.Err != nil {
		l.n.Add(1)
	}
}

// parsePostgres reads a URL, or the key=value text that the driver takes too. Its errors hold no part of the
// password: the driver's own quote the text, and of what is no URL nobody can tell which part the password is.
func parsePostgres(text string) (*pgx.ConnConfig, error) {
	_, rest, isURL := strings.Cut(text, "://")
	isURL = isURL && (strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://"))
	if isURL {
		if _, err := url.Parse(text); err != nil {
			return nil, errors.New("the URL cannot be read")
		}
		end := strings.IndexAny(rest, "/?#")
		if strings.Count(text, "@") > 1 || end >= 0 && strings.Contains(rest[end:], "@") {
			return nil, errors.New("the URL holds more than one @, or one behind its first /, ? or #, so that a part of the password would be taken for the host or the database")
		}
	}
	conf, err := pgx.ParseConfig(text)
	if reason := errors.Unwrap(err); isURL && reason != nil {
		return nil, fmt.Errorf("the URL cannot be read: %w", reason)
	}
	if err != nil {
		return nil, errors.New("the URL cannot be read")
	}
	return conf, nil
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
