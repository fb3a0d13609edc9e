package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/test/harness"
)

// TestSettingsOfAConsoleWithEverythingOutside: an administrator sees the parts, the configuration and the versions; a
// viewer is refused; no secret of the configuration is in any answer; a NATS that goes is told of, and its return too.
func TestSettingsOfAConsoleWithEverythingOutside(t *testing.T) {
	h := harness.New(t)
	nats, env := h.OwnNATS()
	database := h.Database(h.Postgres())
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	databasePassword, _ := u.User.Password()
	const adminPassword, toldToAgents = "planted 9f3c1d admin", "planted-77ab02-nats"
	env["PROXIMA_DATABASE_URL"], env["PROXIMA_ADMIN_PASSWORD"] = database, adminPassword
	env["PROXIMA_NATS_PUBLIC_URLS"] = "nats://agents:" + toldToAgents + "@nats.example:4222"
	c := h.Console(harness.ConsoleOptions{Env: env})
	secrets := []string{databasePassword, url.QueryEscape(databasePassword), adminPassword, url.QueryEscape(adminPassword), toldToAgents}

	settings := reportOf(t, c)
	awaitParts(t, c, map[string]console.GateState{
		"database": console.GateStatePassed, "writes": console.GateStatePassed, "schema": console.GateStatePassed, "clock": console.GateStatePassed, "nats": console.GateStatePassed, "stream": console.GateStatePassed, "ingest": console.GateStatePassed, "sync": console.GateStatePassed,
	})
	for _, s := range settings.Settings {
		switch s.Flag {
		case "database-url", "admin-password":
			if s.Value != "set" || !s.Secret || s.Source != console.SettingSourceEnvironment {
				t.Errorf("%+v", s)
			}
		case "nats-public-urls":
			if s.Value != "nats://***@nats.example:4222" {
				t.Errorf("%+v", s)
			}
		case "sync-interval":
			if s.Value != "5m" || s.Source != console.SettingSourceDefault || *s.Variable != "PROXIMA_K8S_SYNC_INTERVAL" {
				t.Errorf("%+v", s)
			}
		}
	}
	for _, v := range settings.Versions {
		if v.Version == nil {
			t.Errorf("%s has no version", v.Name)
		}
	}

	place := firstPlace(t, c)
	viewer := newUser(t, c, "viewer@example.com", []string{"hosts:read", "settings:read"}, place)
	if status, answer, err := viewer.Send(t.Context(), http.MethodGet, "/api/v1/settings", nil, http.NoBody); err != nil || status != http.StatusForbidden || strings.Contains(answer, "PROXIMA_") {
		t.Errorf("a viewer of one client: %d %s %v", status, answer, err)
	}
	person, err := c.Login(t.Context(), c.Email, c.Password)
	if err != nil {
		t.Fatal(err)
	}
	search := func(when string) {
		t.Helper()
		for _, path := range []string{"/settings", "/api/v1/settings"} {
			status, answer, err := person.Send(t.Context(), http.MethodGet, path, nil, http.NoBody)
			if err != nil || status != http.StatusOK || !strings.Contains(answer, "PROXIMA_DATABASE_URL") {
				t.Fatalf("%s, %s: %d %v", when, path, status, err)
			}
			for i, secret := range secrets {
				if strings.Contains(answer, secret) {
					t.Errorf("%s, %s: secret %d is in the answer", when, path, i)
				}
			}
		}
	}
	search("all runs")

	if err := nats.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitParts(t, c, map[string]console.GateState{"nats": console.GateStateFailed, "stream": console.GateStateBlocked, "ingest": console.GateStateBlocked, "database": console.GateStatePassed, "writes": console.GateStatePassed})
	search("NATS is away")
	if err := nats.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitParts(t, c, map[string]console.GateState{"nats": console.GateStatePassed, "ingest": console.GateStatePassed})
}

// TestSettingsTellOfTheDisk: a disk that runs low is a warning, and one that is out has failed.
func TestSettingsTellOfTheDisk(t *testing.T) {
	h := harness.New(t)
	dir := t.TempDir()
	resize := func(flags uintptr, size string) {
		t.Helper()
		err := syscall.Mount("tmpfs", dir, "tmpfs", flags, "mode=700,size="+size)
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
			t.Skipf("no file system can be mounted here (%v): run as root", err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	resize(0, "4g")
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c := h.Console(harness.ConsoleOptions{DataDir: dir})
	awaitParts(t, c, map[string]console.GateState{"disk": console.GateStatePassed, "database": console.GateStatePassed, "nats": console.GateStatePassed})
	resize(syscall.MS_REMOUNT, "1g")
	awaitParts(t, c, map[string]console.GateState{"disk": console.GateStateWarning})
	resize(syscall.MS_REMOUNT, "128m")
	awaitParts(t, c, map[string]console.GateState{"disk": console.GateStateFailed, "database": console.GateStatePassed})
}

func reportOf(t *testing.T, c *harness.Console) console.Settings {
	t.Helper()
	var settings console.Settings
	if _, err := c.Do(t.Context(), http.MethodGet, "/api/v1/settings", nil, &settings); err != nil {
		t.Fatal(err)
	}
	return settings
}

// awaitParts asks until the parts have the states; what is not named may have any.
func awaitParts(t *testing.T, c *harness.Console, want map[string]console.GateState) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		settings := reportOf(t, c)
		have := map[string]console.GateState{}
		for _, p := range settings.Parts {
			have[p.ID] = p.State
		}
		missing := false
		for id, state := range want {
			missing = missing || have[id] != state
		}
		if !missing {
			return
		}
		select {
		case <-ctx.Done():
			text, _ := json.MarshalIndent(settings.Parts, "", " ") // plain fields alone
			t.Fatalf("want %v, have %s", want, text)
		case <-tick.C:
		}
	}
}
