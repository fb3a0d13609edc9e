package faults

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"prxm.uz/proxima/test/harness"
)

// networkRows are what lies between the agent and the console.
func networkRows() []row {
	const section = "Reaching the Console"
	unheard := func(change func(*scene) map[string]string, log ...string) func(*scene) {
		return func(s *scene) {
			s.attempt()
			a := s.agent(change(s))
			for _, text := range log {
				s.logged(a, text)
			}
		}
	}
	return []row{
		{
			section: section, name: "The address names no host", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: unheard(func(*scene) map[string]string {
				return map[string]string{"PROXIMA_BACKEND_URL": "http://no-such-console.invalid"}
			}, "no-such-console.invalid cannot be resolved"),
		},
		{
			section: section, name: "Nobody listens on the port", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: unheard(func(s *scene) map[string]string {
				return map[string]string{"PROXIMA_BACKEND_URL": fmt.Sprintf("http://127.0.0.1:%d", s.h.Port().Number)}
			}, "refused"),
		},
		{
			section: section, name: "HTTP where the Console speaks TLS", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: func(s *scene) {
				s.attemptOn(harness.ConsoleOptions{Authority: s.h.Authority()})
				a := s.agent(map[string]string{"PROXIMA_BACKEND_URL": strings.Replace(s.console.URL, "https:", "http:", 1)})
				s.logged(a, "https://")
			},
		},
		{
			section: section, name: "A certificate of an unknown authority", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: func(s *scene) {
				s.attemptOn(harness.ConsoleOptions{Authority: s.h.Authority()})
				a := s.agent(nil)
				s.logged(a, "PROXIMA_CA_FILE")
				s.logged(a, "SHA-256")
			},
		},
		{
			section: section, name: "NATS is closed, at first", gate: 3, state: waiting, says: []string{"heartbeat"},
			arrange: func(s *scene) {
				s.attempt()
				s.agent(map[string]string{"PROXIMA_NATS_URL": fmt.Sprintf("nats://127.0.0.1:%d", s.h.Port().Number)})
				s.await(2, passed)
			},
		},
		{
			section: section, name: "NATS is closed, and stays so", gate: 3, state: failed, says: []string{"heartbeat"}, cure: []string{"NATS"}, never: []string{"permission", "RBAC"},
			arrange: func(s *scene) {
				s.attempt()
				s.agent(map[string]string{"PROXIMA_NATS_URL": fmt.Sprintf("nats://127.0.0.1:%d", s.h.Port().Number)})
				s.await(2, passed)
				s.later(6 * time.Minute)
			},
		},
		{
			section: section, name: "NATS by WebSocket alone", gate: 4, state: passed,
			arrange: func(s *scene) {
				s.attempt()
				s.agent(map[string]string{"PROXIMA_NATS_URL": strings.Replace(s.console.URL, "http:", "ws:", 1) + "/nats"})
			},
		},
		{
			section: section, name: "The agent's clock is an hour behind", gate: 4, state: passed,
			arrange: func(s *scene) { s.skewed(-time.Hour) },
		},
		{
			section: section, name: "The agent's clock is an hour ahead", gate: 4, state: passed,
			arrange: func(s *scene) { s.skewed(time.Hour) },
		},
	}
}

// skewed starts an agent whose clock is off, and waits until it has said so.
func (s *scene) skewed(by time.Duration) {
	s.Helper()
	s.attempt()
	clock := filepath.Join(s.TempDir(), "agent-clock")
	s.setClock(clock, by)
	s.logged(s.agent(map[string]string{"PROXIMA_TEST_CLOCK_FILE": clock}), "clock")
}

