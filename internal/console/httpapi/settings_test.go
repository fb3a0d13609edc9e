package httpapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/config"
	"prxm.uz/proxima/internal/console/health"
	"prxm.uz/proxima/internal/console/health/part"
	"prxm.uz/proxima/internal/console/store"
)

// noNATS is not connected.
type noNATS struct{}

func (noNATS) Connection() part.NATS { return part.NATS{} }

func (noNATS) Stream(context.Context) (part.Stream, error) {
	return part.Stream{}, errors.New("asked without a connection")
}

func (noNATS) Ingest(context.Context) (part.Ingest, error) {
	return part.Ingest{}, errors.New("asked without a connection")
}

// measured is a console with a database alone.
func measured(db *store.DB, at clock.Clock, logger *slog.Logger) *health.Service {
	return health.New(health.Config{
		Database: db, NATS: noNATS{}, SyncInterval: time.Minute, Clock: at, Logger: logger,
		Settings: []config.Setting{
			{Variable: "PROXIMA_ADMIN_PASSWORD", Flag: "admin-password", Group: "First start", Value: "set", Secret: true, Source: config.FromEnvironment},
			{Flag: "log-level", Group: "Operation", Value: "info", Source: config.FromDefault},
		},
	})
}

// TestSettings renders parts as they were judged, settings as they are in effect, and versions.
func TestSettings(t *testing.T) {
	c := newConsole(t)
	res, answer := c.call(c.token(c.admin.UserID, 0), http.MethodGet, "/api/v1/settings", "")
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", res.StatusCode, answer)
	}
	states := map[string]any{}
	for _, item := range as[[]any](answer["parts"]) {
		p := as[map[string]any](item)
		states[as[string](p["id"])] = p["state"]
		if acts := p["state"] == "failed" || p["state"] == "warning"; acts != (p["next"] != nil) || p["sentence"] == "" || p["measuredAt"] != answer["measuredAt"] {
			t.Errorf("%v", p)
		}
	}
	want := map[string]any{
		"database": "passed", "writes": "passed", "schema": "passed", "nats": "failed", "stream": "blocked", "ingest": "blocked", "sync": "passed",
	}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	settings := []any{
		map[string]any{"variable": "PROXIMA_ADMIN_PASSWORD", "flag": "admin-password", "group": "First start", "value": "set", "secret": true, "source": "environment"},
		map[string]any{"flag": "log-level", "group": "Operation", "value": "info", "secret": false, "source": "default"},
	}
	if diff := cmp.Diff(settings, answer["settings"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	versions := map[string]bool{}
	for _, item := range as[[]any](answer["versions"]) {
		v := as[map[string]any](item)
		versions[as[string](v["name"])] = v["version"] != nil
	}
	if diff := cmp.Diff(map[string]bool{"Console": true, "Go": true, "Schema of this build": true, "Schema stored": true, "SQLite": true, "NATS server": false}, versions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
