package fleet_test

import (
	"log/slog"
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/wire"
	"prxm.uz/proxima/test/storetest"
)

// FuzzRecord: no heartbeat and no status of one agent keeps a batch from either database; it is the batch of
// all.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		`{"capability":1,"sentAt":"2026-03-01T12:00:00Z","clusterSlug":"\u0000","epoch":9223372036854775807,"lastSync":{"number":-1,"finishedAt":"0000-01-01T00:00:00Z","error":"\u0000\ud800"}}`,
		`{"capability":9223372036854775807,"sentAt":"9999-12-31T23:59:59.999999999Z","version":"\u0000","role":"\u0000","template":-9223372036854775808,"syncIntervalSeconds":9223372036854775807}`,
		`{"capability":1,"sentAt":"2026-03-01T12:00:00+23:59","lastSync":{"finishedAt":"9999-12-31T23:59:59-23:59","durationMs":-1}}`,
	} {
		f.Add([]byte(seed))
	}
	c := clocktest.New(storetest.Noon())
	var services []*fleet.Service
	for _, db := range []*storetest.Database{engines.SQLite(f), engines.Postgres(f)} {
		db.House(f)
		y := &yard{t: f, db: db, clock: c, nats: &cuts{}}
		y.Service = fleet.New(fleet.Config{Store: db.Fleet(), Revoker: y.nats, Clock: c, Logger: slog.New(slog.DiscardHandler)})
		y.agent("a", nil)
		services = append(services, y.Service)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var h wire.Heartbeat
		var s wire.Status
		for _, service := range services {
			c.Advance(time.Second)
			if wire.Decode(text, &h) == nil && h.Validate() == nil {
				must(t, service.RecordPulses(t.Context(), []fleet.Pulse{{AgentID: "a", ReceivedAt: c.Now(), Heartbeat: h}}))
			}
			if wire.Decode(text, &s) == nil && s.Validate() == nil {
				must(t, service.RecordPresence(t.Context(), []fleet.Presence{{AgentID: "a", ReceivedAt: c.Now(), Status: s}}))
			}
		}
	})
}
