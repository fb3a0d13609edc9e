package httpapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"prxm.uz/proxima/internal/console/httpapi"
	"prxm.uz/proxima/internal/console/problem"
)

func TestHostileRequests(t *testing.T) {
	c := newConsole(t)
	token := c.token(c.admin.UserID, 0)
	clients := "/api/v1/clients"
	for _, test := range []struct {
		name, method, path, body, code string
		status                         int
	}{
		{"duplicate key", "POST", clients, `{"name":"a","name":"b"}`, "json_invalid", 400},
		{"duplicate key by escape", "POST", clients, `{"name":"a","n\u0061me":"b"}`, "json_invalid", 400},
		{"key in other case", "POST", clients, `{"name":"a","NAME":"b"}`, "request_invalid", 400},
		{"deep nesting", "POST", clients, strings.Repeat("[", 40) + strings.Repeat("]", 40), "json_invalid", 400},
		{"very deep nesting", "POST", clients, strings.Repeat(`{"a":`, 100_000), "json_invalid", 400},
		{"NUL", "POST", clients, `{"name":"a\u0000b"}`, "json_invalid", 400},
		{"raw NUL", "POST", clients, "{\"name\":\"a\x00b\"}", "json_invalid", 400},
		{"invalid UTF-8", "POST", clients, "{\"name\":\"a\xffb\"}", "json_invalid", 400},
		{"trailing bytes", "POST", clients, `{"name":"a"} {}`, "json_invalid", 400},
		{"cut off", "POST", clients, `{"name":"a`, "json_invalid", 400},
		{"not JSON", "POST", clients, `name=a`, "json_invalid", 400},
		{"wrong type", "POST", clients, `{"name":7}`, "request_invalid", 400},
		{"null", "POST", clients, `null`, "request_invalid", 400},
		{"array", "POST", clients, `[]`, "request_invalid", 400},
		{"missing", "POST", clients, `{}`, "request_invalid", 400},
		{"unknown field", "POST", clients, `{"name":"a","admin":true}`, "request_invalid", 400},
		{"no body", "POST", clients, ``, "content_type_invalid", 400},
		{"empty body", "POST", clients, ` `, "body_missing", 400},
		{"huge", "POST", clients, `{"name":"` + strings.Repeat("a", 2<<20) + `"}`, "body_too_large", 413},
		{"too long", "POST", clients, `{"name":"` + strings.Repeat("a", 101) + `"}`, "request_invalid", 400},
		{"leading space", "POST", clients, `{"name":" a"}`, "name_invalid", 400},
		{"direction mark", "POST", clients, `{"name":"a\u202eb"}`, "name_invalid", 400},
		{"zero width space", "POST", clients, `{"name":"a\u200bb"}`, "name_invalid", 400},
		{"line break", "POST", clients, `{"name":"a\nb"}`, "name_invalid", 400},
		{"taken in other case", "POST", clients, `{"name":"ACME"}`, "name_taken", 409},
		{"unknown query", "GET", clients + "?x=1", ``, "query_unknown", 400},
		{"repeated query", "GET", "/api/v1/clusters?limit=1&limit=2", ``, "query_repeated", 400},
		{"NUL in query", "GET", "/api/v1/clusters?q=%00", ``, "query_invalid", 400},
		{"bad escape in query", "GET", "/api/v1/clusters?q=%zz", ``, "query_invalid", 400},
		{"limit too large", "GET", "/api/v1/clusters?limit=501", ``, "request_invalid", 400},
		{"limit no number", "GET", "/api/v1/clusters?limit=many", ``, "request_invalid", 400},
		{"sort by SQL", "GET", "/api/v1/clusters?sort=name%3Bdrop", ``, "request_invalid", 400},
		{"unknown column", "GET", "/api/v1/clusters?sort=colour", ``, "invalid_sort", 400},
		{"id with a dot", "GET", clients + "/a.b", ``, "request_invalid", 400},
		{"id with an escaped slash", "GET", clients + "/a%2fb", ``, "request_invalid", 400},
		{"unknown section", "GET", "/api/v1/clusters/x/secrets", ``, "request_invalid", 400},
		{"unknown client", "GET", clients + "/cli_none", ``, "not_found", 404},
		{"unknown path", "GET", "/api/v1/nothing", ``, "path_unknown", 404},
		{"unclean path", "GET", "/api/v1//clients", ``, "path_unknown", 404},
		{"trailing slash", "GET", clients + "/", ``, "path_unknown", 404},
		{"unknown method", "TRACE", clients, ``, "method_not_allowed", 405},
		{"wrong method", "PUT", clients, `{}`, "method_not_allowed", 405},
	} {
		res, answer := c.call(token, test.method, test.path, test.body)
		if res.StatusCode != test.status || answer["code"] != test.code {
			t.Errorf("%s: %d %v, want %d %s", test.name, res.StatusCode, answer, test.status, test.code)
		}
	}
	if _, answer := c.call(token, "GET", clients, ""); len(as[[]any](answer["items"])) != 2 {
		t.Errorf("something was stored: %v", answer)
	}
}

