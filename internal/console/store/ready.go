package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"prxm.uz/proxima/internal/console/store/internal/sqlgen"
)

const (
	// provenFor is how long one write proves that the database takes them, if none fails in the meantime.
	provenFor = 30 * time.Second
	// disprovenFor keeps those who ask from writing all the time to a database that takes nothing.
	disprovenFor = time.Second
	// lastProof is the name of the setting that is written.
	lastProof = "ready.written_at"
)

// proof is what the last write of [DB.Ready] came to.
type proof struct {
	at       time.Time
	failures int64 // those that were counted when it began
	err      error
}

// Ready tells whether the database takes writes now, by writing: at most once in 30 seconds while all goes well,
// at most once a second while it does not, and at once after any other transaction met a database that is away,
// locked or full. Reads alone would not tell.
func (db *DB) Ready(ctx context.Context) error {
	select {
	case db.proving <- struct{}{}:
		defer func() { <-db.proving }()
	case <-ctx.Done():
		return fmt.Errorf("wait for the database: %w", ctx.Err())
	}
	failures, age := db.failures.Load(), db.clock.Now().Sub(db.last.at)
	if db.last.err == nil && age < provenFor && failures == db.last.failures || db.last.err != nil && age < disprovenFor {
		return db.last.err
	}
	err := db.inTx(ctx, func(t *tx) error {
		return t.q.PutSetting(ctx, sqlgen.PutSettingParams{Name: lastProof, Value: []byte(db.clock.Now().UTC().Format(time.RFC3339Nano))})
	})
	if errors.Is(ctx.Err(), context.Canceled) { // nobody waits for the answer, and it says nothing of the database
		return fmt.Errorf("write to the database: %w", ctx.Err())
	}
	db.last = proof{at: db.clock.Now(), failures: failures, err: err}
	return err
}
