package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/test/harness"
)

// TestNATSOverTLS runs console and agents beside a NATS server with TLS, as nats-setup writes it.
func TestNATSOverTLS(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	plane := h.LightControlPlane()
	authority := h.Authority()
	pem, err := os.ReadFile(authority.File())
	if err != nil {
		t.Fatal(err)
	}
	begin := func(t *testing.T, more map[string]string) (*harness.NATS, *harness.Console) {
		t.Helper()
		nats, env := h.OwnTLSNATS(authority)
		env["PROXIMA_NATS_PUBLIC_URLS"] = strings.Replace(nats.URL(), "nats://", "tls://", 1)
		maps.Copy(env, settings())
		maps.Copy(env, more)
		return nats, h.Console(harness.ConsoleOptions{Env: env})
	}

	// The authority that console was told of is handed over by enrolment, kept, and trusted (B-113).
	t.Run("console hands the authority over", func(t *testing.T) {
		nats, c := begin(t, map[string]string{"PROXIMA_NATS_CA_FILE": authority.File()})
		place, recorded := startAttempt(t, c, "Halden Energy", "Ost")
		data := t.TempDir()
		o := plane.DirectAgent(c, recorded, map[string]string{"PROXIMA_K8S_SYNC_INTERVAL": "5s"})
		o.DataDir = data
		h.Agent(o)
		awaitInventory(t, c, recorded)
		state, err := os.ReadFile(filepath.Join(data, "state.json"))
		if err != nil || !strings.Contains(string(state), strings.ReplaceAll(string(pem), "\n", `\n`)) {
			t.Errorf("state.json does not hold the authority, or %v", err)
		}

		socket := nats.WebSocketURL()
		if !strings.HasPrefix(socket, "wss://") {
			t.Fatalf("NATS over WebSocket is at %q", socket)
		}
		west := record(t, c, place, "West")
		h.Agent(plane.DirectAgent(c, west, map[string]string{"PROXIMA_K8S_SYNC_INTERVAL": "5s", "PROXIMA_NATS_URL": socket}))
		awaitGate(t, c, west, 3, console.GateStatePassed)
	})

	// Where console itself trusts by the system's roots it hands nothing over: the agent is told by its own
	// variable (B-65), and says so where it is not.
	t.Run("the agent is told of the authority", func(t *testing.T) {
		_, c := begin(t, map[string]string{"SSL_CERT_FILE": authority.File()})
		place, recorded := startAttempt(t, c, "Halden Energy", "Ost")
		h.Agent(plane.DirectAgent(c, recorded, map[string]string{"PROXIMA_NATS_CA_FILE": authority.File(), "PROXIMA_K8S_SYNC_INTERVAL": "5s"}))
		awaitInventory(t, c, recorded)

		untold := record(t, c, place, "West")
		agent := h.Agent(plane.DirectAgent(c, untold, nil))
		for _, part := range []string{"certificate", "PROXIMA_NATS_CA_FILE"} {
			if err := agent.AwaitLog(h.Context(), part); err != nil {
				t.Error(err)
			}
		}
		awaitGate(t, c, untold, 2, console.GateStatePassed)
		awaitGate(t, c, untold, 3, console.GateStateWaiting)
	})
}
