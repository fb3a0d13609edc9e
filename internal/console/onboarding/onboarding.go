// Package onboarding owns attempts: recording that somebody means to bring in a cluster, gathering the
// facts that were measured since, and remembering when an attempt was proved. The verdicts are made by
// package gate.
package onboarding

import (
	"context"
	"errors"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
)

// What a Store answers beside its rows.
var (
	// ErrNotFound: no such attempt.
	ErrNotFound = errors.New("attempt not found")
	// ErrTaken: another attempt that is not archived holds (environment, slug).
	ErrTaken = errors.New("attempt exists")
)

// Attempt is one recorded intent to bring in a cluster. It is never deleted.
type Attempt struct {
	ID              string
	ClientID        string
	ClientName      string // filled by reads
	EnvironmentID   string
	EnvironmentName string // filled by reads
	Slug            string
	DisplayName     string
	CreatedAt       time.Time
	CreatedBy       string
	CreatedByName   string    // filled by reads
	AbandonedAt     time.Time // zero: not abandoned
	ArchivedAt      time.Time // zero: not archived (its cluster was removed, X-30)
	InventoryDoneAt time.Time // stamped once, never cleared
	AccessDoneAt    time.Time
	// LastStatus caches the inventory track for list rows, as of LastCheckedAt.
	LastStatus    *Summary
	LastCheckedAt time.Time
}

// Scope is where the attempt lives.
func (a Attempt) Scope() access.Scope {
	return access.Scope{ClientID: a.ClientID, EnvironmentID: a.EnvironmentID}
}

// Summary is a cached verdict of one track.
type Summary struct {
	Passed  int `json:"passed"`
	Waiting int `json:"waiting"`
	Blocked int `json:"blocked"`
	Warning int `json:"warning"`
	Failed  int `json:"failed"`
	// Gate is the title of the first gate that did not pass, and State its state.
	Gate  string `json:"gate,omitempty"`
	State string `json:"state,omitempty"`
}

// Tx is what this package needs of a transaction.
type Tx interface {
	enrollment.Tx
	// InsertAttempt stores an attempt whose (environment, slug) is free.
	InsertAttempt(ctx context.Context, a Attempt) error
	// Attempt reads an attempt; ErrNotFound if none.
	Attempt(ctx context.Context, id string) (Attempt, error)
	// AttemptBySlug finds the attempt on (environment, slug) that is not archived.
	AttemptBySlug(ctx context.Context, environmentID, slug string) (Attempt, error)
	// SetAbandoned stamps or, with the zero time, clears the abandonment.
	SetAbandoned(ctx context.Context, id string, at time.Time) error
}

// Rows is all that the store holds about one attempt, read in one go.
type Rows struct {
	Attempt Attempt
	Tokens  []enrollment.Token
	// Collectors are the agents of type collector whose enrolled_by is one of Tokens.
	Collectors []fleet.Agent
	// Others are the collectors on the attempt's environment and slug that enrolled with any other.
	Others   []fleet.Agent
	Findings []enrollment.Findings
	// Cluster is the row on (environment, slug); nil if none.
	Cluster *inventory.Cluster
	// SameUID are other clusters of the client with the fingerprint of Cluster.
	SameUID []inventory.Cluster
	// Unread says of each of these why it could not be read.
	Unread Unread
}

// Unread are the faults of single facts; nil where the fact was read.
type Unread struct{ Tokens, Collectors, Others, Findings, Cluster error }

// Store is where attempts are kept.
type Store interface {
	// InTx runs f in one transaction, which an error of f rolls back. f may run more than once.
	InTx(ctx context.Context, f func(Tx) error) error
	// Attempt reads an attempt; ErrNotFound if none.
	Attempt(ctx context.Context, id string) (Attempt, error)
	// Attempts lists the attempts of a client ("" for all that reach covers), newest first. Unfinished
	// leaves out the proved, abandoned and archived.
	Attempts(ctx context.Context, clientID string, reach access.Reach, unfinished bool) ([]Attempt, error)
	// Rows reads everything about an attempt; ErrNotFound if there is none. A fact that cannot be read
	// is noted in Unread and is no error, unless ctx has ended.
	Rows(ctx context.Context, id string) (Rows, error)
	// PutStatus caches a summary; DoneAt, where not zero, stamps inventory_done_at if it is not yet.
	PutStatus(ctx context.Context, id string, s Summary, checkedAt, inventoryDoneAt time.Time) error
	// Ready tells whether writes are taken now. It may be asked often.
	Ready(ctx context.Context) error
	// Open lists the ids of attempts that the background evaluation still watches: neither archived
	// nor abandoned, not done or checked more than an hour ago.
	Open(ctx context.Context) ([]string, error)
	// Lease takes or extends the named lease until the given time; false while another holder has it.
	Lease(ctx context.Context, name, holder string, now, until time.Time) (bool, error)
}

var _ audit.Tx = Tx(nil)
