package fake

import (
	"context"
	"time"

	"prxm.uz/proxima/internal/config"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/health"
	"prxm.uz/proxima/internal/console/health/part"
	"prxm.uz/proxima/internal/console/onboarding/gate"
)

// Health implements web.Health: a console with everything inside and a part in every state, or one right after its
// start where there is no client.
type Health struct{ *World }

// Report implements web.Health.
func (h Health) Report(_ context.Context, p access.Principal) (health.Report, error) {
	h.Lock()
	defer h.Unlock()
	if err := p.Require(access.SettingsRead, access.Scope{}, "console"); err != nil {
		return health.Report{}, err
	}
	now := h.Now()
	r := health.Report{
		At: now, Parts: part.Judge(fresh(now), now), Settings: settings(),
		Versions: []health.Version{
			{Name: "Console", Value: "0.9.2"},
			{Name: "Go", Value: "go1.26.1"},
			{Name: "Schema of this build", Value: "7"},
			{Name: "Schema stored", Value: "7"},
			{Name: "SQLite", Value: "3.50.4"},
			{Name: "NATS server, embedded", Value: "2.12.1"},
		},
	}
	if len(h.Clients) > 0 {
		r.Parts = part.Judge(troubled(now), now)
		r.Versions[4] = health.Version{Name: "PostgreSQL", Value: "17.6 (Debian 17.6-1.pgdg13+1)"}
		r.Versions[5] = health.Version{Name: "NATS server"}
	}
	return r, h.Broken
}

func fresh(now time.Time) part.Facts {
	disk := gate.Measured(part.Disk{Directory: "/var/lib/proxima", Free: 41 << 30, Total: 100 << 30}, now)
	return part.Facts{
		Engine: part.SQLite, Schema: 7, Embedded: true, SyncInterval: 5 * time.Minute, Disk: &disk,
		Database: gate.Measured(part.Database{Version: "3.50.4", Schema: 7, Took: 2 * time.Millisecond}, now),
		Writes:   gate.Measured(true, now),
		NATS:     gate.Measured(part.NATS{Connected: true, Server: "proxima-console", Version: "2.12.1"}, now),
		Stream:   gate.Measured(part.Stream{Name: "INVENTORY", Limit: 8 << 30}, now),
		Ingest:   gate.Measured(part.Ingest{}, now),
	}
}

func troubled(now time.Time) part.Facts {
	f := fresh(now)
	f.Engine = part.PostgreSQL
	f.Database.Value = part.Database{Version: "17.6 (Debian 17.6-1.pgdg13+1)", Schema: 7, Took: 3 * time.Millisecond, HasClock: true, Ahead: 9 * time.Second}
	f.Ingest.Value = part.Ingest{Waiting: 3, StoredAt: now.Add(-11 * time.Second), Lag: 40 * time.Millisecond}
	f.Stream = gate.CouldNotRead[part.Stream]("nothing came within 3 s", now)
	f.Disk.Value.Free = 120 << 20
	f.Certificate = &part.Certificate{Names: []string{"console.ostmark.example"}, NotBefore: now.Add(-80 * 24 * time.Hour), NotEnd: now.Add(10 * 24 * time.Hour)}
	return f
}

func settings() []config.Setting {
	return []config.Setting{
		{Variable: "PROXIMA_DATA_DIR", Flag: "data-dir", Group: "Addresses", Value: "/var/lib/proxima", Source: config.FromEnvironment, Help: "Directory of what is embedded: the SQLite file, NATS and its keys. It belongs to one process at a time."},
		{Variable: "PROXIMA_LISTEN_ADDR", Flag: "listen-addr", Group: "Addresses", Value: "0.0.0.0:8443", Source: config.FromFlag, Help: "Address of pages, API and NATS over WebSocket, as host:port."},
		{Variable: "PROXIMA_METRICS_ADDR", Flag: "metrics-addr", Group: "Addresses", Source: config.FromDefault, Help: "Address of a listener for /metrics alone."},
		{Variable: "PROXIMA_DATABASE_URL", Flag: "database-url", Group: "Storage", Value: "set", Secret: true, Source: config.FromEnvironment, Help: "PostgreSQL to use in place of the embedded SQLite: postgres://user:password@host:5432/name."},
		{Variable: "PROXIMA_NATS_PUBLIC_URLS", Flag: "nats-public-urls", Group: "NATS", Value: "tls://nats-0.ostmark.example:4222, tls://nats-1.ostmark.example:4222, wss://console.ostmark.example/nats", Source: config.FromEnvironment, Help: "Addresses of NATS that agents are told, in order of preference."},
		{Variable: "PROXIMA_ADMIN_PASSWORD", Flag: "admin-password", Group: "First start", Value: "not set", Secret: true, Source: config.FromDefault, Help: "Password of the first administrator, 12 characters or more."},
		{Flag: "log-level", Group: "Operation", Value: "info", Source: config.FromDefault, Help: Hostile},
	}
}
