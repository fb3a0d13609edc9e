package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/store/internal/dbtype"
	"prxm.uz/proxima/internal/console/store/internal/sqlgen"
)

// keptFindings is how many agents' self-checks are kept under one token.
const keptFindings = 50

// Enrollment returns the store of package enrollment.
func (db *DB) Enrollment() enrollment.Store { return enrollmentStore{db} }

type enrollmentStore struct{ db *DB }

func (s enrollmentStore) InTx(ctx context.Context, f func(enrollment.Tx) error) error {
	return s.db.inTx(ctx, func(t *tx) error { return f(t) })
}

func enrollmentErrors() sentinels {
	return sentinels{missing: enrollment.ErrNotFound, taken: enrollment.ErrTaken}
}

func tokenFrom(r sqlgen.InstallTokenRow) enrollment.Token {
	t := r.InstallToken
	return enrollment.Token{
		ID: t.ID, ClientID: t.ClientID, EnvironmentID: t.EnvironmentID, OnboardingID: string(t.OnboardingID),
		Name: t.Name, Prefix: t.Prefix, AgentType: fleet.Type(t.AgentType), MaxUses: int(t.MaxUses), Uses: int(t.Uses),
		CreatedAt: t.CreatedAt.Time, CreatedBy: t.CreatedBy, ExpiresAt: t.ExpiresAt.Time, RevokedAt: t.RevokedAt.Time,
		First: t.IsFirst, SucceededAt: t.SucceededAt.Time,
		Refusal: enrollment.Refusal{
			At: t.RefusedAt.Time, Code: t.RefusedCode, AgentName: t.RefusedAgentName,
			AgentType: fleet.Type(t.RefusedAgentType), ClusterSlug: t.RefusedClusterSlug,
			Version: t.RefusedVersion, RemoteAddr: t.RefusedRemoteAddr,
		},
		CollectorsEnrolled: int(r.Collectors), OthersEnrolled: int(r.Others),
	}
}

func (r reads) TokenByHash(ctx context.Context, hash []byte) (enrollment.Token, error) {
	found, err := r.q.InstallTokenByHash(ctx, hash)
	return tokenFrom(sqlgen.InstallTokenRow(found)), enrollmentErrors().translate(err, "install token by hash")
}

func (r reads) Token(ctx context.Context, id string) (enrollment.Token, error) {
	found, err := r.q.InstallToken(ctx, id)
	return tokenFrom(found), enrollmentErrors().translate(err, "install token "+id)
}

// TokensOfOnboarding lists them oldest first.
func (r reads) TokensOfOnboarding(ctx context.Context, onboardingID string) ([]enrollment.Token, error) {
	found, err := r.q.InstallTokensOfOnboarding(ctx, dbtype.Text(onboardingID))
	return each(found, func(row sqlgen.InstallTokensOfOnboardingRow) enrollment.Token {
		return tokenFrom(sqlgen.InstallTokenRow(row))
	}), enrollmentErrors().translate(err, "install tokens of attempt "+onboardingID)
}

func (s enrollmentStore) TokenByHash(ctx context.Context, hash []byte) (enrollment.Token, error) {
	return s.db.plain().TokenByHash(ctx, hash)
}

func (s enrollmentStore) Token(ctx context.Context, id string) (enrollment.Token, error) {
	return s.db.plain().Token(ctx, id)
}

func (s enrollmentStore) TokensOfOnboarding(ctx context.Context, onboardingID string) ([]enrollment.Token, error) {
	return s.db.plain().TokensOfOnboarding(ctx, onboardingID)
}

func (t *tx) UseToken(ctx context.Context, id string, at time.Time) (bool, error) {
	n, err := t.q.UseInstallToken(ctx, sqlgen.UseInstallTokenParams{ID: id, SucceededAt: dbtype.At(at)})
	return n > 0, enrollmentErrors().translate(err, "use install token "+id)
}

// SucceedToken moves only forward in time.
func (t *tx) SucceedToken(ctx context.Context, id string, at time.Time) error {
	n, err := t.q.SucceedInstallToken(ctx, sqlgen.SucceedInstallTokenParams{ID: id, SucceededAt: dbtype.At(at)})
	return enrollmentErrors().changed(n, err, "note a success of install token "+id)
}

func (t *tx) InsertToken(ctx context.Context, token enrollment.Token, hash []byte) error {
	n, err := t.q.InsertInstallToken(ctx, sqlgen.InsertInstallTokenParams{
		ID: token.ID, ClientID: token.ClientID, EnvironmentID: token.EnvironmentID,
		OnboardingID: dbtype.Text(token.OnboardingID), Name: token.Name, Prefix: token.Prefix, Hash: hash,
		AgentType: string(token.AgentType), MaxUses: int64(token.MaxUses), Uses: int64(token.Uses),
		CreatedAt: dbtype.At(token.CreatedAt), CreatedBy: token.CreatedBy, ExpiresAt: dbtype.At(token.ExpiresAt),
		RevokedAt: dbtype.At(token.RevokedAt), IsFirst: token.First, SucceededAt: dbtype.At(token.SucceededAt),
	})
	return enrollmentErrors().inserted(n, err, "insert install token "+token.ID)
}

