package store

import (
	"context"
	"database/sql"

	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/store/internal/dbtype"
)

// selectTokens reads install tokens for lists: with the names of who minted them and of their attempt.
const selectTokens = `SELECT t.id, t.client_id, t.environment_id, t.onboarding_id, t.name, t.prefix, t.agent_type, t.max_uses, t.uses,
	t.created_at, t.created_by, t.expires_at, t.revoked_at, t.is_first, t.succeeded_at,
	COALESCE((SELECT u.email FROM users u WHERE u.id = t.created_by), ''),
	COALESCE((SELECT o.display_name FROM onboardings o WHERE o.id = t.onboarding_id), ''),
	(SELECT COUNT(*) FROM agents a WHERE a.enrolled_by = t.id AND a.agent_type = 'collector'),
	(SELECT COUNT(*) FROM agents a WHERE a.enrolled_by = t.id AND a.agent_type <> 'collector')
FROM install_tokens t`

// liveToken is the condition that token t admits agents at the time that the placeholder holds.
func liveToken(at string) string {
	return "t.revoked_at IS NULL AND t.expires_at > " + at + " AND (t.max_uses = 0 OR t.uses < t.max_uses)"
}

func scanToken(r *sql.Rows) (enrollment.Token, error) {
	var t enrollment.Token
	var onboarding dbtype.Text
	var createdAt, expiresAt, revokedAt, succeededAt dbtype.Time
	err := r.Scan(&t.ID, &t.ClientID, &t.EnvironmentID, &onboarding, &t.Name, &t.Prefix, &t.AgentType, &t.MaxUses, &t.Uses,
		&createdAt, &t.CreatedBy, &expiresAt, &revokedAt, &t.First, &succeededAt,
		&t.CreatedByName, &t.OnboardingName, &t.CollectorsEnrolled, &t.OthersEnrolled)
	t.OnboardingID = string(onboarding)
	t.CreatedAt, t.ExpiresAt, t.RevokedAt, t.SucceededAt = createdAt.Time, expiresAt.Time, revokedAt.Time, succeededAt.Time
	return t, err
}

// Tokens implements enrollment.Store; the states are those of enrollment.Token.State.
func (s enrollmentStore) Tokens(ctx context.Context, q enrollment.TokenQuery) (found []enrollment.Token, total int, err error) {
	var l list
	l.reach("t.client_id", "t.environment_id", q.Reach)
	l.equalIf("t.client_id", q.ClientID)
	l.equalIf("t.environment_id", q.EnvironmentID)
	l.equalIf("t.onboarding_id", q.OnboardingID)
	at := func() string { return l.arg(dbtype.At(q.Now)) }
	switch q.State {
	case enrollment.StateRevoked:
		l.fixed("t.revoked_at IS NOT NULL")
	case enrollment.StateExpired:
		l.fixed("t.revoked_at IS NULL AND t.expires_at <= " + at())
	case enrollment.StateUsedUp:
		l.fixed("t.revoked_at IS NULL AND t.expires_at > " + at() + " AND t.max_uses > 0 AND t.uses >= t.max_uses")
	case enrollment.StateLive:
		l.fixed(liveToken(at()))
	}
	err = s.db.snapshot(ctx, func(r reads) error {
		if total, err = count(ctx, r.raw, "install_tokens t", &l); err != nil {
			return err
		}
		query := selectTokens + l.condition() + " ORDER BY t.created_at DESC, t.id DESC" + l.page(q.Limit, 500, q.Offset)
		found, err = rows(ctx, r.raw, query, l.args, scanToken)
		return err
	})
	return found, total, enrollmentErrors().translate(err, "list install tokens")
}
