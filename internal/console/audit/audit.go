// Package audit owns the record of what was done: one row per change, written in the transaction of
// the change, so that neither can exist without the other. It never holds a secret.
package audit

import (
	"context"
	"time"
)

// Event is one change or one act towards a cluster.
type Event struct {
	ID string
	At time.Time
	// ActorKind is user, agent or system; ActorID and ActorName say which.
	ActorKind     string
	ActorID       string
	ActorName     string
	Action        Action
	ResourceType  string
	ResourceID    string
	ResourceName  string
	ClientID      string
	EnvironmentID string
	RemoteAddr    string
	// Detail is small and free of secrets.
	Detail map[string]string
}

// Tx appends to the log within a transaction.
type Tx interface {
	// AppendAudit writes one event.
	AppendAudit(ctx context.Context, e Event) error
}
