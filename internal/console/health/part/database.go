package part

import (
	"strconv"
	"time"

	"prxm.uz/proxima/internal/console/onboarding/gate"
)

// The engines.
const (
	SQLite     = "SQLite"
	PostgreSQL = "PostgreSQL"
)

func database(f Facts, now time.Time) Part {
	p := begin("database", "Database answers", f.Database.At, now)
	if why := f.Database.Why(); why != "" {
		p = p.is(gate.Failed, "%s gave no answer: %s. Nobody signs in and no agent enrols until it does.", f.Engine, why)
		if f.Engine == PostgreSQL {
			return p.next("See that the server in PROXIMA_DATABASE_URL runs and takes connections from here; Console’s log names the reason.")
		}
		return p.next("See that the disk of PROXIMA_DATA_DIR can be read; Console’s log names the reason.")
	}
	d := f.Database.Value
	return p.is(gate.Passed, "%s %s answered in %s.", f.Engine, d.Version, took(d.Took)).
		with("Engine", f.Engine+" "+d.Version)
}

func writes(f Facts, now time.Time) Part {
	p := begin("writes", "Database takes writes", f.Writes.At, now)
	why := f.Writes.Why()
	switch {
	case why != "" && f.Database.Why() != "":
		return p.is(gate.Blocked, "Nothing was written: the database gives no answer.")
	case why != "":
		return p.unread("Whether the database takes writes", why)
	case f.Writes.Value:
		return p.is(gate.Passed, "A write went through within the last 30 s, and none failed since.")
	case f.Engine == PostgreSQL:
		return p.is(gate.Failed, "The database took no write. Inventories that arrive are not stored until it does.").
			next("See whether its disk is full, it is a standby, or the user lost its rights; Console’s log names the reason.")
	default:
		return p.is(gate.Failed, "The database file took no write. Inventories that arrive are not stored until it does.").
			next("See whether the disk of PROXIMA_DATA_DIR is full or mounted read-only; Console’s log names the reason.")
	}
}

func schema(f Facts, now time.Time) Part {
	p := begin("schema", "Schema of the database", f.Database.At, now).with("This build knows version", strconv.FormatInt(f.Schema, 10))
	if f.Database.Why() != "" {
		return p.is(gate.Blocked, "The stored version was not read: the database gives no answer.")
	}
	stored := f.Database.Value.Schema
	p = p.with("Stored version", strconv.FormatInt(stored, 10))
	switch {
	case stored > f.Schema:
		return p.is(gate.Warning, "The database is at version %d, and this build knows %d: a later release migrated it while this Console runs. It does not start again on this database.", stored, f.Schema).
			next("Replace this Console by the release that runs beside it.")
	case stored < f.Schema:
		return p.is(gate.Failed, "The database is at version %d, and this build needs %d: somebody put an older one in its place.", stored, f.Schema).
			next("Restart Console: it migrates the database when it starts.")
	default:
		return p.is(gate.Passed, "The database is at version %d, which is the one that this build knows.", stored)
	}
}

func databaseClock(f Facts, now time.Time) Part {
	p := begin("clock", "Clock", f.Database.At, now)
	d := f.Database.Value
	switch {
	case f.Database.Why() != "":
		return p.is(gate.Blocked, "The clocks were not compared: the database gives no answer.")
	case !d.HasClock:
		return p.unread("The clock of the database", "its answer held no time")
	}
	apart, side := d.Ahead, "ahead of"
	if apart < 0 {
		apart, side = -apart, "behind"
	}
	p = p.with("Difference", took(apart)+", give or take "+took(d.Took/2))
	switch {
	case apart-d.Took/2 > ClockWithin:
		return p.is(gate.Warning, "The database’s clock is %s %s Console’s, beyond the 5 s within which times compare. Where several Consoles run, an agent may be silent to one and fresh to another.", took(apart), side).
			next("Let NTP set the clocks of this machine and of the database’s.")
	case d.Took/2 > ClockWithin:
		return p.unread("The difference to the database’s clock", "the answer took "+took(d.Took)+", too long to compare clocks by")
	default:
		return p.is(gate.Passed, "The clocks of Console and database differ by %s, within the 5 s that are allowed.", took(apart))
	}
}
