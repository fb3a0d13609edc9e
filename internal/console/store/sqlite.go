package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"modernc.org/sqlite"
)

// readers bounds the pool that reads SQLite; writers are one.
const readers = 8

// sqliteConnector opens connections of a driver of our own, so that the collation is registered
// nowhere else in the process.
type sqliteConnector struct {
	driver *sqlite.Driver
	dsn    string
}

// Connect implements driver.Connector.
func (c sqliteConnector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }

// Driver implements driver.Connector.
func (c sqliteConnector) Driver() driver.Driver { return c.driver }

func (db *DB) openSQLite(ctx context.Context, cfg Config) error {
	db.engine = engineSQLite
	// SQLite would make the file readable for all; the write-ahead log takes over the file's mode.
	f, err := os.OpenFile(cfg.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the database file: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("open the database file %s: %w", cfg.Path, err)
	}
	drv := &sqlite.Driver{}
	// PostgreSQL's "C" orders by bytes, and so does this.
	if err := drv.RegisterCollationUtf8("C", strings.Compare); err != nil {
		return fmt.Errorf("register the collation: %w", err)
	}
	db.writer = cfg.open(sqliteConnector{drv, sqliteName(cfg.Path, "&_txlock=immediate")})
	db.writer.SetMaxOpenConns(1)
	// The writer comes first: it makes the file a write-ahead database before anybody reads.
	if err := db.writer.PingContext(ctx); err != nil {
		return fmt.Errorf("open the database file %s: %w", cfg.Path, err)
	}
	db.reader = cfg.open(sqliteConnector{drv, sqliteName(cfg.Path, "&_pragma=query_only(1)")})
	db.reader.SetMaxOpenConns(readers)
	db.reader.SetMaxIdleConns(readers)
	return nil
}

// sqliteName makes the name of a connection: identifiers are never read as strings, LIKE minds case as
// on PostgreSQL, and foreign keys count.
func sqliteName(path, more string) string {
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	return name.String() + "?_dqs=0&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)" +
		"&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(1)&_pragma=case_sensitive_like(1)" + more
}

// Result codes of SQLite; the extended ones hold the basic one in their low byte.
const (
	sqliteBusy             = 5
	sqliteLocked           = 6
	sqliteReadOnly         = 8
	sqliteInputOutput      = 10
	sqliteFull             = 13
	sqliteCannotOpen       = 14
	sqliteCheck            = 275
	sqliteForeignKey       = 787
	sqlitePrimaryKey       = 1555
	sqliteUnique           = 2067
	sqliteTriggerForeign   = 1811 // what ON DELETE RESTRICT reports
	sqliteBasicCodeBitmask = 0xff
)

// sqliteDown tells of a file that others hold for too long, or that the system does not let be read or
// written now.
func sqliteDown(code int) bool {
	switch code & sqliteBasicCodeBitmask {
	case sqliteBusy, sqliteLocked, sqliteReadOnly, sqliteInputOutput, sqliteFull, sqliteCannotOpen:
		return true
	}
	return false
}

func sqliteCode(err error) (int, bool) {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code(), true
	}
	return 0, false
}
