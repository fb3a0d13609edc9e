package store

import "testing"

func TestOpenPreparesEveryQuery(t *testing.T) {
	// Open prepares the whole of sqlgen; on SQLite on the writer and on the reader that cannot write.
	both(t, func(t *testing.T, db *DB) {
		if err := db.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if db.SchemaVersion() != 3 {
			t.Errorf("schema version %d", db.SchemaVersion())
		}
	})
}
