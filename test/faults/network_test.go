package faults

import (
	"net/http"
	"net/http/httptest"
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
				return map[string]string{"PROXIMA_BACKEND_URL": "http://" + s.h.Port().Addr()}
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
			section: section, name: "A certificate for another name", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: func(s *scene) {
				authority := s.attemptNamed()
				a := s.agent(map[string]string{"PROXIMA_BACKEND_URL": "https://localhost:" + port(s.console.URL), "PROXIMA_CA_FILE": authority.File()})
				s.logged(a, "is valid for")
			},
		},
		{
			section: section, name: "A certificate that has expired", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: func(s *scene) {
				s.attempt()
				authority := s.h.Authority()
				expired := s.certificateOf(authority.ServerUntil(time.Now().Add(-time.Minute), "expired", "127.0.0.1"))
				front := s.relay(strings.TrimPrefix(s.console.URL, "http://"), 0, expired)
				s.logged(s.agent(map[string]string{"PROXIMA_BACKEND_URL": "https://" + front.addr, "PROXIMA_CA_FILE": authority.File()}), "backend.tls")
			},
		},
		{
			section: section, name: "Another server answers, such as a page to sign in", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: func(s *scene) {
				s.attempt()
				portal := httptest.NewServer(http.RedirectHandler("https://sign-in.example/", http.StatusFound))
				s.Cleanup(portal.Close)
				s.logged(s.agent(map[string]string{"PROXIMA_BACKEND_URL": portal.URL}), "backend.http")
			},
		},
		{
			section: section, name: "NATS is closed, at first", gate: 3, state: waiting, says: []string{"heartbeat"},
			arrange: func(s *scene) {
				s.attempt()
				s.agent(map[string]string{"PROXIMA_NATS_URL": "nats://" + s.h.Port().Addr()})
				s.await(2, passed)
			},
		},
		{
			section: section, name: "NATS is closed, and stays so", gate: 3, state: failed, says: []string{"heartbeat"}, cure: []string{"NATS"}, never: []string{"permission", "RBAC"},
			arrange: func(s *scene) {
				s.attempt()
				a := s.agent(map[string]string{"PROXIMA_NATS_URL": "nats://" + s.h.Port().Addr()})
				s.await(2, passed)
				s.logged(a, "nats cannot be reached")
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
			section: section, name: "The port of NATS is closed, and its WebSocket open", gate: 4, state: passed,
			arrange: func(s *scene) {
				s.attempt()
				closed := "nats://" + s.h.Port().Addr()
				s.logged(s.agent(map[string]string{"PROXIMA_NATS_URL": closed + "," + strings.Replace(s.console.URL, "http:", "ws:", 1) + "/nats"}), "nats cannot be reached")
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
