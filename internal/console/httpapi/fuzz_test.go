package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/httpapi"
)

// FuzzOperations sends any body, any value of a path parameter and any query to any operation, as the one who
// may do everything. Every answer is whole, and none is a fault of console's own.
func FuzzOperations(f *testing.F) {
	c := newConsole(f)
	params, bodies := c.fixtures()
	install, plain := enrollment.NewToken(access.Scope{ClientID: c.acme.ID, EnvironmentID: c.prod.ID}, "", c.admin.UserID, c.clock.Now())
	must(f, c.store.Enrollment().InTx(f.Context(), func(tx enrollment.Tx) error { return install.Store(f.Context(), tx, plain, c.admin) }))
	root := c.token(c.admin.UserID, 0)
	rules, err := httpapi.Matrix()
	must(f, err)
	for i, rule := range rules {
		f.Add(uint8(i), []byte(bodies[rule.OperationID]), "", "limit=10&sort=name")
		f.Add(uint8(i), []byte(`{"name":"\u202e","displayName":null,"email":[],"findings":[{}],"permissions":["x"]}`), "%00", "limit=-1&offset=99999999999999999999&sort=%ff")
	}
	f.Fuzz(func(t *testing.T, operation uint8, body []byte, value, query string) {
		rule := rules[int(operation)%len(rules)]
		if rule.OperationID == "deleteAgent" || rule.OperationID == "removeCluster" || rule.OperationID == "updateUser" && value == "" {
			value = "none" // what the others need stays
		}
		path := fill(rule.Path, params)
		if value != "" && strings.Contains(rule.Path, "{") {
			path = rule.Path[:strings.Index(rule.Path, "{")] + url.PathEscape(value) + rule.Path[strings.Index(rule.Path, "}")+1:]
			path = fill(path, params)
		}
		r := httptest.NewRequestWithContext(t.Context(), rule.Method, path, strings.NewReader(string(body)))
		r.URL.RawQuery = query
		r.Header.Set("Content-Type", "application/json")
		token := root
		if rule.Permission == "install-token" {
			token = plain
		}
		r.Header.Set("Authorization", "Bearer "+token)
		own := *c
		own.t = t
		c.clock.Advance(time.Second) // within the rate of one address
		res, answer := own.send(r)
		if res.StatusCode == http.StatusInternalServerError {
			t.Errorf("%s %s: %v\n%s", r.Method, r.URL, answer, c.logs)
		}
		c.logs.Reset()
	})
}

// FuzzBearer: what is no token of console's is refused, and never repeated.
func FuzzBearer(f *testing.F) {
	c := newConsole(f)
	for _, seed := range []string{"", "Bearer", "Bearer ", "Bearer pat_" + strings.Repeat("a", 32), "bearer pat_x", "Basic cm9vdDp4", "Bearer \x00", "Bearer pat_" + strings.Repeat("é", 16)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		own := *c
		own.t = t
		c.clock.Advance(time.Second) // within the rate of one address
		for _, path := range []string{"/api/v1/session", "/api/v1/enroll/findings"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
			if strings.HasSuffix(path, "findings") {
				r.Method = http.MethodPost
			}
			r.Header["Authorization"] = []string{header}
			res, answer := own.send(r)
			if res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusBadRequest {
				t.Errorf("%s with %q: status %d, %v", path, header, res.StatusCode, answer)
			}
			if len(header) > 20 && strings.Contains(c.logs.String(), header) {
				t.Errorf("the log repeats %q", header)
			}
		}
		c.logs.Reset()
	})
}
