// Package inventory owns the picture of a cluster: which message may replace what is stored, what
// changed, and the rows that pages show. It trusts no message: an inventory counts only under the
// identity that the agent enrolled with, in the order that console handed out, and from the cluster
// whose fingerprint is stored.
package inventory

import (
	"context"
	"errors"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/wire"
)

// ErrNotFound is what a Store answers for a row that is not there.
var ErrNotFound = errors.New("not found")

// Cluster is one cluster; (EnvironmentID, Slug) is unique.
type Cluster struct {
	ID              string
	ClientID        string
	ClientName      string // filled by reads
	EnvironmentID   string
	EnvironmentName string // filled by reads
	Slug            string
	Name            string
	UID             string // of kube-system: the fingerprint
	// AgentID published what is stored; AgentName is filled by reads, "" where the agent was deleted.
	AgentID   string
	AgentName string
	Epoch     int64
	Sync      int64
	// PartlyApplied says that the objects of this sync are stored in part: it is being stored, or will be
	// when its message comes again. The times and counts are those of the sync before.
	PartlyApplied bool
	// Revision grows with every transaction that writes objects of the cluster or its fingerprint.
	Revision int64

	FirstSyncAt time.Time // received; zero until a sync is stored whole
	LastSyncAt  time.Time // the same
	CollectedAt time.Time // by the agent's clock

	Version  string
	Platform string
	Provider string
	Kinds    []KindState
	Counts   Counts

	// Dropped counts inventories that were not applied; the last one's time and reason beside it.
	Dropped       int64
	DroppedAt     time.Time
	DroppedReason string

	// Conflict is another fingerprint that reports under this slug; its SeenAt is zero if none.
	Conflict Conflict

	// Enrolled collectors of this cluster, and the freshest heartbeat among them; filled by reads.
	Collectors  int
	EnrolledAt  time.Time
	HeartbeatAt time.Time
}

// Conflict is an inventory under a used slug with another fingerprint; nothing of it is stored.
type Conflict struct {
	UID         string
	AgentID     string
	AgentName   string // filled by reads
	FirstSeenAt time.Time
	SeenAt      time.Time
}

// KindState says of one kind how its last reading went, and from when its rows are.
type KindState struct {
	wire.KindReport
	// ReadAt is when the rows that are stored were received; older than the last sync where the kind
	// has been unread since. Zero: never read.
	ReadAt time.Time `json:"readAt,omitzero"`
}

// Counts are the numbers of stored rows.
type Counts struct {
	Nodes      int `json:"nodes"`
	Namespaces int `json:"namespaces"`
	Workloads  int `json:"workloads"`
	Pods       int `json:"pods"`
	Services   int `json:"services"`
	Events     int `json:"events"`
}

func (c Counts) all() int {
	return c.Nodes + c.Namespaces + c.Workloads + c.Pods + c.Services + c.Events
}

// Section is one list of a cluster's page.
type Section string

// The sections.
const (
	SectionNodes      Section = "nodes"
	SectionNamespaces Section = "namespaces"
	SectionWorkloads  Section = "workloads"
	SectionPods       Section = "pods"
	SectionServices   Section = "services"
	SectionEvents     Section = "events"
)

// Sections lists every section in the order of the tabs.
func Sections() []Section {
	return []Section{SectionNodes, SectionNamespaces, SectionWorkloads, SectionPods, SectionServices, SectionEvents}
}

// Key names an object within its cluster.
type Key struct {
	Section   Section
	Kind      string // Kubernetes kind: Node, Deployment, Pod …
	Namespace string
	Name      string
}

// Object is one stored object: the columns that lists sort and filter by, and the whole as JSON.
type Object struct {
	Key
	UID string
	// State is the word that lists show and filter by: a pod's phase or waiting reason, a node's
	// readiness, an event's type.
	State string
	// Node, Owner: of pods. Owner reads Kind/name.
	Node  string
	Owner string
	// Numbers that lists sort by; their meaning depends on the section. Restarts: pods. Ready and
	// Desired: workloads, and containers of pods. CPUMillis and MemoryBytes: a node's allocatable, a
	// pod's long-running requests. Count: events, and pods in a namespace.
	Restarts    int64
	Ready       int64
	Desired     int64
	CPUMillis   int64
	MemoryBytes int64
	Count       int64
	// At is when it was created; for events, when last seen. Zero: unknown.
	At   time.Time
	Hash [16]byte // of Body
	Body []byte   // JSON of the wire type
	// UnseenSince is set while the object is missing from lists that were cut; it is not known gone.
	UnseenSince time.Time
}

