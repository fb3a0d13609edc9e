// Package part judges the parts that Console stands on: database, NATS, disk, clock, certificate, and what
// follows of the sync interval. It takes the facts that package health gathered, each with the time at which
// it was measured, and answers with parts in the five states of package gate. It is pure and total: no clock,
// no store, no error.
//
// A fact that could not be read never passes. One whose question could not be asked, since what it stands on
// is away, is blocked.
package part

import (
	"fmt"
	"math"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/onboarding/gate"
)

// Bounds that the verdicts hold facts against.
const (
	// ClockWithin is how far the clocks of Console and database may differ: heartbeats and ends of credentials
	// are compared across Consoles.
	ClockWithin = 5 * time.Second
	// DiskLow is how many bytes are free while there is still time to act.
	DiskLow = 2 << 30
	// DiskOut is how many bytes have to be free.
	DiskOut = 256 << 20
	// StreamHigh is the share of its limit, in percent, above which the stream soon drops the oldest inventories.
	StreamHigh = 80
	// CertificateSoon is when the end of a certificate is near; for one that lives less than six weeks it is a
	// third of its life.
	CertificateSoon = 14 * 24 * time.Hour
)

// Part is one judged part. Pages and API print it as it is.
type Part struct {
	// ID is stable: database, writes, schema, clock, nats, stream, ingest, disk, certificate, sync.
	ID       string
	Title    string
	State    gate.State
	Sentence string
	// Next is the next step; always with Failed and Warning.
	Next string
	// At is when it was measured.
	At    time.Time
	Facts []Fact
}

// Fact is one measured value that a part was judged by.
type Fact struct {
	Label string
	Value string
}

// Judge judges all parts that there are, in the order in which one looks at them.
func Judge(f Facts, now time.Time) []Part {
	parts := []Part{database(f, now), writes(f, now), schema(f, now)}
	if f.Engine == PostgreSQL {
		parts = append(parts, databaseClock(f, now))
	}
	parts = append(parts, connection(f, now), stream(f, now), ingest(f, now))
	if f.Disk != nil {
		parts = append(parts, disk(f, now))
	}
	if f.Certificate != nil {
		parts = append(parts, certificate(*f.Certificate, now))
	}
	return append(parts, syncInterval(f, now))
}

func (p Part) is(state gate.State, sentence string, values ...any) Part {
	p.State, p.Sentence = state, fmt.Sprintf(sentence, values...)
	return p
}

func (p Part) next(step string) Part {
	p.Next = step
	return p
}

func (p Part) with(label, value string) Part {
	p.Facts = append(p.Facts, Fact{label, value})
	return p
}

// begin is a part with the time of its measurement.
func begin(id, title string, at, now time.Time) Part {
	if at.IsZero() {
		at = now
	}
	return Part{ID: id, Title: title, At: at}
}

// unread is a part whose fact could not be read.
func (p Part) unread(what, why string) Part {
	return p.is(gate.Warning, "%s could not be read: %s.", what, why).next("Reload this page. If that changes nothing, Console’s log names the reason.")
}

// size words bytes in the largest binary unit, rounded down.
func size(n int64) string {
	const k = 1024
	if n < k {
		return fmt.Sprintf("%d B", n)
	}
	value, units := float64(n)/k, []string{"KiB", "MiB", "GiB", "TiB"}
	for len(units) > 1 && value >= k {
		value, units = value/k, units[1:]
	}
	value = math.Floor(value*10) / 10 // 1.99 GiB are less than 2
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + " " + units[0]
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// took words a duration that may be short.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	default:
		return gate.Span(d)
	}
}
