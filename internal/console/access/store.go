package access

import (
	"context"
	"errors"
	"time"

	"prxm.uz/proxima/internal/console/audit"
)

// ErrNotFound is what a Store answers for a row that is not there.
var ErrNotFound = errors.New("not found")

// Account is what is needed of a user to let them in.
type Account struct {
	UserID       string
	Email        string
	Name         string
	PasswordHash string
	Active       bool
}

// APIToken lets a program act as its owner. Only the hash of the token is kept.
type APIToken struct {
	ID         string
	UserID     string
	Name       string
	Prefix     string // the first characters, to tell tokens apart on a page
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: no end
	LastUsedAt time.Time
	RevokedAt  time.Time
}

// Session is a browser, signed in where UserID is set. TokenHash is a hash; the plain value lives in the
// cookie alone. ID names the session on pages and says nothing about the token.
type Session struct {
	ID         string
	TokenHash  string
	UserID     string
	Data       []byte
	CreatedAt  time.Time
	SeenAt     time.Time // at most some minutes behind
	ExpiresAt  time.Time
	RemoteAddr string
	UserAgent  string
}

// AttemptLimit is how many sign-ins may be counted under a key.
type AttemptLimit struct {
	Key  string
	Most int
}

// Tx is what making and ending API tokens, ending sessions and telling of sign-ins needs of a transaction.
type Tx interface {
	audit.Tx

	// AuditedSince tells whether an event of the action on the resource was written after the time.
	AuditedSince(ctx context.Context, a audit.Action, resourceType, resourceID string, since time.Time) (bool, error)
	// InsertAPIToken keeps a token under the SHA-256 of its plain value; ErrNotFound where its user is not there.
	InsertAPIToken(ctx context.Context, t APIToken, hash []byte) error
	// APITokens lists the tokens of a user, newest first.
	APITokens(ctx context.Context, userID string) ([]APIToken, error)
	// RevokeAPIToken ends a token; a second time keeps the time of the first.
	RevokeAPIToken(ctx context.Context, userID, id string, at time.Time) error

	// Sessions lists the live sessions of a user, the one seen last first.
	Sessions(ctx context.Context, userID string, now time.Time) ([]Session, error)
	// DeleteSessionOfUser answers ErrNotFound where the user has none of this id.
	DeleteSessionOfUser(ctx context.Context, userID, id string) error
}

// Store is what this package needs of the database.
type Store interface {
	// InTx runs f in one serializable transaction, and may run it again.
	InTx(ctx context.Context, f func(Tx) error) error

	// AccountByEmail finds a user by the folded e-mail address.
	AccountByEmail(ctx context.Context, folded string) (Account, error)
	// Account answers ErrNotFound where there is none.
	Account(ctx context.Context, userID string) (Account, error)
	// Grants lists the permissions of a user's roles with their scopes.
	Grants(ctx context.Context, userID string) ([]Grant, error)

	// APITokenByHash answers ErrNotFound where there is none, and a revoked or expired one as it is.
	APITokenByHash(ctx context.Context, hash []byte) (APIToken, error)
	// APITokens lists the tokens of a user, newest first.
	APITokens(ctx context.Context, userID string) ([]APIToken, error)
	// TouchAPIToken records a use; called at most once a minute for a token.
	TouchAPIToken(ctx context.Context, id string, at time.Time) error

	// InsertSession keeps a new session; ErrNotFound where its user is not there.
	InsertSession(ctx context.Context, s Session) error
	// UpdateSession writes a session as it is now, but for its id and creation; ErrNotFound where it was ended meanwhile.
	UpdateSession(ctx context.Context, s Session) error
	// Sessions lists the live sessions of a user, the one seen last first.
	Sessions(ctx context.Context, userID string, now time.Time) ([]Session, error)
	// Session answers ErrNotFound for one that has ended.
	Session(ctx context.Context, tokenHash string, now time.Time) (Session, error)
	// DeleteSession is no error where there is none.
	DeleteSession(ctx context.Context, tokenHash string) error
	// DeleteExpiredSessions forgets what ended.
	DeleteExpiredSessions(ctx context.Context, now time.Time) error

	// CountAttempts counts the sign-ins under key since the given time.
	CountAttempts(ctx context.Context, key string, since time.Time) (int, error)
	// RecordAttempt counts one under each key, if under each fewer than its limit were counted since the given
	// time, in one transaction. Else it counts none and answers the first limit that is reached.
	RecordAttempt(ctx context.Context, limits []AttemptLimit, since, at time.Time) (reached *AttemptLimit, err error)
	// ClearAttempts forgets all under each key, and under address what was counted at that time.
	ClearAttempts(ctx context.Context, keys []string, address string, at time.Time) error
	// ForgetAttempts forgets those before the given time.
	ForgetAttempts(ctx context.Context, before time.Time) error
}
