package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/id"
	"prxm.uz/proxima/internal/console/problem"
)

// TokenPrefix begins every API token, so that scanners and people know one when they see it.
const TokenPrefix = "pat_"

const (
	tokenLength  = len(TokenPrefix) + 32
	prefixLength = len(TokenPrefix) + 6
	touchEvery   = time.Minute
	// touchWithin keeps a database that takes no writes from holding up what only reads.
	touchWithin   = 2 * time.Second
	tokensPerUser = 100
)

// MintAPIToken makes a token that acts as p; an expiresIn of zero means no end. The plain value is in
// this answer alone.
func (s *Service) MintAPIToken(ctx context.Context, p Principal, name string, expiresIn time.Duration) (t APIToken, plain string, err error) {
	if p.UserID == "" {
		return APIToken{}, "", ErrUnauthenticated()
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		t, plain, err = IssueAPIToken(ctx, tx, p, Account{UserID: p.UserID, Email: p.Email}, name, expiresIn, s.clock.Now())
		return err
	})
	if err != nil {
		return APIToken{}, "", err
	}
	s.logger.InfoContext(ctx, "api token minted", "user", p.UserID, "api_token", t.ID)
	return t, plain, nil
}

// IssueAPIToken makes a token of the owner in p's name. Whether p may is the caller's affair.
func IssueAPIToken(ctx context.Context, tx Tx, p Principal, owner Account, name string, expiresIn time.Duration, now time.Time) (APIToken, string, error) {
	if err := CheckName("name", name, 100); err != nil {
		return APIToken{}, "", err
	}
	held, err := tx.APITokens(ctx, owner.UserID)
	if err != nil {
		return APIToken{}, "", fmt.Errorf("list API tokens: %w", err)
	}
	live := 0
	for _, t := range held {
		if t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || t.ExpiresAt.After(now)) {
			live++
		}
	}
	if live >= tokensPerUser {
		return APIToken{}, "", problem.New(problem.Conflict, "too_many_api_tokens", fmt.Sprintf("There are %d live API tokens of this account.", live)).
			WithCure("Revoke those that nothing uses.")
	}
	plain := TokenPrefix + strings.ToLower(rand.Text() + rand.Text())[:tokenLength-len(TokenPrefix)]
	t := APIToken{ID: id.New("apt"), UserID: owner.UserID, Name: name, Prefix: plain[:prefixLength], CreatedAt: now}
	if expiresIn > 0 {
		t.ExpiresAt = now.Add(expiresIn)
	}
	hash := sha256.Sum256([]byte(plain))
	if err := tx.InsertAPIToken(ctx, t, hash[:]); err != nil {
		return APIToken{}, "", fmt.Errorf("keep an API token: %w", err)
	}
	e := p.Did(now, audit.APITokenMinted).On("api_token", t.ID, t.Name).With("user", owner.Email).With("prefix", t.Prefix)
	return t, plain, tx.AppendAudit(ctx, e)
}

// APITokens lists the tokens of p, newest first, revoked and expired ones included.
func (s *Service) APITokens(ctx context.Context, p Principal) ([]APIToken, error) {
	if p.UserID == "" {
		return nil, ErrUnauthenticated()
	}
	tokens, err := s.store.APITokens(ctx, p.UserID)
	if err != nil {
		return nil, fmt.Errorf("list API tokens: %w", err)
	}
	return tokens, nil
}

// RevokeAPIToken ends one of p's own tokens at once. Revoking twice is no error.
func (s *Service) RevokeAPIToken(ctx context.Context, p Principal, tokenID string) error {
	if p.UserID == "" {
		return ErrUnauthenticated()
	}
	err := s.store.InTx(ctx, func(tx Tx) error {
		return EndAPIToken(ctx, tx, p, Account{UserID: p.UserID, Email: p.Email}, tokenID, s.clock.Now())
	})
	if errors.Is(err, ErrNotFound) {
		return problem.New(problem.NotFound, "not_found", "You have no API token "+tokenID+".").
			WithCure("List your tokens and take the id from there; another person's are below that person.")
	}
	if err != nil {
		return fmt.Errorf("revoke API token %s: %w", tokenID, err)
	}
	return nil
}

// EndAPIToken revokes a token of the owner in p's name. One that was revoked before stays as it is, and
// leaves no second event; ErrNotFound where the owner has no such token.
func EndAPIToken(ctx context.Context, tx Tx, p Principal, owner Account, tokenID string, now time.Time) error {
	held, err := tx.APITokens(ctx, owner.UserID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(held, func(t APIToken) bool { return t.ID == tokenID })
	if i < 0 {
		return ErrNotFound
	}
	t := held[i]
	if !t.RevokedAt.IsZero() {
		return nil
	}
	if err := tx.RevokeAPIToken(ctx, owner.UserID, tokenID, now); err != nil {
		return err
	}
	return tx.AppendAudit(ctx, p.Did(now, audit.APITokenRevoked).On("api_token", t.ID, t.Name).With("user", owner.Email).With("prefix", t.Prefix))
}

// PrincipalOfToken answers who a plain API token acts as. Unknown, expired and revoked tokens, and
// those of deactivated users, are Unauthenticated.
func (s *Service) PrincipalOfToken(ctx context.Context, plain, remoteAddr string) (Principal, error) {
	unknown := problem.New(problem.Unauthenticated, "api_token_unknown", "The API token is not known.").
		WithCure("Mint a new one and send it as Authorization: Bearer.")
	if len(plain) != tokenLength || !strings.HasPrefix(plain, TokenPrefix) {
		return Principal{}, unknown
	}
	hash := sha256.Sum256([]byte(plain))
	t, err := s.store.APITokenByHash(ctx, hash[:])
	if errors.Is(err, ErrNotFound) {
		return Principal{}, unknown
	}
	if err != nil {
		return Principal{}, fmt.Errorf("find an API token: %w", err)
	}
	now := s.clock.Now()
	switch {
	case !t.RevokedAt.IsZero():
		return Principal{}, problem.New(problem.Unauthenticated, "api_token_revoked", "The API token "+t.Prefix+"… was revoked.").WithCure("Mint a new one.")
	case !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt):
		return Principal{}, problem.New(problem.Unauthenticated, "api_token_expired", "The API token "+t.Prefix+"… has expired.").WithCure("Mint a new one.")
	}
	p, err := s.Principal(ctx, t.UserID)
	if err != nil {
		return Principal{}, err
	}
	p.APITokenID, p.RemoteAddr = t.ID, remoteAddr
	if now.Sub(t.LastUsedAt) >= touchEvery {
		touch, cancel := context.WithTimeout(ctx, touchWithin)
		defer cancel()
		if err := s.store.TouchAPIToken(touch, t.ID, now); err != nil {
			s.logger.WarnContext(ctx, "cannot record the use of an api token", "api_token", t.ID, "error", err)
		}
	}
	return p, nil
}
