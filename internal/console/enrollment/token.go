package enrollment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/id"
	"prxm.uz/proxima/internal/console/problem"
)

// What the texts fix for the token of an attempt, and the longest life of a token that is
// pinned to node agents.
const (
	AttemptUses     = 25
	AttemptLifetime = 24 * time.Hour
	LongestLifetime = 90 * 24 * time.Hour
)

// TokenPrefix starts every install token.
const TokenPrefix = "pit_"

// The states of a token.
const (
	StateLive      = "live"
	StateExpired   = "expired"
	StateUsedUp    = "used_up"
	StateRevoked   = "revoked"
	stateWrongType = "wrong_type"
)

// State tells whether the token admits anybody now.
func (t Token) State(now time.Time) string {
	switch {
	case !t.RevokedAt.IsZero():
		return StateRevoked
	case !now.Before(t.ExpiresAt):
		return StateExpired
	case t.MaxUses > 0 && t.Uses >= t.MaxUses:
		return StateUsedUp
	default:
		return StateLive
	}
}

// stateFor is State for one type of agent.
func (t Token) stateFor(a fleet.Type, now time.Time) string {
	if state := t.State(now); state != StateLive {
		return state
	}
	if t.AgentType != "" && t.AgentType != a {
		return stateWrongType
	}
	return StateLive
}

// Scope is where the token admits agents.
func (t Token) Scope() access.Scope {
	return access.Scope{ClientID: t.ClientID, EnvironmentID: t.EnvironmentID}
}

// MintRequest asks for a token. With OnboardingID it is minted for that attempt.
type MintRequest struct {
	ClientID      string
	EnvironmentID string
	OnboardingID  string
	Name          string
	AgentType     fleet.Type // "": admits every type
	MaxUses       int        // 0: unlimited
	ExpiresIn     time.Duration
}

// NewToken makes a token and its plain value, which exists nowhere else. The caller stores it.
func NewToken(scope access.Scope, onboardingID, createdBy string, now time.Time) (t Token, plain string) {
	plain = TokenPrefix + rand.Text() + rand.Text()[:6]
	return Token{
		ID: id.New("tok"), ClientID: scope.ClientID, EnvironmentID: scope.EnvironmentID, OnboardingID: onboardingID,
		Prefix: plain[:len(TokenPrefix)+4], MaxUses: AttemptUses, CreatedAt: now, CreatedBy: createdBy, ExpiresAt: now.Add(AttemptLifetime),
	}, plain
}

// Store writes a new token and its audit row in the caller's transaction.
func (t Token) Store(ctx context.Context, tx Tx, plain string, p access.Principal) error {
	if err := tx.InsertToken(ctx, t, hashToken(plain)); err != nil {
		return fmt.Errorf("store the install token: %w", err)
	}
	return tx.AppendAudit(ctx, p.Did(t.CreatedAt, audit.InstallTokenMinted).On("install_token", t.ID, t.Prefix).In(t.ClientID, t.EnvironmentID).
		With("onboarding", t.OnboardingID).With("max_uses", fmt.Sprint(t.MaxUses)).With("expires_at", t.ExpiresAt.UTC().Format(time.RFC3339)))
}

// Mint makes an install token for whoever may write hosts in its environment.
func (s *Service) Mint(ctx context.Context, p access.Principal, req MintRequest) (Token, string, error) {
	scope, err := s.mintScope(ctx, req)
	if err != nil {
		return Token{}, "", err
	}
	if !p.Allows(access.HostsWrite, scope) {
		if !p.Allows(access.HostsRead, scope) {
			return Token{}, "", unknownTarget(req)
		}
		return Token{}, "", access.Refuse(access.HostsWrite)
	}
	if err := checkMint(req); err != nil {
		return Token{}, "", err
	}
	t, plain := NewToken(scope, req.OnboardingID, p.UserID, s.Clock.Now())
	t.Name, t.AgentType = req.Name, req.AgentType
	if req.OnboardingID == "" || req.AgentType == fleet.TypeNodeMonitor {
		t.MaxUses = req.MaxUses
	}
	if req.ExpiresIn > 0 && (req.OnboardingID == "" || req.AgentType == fleet.TypeNodeMonitor) {
		t.ExpiresAt = t.CreatedAt.Add(req.ExpiresIn)
	}
	err = s.Store.InTx(ctx, func(tx Tx) error { return t.Store(ctx, tx, plain, p) })
	if err != nil {
		return Token{}, "", err
	}
	return t, plain, nil
}

func (s *Service) mintScope(ctx context.Context, req MintRequest) (access.Scope, error) {
	if req.OnboardingID != "" {
		scope, err := s.Store.AttemptScope(ctx, req.OnboardingID)
		if errors.Is(err, ErrNotFound) || err == nil && scope.ClientID != req.ClientID {
			return scope, unknownTarget(req)
		}
		return scope, err
	}
	scope, _, err := s.Store.Environment(ctx, req.EnvironmentID)
	if errors.Is(err, ErrNotFound) || err == nil && scope.ClientID != req.ClientID {
		return scope, unknownTarget(req)
	}
	return scope, err
}