// Query asks for one page of a section.
type Query struct {
	ClusterID string
	Section   Section
	Namespace string // "" for all
	State     string // "" for all
	Kind      string // "" for all
	Node      string // "" for all
	Text      string // substring of the name, or of namespace/name
	// Sort is one of SortKeys(Section); "" is the first of them.
	Sort   string
	Desc   bool
	Limit  int // 1 to 500
	Offset int
}

// Page is the answer to a Query.
type Page struct {
	Cluster Cluster // whose objects they are
	Objects []Object
	Total   int
	// Namespaces and States are the values that the section's filters offer.
	Namespaces []string
	States     []string
}

// ClusterQuery asks for one page of clusters.
type ClusterQuery struct {
	Reach         access.Reach
	ClientID      string
	EnvironmentID string
	Text          string
	Sort          string // name, enrolled, heartbeat, inventory, nodes, pods, version
	Desc          bool
	Limit         int
	Offset        int
}

// Change is what one inventory, or a part of it, does to the stored rows of a cluster.
type Change struct {
	ClusterID string
	// Counts are those of the whole inventory once it is stored.
	Counts Counts
	Upsert []Object
	Delete []Key
	// Unseen are marked as missing since the given time; Seen again are cleared by Upsert or Clear.
	Unseen      []Key
	UnseenSince time.Time
	Clear       []Key
}

// Tx is what this package needs of a transaction.
type Tx interface {
	audit.Tx
	// Cluster reads a cluster; ErrNotFound if none.
	Cluster(ctx context.Context, id string) (Cluster, error)
	// ClusterBySlug finds the cluster on (environment, slug); ErrNotFound if none.
	ClusterBySlug(ctx context.Context, environmentID, slug string) (Cluster, error)
	// ClustersByUID lists the clusters of the same client with this fingerprint.
	ClustersByUID(ctx context.Context, clientID, uid string) ([]Cluster, error)
	// InsertCluster stores a cluster whose (environment, slug) is free.
	InsertCluster(ctx context.Context, c Cluster) error
	// UpdateCluster writes what a sync changes, conflict and dropped included.
	UpdateCluster(ctx context.Context, c Cluster) error
	// ApplyObjects writes Upsert, Delete, Unseen and Clear.
	ApplyObjects(ctx context.Context, ch Change) error
	// NextEpoch counts up the epoch of (environment, slug), to least if it is below, and returns it.
	NextEpoch(ctx context.Context, environmentID, slug string, least int64) (int64, error)
	// LastEpoch is what NextEpoch returned last; zero if it was never called.
	LastEpoch(ctx context.Context, environmentID, slug string) (int64, error)
	// CollectorsOf lists the collectors that enrolled for (environment, slug).
	CollectorsOf(ctx context.Context, environmentID, slug string) ([]fleet.Agent, error)
	// DeleteCluster also archives the attempt on its (environment, slug), revokes that one's tokens, and
	// marks the agents that enrolled for the cluster.
	DeleteCluster(ctx context.Context, id string, at time.Time) error
}

// Stored is what the diff needs to know of a stored object.
type Stored struct {
	Hash        [16]byte
	UnseenSince time.Time
}

// Store is where clusters and their objects are kept.
type Store interface {
	// InTx runs f in one transaction, which an error of f rolls back. f may run more than once.
	InTx(ctx context.Context, f func(Tx) error) error
	// Agent reads an agent; fleet.ErrNotFound if none.
	Agent(ctx context.Context, id string) (fleet.Agent, error)
	// Cluster reads a cluster; ErrNotFound if none.
	Cluster(ctx context.Context, id string) (Cluster, error)
	// ClusterBySlug finds the cluster on (environment, slug); ErrNotFound if none.
	ClusterBySlug(ctx context.Context, environmentID, slug string) (Cluster, error)
	// ClustersByUID lists the clusters of a client with a fingerprint.
	ClustersByUID(ctx context.Context, clientID, uid string) ([]Cluster, error)
	// Clusters reads a page of clusters, with the number of all that match.
	Clusters(ctx context.Context, q ClusterQuery) ([]Cluster, int, error)
	// Hashes reads the hashes of all stored objects of a cluster.
	Hashes(ctx context.Context, clusterID string) (map[Key]Stored, error)
	// EndConflicts removes the conflicts whose last report is from before quietSince and was followed by
	// a sync of the stored cluster, and those whose reporter was revoked or deleted; it returns how many.
	EndConflicts(ctx context.Context, quietSince time.Time) (int, error)
	// Removal reads what goes with a cluster and what stays; Refusal is left nil.
	Removal(ctx context.Context, c Cluster, now time.Time) (Removal, error)
	// Objects reads a page of one section.
	Objects(ctx context.Context, q Query) (Page, error)
	// Object reads one object whole; ErrNotFound if none.
	Object(ctx context.Context, clusterID string, k Key) (Object, error)
}
