// Package enrollment owns the way in: install tokens, and the decision whether a stranger that
// presents one becomes an agent. Only a hash of a token is kept, its uses are counted in the same
// transaction that makes the agent, and each refusal has a code and a cure of its own.
package enrollment

import (
	"context"
	"errors"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/fleet"
)

// What a Store answers beside its rows.
var (
	// ErrNotFound: no such row.
	ErrNotFound = errors.New("not found")
	// ErrTaken: the name or the key belongs to another agent.
	ErrTaken = errors.New("taken")
)

// Token is an install token. Its plain value exists only in the answer that minted it.
type Token struct {
	ID            string
	ClientID      string
	EnvironmentID string
	// OnboardingID is the attempt it was minted for, or "".
	OnboardingID string
	Name         string
	Prefix       string // the first 8 characters, pit_ included, to tell tokens apart
	// AgentType pins the token to one type of agent; "" admits every type.
	AgentType fleet.Type
	MaxUses   int // 0: unlimited
	Uses      int
	CreatedAt time.Time
	CreatedBy string // user id
	// CreatedByName is the e-mail address of that user, and OnboardingName the attempt's display name; filled by
	// lists, "" where the row is gone.
	CreatedByName  string
	OnboardingName string
	ExpiresAt      time.Time
	RevokedAt      time.Time // zero: not revoked
	// First marks the token that recording the attempt minted; it is never replaced while it lives.
	First bool

	// SucceededAt is when an agent last enrolled with it, or got its identity back.
	SucceededAt time.Time
	// Refusal is the last refusal that was measured on this token; its At is zero if none.
	Refusal Refusal
	// CollectorsEnrolled and OthersEnrolled count the agents whose enrolled_by is this token.
	CollectorsEnrolled int
	OthersEnrolled     int
}

// Gone counts the uses whose agent was deleted, or enrolled anew with another token.
func (t Token) Gone() int { return max(0, t.Uses-t.CollectorsEnrolled-t.OthersEnrolled) }

// Refusal is a refused enrolment that presented a known token.
type Refusal struct {
	At          time.Time
	Code        string
	AgentName   string
	AgentType   fleet.Type
	ClusterSlug string
	Version     string
	RemoteAddr  string
}

// Finding is one line of an agent's self-check, as it was sent (evidence only, X-24).
type Finding struct {
	Check   string    `json:"check"`
	Status  string    `json:"status"` // ok, warning, failed, skipped
	Message string    `json:"message"`
	Cure    string    `json:"cure,omitempty"`
	At      time.Time `json:"at"`
}

// Findings is the last self-check that one agent posted under a token.
type Findings struct {
	TokenID     string
	AgentName   string
	ClusterSlug string
	Version     string
	ReceivedAt  time.Time
	Items       []Finding
}

// TokenQuery narrows a list of install tokens; zero fields do not.
type TokenQuery struct {
	ClientID      string
	EnvironmentID string
	OnboardingID  string
	State         string // one of the State constants, at Now
	Now           time.Time
	Reach         access.Reach
	Limit         int // 1 to 500
	Offset        int
}

// Tx is what this package needs of a transaction.
type Tx interface {
	audit.Tx

	// TokenByHash finds a token by the SHA-256 of its plain value.
	TokenByHash(ctx context.Context, hash []byte) (Token, error)
	// UseToken counts one use, and answers false where none is left; one statement, without a race.
	UseToken(ctx context.Context, id string, at time.Time) (bool, error)
	// SucceedToken notes that an agent got its identity back with the token, which spends no use.
	SucceedToken(ctx context.Context, id string, at time.Time) error
	// AgentByName finds the agent that holds the identity (environment, type, cluster slug, name).
	AgentByName(ctx context.Context, environmentID string, t fleet.Type, clusterSlug, name string) (fleet.Agent, error)
	// AgentByKey finds the agent that holds a public key, revoked ones too; ErrNotFound if none.
	AgentByKey(ctx context.Context, publicKey string) (fleet.Agent, error)
	// InsertAgent answers ErrTaken where name or key is held.
	InsertAgent(ctx context.Context, a fleet.Agent) error
	// BindAgent writes a new key, token, version, capability and credential to an existing agent.
	BindAgent(ctx context.Context, a fleet.Agent) error

	// InsertToken stores a new token under the SHA-256 of its plain value.
	InsertToken(ctx context.Context, t Token, hash []byte) error
	// Token reads a token; ErrNotFound if none.
	Token(ctx context.Context, id string) (Token, error)
	// TokensOfOnboarding lists the tokens of an attempt, newest first.
	TokensOfOnboarding(ctx context.Context, onboardingID string) ([]Token, error)
	// RevokeToken stamps a token revoked; the first stamp stays.
	RevokeToken(ctx context.Context, id string, at time.Time) error
}

// Store is where tokens and refusals are kept.
type Store interface {
	// InTx runs f in one transaction, which an error of f rolls back. f may run more than once.
	InTx(ctx context.Context, f func(Tx) error) error

	// TokenByHash is the same outside of a transaction.
	TokenByHash(ctx context.Context, hash []byte) (Token, error)
	// Token reads a token; ErrNotFound if none.
	Token(ctx context.Context, id string) (Token, error)
	// Tokens lists tokens, newest first, with the number of all that match.
	Tokens(ctx context.Context, q TokenQuery) ([]Token, int, error)
	// TokensOfOnboarding lists the tokens of an attempt, newest first.
	TokensOfOnboarding(ctx context.Context, onboardingID string) ([]Token, error)
	// RecordRefusal keeps the last refusal of a token; outside of any transaction, so that a refusal
	// stays although the enrolment was rolled back.
	RecordRefusal(ctx context.Context, tokenID string, r Refusal) error
	// PutFindings replaces what the same agent name posted under the same token; at most 50 names a
	// token are kept, the oldest goes.
	PutFindings(ctx context.Context, f Findings) error
	// FindingsOfOnboarding lists what was posted under any token of an attempt.
	FindingsOfOnboarding(ctx context.Context, onboardingID string) ([]Findings, error)
	// FindingsOf reads what an agent posted last under a token; ErrNotFound if it posted nothing.
	FindingsOf(ctx context.Context, tokenID, agentName, clusterSlug string) (Findings, error)
	// AttemptScope answers where an attempt lives, ErrNotFound where there is none that is not archived.
	AttemptScope(ctx context.Context, onboardingID string) (access.Scope, error)
	// Environment answers an environment's client and its name.
	Environment(ctx context.Context, environmentID string) (access.Scope, string, error)
}
