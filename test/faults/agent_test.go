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
