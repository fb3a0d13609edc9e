package enroll

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"prxm.uz/proxima/api/console/client"
	"prxm.uz/proxima/internal/wire"
)

// tok-01: white space around the token is trimmed; nothing but white space is an empty token.
func TestTokenOfASecret(t *testing.T) {
	content, err := os.ReadFile("testdata/tok-01.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i, document := range bytes.Split(content, []byte("\n---\n")) {
		var secret corev1.Secret
		if err := yaml.Unmarshal(document, &secret); err != nil {
			t.Fatal(err)
		}
		token, err := CheckToken(string(secret.Data["token"]))
		switch {
		case i < 2 && (err != nil || token != "pit_EXAMPLE0000000000001"):
			t.Errorf("%s: %q, %v", secret.Name, token, err)
		case i == 2 && (err == nil || !strings.Contains(err.Error(), "install token is empty")):
			t.Errorf("%s: %q, %v", secret.Name, token, err)
		}
	}
}

func TestTokenShapesAreRefusedWithoutShowingThem(t *testing.T) {
	for _, raw := range []string{"", "hush", "pit_hush", "pit_hush hush hush", "pit_hush\nhushhush", "pit_" + strings.Repeat("hush", 100), "pit_hushhushü"} {
		if _, err := CheckToken(raw); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func newClient(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	ts := httptest.NewServer(h)
	t.Cleanup(ts.Close)
	c, err := New(ts.URL, "pit_EXAMPLE0000000000001", ts.Client())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answer(w http.ResponseWriter, status int, kind string, body any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func TestEnrolProvesTheKey(t *testing.T) {
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/enroll/challenge" {
			answer(w, 200, "application/json", client.Challenge{Challenge: "ch-1", ExpiresAt: time.Now()})
			return
		}
		var got client.EnrollRequest
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		if r.URL.Path != "/api/v1/enroll" || r.Header.Get("Authorization") != "Bearer pit_EXAMPLE0000000000001" || got.AgentType != "collector" || got.Capability != wire.CapabilityVersion {
			t.Errorf("%s %+v", r.URL.Path, got)
		}
		public, err := nkeys.FromPublicKey(got.PublicKey)
		if err != nil {
			t.Error(err)
			return
		}
		signature, err := base64.RawURLEncoding.DecodeString(got.Signature)
		if err != nil || public.Verify(wire.EnrollProof("ch-1", "collector", "prod", "agent-0"), signature) != nil {
			t.Error("the proof does not hold")
		}
		answer(w, 200, "application/json", client.EnrollResponse{AgentID: "agt1", Credential: client.Credential{Jwt: "j"}, NatsURLs: []string{"tls://a:4222"}})
	})
	got, err := c.Enroll(t.Context(), Request{AgentType: "collector", Name: "agent-0", ClusterSlug: "prod", ClusterName: "Prod", Version: "0.9.0"}, key)
	if err != nil || got.AgentID != "agt1" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRefusalsAndFaults(t *testing.T) {
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		status    int
		kind      string
		body      any
		permanent bool
		refusal   bool
		want      string
	}{
		"taken":   {409, "application/problem+json", client.Problem{Code: "already_enrolled", Detail: new("agent-0 is taken."), Cure: new("Release it.")}, true, true, "Cure: Release it."},
		"unknown": {401, "application/problem+json", client.Problem{Code: "token_unknown"}, true, true, "token_unknown"},
		"proof":   {401, "application/problem+json", client.Problem{Code: "proof_invalid"}, false, true, "proof_invalid"},
		"busy":    {429, "application/problem+json", client.Problem{Code: "too_many_requests"}, false, true, "too_many_requests"},
		"away":    {503, "application/problem+json", client.Problem{Code: "unavailable"}, false, true, "unavailable"},
		"proxy":   {403, "text/html", "no", false, false, "not one of Proxima Console"},
		"gateway": {502, "text/html", "no", false, false, "not available now"},
	} {
		t.Run(name, func(t *testing.T) {
			api := newClient(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "challenge") {
					answer(w, 200, "application/json", client.Challenge{Challenge: "c"})
					return
				}
				w.Header().Set("Retry-After", "7")
				answer(w, c.status, c.kind, c.body)
			})
			_, err := api.Enroll(t.Context(), Request{AgentType: "collector", Name: "a"}, key)
			refused, ok := AsRefusal(err)
			if ok != c.refusal || ok && (refused.Permanent() != c.permanent || refused.RetryAfter != 7*time.Second) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v (refusal %v)", err, ok)
			}
			if strings.Contains(err.Error(), "pit_") {
				t.Errorf("%v shows the token", err)
			}
		})
	}
}

func TestFaultsNameTheDependency(t *testing.T) {
	secured := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secured.Close)
	for url, want := range map[string]string{"http://127.0.0.1:1": "tcp", "http://no-such-host.invalid": "dns", secured.URL: "tls"} {
		c, err := New(url, "", &http.Client{Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Challenge(t.Context())
		if got := err.(*Unreachable).Dependency; got != want { //nolint:errorlint,errcheck // the type is what is tested
			t.Errorf("%s: %s, %v", url, got, err)
		}
	}
}
