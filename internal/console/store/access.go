package store

import (
	"context"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/store/internal/dbtype"
	"prxm.uz/proxima/internal/console/store/internal/sqlgen"
)

// Access returns the store of package access.
func (db *DB) Access() access.Store { return accessStore{db} }

type accessStore struct{ db *DB }

func accessErrors() sentinels { return sentinels{missing: access.ErrNotFound} }

func accountFrom(u sqlgen.User) access.Account {
	return access.Account{UserID: u.ID, Email: u.Email, Name: u.Name, PasswordHash: u.PasswordHash, Active: u.Active}
}

func (s accessStore) AccountByEmail(ctx context.Context, folded string) (access.Account, error) {
	u, err := s.db.read.UserByEmail(ctx, fold(folded))
	return accountFrom(u), accessErrors().translate(err, "account by e-mail")
}

func (s accessStore) Account(ctx context.Context, userID string) (access.Account, error) {
	u, err := s.db.read.User(ctx, userID)
	return accountFrom(u), accessErrors().translate(err, "account "+userID)
}

func (s accessStore) Grants(ctx context.Context, userID string) ([]access.Grant, error) {
	found, err := s.db.read.Grants(ctx, userID)
	if err != nil {
		return nil, accessErrors().translate(err, "grants of "+userID)
	}
	var grants []access.Grant
	last := ""
	for _, row := range found {
		if row.ID != last {
			grants = append(grants, access.Grant{Role: row.RoleName, Scope: scopeFrom(row.ClientID, row.EnvironmentID)})
			last = row.ID
		}
		g := &grants[len(grants)-1]
		g.Permissions = append(g.Permissions, access.Permission(row.Permission))
	}
	return grants, nil
}

func scopeFrom(clientID, environmentID dbtype.Text) access.Scope {
	return access.Scope{ClientID: string(clientID), EnvironmentID: string(environmentID)}
}

func apiTokenFrom(t sqlgen.ApiToken) access.APIToken {
	return access.APIToken{
		ID: t.ID, UserID: t.UserID, Name: t.Name, Prefix: t.Prefix, CreatedAt: t.CreatedAt.Time,
		ExpiresAt: t.ExpiresAt.Time, LastUsedAt: t.LastUsedAt.Time, RevokedAt: t.RevokedAt.Time,
	}
}

func (s accessStore) InTx(ctx context.Context, f func(access.Tx) error) error {
	return s.db.inTx(ctx, func(t *tx) error { return f(t) })
}

// InsertAPIToken answers ErrNotFound where the user is not there.
func (t *tx) InsertAPIToken(ctx context.Context, token access.APIToken, hash []byte) error {
	n, err := t.q.InsertAPIToken(ctx, sqlgen.InsertAPITokenParams{
		ID: token.ID, UserID: token.UserID, Name: token.Name, Prefix: token.Prefix, Hash: hash,
		CreatedAt: dbtype.At(token.CreatedAt), ExpiresAt: dbtype.At(token.ExpiresAt),
		LastUsedAt: dbtype.At(token.LastUsedAt), RevokedAt: dbtype.At(token.RevokedAt),
	})
	return accessErrors().inserted(n, err, "insert API token "+token.ID)
}

func (s accessStore) APITokenByHash(ctx context.Context, hash []byte) (access.APIToken, error) {
	t, err := s.db.read.APITokenByHash(ctx, hash)
	return apiTokenFrom(t), accessErrors().translate(err, "API token by hash")
}

func (s accessStore) APITokens(ctx context.Context, userID string) ([]access.APIToken, error) {
	return s.db.plain().APITokens(ctx, userID)
}

func (r reads) APITokens(ctx context.Context, userID string) ([]access.APIToken, error) {
	found, err := r.q.APITokens(ctx, userID)
	return each(found, apiTokenFrom), accessErrors().translate(err, "API tokens of "+userID)
}

func (s accessStore) TouchAPIToken(ctx context.Context, id string, at time.Time) error {
	return s.db.inTx(ctx, func(t *tx) error {
		err := t.q.TouchAPIToken(ctx, sqlgen.TouchAPITokenParams{ID: id, LastUsedAt: dbtype.At(at)})
		return accessErrors().translate(err, "touch API token "+id)
	})
}

func (s accessStore) InsertSession(ctx context.Context, session access.Session) error {
	return s.db.inTx(ctx, func(t *tx) error {
		err := t.q.InsertSession(ctx, sqlgen.InsertSessionParams{
			ID: session.ID, TokenHash: session.TokenHash, UserID: dbtype.Text(session.UserID), Data: notNil(session.Data),
			CreatedAt: dbtype.At(session.CreatedAt), SeenAt: dbtype.At(session.SeenAt), ExpiresAt: dbtype.At(session.ExpiresAt),
			RemoteAddr: session.RemoteAddr, UserAgent: session.UserAgent,
		})
		return sessionErrors().translate(err, "insert a session")
	})
}

func (s accessStore) UpdateSession(ctx context.Context, session access.Session) error {
	return s.db.inTx(ctx, func(t *tx) error {
		n, err := t.q.UpdateSession(ctx, sqlgen.UpdateSessionParams{
			TokenHash: session.TokenHash, UserID: dbtype.Text(session.UserID), Data: notNil(session.Data),
			SeenAt: dbtype.At(session.SeenAt), ExpiresAt: dbtype.At(session.ExpiresAt),
			RemoteAddr: session.RemoteAddr, UserAgent: session.UserAgent,
		})
		return sessionErrors().changed(n, err, "update a session")
	})
}