// unknownTarget answers strangers and those who err alike.
func unknownTarget(req MintRequest) error {
	if req.OnboardingID != "" {
		return problem.New(problem.NotFound, "onboarding_not_found", fmt.Sprintf("There is no attempt %q of this client.", req.OnboardingID)).
			WithCure("Check the id; an attempt whose cluster was removed mints no tokens: record the cluster again.").InField("onboardingID")
	}
	return problem.New(problem.NotFound, "environment_not_found", fmt.Sprintf("There is no environment %q of this client.", req.EnvironmentID)).
		WithCure("Choose one of the client's environments.").InField("environmentID")
}

func checkMint(req MintRequest) error {
	longest := AttemptLifetime
	if req.AgentType == fleet.TypeNodeMonitor {
		longest = LongestLifetime
	}
	switch {
	case req.AgentType != "" && !slices.Contains(fleet.Types(), req.AgentType):
		return problem.New(problem.Invalid, "invalid_request", fmt.Sprintf("There is no type of agent %q; the types are %q.", req.AgentType, fleet.Types())).
			WithCure("Choose one of them, or none for a token that admits every type.").InField("agentType")
	case req.MaxUses < 0:
		return problem.New(problem.Invalid, "invalid_request", "maxUses is below zero.").
			WithCure("Give a number from 1, or ask for an unlimited token.").InField("maxUses")
	case req.ExpiresIn < 0 || req.ExpiresIn > longest:
		return problem.New(problem.Invalid, "invalid_request", fmt.Sprintf("A life of %s is not possible: %s is the most for this type of token.", req.ExpiresIn, longest)).
			WithCure("Ask for less. A token pinned to k8s-node-monitor may live longest.").InField("expiresInHours")
	case req.Name != "":
		return access.CheckName("name", req.Name, 100)
	}
	return nil
}

// Tokens lists the tokens that lie where the caller may write hosts, newest first, with the number of all that
// match.
func (s *Service) Tokens(ctx context.Context, p access.Principal, q TokenQuery) ([]Token, int, error) {
	q.Reach, q.Now = p.Reach(access.HostsWrite), s.Clock.Now()
	if q.Limit < 1 || q.Limit > 500 {
		q.Limit = 100
	}
	tokens, total, err := s.Store.Tokens(ctx, q)
	if err != nil {
		return nil, 0, fmt.Errorf("list install tokens: %w", err)
	}
	return tokens, total, nil
}

// TokenOf reads one token for whoever may write hosts in its environment.
func (s *Service) TokenOf(ctx context.Context, p access.Principal, tokenID string) (Token, error) {
	t, err := s.Store.Token(ctx, tokenID)
	if err := mayManage(p, tokenID, t, err); err != nil {
		return Token{}, err
	}
	return t, nil
}

// mayManage judges what reading a token that p wants to manage came to.
func mayManage(p access.Principal, tokenID string, t Token, err error) error {
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !p.Allows(access.HostsRead, t.Scope()):
		return problem.New(problem.NotFound, "install_token_not_found", fmt.Sprintf("There is no install token %s.", tokenID)).
			WithCure("Check the id in the list of install tokens; if it is right, you have no role where it lives.")
	case err != nil:
		return fmt.Errorf("find the install token: %w", err)
	case !p.Allows(access.HostsWrite, t.Scope()):
		return access.Refuse(access.HostsWrite)
	}
	return nil
}

// FindingsOf reads the self-check that an agent posted last under the token that it enrolled with; nil if it
// posted none.
func (s *Service) FindingsOf(ctx context.Context, p access.Principal, a fleet.Agent) (*Findings, error) {
	if a.EnrolledBy == "" || !p.Allows(access.AgentsRead, a.Scope()) {
		return nil, nil //nolint:nilnil // none is an ordinary answer
	}
	f, err := s.Store.FindingsOf(ctx, a.EnrolledBy, a.Name, a.ClusterSlug)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil //nolint:nilnil // as above
	case err != nil:
		return nil, fmt.Errorf("read the findings of agent %s: %w", a.ID, err)
	}
	return &f, nil
}

// Revoke ends a token at once; agents that enrolled with it stay. Revoking twice is no error.
func (s *Service) Revoke(ctx context.Context, p access.Principal, tokenID string) error {
	return s.Store.InTx(ctx, func(tx Tx) error {
		t, err := tx.Token(ctx, tokenID)
		if err := mayManage(p, tokenID, t, err); err != nil {
			return err
		}
		if !t.RevokedAt.IsZero() {
			return nil
		}
		now := s.Clock.Now()
		if err := tx.RevokeToken(ctx, t.ID, now); err != nil {
			return fmt.Errorf("revoke the install token: %w", err)
		}
		return tx.AppendAudit(ctx, p.Did(now, audit.InstallTokenRevoked).On("install_token", t.ID, t.Prefix).In(t.ClientID, t.EnvironmentID))
	})
}
