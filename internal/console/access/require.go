package access

import (
	"time"

	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/id"
	"prxm.uz/proxima/internal/console/problem"
)

// Did begins the audit event of an act of p.
func (p Principal) Did(at time.Time, action audit.Action) audit.Event {
	e := audit.Event{
		ID: id.New("aud"), At: at, ActorKind: audit.ActorUser, ActorID: p.UserID, ActorName: p.Email,
		Action: action, RemoteAddr: p.RemoteAddr,
	}
	if p.APITokenID != "" {
		e = e.With("api_token", p.APITokenID)
	}
	return e
}

// Touches tells whether any grant of p, whatever it permits, meets the scope: whether p may know that
// what lives there exists.
func (p Principal) Touches(at Scope) bool {
	if p.UserID == "" {
		return false
	}
	for _, g := range p.Grants {
		if len(g.Permissions) > 0 && (g.Scope.contains(at) || at.contains(g.Scope)) {
			return true
		}
	}
	return false
}

// Require is nil where p holds the permission on the scope. To somebody who holds nothing there the
// row does not exist: the answer is then NotFound, so that ids of strangers cannot be probed. What
// names the row in the sentence, such as "client cli_x".
func (p Principal) Require(perm Permission, at Scope, what string) error {
	switch {
	case p.UserID == "":
		return ErrUnauthenticated()
	case p.Allows(perm, at):
		return nil
	case p.Touches(at):
		return Refuse(perm)
	default:
		return problem.New(problem.NotFound, "not_found", "There is no "+what+".").
			WithCure("Check the id; if it is right, you have no role where it lives.")
	}
}

// ErrUnauthenticated is the answer to a request without a known credential.
func ErrUnauthenticated() *problem.Error {
	return problem.New(problem.Unauthenticated, "unauthenticated", "Nobody is signed in.").
		WithCure("Sign in, or send an API token as a bearer token.")
}
