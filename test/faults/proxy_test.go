package faults

import (
	"net"
	"strings"

	"prxm.uz/proxima/test/harness"
)

// named is a host that no DNS knows: only the proxy can reach it.
const named = "console.example"

// proxyRows are what a forward proxy does to an agent.
func proxyRows() []row {
	const section = "A forward proxy"
	return []row{
		{
			section: section, name: "Console is reached through a proxy alone", gate: 4, state: passed,
			arrange: func(s *scene) {
				p := &proxy{names: map[string]string{named: "127.0.0.1"}, password: "agent:secret"}
				s.behind("agent:secret@" + s.proxyAt(p))
				s.await(4, passed)
				if p.passed.Load() < 2 {
					s.Errorf("the proxy passed on %d requests; console and NATS need one each", p.passed.Load())
				}
			},
		},
		{
			section: section, name: "NO_PROXY keeps Console from the proxy", gate: 4, state: passed,
			arrange: func(s *scene) {
				p := &proxy{refuse: true}
				s.attempt()
				s.agent(map[string]string{"PROXIMA_BACKEND_URL": s.nearby(), "HTTP_PROXY": "http://" + s.proxyAt(p), "NO_PROXY": "0.0.0.0"})
			},
		},
		{
			section: section, name: "A proxy that refuses, and NO_PROXY does not name Console", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: func(s *scene) {
				s.logged(s.behind(s.proxyAt(&proxy{refuse: true})), "backend.tls")
			},
		},
		{
			section: section, name: "A proxy that wants a password", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: func(s *scene) {
				s.logged(s.behind(s.proxyAt(&proxy{password: "agent:secret"})), "backend.tls")
			},
		},
		{
			section: section, name: "A proxy that wants a password, and Console speaks plain HTTP", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: func(s *scene) {
				s.attempt()
				s.logged(s.agent(map[string]string{"PROXIMA_BACKEND_URL": s.nearby(), "HTTP_PROXY": "http://" + s.proxyAt(&proxy{password: "agent:secret"})}), "backend.http")
			},
		},
		{
			section: section, name: "Nobody listens where the proxy should be", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: func(s *scene) {
				nobody := s.h.Port().Addr()
				s.proxies = append(s.proxies, nobody)
				s.logged(s.behind(nobody), "backend.tcp")
			},
		},
	}
}

// behind starts a console that only the proxy reaches, and an agent that knows the proxy.
func (s *scene) behind(proxy string) *harness.Agent {
	s.Helper()
	authority := s.attemptNamed()
	at := net.JoinHostPort(named, port(s.console.URL))
	return s.agent(map[string]string{
		"PROXIMA_BACKEND_URL": "https://" + at, "PROXIMA_NATS_URL": "wss://" + at + "/nats", "PROXIMA_CA_FILE": authority.File(),
		"HTTPS_PROXY": "http://" + proxy,
	})
}

// attemptNamed is attempt with a console whose certificate is for that name, and for the address that the test
// knows.
func (s *scene) attemptNamed() *harness.Authority {
	s.Helper()
	authority := s.h.Authority()
	cert, key, err := authority.Server(named, "127.0.0.1", named)
	if err != nil {
		s.Fatal(err)
	}
	s.attemptOn(harness.ConsoleOptions{Authority: authority, Env: map[string]string{"PROXIMA_TLS_CERT_FILE": cert, "PROXIMA_TLS_KEY_FILE": key}})
	return authority
}

// nearby is the console at an address of this machine for which proxies count, unlike loopback.
func (s *scene) nearby() string { return strings.Replace(s.console.URL, "127.0.0.1", "0.0.0.0", 1) }
