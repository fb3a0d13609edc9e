package web

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/web/internal/fake"
)

func TestAuditPage(t *testing.T) {
	s := full(t)
	a := s.get("/audit", http.StatusOK)
	wantText(t, a.page, "mira.okafor@ostmark.example gave the role Viewer to tomasz.wrona@ostmark.example", "Halden Energy", "10.20.4.17",
		"kept for 365 days", "2 min ago", "before Nights → after Night shift")
	if attr(a.byID(t, "export"), "href") != "/api/v1/audit/export" {
		t.Errorf("the export is at %q", attr(a.byID(t, "export"), "href"))
	}
	older := attr(a.byID(t, "page-next"), "href")
	a = s.get(older, http.StatusOK)
	a.byID(t, "page-newest")
	if older != "/audit?cursor=aud_49" || len(all(a.byID(t, "audit"), tag("tr"))) != 51 {
		t.Errorf("%s has %d lines", older, len(all(a.byID(t, "audit"), tag("tr"))))
	}

	a = s.get("/audit?from=2026-11-30&to=2026-11-30&actor=mira.okafor%40ostmark.example&client=cl_halden&cursor=", http.StatusOK)
	if got, want := attr(a.byID(t, "export"), "href"), "/api/v1/audit/export?actor=mira.okafor%40ostmark.example&client=cl_halden&from=2026-11-30T00%3A00%3A00Z&to=2026-12-01T00%3A00%3A00Z"; got != want {
		t.Errorf("the export is at %q, want %q", got, want)
	}
	if n := len(all(a.byID(t, "audit"), tag("tr"))); n != 3 {
		t.Errorf("the filter leaves %d lines", n)
	}
	wantText(t, s.get("/audit?actor=nobody", http.StatusOK).page, "No row matches", "Clear filter")
	a = s.get("/audit?from=yesterday", http.StatusUnprocessableEntity)
	wantText(t, a.byID(t, "error-summary"), "is no day", "2026-11-30")
	a = s.get("/audit?from=2026-11-30&to=2026-11-28", http.StatusBadRequest)
	wantText(t, a.byID(t, "error-summary"), "ends before it begins")

	wantText(t, serve(t, fake.Empty(start), clocktest.New(start()), fake.Admin).get("/audit", http.StatusOK).page, "No rows yet")
	serve(t, fake.Full(start), clocktest.New(start()), fake.Nobody).get("/audit", http.StatusForbidden)
}

func TestWhoTouchedACluster(t *testing.T) {
	s := full(t)
	link := attr(s.get("/clusters/ck_ostra_web", http.StatusOK).byID(t, "to-audit"), "href")
	a := s.get(link, http.StatusOK)
	wantText(t, a.byID(t, "about"), "the cluster ostra-web")
	lines := all(a.byID(t, "audit"), func(n *html.Node) bool { return n.Data == "tr" && strings.Contains(textOf(n), "ostra-w") })
	if len(lines) != 2 {
		t.Errorf("%d lines of the cluster", len(lines))
	}
}
