package gate

import "time"

// Reading is one fact: what was measured and when, or why it could not be read. The zero Reading was
// never measured, and counts as unread.
type Reading[T any] struct {
	Value T
	At    time.Time
	// Unread says why the fact could not be read; Value then means nothing.
	Unread string
}

// Measured is a fact that was read.
func Measured[T any](v T, at time.Time) Reading[T] { return Reading[T]{Value: v, At: at} }

// CouldNotRead is a fact that could not be read, and why.
func CouldNotRead[T any](why string, at time.Time) Reading[T] {
	return Reading[T]{At: at, Unread: why}
}

// Why returns the reason why the fact is unread, or "" where it was read.
func (r Reading[T]) Why() string {
	switch {
	case r.Unread != "":
		return r.Unread
	case r.At.IsZero():
		return "it was not measured"
	default:
		return ""
	}
}

// Facts is everything measured for one attempt. Times are console's own: when it received or wrote
// something.
type Facts struct {
	Slug        string
	Environment string
	// SyncInterval is console's own PROXIMA_K8S_SYNC_INTERVAL; the agent is never asked.
	SyncInterval time.Duration
	// RemovedAt is when the cluster was removed, which archived the attempt; zero: it is not.
	RemovedAt time.Time

	Tokens     Reading[[]Token]
	Collectors Reading[[]Collector]
	// Cluster is the cluster that stands on (environment, slug); nil if none does.
	Cluster Reading[*Cluster]
	// Others are collectors on the attempt's slug that enrolled with the token of another install.
	Others Reading[[]Collector]
	// Findings are lines of self-checks that agents posted with this attempt's tokens.
	Findings Reading[[]Finding]
	// Unstored says why Console cannot store what agents send now; "" while it can. Silence then says
	// nothing about an agent.
	Unstored string
}

// budget is how long gate 4 waits, from the first collector's enrolment.
func (f Facts) budget() time.Duration { return 2 * f.SyncInterval }

// replicas are the collectors of the attempt's own slug: those that can lead and stand by for each other.
// Where none enrolled for it, they are all that there are, and gate 4 names their slug.
func (f Facts) replicas() []Collector {
	var own []Collector
	for _, c := range f.Collectors.Value {
		if c.Slug == f.Slug {
			own = append(own, c)
		}
	}
	if len(own) == 0 {
		return f.Collectors.Value
	}
	return own
}

// Token is one install token that was minted for the attempt.
type Token struct {
	Prefix    string
	CreatedAt time.Time
	ExpiresAt time.Time
	RevokedAt time.Time // zero: not revoked
	// PinnedTo is an agent type other than collector that alone may use it, or "".
	PinnedTo string
	Uses     int
	MaxUses  int // 0: unlimited
	// Collectors and Others count the agents that enrolled with it, by type.
	Collectors int
	Others     int
	// Gone counts the enrolments with it whose agent was deleted, or enrolled anew with another token.
	Gone        int
	SucceededAt time.Time // zero: never
	Refusal     Refusal   // its At is zero if nothing was refused
}

// usedUp tells whether every use is spent.
func (t Token) usedUp() bool { return t.MaxUses > 0 && t.Uses >= t.MaxUses }

// usable tells whether a collector could enrol with it now.
func (t Token) usable(now time.Time) bool {
	return t.RevokedAt.IsZero() && now.Before(t.ExpiresAt) && !t.usedUp() && t.PinnedTo == ""
}

// Refusal is the last enrolment that console refused on a token.
type Refusal struct {
	At        time.Time
	Code      string
	AgentName string
	Slug      string
	AgentType string
	Version   string
	// Address is where it came from.
	Address string
}

// Collector is one agent of type collector that enrolled with one of the attempt's tokens.
type Collector struct {
	Name       string
	Slug       string // that it enrolled with
	Version    string
	EnrolledAt time.Time
	RevokedAt  time.Time // zero: not revoked
	ReleasedAt time.Time // zero: its identity was not released
	// SuspendedAt is when Console last suspended it for a flood, until SuspendedUntil; zero: never.
	SuspendedAt    time.Time
	SuspendedUntil time.Time
	HeartbeatAt    time.Time // received; zero: never
	PresenceAt     time.Time // received; zero: never
	Leads          bool      // as it last reported
	// CredentialExpiresAt is the end of the credential it last got.
	CredentialExpiresAt time.Time
	// PublishedSlug is a slug other than Slug under which it published; "" if none.
	PublishedSlug   string
	PublishedSlugAt time.Time
	// ReportedError is what it said of its last sync, at ReportedAt; "" after a good one.
	ReportedError string
	ReportedAt    time.Time
	// ReportedInterval is the sync interval it reports; zero if it reported none.
	ReportedInterval time.Duration
}

// heardAt is when console last received anything of the collector; zero if never.
func (c Collector) heardAt() time.Time {
	if c.PresenceAt.After(c.HeartbeatAt) {
		return c.PresenceAt
	}
	return c.HeartbeatAt
}

// present tells whether the collector holds its identity and is heard now.
func (c Collector) present(now time.Time) bool {
	return c.RevokedAt.IsZero() && c.ReleasedAt.IsZero() && !c.heardAt().IsZero() && now.Sub(c.heardAt()) <= PresenceWindow
}

// Cluster is what is stored on (environment, slug).
type Cluster struct {
	// Ours is true where the publisher is one of the attempt's collectors.
	Ours        bool
	Publisher   string // agent name; "" where its record was deleted
	UID         string
	FirstSyncAt time.Time
	LastSyncAt  time.Time
	Nodes       int
	Namespaces  int
	Workloads   int
	Pods        int
	// Unread lists kinds that the last sync could not read, each with its reason.
	Unread []UnreadKind
	// Conflict is another fingerprint that reports under the slug; UID is "" if none.
	Conflict Conflict
	// SameUID names other clusters of the client with the same fingerprint.
	SameUID []string
}

// UnreadKind is a kind that could not be read.
type UnreadKind struct {
	Kind   string
	Reason string // forbidden, not_served or unavailable
}

// Conflict is an inventory with another fingerprint than the stored one.
type Conflict struct {
	UID    string
	Sender string
	// Ours is true where the sender is one of the attempt's collectors, Publisher where it also published
	// what is stored.
	Ours        bool
	Publisher   bool
	FirstSeenAt time.Time
	SeenAt      time.Time
}

// both tells whether the stored cluster synced after the other one first reported, and still does: two
// clusters run, and none was rebuilt.
func (c Cluster) both(budget time.Duration, now time.Time) bool {
	return c.LastSyncAt.After(c.Conflict.FirstSeenAt) && now.Sub(c.LastSyncAt) <= budget
}

// outlived tells whether the stored cluster synced after the other one's last report, and that one was
// quiet for so long. Package inventory then removes the conflict.
func (c Cluster) outlived(quiet time.Duration, now time.Time) bool {
	return c.LastSyncAt.After(c.Conflict.SeenAt) && now.Sub(c.Conflict.SeenAt) > quiet
}

// Finding is one line of an agent's self-check.
type Finding struct {
	Agent   string
	Check   string
	Status  string // ok, warning, failed, skipped
	Message string
	Cure    string
	At      time.Time
}