// agentRows are what happens to the agent itself.
func agentRows() []row {
	const section = "The collector"
	return []row{
		{
			section: section, name: "Killed before its first heartbeat", gate: 3, state: failed, says: []string{"never sent a heartbeat"}, cure: []string{"log"},
			arrange: func(s *scene) {
				s.attempt()
				a := s.agent(map[string]string{"PROXIMA_NATS_URL": fmt.Sprintf("nats://127.0.0.1:%d", s.h.Port().Number)})
				s.await(2, passed)
				s.kill(a)
				s.later(6 * time.Minute)
			},
		},
		{
			section: section, name: "Killed after its first sync", gate: 3, state: failed, says: []string{"5-minute"}, never: []string{"permission", "RBAC"},
			arrange: func(s *scene) {
				s.attempt()
				a := s.agent(nil)
				s.await(4, passed)
				s.kill(a)
				s.later(6 * time.Minute)
			},
		},
		{
			section: section, name: "Its credential is revoked", gate: 3, state: failed, says: []string{"revoked"}, cure: []string{"Agents"},
			arrange: func(s *scene) {
				s.attempt()
				s.agent(nil)
				s.await(4, passed)
				s.call(http.MethodPost, "/api/v1/fleet/agents/"+s.agentID()+"/revoke", nil, nil)
			},
		},
		{
			section: section, name: "It publishes under another slug", gate: 4, state: failed, says: []string{"elsewhere", "halden-prod"}, cure: []string{"PROXIMA_CLUSTER_SLUG", "halden-prod"},
			arrange: func(s *scene) {
				s.attempt()
				s.agent(map[string]string{"PROXIMA_CLUSTER_SLUG": "elsewhere"})
			},
		},
		{
			section: section, name: "Its state is lost, and its name taken", gate: 2, state: failed, says: []string{"keeps the identity"}, cure: []string{"release its identity"},
			arrange: func(s *scene) {
				s.attempt()
				a := s.agent(nil)
				s.await(4, passed)
				s.kill(a)
				s.later(3 * time.Minute) // it is not there any more
				s.logged(s.agent(nil), "already_enrolled")
			},
		},
		{
			section: section, name: "Its state file is cut short", gate: 3, state: failed, says: []string{"5-minute"},
			arrange: func(s *scene) {
				s.attempt()
				dir := s.TempDir()
				a := s.agentIn(dir)
				s.await(4, passed)
				s.kill(a)
				if err := os.Truncate(filepath.Join(dir, "state.json"), 40); err != nil {
					s.Fatal(err)
				}
				if _, err := harness.StartAgent(s.h.Context(), s.optionsIn(dir)); err == nil || !strings.Contains(err.Error(), "restore it from a backup") {
					s.Errorf("an agent with half a state file: %v", err)
				}
				s.later(6 * time.Minute)
			},
		},
		{
			section: section, name: "The cluster's API server is down", gate: 4, state: warning, says: []string{"longer ago", "reports that its last sync failed"}, cure: []string{"Mend what the collector reports"},
			arrange: func(s *scene) {
				s.plane = s.h.LightControlPlane() // others need theirs
				s.attempt()
				s.agent(nil)
				s.await(4, passed)
				if err := s.plane.StopAPIServer(); err != nil {
					s.Fatal(err)
				}
			},
		},
		{
			section: section, name: "The Console restarts between two steps", gate: 4, state: passed,
			arrange: func(s *scene) {
				s.attempt()
				s.restart()
				s.agent(nil)
				s.await(2, passed)
				s.restart()
				s.await(3, passed)
				s.restart()
			},
		},
	}
}

func (s *scene) kill(a *harness.Agent) {
	s.Helper()
	if err := a.Kill(); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) restart() {
	s.Helper()
	if err := s.console.Restart(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// agentIn starts a collector whose state lies in dir.
func (s *scene) agentIn(dir string) *harness.Agent {
	s.Helper()
	return s.h.Agent(s.optionsIn(dir))
}

func (s *scene) optionsIn(dir string) harness.AgentOptions {
	o := s.plane.DirectAgent(s.console, s.recorded, settings())
	o.DataDir = dir
	return o
}
