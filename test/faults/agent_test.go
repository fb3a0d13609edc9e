package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"prxm.uz/proxima/api/console"
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
				a := s.agent(map[string]string{"PROXIMA_NATS_URL": "nats://" + s.h.Port().Addr()})
				s.await(2, passed)
				s.kill(a)
				s.later(6 * time.Minute)
			},
		},
		{
			section: section, name: "Killed after its first sync", gate: 3, state: failed, says: []string{"5-minute"}, never: []string{"permission", "RBAC"},
			arrange: func(s *scene) {
				a := s.synced()
				s.kill(a)
				s.later(6 * time.Minute)
			},
		},
		{
			section: section, name: "Its credential is revoked", gate: 3, state: failed, says: []string{"revoked"}, cure: []string{"Agents"},
			arrange: func(s *scene) {
				s.synced()
				s.call(http.MethodPost, "/api/v1/fleet/agents/"+s.agentID()+"/revoke", nil, nil)
			},
		},
		{
			section: section, name: "A second process on a copy of its state floods, and Console suspends it", gate: 3, state: failed,
			says: []string{"beyond the 5-minute window", "Console suspended", "until ", "sent far more than an agent does"}, cure: []string{"copy of its data directory", "Agents"},
			never: []string{"pod’s log", "reach NATS"},
			arrange: func(s *scene) {
				s.attempt()
				dir := s.TempDir()
				a := s.agentIn(dir)
				s.await(4, passed)
				s.flood(dir)
				s.await(2, warning)
				s.await(3, warning) // its last heartbeat is fresh
				s.logged(a, "agent_suspended")
				s.later(6 * time.Minute)
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
			section: section, name: "Killed during a sync, and started again", gate: 4, state: passed,
			arrange: func(s *scene) {
				s.attempt()
				wire := s.relay(strings.TrimPrefix(s.plane.Server(), "https://"), 0, nil)
				dir := s.TempDir()
				o := s.optionsIn(dir)
				o.Env["PROXIMA_KUBECONFIG"] = s.kubeconfig("https://"+wire.addr, s.plane.RESTConfig().BearerToken)
				a := s.start(o)
				s.await(2, passed)
				s.within(wire.hold(), "a request of a sync to be held")
				s.kill(a)
				wire.release()
				s.start(o)
			},
		},
		{
			section: section, name: "Its credential expired while it was away", gate: 3, state: failed, says: []string{"5-minute", "credential expired"}, cure: []string{"log"},
			arrange: func(s *scene) {
				a := s.synced()
				s.kill(a)
				s.later(8 * 24 * time.Hour)
			},
		},
		{
			section: section, name: "It comes back after its credential expired", gate: 4, state: passed,
			arrange: func(s *scene) {
				s.attemptOn(harness.ConsoleOptions{Env: map[string]string{"PROXIMA_CREDENTIAL_TTL": "10s"}})
				dir := s.TempDir()
				a := s.agentIn(dir)
				s.await(4, passed)
				s.kill(a)
				ends := s.credentialEnds()
				s.until(ends.Add(time.Second))
				s.logged(s.agentIn(dir), "NATS credential renewed")
				s.syncedAfter(ends)
			},
		},
		{
			section: section, name: "Its sync interval is longer than Console's", gate: 4, state: warning,
			says: []string{"longer ago", "every 1h"}, cure: []string{"PROXIMA_K8S_SYNC_INTERVAL"}, never: []string{"permission"},
			arrange: func(s *scene) {
				s.attempt()
				s.agent(map[string]string{"PROXIMA_K8S_SYNC_INTERVAL": "1h"})
				s.await(4, passed)
			},
		},
		{
			section: section, name: "Its sync interval is shorter than Console's", gate: 4, state: passed,
			arrange: func(s *scene) {
				s.attemptOn(harness.ConsoleOptions{Env: map[string]string{"PROXIMA_K8S_SYNC_INTERVAL": "5m"}})
				s.agent(nil)
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
	return s.start(s.optionsIn(dir))
}

func (s *scene) optionsIn(dir string) harness.AgentOptions {
	o := s.options(nil)
	o.DataDir = dir
	return o
}

// within waits for a channel to be closed.
func (s *scene) within(closed <-chan struct{}, what string) {
	s.Helper()
	select {
	case <-closed:
	case <-s.h.Context().Done():
		s.Fatalf("waited for %s in vain", what)
	}
}

// until waits until a time has come by the machine's own clock, which NATS goes by.
func (s *scene) until(at time.Time) {
	s.Helper()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.Context().Done():
	}
}

// syncedAfter waits until an inventory was stored after a time, by the console's clock.
func (s *scene) syncedAfter(at time.Time) {
	s.Helper()
	err := s.console.Process().Await(s.h.Context(), "an inventory after "+at.Format(time.TimeOnly), func(ctx context.Context) error {
		var list console.ClusterList
		if _, err := s.console.Do(ctx, http.MethodGet, "/api/v1/clusters", nil, &list); err != nil {
			return err
		}
		for i := range list.Items {
			if last := list.Items[i].LastSyncAt; last != nil && last.After(at) {
				return nil
			}
		}
		return fmt.Errorf("there is none among %d clusters", len(list.Items))
	})
	if err != nil {
		s.Fatal(err)
	}
}

// credentialEnds is when the only agent's credential ends.
func (s *scene) credentialEnds() time.Time {
	s.Helper()
	var agent console.Agent
	s.call(http.MethodGet, "/api/v1/fleet/agents/"+s.agentID(), nil, &agent)
	if agent.CredentialExpiresAt == nil {
		s.Fatal("the agent has no credential")
	}
	return *agent.CredentialExpiresAt
}
