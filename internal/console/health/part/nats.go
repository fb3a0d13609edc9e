package part

import (
	"fmt"
	"time"

	"prxm.uz/proxima/internal/console/onboarding/gate"
)

func connection(f Facts, now time.Time) Part {
	p := begin("nats", "NATS", f.NATS.At, now)
	if why := f.NATS.Why(); why != "" {
		return p.unread("The connection to NATS", why)
	}
	n := f.NATS.Value
	switch {
	case !n.Connected && f.Embedded:
		return p.is(gate.Failed, "Console is not connected to the NATS inside it. Agents are neither heard nor told anything.").
			next("Restart Console; its log names what ended NATS.")
	case !n.Connected:
		return p.is(gate.Failed, "Console is not connected to the NATS in PROXIMA_NATS_URL, and tries again every 5 s. Agents are neither heard nor told anything.").
			next("See that the servers run, and take connections and credentials from here; Console’s log names the reason.")
	case f.Embedded:
		return p.is(gate.Passed, "Connected to the NATS inside Console, version %s.", n.Version).with("Server", n.Server)
	default:
		return p.is(gate.Passed, "Connected to %s at %s, version %s.", n.Server, n.Address, n.Version).with("Server", n.Server)
	}
}

// away says why NATS cannot be asked, "" where it can.
func away(f Facts) string {
	switch {
	case f.NATS.Why() != "":
		return "whether NATS is connected could not be read"
	case !f.NATS.Value.Connected:
		return "NATS is not connected"
	default:
		return ""
	}
}

func stream(f Facts, now time.Time) Part {
	p := begin("stream", "Stream of inventories", f.Stream.At, now)
	if why := away(f); why != "" {
		return p.is(gate.Blocked, "The stream was not asked: %s.", why)
	}
	if why := f.Stream.Why(); why != "" {
		return p.unread("The stream of inventories", why)
	}
	s := f.Stream.Value
	used := 0
	if s.Limit > 0 {
		used = int(s.Bytes * 100 / s.Limit)
	}
	p = p.with("Size", size(s.Bytes)+" of "+size(s.Limit)).with("Inventories", fmt.Sprint(s.Inventories))
	switch {
	case s.Tried && !s.Stores:
		p = p.is(gate.Failed, "%s stored nothing when it was last tried. Inventories that agents send now are lost until it does; they send them again with each sync.", s.Name)
		if f.Embedded {
			return p.next("Free space on the disk of PROXIMA_DATA_DIR; Console then makes the stream anew by itself.")
		}
		return p.next("Free space on the disk of NATS and in its limits; where it still stores nothing, restart NATS.")
	case used >= StreamHigh:
		return p.is(gate.Warning, "%s holds %s, %d %% of its limit of %s. At the limit the oldest inventory goes, and comes back with its agent’s next sync.", s.Name, size(s.Bytes), used, size(s.Limit)).
			next("See under Agents whether one sends far more than the others, and remove clusters that are gone.")
	case !s.Tried:
		return p.is(gate.Waiting, "%s is there and was not tried yet. Console tries it every 20 s.", s.Name)
	default:
		return p.is(gate.Passed, "%s stores: %s of %s are used, by %s.", s.Name, size(s.Bytes), size(s.Limit), count(s.Inventories, "inventory", "inventories"))
	}
}

func ingest(f Facts, now time.Time) Part {
	p := begin("ingest", "Ingest", f.Ingest.At, now)
	if why := away(f); why != "" {
		return p.is(gate.Blocked, "How much waits was not asked: %s.", why)
	}
	if why := f.Ingest.Why(); why != "" {
		return p.unread("How far ingest is behind", why)
	}
	i := f.Ingest.Value
	last := "This Console has stored none since it started."
	if !i.StoredAt.IsZero() {
		last = fmt.Sprintf("The last one was stored %s ago, %s after it arrived.", gate.Span(now.Sub(i.StoredAt)), took(i.Lag))
		p = p.with("Lag of the last", took(i.Lag))
	}
	p = p.with("Waiting", fmt.Sprint(i.Waiting))
	wait := count(i.Waiting, "inventory waits", "inventories wait")
	switch {
	case i.Again > 0:
		return p.is(gate.Warning, "%s to be stored, and %d of them failed before. %s", wait, i.Again, last).
			next("See whether the database takes writes; Console’s log names why they failed.")
	case i.Waiting > 0 && i.Lag > f.SyncInterval:
		return p.is(gate.Warning, "%s to be stored. %s That is more than a sync interval: agents send faster than Console stores.", wait, last).
			next("Give the database a faster disk, or set a longer PROXIMA_K8S_SYNC_INTERVAL on Console and on the cluster agents.")
	case i.Waiting > 0:
		return p.is(gate.Waiting, "%s to be stored. %s This ends when Console has caught up, within a sync interval of %s.", wait, last, gate.Span(f.SyncInterval))
	default:
		return p.is(gate.Passed, "No inventory waits to be stored. %s", last)
	}
}
