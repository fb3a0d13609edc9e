// Package health measures the parts that Console stands on, all at once and within three seconds, and reports
// them beside the configuration in effect and the versions. Package part judges; nothing here passes a part.
package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/config"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/health/part"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/version"
)

// Bound is how long a report waits for its facts, all together.
const Bound = 3 * time.Second

// Database is what is asked of the database; store.DB has it.
type Database interface {
	// Engine is part.SQLite or part.PostgreSQL.
	Engine() string
	// SchemaVersion is what this build knows.
	SchemaVersion() int64
	// Ask asks the database one question.
	Ask(ctx context.Context) (part.Database, error)
	// Ready is nil while the database takes writes.
	Ready(ctx context.Context) error
}

// NATS is what is asked of NATS; natsapi.Server has it.
type NATS interface {
	// Connection tells how Console is connected; it asks nobody.
	Connection() part.NATS
	// Stream asks for the stream of inventories.
	Stream(ctx context.Context) (part.Stream, error)
	// Ingest asks how much waits.
	Ingest(ctx context.Context) (part.Ingest, error)
}

// Config is what a Service stands on.
type Config struct {
	Database Database
	NATS     NATS
	// Embedded tells that NATS is inside Console.
	Embedded bool
	// Disk measures the file system of the data directory; nil where nothing is embedded. It may hang.
	Disk func() (part.Disk, error)
	// Certificate is nil where Console does not end TLS itself.
	Certificate  *part.Certificate
	SyncInterval time.Duration
	Settings     []config.Setting
	Clock        clock.Clock
	Logger       *slog.Logger
}

// Service measures. Its methods may be called from several goroutines.
type Service struct {
	Config
	slots slots
}

// slots let one question of each kind be under way: one that hangs does not pile up.
type slots struct{ database, writes, stream, ingest, disk chan struct{} }

// New makes a Service.
func New(c Config) *Service {
	slot := func() chan struct{} { return make(chan struct{}, 1) }
	return &Service{Config: c, slots: slots{slot(), slot(), slot(), slot(), slot()}}
}

// Report is what Settings shows.
type Report struct {
	At       time.Time
	Parts    []part.Part
	Settings []config.Setting
	Versions []Version
}

// Version is the version of one part. It is "" where it could not be read.
type Version struct {
	Name  string
	Value string
}

// Report measures everything now. It needs settings:read on the whole console.
func (s *Service) Report(ctx context.Context, p access.Principal) (Report, error) {
	if err := p.Require(access.SettingsRead, access.Scope{}, "console"); err != nil {
		return Report{}, err
	}
	facts := s.gather(ctx)
	now := s.Clock.Now()
	return Report{At: now, Parts: part.Judge(facts, now), Settings: s.Settings, Versions: s.versions(facts)}, nil
}

func (s *Service) versions(f part.Facts) []Version {
	stored, database, nats := "", "", ""
	if f.Database.Why() == "" {
		stored, database = strconv.FormatInt(f.Database.Value.Schema, 10), f.Database.Value.Version
	}
	if f.NATS.Why() == "" && f.NATS.Value.Connected {
		nats = f.NATS.Value.Version
	}
	server := "NATS server"
	if f.Embedded {
		server = "NATS server, embedded"
	}
	return []Version{
		{"Console", version.String()},
		{"Go", runtime.Version()},
		{"Schema of this build", strconv.FormatInt(f.Schema, 10)},
		{"Schema stored", stored},
		{f.Engine, database},
		{server, nats},
	}
}

// gather asks for all facts at once.
func (s *Service) gather(ctx context.Context) part.Facts {
	ctx, cancel := context.WithTimeout(ctx, Bound)
	defer cancel()
	f := part.Facts{
		Engine: s.Database.Engine(), Schema: s.Database.SchemaVersion(), Embedded: s.Embedded,
		NATS: gate.Measured(s.NATS.Connection(), s.Clock.Now()), Certificate: s.Certificate, SyncInterval: s.SyncInterval,
	}
	var group sync.WaitGroup
	group.Go(func() { f.Database = ask(ctx, s, s.slots.database, "database", s.Database.Ask) })
	group.Go(func() { f.Writes = ask(ctx, s, s.slots.writes, "writes", s.writes) })
	if f.NATS.Value.Connected {
		group.Go(func() { f.Stream = ask(ctx, s, s.slots.stream, "stream", s.NATS.Stream) })
		group.Go(func() { f.Ingest = ask(ctx, s, s.slots.ingest, "ingest", s.NATS.Ingest) })
	}
	if s.Disk != nil {
		group.Go(func() {
			disk := ask(ctx, s, s.slots.disk, "disk", func(context.Context) (part.Disk, error) { return s.Disk() })
			f.Disk = &disk
		})
	}
	group.Wait()
	return f
}

// writes is false where a write was tried and failed.
func (s *Service) writes(ctx context.Context) (bool, error) {
	err := s.Database.Ready(ctx)
	if err != nil && ctx.Err() != nil {
		return false, err
	}
	if err != nil {
		s.Logger.WarnContext(ctx, "health: the database takes no writes", "error", err)
	}
	return err == nil, nil
}

// ask waits for the answer to one question until ctx ends. What the question came to after that is dropped; until
// it came back, the next one of its kind waits.
func ask[T any](ctx context.Context, s *Service, slot chan struct{}, what string, question func(context.Context) (T, error)) gate.Reading[T] {
	type answer struct {
		value T
		err   error
	}
	late := func() gate.Reading[T] {
		return gate.CouldNotRead[T](fmt.Sprintf("nothing came within %s", gate.Span(Bound)), s.Clock.Now())
	}
	select {
	case slot <- struct{}{}:
	case <-ctx.Done():
		return late()
	}
	answered := make(chan answer, 1)
	go func() {
		defer func() { <-slot }()
		value, err := question(ctx)
		answered <- answer{value, err}
	}()
	select {
	case <-ctx.Done():
		s.Logger.WarnContext(ctx, "health: a fact was not read in time", "fact", what)
		return late()
	case a := <-answered:
		switch {
		case errors.Is(a.err, context.DeadlineExceeded), errors.Is(a.err, context.Canceled):
			return late()
		case a.err != nil:
			s.Logger.WarnContext(ctx, "health: a fact could not be read", "fact", what, "error", a.err)
			return gate.CouldNotRead[T]("the question failed", s.Clock.Now())
		}
		return gate.Measured(a.value, s.Clock.Now())
	}
}
