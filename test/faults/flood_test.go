package faults

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/agent/identity"
	"prxm.uz/proxima/internal/wire"
)

// flood sends inventories as fast as it can under the identity in dir, as a second process on a copy of it would,
// until Console suspends the agent.
func (s *scene) flood(dir string) {
	s.Helper()
	state, err := identity.Read(dir, "collector")
	if err != nil {
		s.Fatal(err)
	}
	key, err := state.Key()
	if err != nil {
		s.Fatal(err)
	}
	nc, err := nats.Connect(state.NATSURLs[0], nats.NoReconnect(), nats.CustomInboxPrefix(wire.InboxPrefix(state.AgentID)),
		nats.UserJWT(func() (string, error) { return state.Credential.JWT, nil }, key.Sign))
	if err != nil {
		s.Fatal(err)
	}
	defer nc.Close()
	err = s.console.Process().Await(s.h.Context(), "the suspension", func(ctx context.Context) error {
		for range 1000 {
			_ = nc.Publish(wire.InventorySubject(state.AgentID), []byte("flood")) // refused once it is kept out
		}
		_ = nc.FlushTimeout(time.Second)
		var a console.Agent
		if _, err := s.console.Do(ctx, http.MethodGet, "/api/v1/fleet/agents/"+state.AgentID, nil, &a); err != nil {
			return err
		}
		if a.SuspendedUntil == nil {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}
