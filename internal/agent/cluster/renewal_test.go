package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"prxm.uz/proxima/api/console/client"
	"prxm.uz/proxima/internal/agent/connection"
	"prxm.uz/proxima/internal/agent/enroll"
	"prxm.uz/proxima/internal/agent/identity"
	"prxm.uz/proxima/internal/clock"
)

// renewing answers renewals without a network: with a credential of a day, or with a refusal.
type renewing struct {
	refuse atomic.Pointer[client.Problem]
	asked  atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (r *renewing) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Path, "/challenge") {
		return answer(http.StatusOK, client.Challenge{Challenge: "challenge", ExpiresAt: time.Now().Add(time.Minute)})
	}
	r.asked.Add(1)
	if p := r.refuse.Load(); p != nil {
		return answer(http.StatusForbidden, p)
	}
	return answer(http.StatusOK, client.Credential{Jwt: "fresh", Template: 1, IssuedAt: time.Now(), ExpiresAt: time.Now().Add(24 * time.Hour)})
}

func answer(status int, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	kind := "application/json"
	if status >= 400 {
		kind = "application/problem+json"
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(text))}, err
}

// enrolledAgent is an agent with a stored credential of a day, without connection.
func enrolledAgent(t *testing.T, transport http.RoundTripper) *agent {
	t.Helper()
	state := must(identity.NewPending(AgentType, "prod", "prod"))
	now := time.Now().UTC()
	state.AgentID, state.EnrolledAt = "agtprod", now
	state.Credential = identity.Credential{JWT: "old", Template: 1, IssuedAt: now, ExpiresAt: now.Add(24 * time.Hour), ReceivedAt: now}
	a := &agent{
		clock: clock.System(), log: slog.New(slog.DiscardHandler), store: must(identity.Open(t.TempDir())), renewNow: make(chan chan error), refused: make(chan struct{}, 1),
		api:        must(enroll.New("http://console.example", "", &http.Client{Transport: transport})),
		connection: must(connection.New(connection.Options{AgentID: state.AgentID, URLs: []string{"nats://nats.example:4222"}, Clock: clock.System()})),
	}
	t.Cleanup(func() { _ = a.store.Close() })
	if err := a.store.Save(state); err != nil {
		t.Fatal(err)
	}
	a.creds.set(state)
	a.ready.set(true, "enrolled")
	return a
}

// renew runs the renewals until the test ends.
func renew(t *testing.T, a *agent) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { a.renewals(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

// pass lets time pass.
func pass(t *testing.T, a *agent, d time.Duration) {
	t.Helper()
	if err := a.clock.Sleep(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func stored(t *testing.T, a *agent) string {
	t.Helper()
	return must(a.store.Load(AgentType)).Credential.JWT
}

// Half a day passes, the directory cannot be written any more: the credential is in use, /readyz names the
// file, and when it can be written again it is, without another renewal.
func TestWhatCouldNotBeStoredIsStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		console := &renewing{}
		a := enrolledAgent(t, console)
		obstacle := filepath.Join(filepath.Dir(a.store.Path()), "state.json.new")
		if err := os.Mkdir(obstacle, 0o700); err != nil {
			t.Fatal(err)
		}
		renew(t, a)
		pass(t, a, 12*time.Hour+time.Minute)
		if got := a.creds.get().Credential.JWT; got != "fresh" || stored(t, a) != "old" || console.asked.Load() != 1 {
			t.Errorf("in use: %s, stored: %s, asked %d times", got, stored(t, a), console.asked.Load())
		}
		if _, why := a.isReady(); !strings.Contains(why, a.store.Path()) || !strings.Contains(why, "is a directory") {
			t.Errorf("readyz: %s", why)
		}
		if err := os.Remove(obstacle); err != nil {
			t.Fatal(err)
		}
		pass(t, a, storeAgain+time.Second)
		if stored(t, a) != "fresh" || console.asked.Load() != 1 {
			t.Errorf("stored: %s, asked %d times", stored(t, a), console.asked.Load())
		}
		if _, why := a.isReady(); strings.Contains(why, a.store.Path()) {
			t.Errorf("readyz: %s", why)
		}
	})
}

// Console refuses for good, NATS refuses at every try, and nothing can be stored: console is asked at the
// slowest pace all the same, and /readyz says who refuses.
func TestARefusedAgentAsksSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		console := &renewing{}
		a := enrolledAgent(t, console)
		if err := os.Mkdir(filepath.Join(filepath.Dir(a.store.Path()), "state.json.new"), 0o700); err != nil {
			t.Fatal(err)
		}
		renew(t, a)
		pass(t, a, 12*time.Hour+time.Minute)
		console.refuse.Store(&client.Problem{Code: "agent_revoked", Detail: new("The agent was revoked."), Cure: new("Enroll it again.")})
		pass(t, a, 12*time.Hour)
		console.asked.Store(0)
		for range 120 {
			select {
			case a.refused <- struct{}{}:
			default:
			}
			pass(t, a, 5*time.Second)
		}
		if n := console.asked.Load(); n < 4 || n > 11 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		ready, why := a.isReady()
		if ready || !strings.Contains(why, "agent_revoked") || !strings.Contains(why, "Enroll it again.") {
			t.Errorf("readyz: %v %s", ready, why)
		}
		if _, err := a.connection.Conn(); !errors.Is(err, connection.ErrNotConnected) {
			t.Error(err)
		}
	})
}
