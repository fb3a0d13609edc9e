package enroll

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/api/console/client"
)

// FuzzCheckToken: a token that passes is one word of ASCII that a header can carry, and the same when it is
// checked again; one that is refused is not shown.
func FuzzCheckToken(f *testing.F) {
	for _, seed := range []string{"", " \n", "pit_EXAMPLE0000000000001", "\tpit_EXAMPLE0000000000001\r\n", "pit_a b", "pat_EXAMPLE0000000000001", "pit_" + strings.Repeat("x", 253), "pit_\xffüüüüüüüü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		token, err := CheckToken(raw)
		if err != nil {
			if secret := strings.TrimSpace(raw); token != "" || len(secret) > 12 && strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %q and %v", raw, token, err)
			}
			return
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://console.example", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		if err := r.Write(io.Discard); err != nil || !strings.HasPrefix(token, TokenPrefix) || len(strings.Fields(token)) != 1 || strings.ContainsFunc(token, func(r rune) bool { return r > unicode.MaxASCII }) {
			t.Errorf("%q is no header: %v", token, err)
		}
		if again, err := CheckToken(token); err != nil || again != token {
			t.Errorf("%q becomes %q, %v", token, again, err)
		}
	})
}

// answering is a console whose challenge is sound, and whose other answers are one.
type answering func() *http.Response

// RoundTrip implements [http.RoundTripper].
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := a()
	if strings.HasSuffix(r.URL.Path, "/challenge") {
		resp = &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(`{"challenge":"c","expiresAt":"2026-03-01T12:05:00Z"}`)),
		}
	}
	resp.Request = r
	return resp, nil
}

// FuzzAnswer: whatever answers in console's place, an agent has a usable answer, a refusal of console's, or a
// fault that names what is at fault. None of them shows the token.
func FuzzAnswer(f *testing.F) {
	const enrolled = `{"agentID":"agt_a","clientID":"cli","environmentID":"env","environmentName":"prod","resumed":false,"natsURLs":["tls://nats.example:4222"],` +
		`"credential":{"jwt":"x","template":1,"issuedAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-08T12:00:00Z"}}`
	const json, problem = "application/json", "application/problem+json"
	f.Add(uint16(200), json, "", "", []byte(enrolled))
	f.Add(uint16(200), json, "", "", []byte(strings.Replace(enrolled, "agt_a", "agt.>", 1)))
	f.Add(uint16(200), json, "", "", []byte(`{"jwt":"x","issuedAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-08T12:00:00Z"}`))
	f.Add(uint16(200), json, "", "", []byte(`{"jwt":"x","issuedAt":"2026-03-08T12:00:00Z","expiresAt":"2026-03-01T12:00:00Z"}`))
	f.Add(uint16(200), json, "", "", []byte(`{"agentID":`+strings.Repeat("9", 3000)+`}`))
	f.Add(uint16(200), "text/html", "", "", []byte("<html>Sign in</html>"))
	f.Add(uint16(302), "text/html", "https://login.example/?token=pit_x", "", []byte{})
	f.Add(uint16(403), problem, "", "", []byte(`{"type":"t","title":"t","status":403,"code":"token_expired","detail":"d","cure":"c"}`))
	f.Add(uint16(429), problem, "", "99999999999999999999", []byte(`{"code":"too_many","status":429}`))
	f.Add(uint16(503), problem, "", "-1", []byte(`{"code":""}`))
	f.Add(uint16(204), "", "%zz", "x", []byte{})
	key, err := nkeys.CreateUser()
	if err != nil {
		f.Fatal(err)
	}
	const token = "pit_EXAMPLE0000000000001"
	f.Fuzz(func(t *testing.T, code uint16, kind, location, retryAfter string, body []byte) {
		status := 100 + (int(code)+400)%500 // itself, where it is one
		c, err := New("http://console.example", token, &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: answering(func() *http.Response {
				return &http.Response{
					StatusCode: status, Header: http.Header{"Content-Type": {kind}, "Location": {location}, "Retry-After": {retryAfter}},
					Body: io.NopCloser(strings.NewReader(string(body))),
				}
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		request := Request{AgentType: "k8s-collector", Name: "web-0", ClusterSlug: "alpha", Version: "0.9.0"}
		enrolled, err := c.Enroll(t.Context(), request, key)
		named(t, err, token)
		if err == nil && (enrolled.AgentID == "" || strings.ContainsAny(enrolled.AgentID, ".*> \t\r\n") || enrolled.Credential.Jwt == "") {
			t.Errorf("taken for an enrolment: %+v", enrolled)
		}
		credential, err := c.Renew(t.Context(), "agt_a", "0.9.0", key)
		named(t, err, token)
		if err == nil && (credential.Jwt == "" || !credential.ExpiresAt.After(credential.IssuedAt)) {
			t.Errorf("taken for a credential: %+v", credential)
		}
		err = c.PostFindings(t.Context(), request, []client.Finding{})
		named(t, err, token)
		if err == nil && status/100 != 2 {
			t.Errorf("status %d was taken for success", status)
		}
	})
}

// named holds an error to one of the two that an agent decides by.
func named(t *testing.T, err error, token string) {
	t.Helper()
	if err == nil {
		return
	}
	fault, isFault := errors.AsType[*Unreachable](err)
	refused, isRefusal := AsRefusal(err)
	switch {
	case isFault && fault.Dependency == "", isRefusal && (refused.Code == "" || refused.RetryAfter < 0), !isFault && !isRefusal:
		t.Errorf("it is %v", err)
	case strings.Contains(err.Error(), token):
		t.Errorf("the token is shown: %v", err)
	}
}
