package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"prxm.uz/proxima/internal/console/health/part"
)

// Engine is part.SQLite or part.PostgreSQL.
func (db *DB) Engine() string {
	if db.engine == enginePostgres {
		return part.PostgreSQL
	}
	return part.SQLite
}

// Ask asks the database for its version, its clock and the version of its schema.
func (db *DB) Ask(ctx context.Context) (part.Database, error) {
	question := `SELECT sqlite_version(), NULL, (SELECT max(version_id) FROM goose_db_version WHERE is_applied)`
	if db.engine == enginePostgres {
		question = `SELECT current_setting('server_version'), CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT), (SELECT max(version_id) FROM goose_db_version WHERE is_applied)`
	}
	var answer part.Database
	var clock sql.NullInt64
	// Getting a connection may take long, and is no part of the answer: clocks are compared across it.
	conn, err := db.reader.Conn(ctx)
	if err != nil {
		return part.Database{}, fmt.Errorf("connect to the database: %w", unavailable(err))
	}
	defer conn.Close()
	asked := db.clock.Now()
	if err := conn.QueryRowContext(ctx, question).Scan(&answer.Version, &clock, &answer.Schema); err != nil {
		return part.Database{}, fmt.Errorf("ask the database: %w", unavailable(err))
	}
	answered := db.clock.Now()
	answer.Took = answered.Sub(asked)
	if clock.Valid {
		answer.HasClock, answer.Ahead = true, time.UnixMicro(clock.Int64).Sub(asked.Add(answer.Took/2))
	}
	return answer, nil
}
