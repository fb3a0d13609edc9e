package tenancy

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/problem"
)

// Contents is what stands in a client or an environment: what has to be gone before it can be deleted, and
// what goes with it.
type Contents struct {
	// Environments are the names of a client's environments; the rest is counted in an environment alone.
	Environments []string
	Clusters     int
	Agents       int
	// Attempts are neither abandoned nor archived, Tokens still let agents in.
	Attempts int
	Tokens   int

	// PastAttempts and PastTokens are of no use any more, and are deleted with the environment.
	PastAttempts int
	PastTokens   int
	// Assignments are the roles held on exactly this client or environment, which are taken away with it.
	Assignments int
}

// Blocks says what keeps the client or environment from being deleted, "" if nothing does.
func (c Contents) Blocks() string {
	var parts []string
	if n := len(c.Environments); n > 0 {
		parts = append(parts, counted(n, "environment")+" ("+named(c.Environments)+")")
	}
	for _, part := range []struct {
		n    int
		what string
	}{{c.Clusters, "cluster"}, {c.Agents, "agent"}, {c.Attempts, "unfinished attempt"}, {c.Tokens, "live install token"}} {
		if part.n > 0 {
			parts = append(parts, counted(part.n, part.what))
		}
	}
	return listed(parts)
}

// Cure says what to do about [Contents.Blocks].
func (c Contents) Cure() string {
	var steps []string
	for _, step := range []struct {
		n    int
		what string
	}{
		{len(c.Environments), "delete the environments"},
		{c.Clusters, "remove the clusters"},
		{c.Agents, "delete the agents"},
		{c.Attempts, "abandon the attempts"},
		{c.Tokens, "revoke the install tokens"},
	} {
		if step.n > 0 {
			steps = append(steps, step.what)
		}
	}
	text := listed(steps)
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + " first."
}

// refuse is nil where nothing stands in the way.
func (c Contents) refuse(what string) error {
	if c.Blocks() == "" {
		return nil
	}
	return problem.New(problem.Conflict, "in_use", what+" still holds "+c.Blocks()+".").WithCure(c.Cure())
}

// HeldRole is a role that somebody holds on a scope.
type HeldRole struct {
	UserID string
	Email  string
	Role   string
}

// ClientContents says what stands in a client, to whoever may delete it.
func (s *Service) ClientContents(ctx context.Context, p access.Principal, clientID string) (Client, Contents, error) {
	if err := p.Require(access.ClientsWrite, access.Scope{}, "client "+clientID); err != nil {
		return Client{}, Contents{}, err
	}
	c, err := s.store.Client(ctx, clientID)
	if err != nil {
		return Client{}, Contents{}, answer(err, "client "+clientID, "name")
	}
	contents, err := s.store.ClientContents(ctx, clientID)
	return c, contents, answer(err, "contents of client "+clientID, "name")
}

// EnvironmentContents says what stands in an environment, to whoever may delete it.
func (s *Service) EnvironmentContents(ctx context.Context, p access.Principal, environmentID string) (Environment, Contents, error) {
	e, err := s.deletable(ctx, p, environmentID)
	if err != nil {
		return Environment{}, Contents{}, err
	}
	contents, err := s.store.EnvironmentContents(ctx, e, s.clock.Now())
	return e, contents, answer(err, "contents of environment "+environmentID, "name")
}

// deletable reads an environment that p may delete: whoever may make environments in its client.
func (s *Service) deletable(ctx context.Context, p access.Principal, environmentID string) (Environment, error) {
	e, err := s.Environment(ctx, p, environmentID)
	if err != nil {
		return Environment{}, err
	}
	return e, p.Require(access.ClientsWrite, access.Scope{ClientID: e.ClientID}, "environment "+environmentID)
}

// DeleteClient deletes a client without environments, and takes away the roles that are held on it. It
// needs what creating one needs. The problem in_use names what is still there.
func (s *Service) DeleteClient(ctx context.Context, p access.Principal, clientID string) error {
	what := "client " + clientID
	if err := p.Require(access.ClientsWrite, access.Scope{}, what); err != nil {
		return err
	}
	err := s.store.InTx(ctx, func(tx Tx) error {
		c, err := tx.Client(ctx, clientID)
		if err != nil {
			return err
		}
		contents, err := tx.ClientContents(ctx, clientID)
		if err != nil {
			return err
		}
		if err := contents.refuse("The client " + c.Name); err != nil {
			return err
		}
		now := s.clock.Now()
		if err := takeRoles(ctx, tx, p, now, access.Scope{ClientID: c.ID}, audit.ClientDeleted); err != nil {
			return err
		}
		if err := tx.DeleteClient(ctx, c.ID); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(now, audit.ClientDeleted).On("client", c.ID, c.Name).In(c.ID, "").
			With("roles_taken", strconv.Itoa(contents.Assignments)))
	})
	return answer(err, what, "name")
}

// DeleteEnvironment deletes an environment in which nothing is left, with its past attempts and tokens,
// and takes away the roles that are held on it. It needs what creating one needs. The problem in_use
// names what is still there.
func (s *Service) DeleteEnvironment(ctx context.Context, p access.Principal, environmentID string) error {
	e, err := s.deletable(ctx, p, environmentID)
	if err != nil {
		return err
	}
	what := "environment " + environmentID
	err = s.store.InTx(ctx, func(tx Tx) (err error) {
		if e, err = tx.Environment(ctx, environmentID); err != nil {
			return err
		}
		now := s.clock.Now()
		contents, err := tx.EnvironmentContents(ctx, e, now)
		if err != nil {
			return err
		}
		if err := contents.refuse("The environment " + e.Name); err != nil {
			return err
		}
		if err := takeRoles(ctx, tx, p, now, access.Scope{ClientID: e.ClientID, EnvironmentID: e.ID}, audit.EnvironmentDeleted); err != nil {
			return err
		}
		if err := tx.DeleteEnvironment(ctx, e); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(now, audit.EnvironmentDeleted).On("environment", e.ID, e.Name).In(e.ClientID, e.ID).
			With("past_attempts", strconv.Itoa(contents.PastAttempts)).With("past_tokens", strconv.Itoa(contents.PastTokens)).
			With("roles_taken", strconv.Itoa(contents.Assignments)))
	})
	return answer(err, what, "name")
}

// takeRoles takes away the roles held on exactly the scope, each with a row of its own in the log of its user.
func takeRoles(ctx context.Context, tx Tx, p access.Principal, now time.Time, scope access.Scope, because audit.Action) error {
	held, err := tx.RolesHeldOn(ctx, scope)
	if err != nil {
		return err
	}
	for _, h := range held {
		err := tx.AppendAudit(ctx, p.Did(now, audit.RoleUnassigned).On("user", h.UserID, h.Email).
			In(scope.ClientID, scope.EnvironmentID).With("role", h.Role).With("because", string(because)))
		if err != nil {
			return err
		}
	}
	return tx.DeleteRolesHeldOn(ctx, scope)
}

// counted is n of a thing.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// maxNamed is how many names a sentence gives before it counts the rest.
const maxNamed = 5

// named gives at most five names and the number of the rest.
func named(names []string) string {
	if len(names) <= maxNamed {
		return listed(names)
	}
	return strings.Join(names[:maxNamed], ", ") + fmt.Sprintf(" and %d more", len(names)-maxNamed)
}

// listed joins parts as a sentence does.
func listed(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}
