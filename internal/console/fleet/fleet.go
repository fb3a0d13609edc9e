// Package fleet owns the agents: their identity, their credential, when each was last heard, and what
// they reported of themselves. What an agent reports is evidence; freshness is judged by the time at
// which console received it.
package fleet

import (
	"context"
	"errors"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/wire"
)

// StaleAfter is how old a heartbeat may be before a collector counts as silent.
const StaleAfter = 5 * time.Minute

// PresenceEvery is how often every replica publishes its status.
const PresenceEvery = 30 * time.Second

// PresentWithin is within which an agent counts as there: two of its statuses may get lost.
const PresentWithin = 3 * PresenceEvery

// Suspension is how long an agent that floods is kept out; then it comes back by itself.
const Suspension = 10 * time.Minute

// ErrNotFound is what a Store answers for an agent that is not there.
var ErrNotFound = errors.New("agent not found")

// Type is the type of an agent.
type Type string

// The types of agents.
const (
	TypeCollector   Type = "collector"
	TypeNodeMonitor Type = "k8s-node-monitor"
	TypeHost        Type = "host"
)

// Types lists every type.
func Types() []Type { return []Type{TypeCollector, TypeNodeMonitor, TypeHost} }

// Agent is one enrolled process. (EnvironmentID, Type, ClusterSlug, Name) is unique.
type Agent struct {
	ID            string
	ClientID      string
	EnvironmentID string
	Type          Type
	ClusterSlug   string // "" for host agents
	Name          string
	// PublicKey is the agent's nkey, which its credential is bound to. It is "" after the identity
	// was released: the next enrolment under the name binds a new one.
	PublicKey  string
	EnrolledBy string // install token id
	EnrolledAt time.Time
	Version    string
	Capability int

	Template            int // number of the permission template of its credential
	CredentialIssuedAt  time.Time
	CredentialExpiresAt time.Time
	RevokedAt           time.Time // zero: not revoked
	ReleasedAt          time.Time // zero: not released
	SuspendedAt         time.Time // the last time; zero: never
	SuspendedWhy        string    // what it did then
	// ClusterRemovedAt is when a person removed its cluster: what it publishes is not taken until it enrolls
	// anew. Zero: not removed.
	ClusterRemovedAt time.Time

	// HeartbeatAt and PresenceAt are when console received the last heartbeat and the last status.
	HeartbeatAt time.Time
	PresenceAt  time.Time
	Role        wire.Role // as its last status said
	// ReportedSync is what it last said of its own syncs.
	ReportedSync *wire.SyncInfo
	// PublishedSlug is a slug other than ClusterSlug under which it published; the inventory was
	// dropped.
	PublishedSlug   string
	PublishedSlugAt time.Time
	// SyncIntervalSeconds is the agent's own interval, for display only.
	SyncIntervalSeconds int64
}

// Presence is one received status.
type Presence struct {
	AgentID    string
	ReceivedAt time.Time
	Status     wire.Status
}

// Pulse is one received heartbeat.
type Pulse struct {
	AgentID    string
	ReceivedAt time.Time
	Heartbeat  wire.Heartbeat
}

// Filter narrows a list of agents; zero fields do not.
type Filter struct {
	Type          Type
	ClientID      string
	EnvironmentID string
	ClusterSlug   string
	// Text is part of the name or of the cluster's slug.
	Text  string
	Reach access.Reach
	// ExcludeCollectors leaves out collectors: the Hosts page.
	ExcludeCollectors bool
	Limit             int // 1 to 1000
	Offset            int
}

// Tx is what this package needs of a transaction.
type Tx interface {
	audit.Tx
	// Agent reads an agent; ErrNotFound if none.
	Agent(ctx context.Context, id string) (Agent, error)
	// RevokeAgent stamps an agent revoked and keeps its record.
	RevokeAgent(ctx context.Context, id string, at time.Time) error
	// ReleaseAgent clears the key, so that the next enrolment under the same name binds a new one.
	ReleaseAgent(ctx context.Context, id string, at time.Time) error
	// SuspendAgent stamps an agent suspended.
	SuspendAgent(ctx context.Context, id, why string, at time.Time) error
	// DeleteAgent removes an agent and remembers its key as revoked.
	DeleteAgent(ctx context.Context, id string, at time.Time) error
	// EndConflictsOf forgets that the agent reported another fingerprint than the stored one.
	EndConflictsOf(ctx context.Context, id string) error
}

// Store is where agents are kept.
type Store interface {
	// InTx runs f in one transaction, which an error of f rolls back. f may run more than once.
	InTx(ctx context.Context, f func(Tx) error) error
	// Agent reads an agent; ErrNotFound if none.
	Agent(ctx context.Context, id string) (Agent, error)
	// Agents lists agents by name, with the number of all that match.
	Agents(ctx context.Context, f Filter) ([]Agent, int, error)
	// RecordPresence and RecordPulses write a batch in one transaction; unknown or revoked agents are
	// passed over. A row is never moved back in time.
	RecordPresence(ctx context.Context, batch []Presence) error
	// RecordPulses is for heartbeats what RecordPresence is for presence.
	RecordPulses(ctx context.Context, batch []Pulse) error
	// RenewCredential writes the new credential's times and template.
	RenewCredential(ctx context.Context, id string, template int, issuedAt, expiresAt time.Time) error
	// RecordPublishedSlug notes that an agent published under another slug than it enrolled for.
	RecordPublishedSlug(ctx context.Context, id, slug string, at time.Time) error
	// Revoked lists the public keys of agents that were revoked, deleted or suspended since the given time.
	Revoked(ctx context.Context, since time.Time) (map[string]time.Time, error)
}
