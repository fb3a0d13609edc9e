package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/web/internal/fake"
)

// TestSettings shows the parts as they were judged, then what is in effect by groups, then versions.
func TestSettings(t *testing.T) {
	a := full(t).get("/settings", http.StatusOK)
	wantText(t, a.byID(t, "part-disk"), "Failed", "120 MiB are free", "Free space on the volume of PROXIMA_DATA_DIR")
	wantText(t, a.byID(t, "part-stream"), "Warning", "could not be read: nothing came within 3 s", "Reload this page")
	wantText(t, a.byID(t, "part-ingest"), "Waiting", "3 inventories wait")
	if class := attr(a.byID(t, "part-database"), "class"); class != "gate passed" {
		t.Errorf("the database is %q", class)
	}
	if has(a.byID(t, "part-database-evidence"), "open") || !has(a.byID(t, "part-disk-evidence"), "open") {
		t.Error("evidence is open where nothing failed, or closed where something did")
	}
	rows := map[string]string{}
	for _, row := range all(a.page, tag("tr")) {
		if heads, cells := all(row, tag("code")), all(row, tag("td")); len(cells) == 2 {
			rows[textOf(heads[0])] = textOf(cells[0]) + " | " + textOf(cells[1])
		}
	}
	want := map[string]string{
		"PROXIMA_DATA_DIR": "/var/lib/proxima | Environment", "PROXIMA_LISTEN_ADDR": "0.0.0.0:8443 | Flag", "PROXIMA_METRICS_ADDR": "not set | Default",
		"PROXIMA_DATABASE_URL": "set, and never shown | Environment", "PROXIMA_ADMIN_PASSWORD": "not set | Default", "--log-level": "info | Default",
		"PROXIMA_NATS_PUBLIC_URLS": "tls://nats-0.ostmark.example:4222, tls://nats-1.ostmark.example:4222, wss://console.ostmark.example/nats | Environment",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	wantText(t, a.byID(t, "versions"), "PostgreSQL", "NATS server", "Could not be read")
	if strings.Index(a.text, "health-h") > strings.Index(a.text, "configuration-h") || strings.Index(a.text, "configuration-h") > strings.Index(a.text, "versions-h") {
		t.Error("the order is another")
	}
}

// TestSettingsAreOfTheWholeConsole: the permission on a client alone opens them not, and the navigation leaves them out
// for whoever holds it nowhere.
func TestSettingsAreOfTheWholeConsole(t *testing.T) {
	world := fake.Full(start)
	reader := world.Users[fake.Reader]
	reader.Grants = append(reader.Grants, access.Grant{Permissions: []access.Permission{access.SettingsRead}, Scope: access.Scope{ClientID: "cl_halden"}})
	world.Users["us_client"] = reader
	s := serve(t, world, clocktest.New(start()), "us_client")
	wantText(t, s.get("/settings", http.StatusForbidden).page, "settings:read")

	s = serve(t, fake.Full(start), clocktest.New(start()), fake.Reader)
	if strings.Contains(s.get("/clusters", http.StatusOK).text, `href="/settings"`) {
		t.Error("the navigation leads to a page that is refused")
	}
}
