package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/access"
)

func TestAuditIsReadWhereItIsPermitted(t *testing.T) {
	c := newConsole(t)
	role, err := c.tenancy.CreateRole(t.Context(), c.admin, "auditor", []access.Permission{access.AuditRead})
	must(t, err)
	ofAcme := c.user("ofacme", role.ID, access.Scope{ClientID: c.acme.ID})
	root := c.token(c.admin.UserID, 0)

	_, all := c.call(root, http.MethodGet, "/api/v1/audit?limit=500", "")
	c.clock.Advance(time.Second)
	_, err = c.tenancy.CreateClient(t.Context(), c.admin, "last")
	must(t, err)
	if n := len(as[[]any](all["items"])); n < 8 {
		t.Fatalf("the administrator reads %d rows: %v", n, all)
	}
	_, some := c.call(ofAcme, http.MethodGet, "/api/v1/audit", "")
	if len(as[[]any](some["items"])) == 0 {
		t.Error("who reads one client sees nothing")
	}
	for _, item := range as[[]any](some["items"]) {
		if row := as[map[string]any](item); row["clientID"] != c.acme.ID {
			t.Errorf("who reads acme sees %v", row)
		}
	}
	if _, none := c.call(ofAcme, http.MethodGet, "/api/v1/audit?client="+c.zeta.ID, ""); len(as[[]any](none["items"])) != 0 {
		t.Errorf("who reads acme sees of zeta: %v", none)
	}

	_, one := c.call(root, http.MethodGet, "/api/v1/audit?action=client_created&limit=1", "")
	first := as[map[string]any](as[[]any](one["items"])[0])
	if first["sentence"] != "root@example.com added the client last" {
		t.Errorf("the newest client is %v", first)
	}
	_, two := c.call(root, http.MethodGet, "/api/v1/audit?action=client_created&limit=2&cursor="+as[string](one["next"]), "")
	if len(as[[]any](two["items"])) != 2 || two["next"] != nil {
		t.Errorf("behind it is %v", two)
	}
	for query, code := range map[string]string{"cursor=x": "cursor_invalid", "from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z": "range_invalid", "clusterSlug=one": "environment_missing", "from=yesterday": "request_invalid"} {
		for _, path := range []string{"/api/v1/audit?", "/api/v1/audit/export?"} {
			if strings.HasPrefix(query, "cursor") && strings.Contains(path, "export") {
				continue
			}
			if res, answer := c.call(root, http.MethodGet, path+query, ""); res.StatusCode != http.StatusBadRequest || answer["code"] != code {
				t.Errorf("%s%s: %d %v", path, query, res.StatusCode, answer["code"])
			}
		}
	}
}

func TestAuditIsExportedAsLines(t *testing.T) {
	c := newConsole(t)
	root := c.token(c.admin.UserID, 0)
	c.clock.Advance(1000)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/audit/export?client="+c.acme.ID, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+root)
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/x-ndjson" || w.Header().Get("Content-Disposition") != `attachment; filename="audit-2026-03-01.jsonl"` {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
	for _, line := range lines {
		row := map[string]any{}
		if err := json.Unmarshal([]byte(line), &row); err != nil || row["clientID"] != c.acme.ID || row["sentence"] == "" {
			t.Errorf("%s: %v", line, err)
		}
	}
	if len(lines) != 3 {
		t.Errorf("%d lines, want the client and its environments:\n%s", len(lines), w.Body)
	}
	_, told := c.call(root, http.MethodGet, "/api/v1/audit?action=audit_exported", "")
	row := as[map[string]any](as[[]any](told["items"])[0])
	if row["clientID"] != c.acme.ID || row["actorName"] != "root@example.com" || row["remoteAddr"] == "" {
		t.Errorf("the row about it is %v", row)
	}
}

func TestSignInsAreAudited(t *testing.T) {
	c := newConsole(t)
	ctx := t.Context()
	root := c.token(c.admin.UserID, 0)
	c.clock.Advance(time.Minute)
	sign := func(email, secret string) {
		t.Helper()
		_, err := c.access.SignIn(ctx, email, secret, "192.0.2.9")
		if (err == nil) != (secret == password) {
			t.Fatalf("%s: %v", email, err)
		}
	}
	count := func(action string) int {
		t.Helper()
		res := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/audit?action="+action, http.NoBody)
		r.Header.Set("Authorization", "Bearer "+root)
		c.handler.ServeHTTP(res, r)
		if strings.Contains(res.Body.String(), "typed-secret") {
			t.Errorf("what was typed is in the log: %s", res.Body)
		}
		answer := map[string]any{}
		must(t, json.Unmarshal(res.Body.Bytes(), &answer))
		return len(as[[]any](answer["items"]))
	}
	before := count("signed_in")
	for range 5 {
		sign("root@example.com", "typed-secret")
		sign("typed-secret", "typed-secret")
		sign("typed-secret-2@example.com", "typed-secret")
		c.clock.Advance(time.Second)
	}
	if n := count("sign_in_failed"); n != 2 {
		t.Errorf("%d rows of failed sign-ins, want one of the account and one of all that do not exist", n)
	}
	c.clock.Advance(access.AttemptWindow)
	sign("root@example.com", "typed-secret")
	if n := count("sign_in_failed"); n != 3 {
		t.Errorf("%d rows of failed sign-ins after the window, want 3", n)
	}
	sign("root@example.com", password)
	if n := count("signed_in"); n != before+1 {
		t.Errorf("%d rows of sign-ins, want %d", n, before+1)
	}
	must(t, c.access.SignedOut(ctx, c.admin))
	if n := count("signed_out"); n != 1 {
		t.Errorf("%d rows of sign-outs", n)
	}
}
