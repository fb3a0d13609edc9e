package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/wire"
)

// What a Commander answers where there is no reply. They are different facts: an agent that is absent, one
// that hangs, and a console that cannot ask.
var (
	ErrNoResponder  = errors.New("no agent listens: it is offline, or its credential does not admit commands")
	ErrNoReply      = errors.New("the agent did not answer in time")
	ErrNotConnected = errors.New("console is not connected to NATS")
)

// Commander asks an agent over NATS; package natsapi has it.
type Commander interface {
	// Command sends one command and waits for its answer. It answers ErrNoResponder at once where nobody
	// listens, ErrNoReply, or ErrNotConnected.
	Command(ctx context.Context, agentID string, c wire.Command) (wire.CommandReply, error)
}

// RotateCredentials makes an agent that is online fetch a fresh credential at once, under the template of this
// build. Whether it is online is asked of the agent and not read from a row; one that is not
// answers agent_offline with status 503. The rotation counts once console has issued the credential, and
// not because the agent says so.
func (s *Service) RotateCredentials(ctx context.Context, p access.Principal, agentID string) (Agent, error) {
	before, err := s.rotatable(ctx, p, agentID)
	if err != nil {
		return Agent{}, err
	}
	asked := s.Clock.Now()
	reply, err := s.Commander.Command(ctx, agentID, wire.Command{Name: wire.CommandRenewCredentials})
	if err != nil {
		return Agent{}, refuseCommand(before, asked, err)
	}
	if !reply.OK {
		return Agent{}, problem.New(problem.Unavailable, "agent_not_renewed", fmt.Sprintf("Agent %s was asked, and answered that it has no new credential: %q.", before.Name, text(reply.Code+": "+reply.Message, 300))).
			WithCure("Its log has the details. The credential that it has goes on working.")
	}
	after, err := s.Store.Agent(ctx, agentID)
	if err != nil {
		return Agent{}, fmt.Errorf("read the agent again: %w", err)
	}
	issued := after.CredentialIssuedAt // to the second
	if issued.Equal(before.CredentialIssuedAt) && issued.Before(asked.Truncate(time.Second)) {
		return Agent{}, problem.New(problem.Unavailable, "rotation_not_observed", fmt.Sprintf("Agent %s says that it has a new credential, and this Console issued none.", before.Name)).
			WithCure("Find out what runs under the agent’s name: it may be no agent of ours. Revoke it if in doubt.")
	}
	err = s.Store.InTx(ctx, func(tx Tx) error {
		return tx.AppendAudit(ctx, p.Did(s.Clock.Now(), audit.AgentCredentialsRotated).On("agent", after.ID, after.Name).In(after.ClientID, after.EnvironmentID).
			With("cluster_slug", after.ClusterSlug).With("template_before", fmt.Sprint(before.Template)).With("template_after", fmt.Sprint(after.Template)).
			With("expires_at", after.CredentialExpiresAt.UTC().Format(time.RFC3339)))
	})
	return after, err
}

// rotatable reads the agent, and refuses where the caller may not, or where nothing can come of asking.
func (s *Service) rotatable(ctx context.Context, p access.Principal, agentID string) (Agent, error) {
	a, err := s.Store.Agent(ctx, agentID)
	if err := mayWrite(p, agentID, a, err); err != nil {
		return Agent{}, err
	}
	switch {
	case !a.RevokedAt.IsZero():
		return Agent{}, problem.New(problem.Conflict, "agent_revoked", fmt.Sprintf("Agent %s is revoked; it gets no credential any more.", a.Name)).
			WithCure("Delete its record, and let the agent enroll anew.")
	case a.PublicKey == "":
		return Agent{}, problem.New(problem.Conflict, "identity_released", fmt.Sprintf("The identity of agent %s is released; nothing holds it.", a.Name)).
			WithCure("Let the agent enroll: it gets a fresh credential with that.")
	case s.Clock.Now().Before(a.SuspendedUntil()):
		return Agent{}, problem.New(problem.Conflict, "agent_suspended", fmt.Sprintf("Agent %s is kept out until %s; it gets no credential before.", a.Name, a.SuspendedUntil().UTC().Format(time.TimeOnly+" UTC"))).
			WithCure("Wait until then.")
	}
	return a, nil
}

// refuseCommand words why an agent gave no answer.
func refuseCommand(a Agent, now time.Time, err error) error {
	switch {
	case errors.Is(err, ErrNoResponder):
		seen := "It was never heard."
		if at := a.LastSeen(); !at.IsZero() {
			seen = fmt.Sprintf("It was last heard %s ago.", max(0, now.Sub(at)).Truncate(time.Second))
		}
		return problem.New(problem.Unavailable, "agent_offline", fmt.Sprintf("Nobody listens for commands to agent %s. %s Nothing was changed.", a.Name, seen)).
			WithCure("Rotate once it is online. An agent that comes back gets the current template by itself, when less than half of its credential’s life remains; if its state is gone, release its identity instead.").Because(err)
	case errors.Is(err, ErrNoReply):
		return problem.New(problem.Unavailable, "agent_no_reply", fmt.Sprintf("Agent %s took the command and did not answer in time; it may still fetch a credential.", a.Name)).
			WithCure("Look at the age of its credential here in a minute; if it is the old one, its log says why.").Because(err)
	case errors.Is(err, ErrNotConnected):
		return problem.New(problem.Unavailable, "nats_unavailable", "Console is not connected to NATS, so the agent could not be asked. Nothing was changed.").
			WithCure("Bring NATS back, and rotate then.").Because(err)
	}
	return fmt.Errorf("ask agent %s for a rotation: %w", a.ID, err)
}
