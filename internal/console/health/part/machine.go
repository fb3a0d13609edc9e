package part

import (
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/onboarding/gate"
)

func disk(f Facts, now time.Time) Part {
	p := begin("disk", "Disk of the data directory", f.Disk.At, now)
	if why := f.Disk.Why(); why != "" {
		return p.unread("The free space of the data directory", why)
	}
	d := f.Disk.Value
	p = p.with("Directory", d.Directory).with("Free", size(d.Free)+" of "+size(d.Total))
	cure := "Free space on the volume of PROXIMA_DATA_DIR, or give it a larger one."
	switch {
	case d.Free < DiskOut:
		return p.is(gate.Failed, "%s are free for %s, less than the %s without which what is embedded cannot store.", size(d.Free), d.Directory, size(DiskOut)).next(cure)
	case d.Free < DiskLow:
		return p.is(gate.Warning, "%s are free for %s, less than %s. Below %s what is embedded stops storing.", size(d.Free), d.Directory, size(DiskLow), size(DiskOut)).next(cure)
	default:
		return p.is(gate.Passed, "%s of %s are free for %s.", size(d.Free), size(d.Total), d.Directory)
	}
}

func certificate(c Certificate, now time.Time) Part {
	p := begin("certificate", "TLS certificate", now, now).
		with("Valid", instant(c.NotBefore)+" to "+instant(c.NotEnd)).with("Names", strings.Join(c.Names, ", "))
	soon := min(CertificateSoon, c.NotEnd.Sub(c.NotBefore)/3)
	cure := "Put a new certificate into PROXIMA_TLS_CERT_FILE and PROXIMA_TLS_KEY_FILE and restart Console, which reads them when it starts."
	switch left := c.NotEnd.Sub(now); {
	case now.Before(c.NotBefore):
		return p.is(gate.Failed, "The certificate that Console serves with is valid from %s on, which lies ahead. Browsers and agents refuse it.", instant(c.NotBefore)).
			next("See that the clock of this machine is right; if it is, have the certificate issued anew and restart Console.")
	case left <= 0:
		return p.is(gate.Failed, "The certificate that Console serves with ended %s ago, at %s. Browsers and agents refuse it.", gate.Span(-left), instant(c.NotEnd)).next(cure)
	case left < soon:
		return p.is(gate.Warning, "The certificate that Console serves with ends in %s, at %s. Browsers and agents then refuse it.", gate.Span(left), instant(c.NotEnd)).next(cure)
	default:
		return p.is(gate.Passed, "The certificate that Console serves with is valid for another %s, until %s.", gate.Span(left), instant(c.NotEnd))
	}
}

func syncInterval(f Facts, now time.Time) Part {
	budget := gate.Span(2 * f.SyncInterval)
	return begin("sync", "Sync interval", now, now).
		is(gate.Passed, "Console reckons with a full sync every %s. Whether an agent keeps another interval is not judged here: its cluster’s page tells when it last synced.", gate.Span(f.SyncInterval)).
		with("Gate 3, heartbeat", "waits "+gate.Span(gate.HeartbeatWindow)).
		with("Gate 4, first inventory", "waits "+budget+" from the enrolment, twice the interval").
		with("An inventory is old", "after "+budget+", twice the interval").
		with("A conflict of identity ends", "after "+budget+" of quiet, twice the interval")
}

// instant words an instant in full.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