func TestContentType(t *testing.T) {
	c := newConsole(t)
	token := c.token(c.admin.UserID, 0)
	for kind, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, `Application/JSON;charset="UTF-8"`: true,
		"application/json; charset=utf-16": false, "application/json; charset=latin1": false, "application/json; charset=utf-8; charset=utf-16": false,
		"application/json; charset=": false, "text/plain": false, "": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/clients", strings.NewReader(`{}`))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", kind)
		if _, answer := c.send(r); (answer["code"] == "request_invalid") != ok || !ok && answer["code"] != "content_type_invalid" {
			t.Errorf("%q: %v", kind, answer)
		}
	}
}

func TestContentEncoding(t *testing.T) {
	c := newConsole(t)
	token := c.token(c.admin.UserID, 0)
	for coding, ok := range map[string]bool{"": true, "identity": true, "Identity": true, "gzip": false, "br": false, "gzip, identity": false, "made\"up": false} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/clients", strings.NewReader(`{}`))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		if coding != "" {
			r.Header.Set("Content-Encoding", coding)
		}
		res, answer := c.send(r)
		cure, _ := answer["cure"].(string)
		refused := res.StatusCode == http.StatusUnsupportedMediaType && answer["code"] == "content_encoding_unsupported" &&
			strings.Contains(cure, "uncompressed") && res.Header.Get("Accept-Encoding") == "identity"
		if refused == ok || ok && answer["code"] != "request_invalid" {
			t.Errorf("%q: %d %v", coding, res.StatusCode, answer)
		}
	}
}

// TestForeignOrigin: the refusal of a page of another site is a problem as all others are.
func TestForeignOrigin(t *testing.T) {
	c := newConsole(t)
	foreign := http.NewCrossOriginProtection()
	foreign.SetDenyHandler(httpapi.ForeignOrigin())
	c.handler = foreign.Handler(c.handler)
	for name, value := range map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/clients", strings.NewReader(`{}`))
		r.Header.Set(name, value)
		if res, answer := c.send(r); res.StatusCode != http.StatusForbidden || answer["code"] != "origin_foreign" {
			t.Errorf("%s: %d %v", name, res.StatusCode, answer)
		}
	}
}

func TestFaultsNameTheField(t *testing.T) {
	c := newConsole(t)
	secret := "hunter2hunter2hunter2"
	_, answer := c.call(c.token(c.admin.UserID, 0), "POST", "/api/v1/users", `{"email":7,"password":"`+strings.Repeat(secret, 20)+`","extra":1}`)
	text, pointers := "", map[string]bool{}
	for _, e := range as[[]any](answer["errors"]) {
		fault := as[map[string]any](e)
		pointers[as[string](fault["pointer"])] = true
		text += as[string](fault["detail"])
	}
	if !pointers["/email"] || !pointers["/password"] {
		t.Errorf("the faults are at %v", pointers)
	}
	if strings.Contains(text, secret) {
		t.Errorf("a fault repeats the input: %s", text)
	}
}

