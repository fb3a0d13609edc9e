package part

import (
	"time"

	"prxm.uz/proxima/internal/console/onboarding/gate"
)

// Facts is everything measured for one report. A nil part is one that this Console does not have.
type Facts struct {
	Engine   string // of the database: SQLite or PostgreSQL
	Database gate.Reading[Database]
	// Writes tells whether the last write that tried it went through.
	Writes gate.Reading[bool]
	// Schema is the version of the schema that this build knows.
	Schema int64

	// Embedded tells that NATS is inside Console.
	Embedded bool
	NATS     gate.Reading[NATS]
	Stream   gate.Reading[Stream]
	Ingest   gate.Reading[Ingest]

	Disk        *gate.Reading[Disk]
	Certificate *Certificate

	// SyncInterval is Console's own PROXIMA_K8S_SYNC_INTERVAL.
	SyncInterval time.Duration
}

// Database is what the database answered to one question.
type Database struct {
	// Version is the server's, or the library's.
	Version string
	// Schema is the version of the schema that is stored.
	Schema int64
	// Took is how long the answer took.
	Took time.Duration
	// Ahead is how far the database's clock is ahead of Console's, give or take half of Took; HasClock is false
	// where the database has none of its own.
	Ahead    time.Duration
	HasClock bool
}

// NATS is the state of Console's connection.
type NATS struct {
	Connected bool
	Server    string // its name
	Address   string // host:port; "" where it is embedded
	Version   string
}

// Stream is the stream of inventories.
type Stream struct {
	Name  string
	Bytes int64
	Limit int64
	// Inventories counts those that are kept, one for each agent.
	Inventories int
	// Stores tells whether the last try to store something went through; Tried is false before the first.
	Stores, Tried bool
}

// Ingest is how far Console is behind with what arrived.
type Ingest struct {
	// Waiting counts inventories that are not stored yet, Again those of them that failed before.
	Waiting, Again int
	// StoredAt and Lag are of the last inventory that this process stored; zero: none since it started.
	StoredAt time.Time
	Lag      time.Duration
}

// Disk is the file system of the data directory.
type Disk struct {
	Directory   string
	Free, Total int64 // bytes
}

// Certificate is the one that Console serves with; it was read when Console started.
type Certificate struct {
	Names             []string
	NotBefore, NotEnd time.Time
}
