package fleet_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/wire"
)

// renewed is what an agent does that is asked: it fetches a credential of template 2.
func (y *yard) renewed(agentID string) {
	now := y.clock.Now().Truncate(time.Second)
	must(y.t, y.db.Fleet().RenewCredential(y.t.Context(), agentID, 2, now, now.Add(7*24*time.Hour)))
}

func TestRotateCredentials(t *testing.T) {
	inYards(t, func(t *testing.T, y *yard) {
		y.agent("a", nil)
		y.clock.Advance(time.Hour + 300*time.Millisecond)
		y.far.reply, y.far.does = wire.CommandReply{OK: true}, y.renewed
		got, err := y.RotateCredentials(t.Context(), keeper(), "a")
		must(t, err)
		if want := y.clock.Now().Truncate(time.Second); got.Template != 2 || !got.CredentialIssuedAt.Equal(want) || got.PublicKey != "Ua" {
			t.Errorf("%+v", got)
		}
		_, err = y.RotateCredentials(t.Context(), keeper(), "a") // within the same second
		must(t, err)
		if len(y.far.asked) != 2 || y.far.asked[0] != "a renew_credentials" || y.db.Audits(t, "agent_credentials_rotated") != 2 || len(y.nats.keys) != 0 {
			t.Errorf("asked %q, cut %q", y.far.asked, y.nats.keys)
		}
	})
}

// what stands against a rotation, each told apart; none leaves an audit row.
func TestRotationsThatAreRefused(t *testing.T) {
	inYards(t, func(t *testing.T, y *yard) {
		ctx := t.Context()
		now := y.clock.Now()
		y.agent("a", func(a *fleet.Agent) { a.PresenceAt = now })
		y.agent("revoked", func(a *fleet.Agent) { a.RevokedAt = now })
		y.agent("released", func(a *fleet.Agent) { a.PublicKey, a.ReleasedAt = "", now })
		y.agent("suspended", nil)
		must(t, y.Suspend(ctx, "suspended", "it sent 1,000 messages in a minute"))
		if got := y.stored("suspended").SuspendedWhy; got != "it sent 1,000 messages in a minute" {
			t.Errorf("the reason that is kept: %q", got)
		}
		y.clock.Advance(40 * time.Second)
		asked := func(err error) func() { return func() { y.far.err, y.far.reply = err, wire.CommandReply{} } }
		for name, c := range map[string]struct {
			who   access.Principal
			id    string
			agent func()
			kind  problem.Kind
			code  string
			says  string
		}{
			"nobody":       {access.Principal{}, "a", nil, problem.NotFound, "agent_not_found", ""},
			"stranger":     {grant(access.Scope{ClientID: "zeta"}, access.Permissions()...), "a", nil, problem.NotFound, "agent_not_found", ""},
			"elsewhere":    {grant(access.Scope{ClientID: "acme", EnvironmentID: "acme-test"}, access.Permissions()...), "a", nil, problem.NotFound, "agent_not_found", ""},
			"reader":       {grant(access.Scope{ClientID: "acme"}, access.AgentsRead), "a", nil, problem.Forbidden, "permission_missing", "agents:write"},
			"unknown":      {keeper(), "none", nil, problem.NotFound, "agent_not_found", ""},
			"revoked":      {keeper(), "revoked", nil, problem.Conflict, "agent_revoked", ""},
			"released":     {keeper(), "released", nil, problem.Conflict, "identity_released", ""},
			"suspended":    {keeper(), "suspended", nil, problem.Conflict, "agent_suspended", "12:10:00 UTC"},
			"offline":      {keeper(), "a", asked(fmt.Errorf("x: %w", fleet.ErrNoResponder)), problem.Unavailable, "agent_offline", "last heard 40s ago"},
			"hangs":        {keeper(), "a", asked(fleet.ErrNoReply), problem.Unavailable, "agent_no_reply", "may still fetch"},
			"no NATS":      {keeper(), "a", asked(fleet.ErrNotConnected), problem.Unavailable, "nats_unavailable", "not connected"},
			"refuses":      {keeper(), "a", func() { y.far.err, y.far.reply = nil, wire.CommandReply{Code: "not_renewed", Message: "403"} }, problem.Unavailable, "agent_not_renewed", `"not_renewed: 403"`},
			"only says so": {keeper(), "a", func() { y.far.err, y.far.reply = nil, wire.CommandReply{OK: true} }, problem.Unavailable, "rotation_not_observed", "issued none"},
		} {
			y.far.asked = nil
			if c.agent != nil {
				c.agent()
			}
			_, err := y.RotateCredentials(ctx, c.who, c.id)
			if !problem.Is(err, c.kind) || problem.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %s", name, err, c.code)
			}
			if told := len(y.far.asked) > 0; told != (c.agent != nil) {
				t.Errorf("%s: asked %q", name, y.far.asked)
			}
			if p, ok := errors.AsType[*problem.Error](err); !ok || p.Cure == "" && c.code != "permission_missing" {
				t.Errorf("%s: no cure in %v", name, err)
			}
		}
		if y.db.Audits(t, "agent_credentials_rotated") != 0 {
			t.Error("a refusal was audited as a rotation")
		}
	})
}