func TestAuthorizationHeader(t *testing.T) {
	c := newConsole(t)
	good := c.token(c.admin.UserID, 0)
	for _, header := range [][]string{
		{"Basic cm9vdDpyb290"},
		{"Bearer"},
		{"Bearer "},
		{"Bearer " + good, "Bearer " + good},
		{"Bearer " + good + "x"},
		{"Bearer pat_" + strings.Repeat("a", 32)},
		{good},
		{"Bearer " + strings.Repeat("a", 10_000)},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/session", nil)
		r.Header["Authorization"] = header
		res, _ := c.send(r)
		if res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%.40q answers %d", header, res.StatusCode)
		}
	}
	if res, answer := c.call(good, "GET", "/api/v1/session", ""); res.StatusCode != 200 || answer["email"] != "root@example.com" {
		t.Errorf("a good token: %d %v", res.StatusCode, answer)
	}
}

func TestRateLimit(t *testing.T) {
	c := newConsole(t)
	limited := 0
	for range 700 {
		if res, _ := c.call("", "POST", "/api/v1/enroll/challenge", ""); res.StatusCode == 429 {
			limited++
			if res.Header.Get("Retry-After") != "1" {
				t.Fatalf("Retry-After is %q", res.Header.Get("Retry-After"))
			}
		}
	}
	if limited != 100 {
		t.Errorf("%d of 700 were refused, want 100", limited)
	}
}

func TestContractIsServed(t *testing.T) {
	c := newConsole(t)
	res, answer := c.call("", "GET", "/api/v1/openapi.json", "")
	if res.StatusCode != 200 || answer["openapi"] != "3.0.3" {
		t.Errorf("%d, version %v", res.StatusCode, answer["openapi"])
	}
}

// A session works as a token does, and changing the password keeps this one and ends the others.
func TestPasswordChangeByASession(t *testing.T) {
	c := newConsole(t)
	signIn := func() *http.Cookie {
		w := httptest.NewRecorder()
		c.sessions.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := c.sessions.SignIn(r.Context(), c.admin.UserID); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusNoContent)
		}), httpapi.Refuse(slog.New(slog.DiscardHandler))).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/signin", nil))
		return w.Result().Cookies()[0]
	}
	ask := func(cookie *http.Cookie, method, path, body string) (reply, map[string]any) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.AddCookie(cookie)
		return c.send(r)
	}
	mine, other := signIn(), signIn()
	if res, _ := ask(other, "GET", "/api/v1/session", ""); res.StatusCode != 200 {
		t.Fatalf("the other session: %d", res.StatusCode)
	}
	res, answer := ask(mine, "PUT", "/api/v1/session/password", `{"currentPassword":"`+password+`","newPassword":"entirely new words"}`)
	if res.StatusCode != 204 || len(res.Cookies()) != 1 {
		t.Fatalf("change: %d %v", res.StatusCode, answer)
	}
	for cookie, want := range map[*http.Cookie]int{res.Cookies()[0]: 200, mine: 401, other: 401} {
		if res, _ := ask(cookie, "GET", "/api/v1/session", ""); res.StatusCode != want {
			t.Errorf("a session after the change: %d, want %d", res.StatusCode, want)
		}
	}
	if _, err := c.access.SignIn(t.Context(), "root@example.com", "entirely new words", "192.0.2.1"); err != nil {
		t.Error(err)
	}
}

func TestInnerTextStaysInside(t *testing.T) {
	c := newConsole(t)
	token := c.token(c.admin.UserID, 0)
	must(t, c.store.Close())
	res, answer := c.call(token, "GET", "/api/v1/clients", "")
	if res.StatusCode != 500 || answer["code"] != "internal" || answer["instance"] == nil {
		t.Fatalf("a closed store: %d %v", res.StatusCode, answer)
	}
	incident := strings.TrimPrefix(as[string](answer["instance"]), "urn:proxima:incident:")
	if !strings.Contains(c.logs.String(), incident) {
		t.Errorf("incident %s is not in the log", incident)
	}
	if text := as[string](answer["detail"]); strings.Contains(text, "sql") || strings.Contains(text, "database") {
		t.Errorf("the detail tells of the inside: %s", text)
	}
}

func TestEveryKindHasAStatus(t *testing.T) {
	for kind := 1; kind <= 10; kind++ {
		if status := problem.Kind(kind).Status(); status == 500 {
			t.Errorf("kind %d has no status", kind)
		}
	}
}
