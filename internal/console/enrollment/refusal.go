package enrollment

import (
	"fmt"
	"time"

	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/problem"
)

// MinimumVersion is the oldest agent that is let in.
const MinimumVersion = "0.9.0"

// The codes of refused enrolments. They are part of the contract: agents log them, gate 2 explains
// those that a known token presented.
const (
	CodeTokenUnknown    = "token_unknown"
	CodeTokenExpired    = "token_expired"
	CodeTokenUsedUp     = "token_used_up"
	CodeTokenRevoked    = "token_revoked"
	CodeTokenWrongType  = "token_wrong_type"
	CodeAlreadyEnrolled = "already_enrolled"
	CodeAgentTooOld     = "agent_too_old"
	CodeAgentRevoked    = "agent_revoked"
	CodeAgentSuspended  = "agent_suspended"
	CodeKeyInUse        = "key_in_use"
	CodeProofInvalid    = "proof_invalid"
	CodeInvalidRequest  = "invalid_request"
)

// Codes lists every code with which an enrolment is refused.
func Codes() []string {
	return []string{
		CodeTokenUnknown, CodeTokenExpired, CodeTokenUsedUp, CodeTokenRevoked, CodeTokenWrongType, CodeAlreadyEnrolled,
		CodeAgentTooOld, CodeAgentRevoked, CodeAgentSuspended, CodeKeyInUse, CodeProofInvalid, CodeInvalidRequest,
	}
}

func refuseUnknown() *problem.Error {
	return problem.New(problem.Unauthenticated, CodeTokenUnknown, "This Console does not know the install token.").
		WithCure("Copy the command from the wizard again. If the token was lost, add a token to the attempt and put that one into the Secret proxima-install-token.")
}

func refuseToken(t Token, state string, req Request) *problem.Error {
	add := "Add a token to the attempt in Console and put it into the Secret proxima-install-token."
	switch state {
	case StateRevoked:
		return problem.New(problem.Forbidden, CodeTokenRevoked, "The install token "+t.Prefix+"… was revoked.").WithCure(add)
	case StateExpired:
		return problem.New(problem.Forbidden, CodeTokenExpired, fmt.Sprintf("The install token %s… expired at %s.", t.Prefix, t.ExpiresAt.UTC().Format("2006-01-02 15:04 UTC"))).WithCure(add)
	case StateUsedUp:
		return problem.New(problem.Forbidden, CodeTokenUsedUp, fmt.Sprintf("All %d uses of the install token %s… are spent.", t.MaxUses, t.Prefix)).WithCure(add)
	default:
		return problem.New(problem.Forbidden, CodeTokenWrongType, fmt.Sprintf("The install token %s… admits agents of type %s, and this one is of type %s.", t.Prefix, t.AgentType, req.AgentType)).
			WithCure("Use a token that is not pinned to another type.")
	}
}

func refuseTaken(req Request) *problem.Error {
	return problem.New(problem.Conflict, CodeAlreadyEnrolled, fmt.Sprintf("already enrolled: an agent of type %s named %s holds its identity for cluster slug %q in this environment, with another key.", req.AgentType, req.Name, req.ClusterSlug)).
		WithCure("If that agent lost its state, release its identity or delete its record in Console; this agent then enrolls by itself. If this is another cluster, give it a slug of its own.")
}

// refuseKey names the holder only to a bearer of a token of the same environment.
func refuseKey(t Token, holder fleet.Agent) *problem.Error {
	who := "another agent"
	if holder.EnvironmentID != "" && holder.EnvironmentID == t.EnvironmentID {
		who = fmt.Sprintf("agent %s of cluster slug %q", holder.Name, holder.ClusterSlug)
	}
	return problem.New(problem.Conflict, CodeKeyInUse, "The key of this agent belongs to "+who+".").
		WithCure("Give each agent a data directory of its own; a copied state.json is another agent's identity.")
}

func refuseVersion(req Request) *problem.Error {
	return problem.New(problem.TooOld, CodeAgentTooOld, fmt.Sprintf("Agent version %s is older than %s, the oldest that this Console lets in.", req.Version, MinimumVersion)).
		WithCure("Run the printed command again: it names the image of this Console's version.")
}

func refuseRevoked(name string) *problem.Error {
	return problem.New(problem.Forbidden, CodeAgentRevoked, fmt.Sprintf("The credential of agent %s was revoked in Console.", name)).
		WithCure("Delete the agent's record in Console if it is to come back; it can then enroll with a new identity.")
}

func refuseSuspended(a fleet.Agent, now time.Time) *problem.Error {
	p := problem.New(problem.TooMany, CodeAgentSuspended, fmt.Sprintf("Agent %s sent far more than an agent does, or opened far more connections, and is kept out until %s.", a.Name, a.SuspendedUntil().UTC().Format("2006-01-02 15:04:05 UTC"))).
		WithCure("It comes back by itself then. Meanwhile see whether something else uses its key, such as a second process on a copy of its data directory.")
	p.RetryAfterSeconds = int(a.SuspendedUntil().Sub(now)/time.Second) + 1
	return p
}

func refuseProof(err error) *problem.Error {
	return problem.New(problem.Unauthenticated, CodeProofInvalid, "The signature does not prove that this agent holds the key it presents.").
		WithCure("Ask for a new challenge and sign it; challenges are valid for five minutes.").Because(err)
}
