package faults

import (
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/agent/enroll"
)

const (
	passed  = console.GateStatePassed
	waiting = console.GateStateWaiting
	warning = console.GateStateWarning
	failed  = console.GateStateFailed
)

// tokenRows are the ways in which an install token does not let a collector in, or does all the same.
func tokenRows() []row {
	const section = "Install token"
	return []row{
		{
			section: section, name: "A token that this Console does not know", gate: 2, state: waiting,
			says: []string{"No collector has enrolled", "token_unknown"},
			arrange: func(s *scene) {
				s.attempt()
				a := s.agent(map[string]string{"PROXIMA_INSTALL_TOKEN": "pit_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"})
				s.logged(a, "token_unknown")
			},
		},
		{
			section: section, name: "Expired, and nothing ever enrolled with it", gate: 1, state: failed,
			says: []string{"expired"}, cure: []string{"token"},
			arrange: func(s *scene) {
				s.attempt()
				s.later(25 * time.Hour)
			},
		},
		{
			section: section, name: "Expired after a collector enrolled", gate: 1, state: passed,
			says: []string{"expired", "enrolled"},
			arrange: func(s *scene) {
				s.attempt()
				s.agent(nil)
				s.await(2, passed)
				s.later(25 * time.Hour)
			},
		},
		{
			section: section, name: "Expired, and the collector comes too late", gate: 2, state: failed,
			says: []string{"refused", "expired"}, cure: []string{"token"},
			arrange: func(s *scene) {
				s.attempt()
				s.later(25 * time.Hour)
				s.logged(s.agent(nil), "token_expired")
			},
		},
		{
			section: section, name: "Every use spent before a collector came", gate: 1, state: failed,
			says: []string{"25"}, cure: []string{"token"},
			arrange: func(s *scene) {
				s.attempt()
				s.spend(25)
				s.logged(s.agent(nil), "token_used_up")
			},
		},
		{
			section: section, name: "Every use spent after a collector came", gate: 2, state: passed,
			arrange: func(s *scene) {
				s.attempt()
				s.agent(nil)
				s.await(2, passed)
				s.spend(24)
			},
		},
		{
			section: section, name: "Used by node agents alone, and expired", gate: 1, state: failed,
			says: []string{"expired"}, cure: []string{"token"},
			arrange: func(s *scene) {
				s.attempt()
				s.spend(2)
				s.later(25 * time.Hour)
			},
		},
		{
			section: section, name: "Revoked before anything enrolled", gate: 1, state: failed,
			says: []string{"revoked"}, cure: []string{"token"},
			arrange: func(s *scene) {
				s.attempt()
				s.call(http.MethodDelete, "/api/v1/install-tokens/"+s.token().ID, nil, nil)
				s.logged(s.agent(nil), "token_revoked")
			},
		},
		{
			section: section, name: "A token for agents of another type", gate: 2, state: waiting,
			says: []string{"No collector has enrolled"},
			arrange: func(s *scene) {
				s.attempt()
				var minted console.InstallTokenMinted
				body := map[string]any{"environmentID": s.place.EnvironmentID, "agentType": "k8s-node-monitor"}
				s.call(http.MethodPost, "/api/v1/clients/"+s.place.ClientID+"/install-tokens", body, &minted)
				s.logged(s.agent(map[string]string{"PROXIMA_INSTALL_TOKEN": minted.Token}), "token_wrong_type")
			},
		},
	}
}

// token is the attempt's install token.
func (s *scene) token() console.InstallToken {
	s.Helper()
	var list console.InstallTokenList
	s.call(http.MethodGet, "/api/v1/clients/"+s.place.ClientID+"/install-tokens", nil, &list)
	if len(list.Items) != 1 {
		s.Fatalf("%d install tokens", len(list.Items))
	}
	return list.Items[0]
}

// spend enrolls so many node agents with the attempt's token.
func (s *scene) spend(uses int) {
	s.Helper()
	client, err := enroll.New(s.console.URL, *s.recorded.InstallToken, http.DefaultClient)
	if err != nil {
		s.Fatal(err)
	}
	for i := range uses {
		key, err := nkeys.CreateUser()
		if err != nil {
			s.Fatal(err)
		}
		request := enroll.Request{AgentType: "k8s-node-monitor", Name: fmt.Sprintf("node-%02d", i), ClusterSlug: s.recorded.Onboarding.Slug, Version: "0.9.0"}
		if _, err := client.Enroll(s.Context(), request, key); err != nil {
			s.Fatal(err)
		}
	}
}
