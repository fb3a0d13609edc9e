package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/wire"
)

// Revoker cuts an agent's credential off at NATS; package natsapi has it.
type Revoker interface {
	// Revoke refuses the key from now on and drops its connections.
	Revoke(ctx context.Context, publicKey string) error
}

// Config is what a Service needs.
type Config struct {
	Store     Store
	Revoker   Revoker
	Commander Commander
	Clock     clock.Clock
	Logger    *slog.Logger
}

// Service is the fleet as people and NATS see it. It is safe for concurrent use.
type Service struct{ Config }

// New makes a Service.
func New(c Config) *Service { return &Service{Config: c} }

// RecordPresence stores a batch of received statuses. Of each it takes what can be stored: one agent's
// odd message must not hold up the batch, which is that of all.
func (s *Service) RecordPresence(ctx context.Context, batch []Presence) error {
	cleaned := make([]Presence, len(batch))
	for i, p := range batch {
		p.Status.Version = text(p.Status.Version, 64)
		if p.Status.Role != wire.RoleLeader && p.Status.Role != wire.RoleStandby {
			p.Status.Role = ""
		}
		p.Status.SyncIntervalSeconds = max(p.Status.SyncIntervalSeconds, 0)
		p.Status.LastSync = cleanSync(p.Status.LastSync)
		cleaned[i] = p
	}
	return s.Store.RecordPresence(ctx, cleaned)
}

// RecordPulses stores a batch of received heartbeats, and cleans them as RecordPresence does.
func (s *Service) RecordPulses(ctx context.Context, batch []Pulse) error {
	cleaned := make([]Pulse, len(batch))
	for i, p := range batch {
		p.Heartbeat.LastSync = cleanSync(p.Heartbeat.LastSync)
		cleaned[i] = p
	}
	return s.Store.RecordPulses(ctx, cleaned)
}

func cleanSync(reported *wire.SyncInfo) *wire.SyncInfo {
	if reported == nil {
		return nil
	}
	c := *reported
	c.Error = text(c.Error, 1<<10)
	return &c
}

// text makes a reported text fit for either database: valid UTF-8 without NUL, cut to a limit in bytes.
func text(s string, limit int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

// Agents lists the agents that the caller may see, with the number of all that match.
func (s *Service) Agents(ctx context.Context, p access.Principal, f Filter) ([]Agent, int, error) {
	perm := access.AgentsRead
	if f.ExcludeCollectors {
		perm = access.HostsRead // the Hosts page
	}
	f.Reach = p.Reach(perm)
	if f.Limit < 1 || f.Limit > 1000 {
		f.Limit = 100
	}
	agents, total, err := s.Store.Agents(ctx, f)
	if err != nil {
		return nil, 0, fmt.Errorf("list agents: %w", err)
	}
	return agents, total, nil
}

// Agent reads one agent.
func (s *Service) Agent(ctx context.Context, p access.Principal, agentID string) (Agent, error) {
	a, err := s.Store.Agent(ctx, agentID)
	if errors.Is(err, ErrNotFound) || err == nil && !p.Allows(access.AgentsRead, a.Scope()) {
		return Agent{}, notFound(agentID)
	}
	return a, err
}

// ReleaseIdentity clears the key of an agent that lost its state, so that the next enrolment under its
// name binds a new one (D-34, X-5). It refuses a revoked agent and one that was seen in the last five
// minutes (D-35). Releasing twice is no error, and changes nothing.
func (s *Service) ReleaseIdentity(ctx context.Context, p access.Principal, agentID string) (Agent, error) {
	return s.change(ctx, p, agentID, audit.AgentIdentityReleased, func(tx Tx, a Agent, now time.Time) (bool, error) {
		if !a.RevokedAt.IsZero() {
			return false, problem.New(problem.Conflict, "agent_revoked", fmt.Sprintf("Agent %s is revoked; its identity cannot be released.", a.Name)).WithCure("Delete its record instead.")
		}
		if a.PublicKey == "" {
			return false, nil
		}
		if err := alive(a, now, "Stop the agent and wait until it was quiet for five minutes."); err != nil {
			return false, err
		}
		return true, tx.ReleaseAgent(ctx, a.ID, now)
	})
}

// alive is the refusal, with its cure, of what goes by presence: nil unless the agent was seen in the last
// five minutes.
func alive(a Agent, now time.Time, cure string) error {
	seen := a.LastSeen()
	if seen.IsZero() || now.Sub(seen) >= StaleAfter {
		return nil
	}
	return problem.New(problem.Conflict, "agent_alive", fmt.Sprintf("Agent %s was seen %s ago, so it still holds its identity.", a.Name, now.Sub(seen).Truncate(time.Second))).WithCure(cure)
}

// Revoke ends an agent's credential at once and for good. Revoking twice is no error, and changes nothing.
func (s *Service) Revoke(ctx context.Context, p access.Principal, agentID string) (Agent, error) {
	return s.change(ctx, p, agentID, audit.AgentRevoked, func(tx Tx, a Agent, now time.Time) (bool, error) {
		if !a.RevokedAt.IsZero() {
			return false, nil
		}
		if err := tx.RevokeAgent(ctx, a.ID, now); err != nil {
			return false, err
		}
		return true, tx.EndConflictsOf(ctx, a.ID)
	})
}

// Suspend cuts off an agent that sends far more than an agent does, and keeps it out for [Suspension]: it
// gets no credential until then. Why says what it did, in a sentence for people.
func (s *Service) Suspend(ctx context.Context, agentID, why string) error {
	var agent Agent
	suspended := false
	err := s.Store.InTx(ctx, func(tx Tx) error {
		var err error
		suspended = false
		if agent, err = tx.Agent(ctx, agentID); err != nil {
			return err
		}
		now := s.Clock.Now()
		if !agent.RevokedAt.IsZero() || now.Before(agent.SuspendedUntil()) {
			return nil
		}
		suspended = true
		if err := tx.SuspendAgent(ctx, agentID, why, now); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, audit.System(now, audit.AgentSuspended).On("agent", agent.ID, agent.Name).
			In(agent.ClientID, agent.EnvironmentID).With("cluster_slug", agent.ClusterSlug).With("why", why))
	})
	switch {
	case errors.Is(err, ErrNotFound):
		return nil // deleted: its credential is cut off already
	case err != nil:
		return fmt.Errorf("suspend agent %s: %w", agentID, err)
	}
	if suspended {
		s.Logger.WarnContext(ctx, "agent suspended, it comes back by itself", "agent", agentID, "name", agent.Name, "why", why, "for", Suspension.String(),
			"cure", "find out what runs under this name; revoke the agent if it goes on")
	}
	if agent.PublicKey == "" {
		return nil
	}
	return s.Revoker.Revoke(ctx, agent.PublicKey)
}

