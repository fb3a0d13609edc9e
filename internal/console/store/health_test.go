package store

import (
	"context"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/health/part"
	"prxm.uz/proxima/internal/console/problem"
)

func TestAsk(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		answer, err := db.Ask(t.Context())
		if err != nil || answer.Version == "" || answer.Schema != db.SchemaVersion() || answer.Took < 0 {
			t.Errorf("%+v, %v", answer, err)
		}
		postgres := db.engine == enginePostgres
		if answer.HasClock != postgres || (db.Engine() == part.PostgreSQL) != postgres {
			t.Errorf("%s: %+v", db.Engine(), answer)
		}
		if _, err := db.writer.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)"); err != nil {
			t.Fatal(err)
		}
		if answer, err = db.Ask(t.Context()); err != nil || answer.Schema != 9999 {
			t.Errorf("a later release migrated: %+v, %v", answer, err)
		}

		over, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		<-over.Done()
		if _, err := db.Ask(over); problem.CodeOf(err) != "database_unavailable" {
			t.Errorf("out of time: %v", err)
		}
	})
}

// The machine that tests run on has one clock.
func TestAskComparesClocks(t *testing.T) {
	url, drop, err := postgresTemplate.NewDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db, err := Open(t.Context(), Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = db.Close()
		_ = drop(context.WithoutCancel(t.Context()))
	})
	if answer, err := db.Ask(t.Context()); err != nil || answer.Ahead.Abs() > answer.Took/2+time.Second {
		t.Errorf("%+v, %v", answer, err)
	}
}