// sessionErrors take a user who is not there for a row that is not there.
func sessionErrors() sentinels {
	errs := accessErrors()
	errs.inUse = errs.missing
	return errs
}

func sessionFrom(found sqlgen.Session) access.Session {
	return access.Session{
		ID: found.ID, TokenHash: found.TokenHash, UserID: string(found.UserID), Data: found.Data, CreatedAt: found.CreatedAt.Time,
		SeenAt: found.SeenAt.Time, ExpiresAt: found.ExpiresAt.Time, RemoteAddr: found.RemoteAddr, UserAgent: found.UserAgent,
	}
}

func (s accessStore) Sessions(ctx context.Context, userID string, now time.Time) ([]access.Session, error) {
	return s.db.plain().Sessions(ctx, userID, now)
}

func (r reads) Sessions(ctx context.Context, userID string, now time.Time) ([]access.Session, error) {
	found, err := r.q.SessionsOfUser(ctx, sqlgen.SessionsOfUserParams{UserID: dbtype.Text(userID), ExpiresAt: dbtype.At(now)})
	return each(found, sessionFrom), accessErrors().translate(err, "sessions of "+userID)
}

func (t *tx) DeleteSessionOfUser(ctx context.Context, userID, id string) error {
	n, err := t.q.DeleteSessionOfUser(ctx, sqlgen.DeleteSessionOfUserParams{UserID: dbtype.Text(userID), ID: id})
	return accessErrors().changed(n, err, "delete session "+id)
}

func (s accessStore) Session(ctx context.Context, tokenHash string, now time.Time) (access.Session, error) {
	found, err := s.db.read.Session(ctx, sqlgen.SessionParams{TokenHash: tokenHash, ExpiresAt: dbtype.At(now)})
	return sessionFrom(found), accessErrors().translate(err, "session")
}

func (s accessStore) DeleteSession(ctx context.Context, tokenHash string) error {
	return s.db.inTx(ctx, func(t *tx) error {
		return accessErrors().translate(t.q.DeleteSession(ctx, tokenHash), "delete a session")
	})
}

func (s accessStore) DeleteExpiredSessions(ctx context.Context, now time.Time) error {
	return s.db.inTx(ctx, func(t *tx) error {
		return accessErrors().translate(t.q.DeleteExpiredSessions(ctx, dbtype.At(now)), "delete expired sessions")
	})
}

func (s accessStore) CountAttempts(ctx context.Context, key string, since time.Time) (int, error) {
	n, err := s.db.read.CountSignInAttempts(ctx, sqlgen.CountSignInAttemptsParams{AttemptKey: key, FailedAt: from(since)})
	return int(n), accessErrors().translate(err, "count sign-in attempts")
}

func (s accessStore) RecordAttempt(ctx context.Context, limits []access.AttemptLimit, since, at time.Time) (reached *access.AttemptLimit, err error) {
	err = s.db.inTx(ctx, func(t *tx) error {
		reached = nil
		for i, l := range limits {
			n, err := t.q.CountSignInAttempts(ctx, sqlgen.CountSignInAttemptsParams{AttemptKey: l.Key, FailedAt: from(since)})
			if err != nil {
				return accessErrors().translate(err, "count sign-in attempts")
			}
			if int(n) >= l.Most {
				reached = &limits[i]
				return nil
			}
		}
		for _, l := range limits {
			if err := t.q.InsertSignInAttempt(ctx, sqlgen.InsertSignInAttemptParams{AttemptKey: l.Key, FailedAt: dbtype.At(at)}); err != nil {
				return accessErrors().translate(err, "record a sign-in attempt")
			}
		}
		return nil
	})
	return reached, err
}

func (s accessStore) ClearAttempts(ctx context.Context, keys []string, address string, at time.Time) error {
	return s.db.inTx(ctx, func(t *tx) error {
		for _, key := range keys {
			if err := t.q.DeleteSignInAttempts(ctx, key); err != nil {
				return accessErrors().translate(err, "clear sign-in attempts")
			}
		}
		err := t.q.DeleteSignInAttemptsAt(ctx, sqlgen.DeleteSignInAttemptsAtParams{AttemptKey: address, FailedAt: dbtype.At(at)})
		return accessErrors().translate(err, "clear a sign-in attempt")
	})
}

func (s accessStore) ForgetAttempts(ctx context.Context, before time.Time) error {
	return s.db.inTx(ctx, func(t *tx) error {
		return accessErrors().translate(t.q.DeleteOldSignInAttempts(ctx, dbtype.At(before)), "forget sign-in attempts")
	})
}

// each converts a list of rows.
func each[R, D any](found []R, convert func(R) D) []D {
	all := make([]D, len(found))
	for i, row := range found {
		all[i] = convert(row)
	}
	return all
}

// from is a lower bound: the zero time would be NULL, which compares to nothing.
func from(t time.Time) dbtype.Time {
	if t.IsZero() {
		return dbtype.At(time.UnixMicro(0))
	}
	return dbtype.At(t)
}