// Delete removes an agent's record; its credential ends with it, and its name is free again (B-102).
// The cluster and its inventory stay. It refuses one that was seen in the last five minutes, unless it is
// revoked.
func (s *Service) Delete(ctx context.Context, p access.Principal, agentID string) error {
	_, err := s.change(ctx, p, agentID, audit.AgentDeleted, func(tx Tx, a Agent, now time.Time) (bool, error) {
		if a.RevokedAt.IsZero() {
			if err := alive(a, now, "Stop the agent and wait until it was quiet for five minutes, or revoke it first: that cuts it off at once."); err != nil {
				return false, err
			}
		}
		if err := tx.DeleteAgent(ctx, a.ID, now); err != nil {
			return false, err
		}
		return true, tx.EndConflictsOf(ctx, a.ID)
	})
	return err
}

// change runs one act on one agent: permission, act, audit row, and then the cut at NATS. An act that
// changed nothing leaves no audit row; the cut is made again, since it may be what failed before.
func (s *Service) change(ctx context.Context, p access.Principal, agentID string, action audit.Action, act func(Tx, Agent, time.Time) (changed bool, err error)) (Agent, error) {
	var before, after Agent
	err := s.Store.InTx(ctx, func(tx Tx) error {
		a, err := tx.Agent(ctx, agentID)
		if err := mayWrite(p, agentID, a, err); err != nil {
			return err
		}
		before, after = a, a
		now := s.Clock.Now()
		if changed, err := act(tx, a, now); err != nil || !changed {
			return err
		}
		if after, err = tx.Agent(ctx, agentID); err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("read the agent again: %w", err)
		}
		return tx.AppendAudit(ctx, p.Did(now, action).On("agent", a.ID, a.Name).In(a.ClientID, a.EnvironmentID).
			With("type", string(a.Type)).With("cluster_slug", a.ClusterSlug))
	})
	if err != nil {
		return Agent{}, err
	}
	if before.PublicKey != "" {
		// The row is the truth: should the cut fail here, natsapi makes it when it next compares the
		// servers with the revoked keys.
		if err := s.Revoker.Revoke(ctx, before.PublicKey); err != nil {
			s.Logger.ErrorContext(ctx, "an agent's credential could not be cut off at NATS", "agent", before.ID, "error", err)
			return after, problem.New(problem.Unavailable, "nats_unavailable", "The change is stored, but NATS did not take the revocation: until it does, the agent's old credential still works.").WithCure("Bring NATS back; Console then cuts the credential off by itself.").Because(err)
		}
	}
	return after, nil
}

// mayWrite judges what reading an agent that p wants to change came to.
func mayWrite(p access.Principal, agentID string, a Agent, err error) error {
	write := err == nil && p.Allows(access.AgentsWrite, a.Scope())
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !write && !p.Allows(access.AgentsRead, a.Scope()):
		return notFound(agentID)
	case err != nil:
		return fmt.Errorf("find the agent: %w", err)
	case !write:
		return access.Refuse(access.AgentsWrite)
	}
	return nil
}

func notFound(agentID string) error {
	return problem.New(problem.NotFound, "agent_not_found", fmt.Sprintf("There is no agent %s.", agentID)).
		WithCure("Check the id; if it is right, its record was deleted, or you have no role where it lives.")
}

// Scope is where the agent belongs.
func (a Agent) Scope() access.Scope {
	return access.Scope{ClientID: a.ClientID, EnvironmentID: a.EnvironmentID}
}

// SuspendedUntil is when the agent may come back; zero if it was never suspended.
func (a Agent) SuspendedUntil() time.Time {
	if a.SuspendedAt.IsZero() {
		return time.Time{}
	}
	return a.SuspendedAt.Add(Suspension)
}

// Present tells whether the agent holds its identity and was seen a moment ago.
func (a Agent) Present(now time.Time) bool {
	return a.RevokedAt.IsZero() && a.PublicKey != "" && !a.LastSeen().IsZero() && now.Sub(a.LastSeen()) <= PresentWithin
}

// LastSeen is when console last received anything of the agent; zero if never.
func (a Agent) LastSeen() time.Time {
	if a.PresenceAt.After(a.HeartbeatAt) {
		return a.PresenceAt
	}
	return a.HeartbeatAt
}