func (t *tx) RevokeToken(ctx context.Context, id string, at time.Time) error {
	n, err := t.q.RevokeInstallToken(ctx, sqlgen.RevokeInstallTokenParams{ID: id, RevokedAt: dbtype.At(at)})
	return enrollmentErrors().changed(n, err, "revoke install token "+id)
}

// RecordRefusal passes over a refusal older than the stored one, and a token that is not there.
func (s enrollmentStore) RecordRefusal(ctx context.Context, tokenID string, r enrollment.Refusal) error {
	return s.db.inTx(ctx, func(t *tx) error {
		_, err := t.q.RecordRefusal(ctx, sqlgen.RecordRefusalParams{
			ID: tokenID, RefusedAt: dbtype.At(r.At), RefusedCode: r.Code, RefusedAgentName: r.AgentName,
			RefusedAgentType: string(r.AgentType), RefusedClusterSlug: r.ClusterSlug, RefusedVersion: r.Version,
			RefusedRemoteAddr: r.RemoteAddr,
		})
		return enrollmentErrors().translate(err, "record a refusal of install token "+tokenID)
	})
}

func (s enrollmentStore) PutFindings(ctx context.Context, f enrollment.Findings) error {
	items, err := json.Marshal(f.Items)
	if err != nil {
		return fmt.Errorf("findings of %s: %w", f.AgentName, err)
	}
	return s.db.inTx(ctx, func(t *tx) error {
		err := t.q.PutFindings(ctx, sqlgen.PutFindingsParams{
			TokenID: f.TokenID, AgentName: f.AgentName, ClusterSlug: f.ClusterSlug, Version: f.Version,
			ReceivedAt: dbtype.At(f.ReceivedAt), Items: string(items),
		})
		if err != nil {
			errs := enrollmentErrors()
			errs.inUse = errs.missing // the token is not there
			return errs.translate(err, "put the findings of "+f.AgentName)
		}
		err = t.q.TrimFindings(ctx, sqlgen.TrimFindingsParams{TokenID: f.TokenID, Keep: keptFindings})
		return enrollmentErrors().translate(err, "trim the findings of token "+f.TokenID)
	})
}

// FindingsOfOnboarding lists the newest first.
func (r reads) FindingsOfOnboarding(ctx context.Context, onboardingID string) ([]enrollment.Findings, error) {
	what := "findings of attempt " + onboardingID
	found, err := r.q.FindingsOfOnboarding(ctx, dbtype.Text(onboardingID))
	if err != nil {
		return nil, enrollmentErrors().translate(err, what)
	}
	all := make([]enrollment.Findings, len(found))
	for i, row := range found {
		if all[i], err = findingsFrom(row, what); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func findingsFrom(row sqlgen.Finding, what string) (enrollment.Findings, error) {
	f := enrollment.Findings{
		TokenID: row.TokenID, AgentName: row.AgentName, ClusterSlug: row.ClusterSlug, Version: row.Version,
		ReceivedAt: row.ReceivedAt.Time,
	}
	return f, fromJSON(row.Items, &f.Items, what)
}

// FindingsOf implements enrollment.Store.
func (s enrollmentStore) FindingsOf(ctx context.Context, tokenID, agentName, clusterSlug string) (enrollment.Findings, error) {
	what := "findings of agent " + agentName
	row, err := s.db.read.FindingsOfAgent(ctx, sqlgen.FindingsOfAgentParams{TokenID: tokenID, AgentName: agentName, ClusterSlug: clusterSlug})
	if err != nil {
		return enrollment.Findings{}, enrollmentErrors().translate(err, what)
	}
	return findingsFrom(row, what)
}

func (s enrollmentStore) FindingsOfOnboarding(ctx context.Context, onboardingID string) ([]enrollment.Findings, error) {
	return s.db.plain().FindingsOfOnboarding(ctx, onboardingID)
}

// AttemptScope implements enrollment.Store.
func (s enrollmentStore) AttemptScope(ctx context.Context, onboardingID string) (access.Scope, error) {
	found, err := s.db.read.OnboardingScope(ctx, onboardingID)
	return access.Scope{ClientID: found.ClientID, EnvironmentID: found.EnvironmentID},
		enrollmentErrors().translate(err, "attempt "+onboardingID)
}

// Environment implements enrollment.Store.
func (s enrollmentStore) Environment(ctx context.Context, environmentID string) (access.Scope, string, error) {
	e, err := s.db.read.Environment(ctx, environmentID)
	return access.Scope{ClientID: e.ClientID, EnvironmentID: e.ID}, e.Name,
		enrollmentErrors().translate(err, "environment "+environmentID)
}

// fromJSON reads a JSON column; an empty one leaves the value as it is.
func fromJSON(text string, into any, what string) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%s: stored JSON cannot be read: %w", what, err)
	}
	return nil
}

// toJSON writes a JSON column; a nil pointer is the empty text.
func toJSON[T any](v *T) (string, error) {
	if v == nil {
		return "", nil
	}
	text, err := json.Marshal(v)
	return string(text), err
}
