package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/store/internal/dbtype"
	"prxm.uz/proxima/internal/console/store/internal/sqlgen"
)

// Inventory returns the store of package inventory.
func (db *DB) Inventory() inventory.Store { return inventoryStore{db} }

type inventoryStore struct{ db *DB }

func (s inventoryStore) InTx(ctx context.Context, f func(inventory.Tx) error) error {
	return s.db.inTx(ctx, func(t *tx) error { return f(t) })
}

// inventoryErrors has no word for a taken slug: two first syncs that race collide, and the loser's
// transaction runs again and finds the row.
func inventoryErrors() sentinels { return sentinels{missing: inventory.ErrNotFound} }

// Agent answers inventory.ErrNotFound where package fleet's store would answer its own.
func (s inventoryStore) Agent(ctx context.Context, id string) (fleet.Agent, error) {
	a, err := s.db.plain().agentByID(ctx, id)
	return a, inventoryErrors().translate(err, "agent "+id)
}

// The collectors that enrolled for a cluster are found by the unique index of agents.
const (
	collectorsOfCluster = ` FROM agents g WHERE g.environment_id = c.environment_id AND g.agent_type = 'collector'
		AND g.cluster_slug = c.slug)`
	clusterEnrolledAt  = "(SELECT MIN(g.enrolled_at)" + collectorsOfCluster
	clusterHeartbeatAt = "(SELECT MAX(g.heartbeat_at)" + collectorsOfCluster
)

// selectClusters is the one way to read clusters; scanCluster takes its columns.
const selectClusters = clusterColumns + clusterTables

const clusterColumns = `SELECT c.id, c.client_id, cl.name, c.environment_id, e.name, c.slug, c.name, c.uid, c.agent_id,
	COALESCE(a.name, ''), c.epoch, c.sync_number, c.partly_applied, c.revision, c.first_sync_at, c.last_sync_at, c.collected_at, c.version,
	c.platform, c.provider, c.kinds, c.node_count, c.namespace_count, c.workload_count, c.pod_count,
	c.service_count, c.event_count, c.dropped, c.dropped_at, c.dropped_reason,
	COALESCE(x.uid, ''), COALESCE(x.agent_id, ''), COALESCE(xa.name, ''), x.first_seen_at, x.seen_at,
	(SELECT COUNT(*)` + collectorsOfCluster + ", " + clusterEnrolledAt + ", " + clusterHeartbeatAt

const clusterTables = `
FROM clusters c
JOIN clients cl ON cl.id = c.client_id
JOIN environments e ON e.id = c.environment_id
LEFT JOIN agents a ON a.id = c.agent_id
LEFT JOIN cluster_conflicts x ON x.cluster_id = c.id
LEFT JOIN agents xa ON xa.id = x.agent_id`

func scanCluster(r *sql.Rows) (inventory.Cluster, error) { return readCluster(r.Scan) }

func readCluster(scan func(...any) error) (inventory.Cluster, error) {
	var c inventory.Cluster
	var firstSyncAt, lastSyncAt, collectedAt, droppedAt, firstSeenAt, seenAt, enrolledAt, heartbeatAt dbtype.Time
	var kinds string
	err := scan(&c.ID, &c.ClientID, &c.ClientName, &c.EnvironmentID, &c.EnvironmentName, &c.Slug, &c.Name, &c.UID,
		&c.AgentID, &c.AgentName, &c.Epoch, &c.Sync, &c.PartlyApplied, &c.Revision, &firstSyncAt, &lastSyncAt, &collectedAt, &c.Version,
		&c.Platform, &c.Provider, &kinds, &c.Counts.Nodes, &c.Counts.Namespaces, &c.Counts.Workloads, &c.Counts.Pods,
		&c.Counts.Services, &c.Counts.Events, &c.Dropped, &droppedAt, &c.DroppedReason,
		&c.Conflict.UID, &c.Conflict.AgentID, &c.Conflict.AgentName, &firstSeenAt, &seenAt,
		&c.Collectors, &enrolledAt, &heartbeatAt)
	if err != nil {
		return c, err
	}
	c.FirstSyncAt, c.LastSyncAt, c.CollectedAt = firstSyncAt.Time, lastSyncAt.Time, collectedAt.Time
	c.DroppedAt, c.Conflict.FirstSeenAt, c.Conflict.SeenAt = droppedAt.Time, firstSeenAt.Time, seenAt.Time
	c.EnrolledAt, c.HeartbeatAt = enrolledAt.Time, heartbeatAt.Time
	return c, fromJSON(kinds, &c.Kinds, "cluster "+c.ID)
}

func (r reads) cluster(ctx context.Context, l *list, what string) (inventory.Cluster, error) {
	c, err := one(ctx, r.raw, selectClusters+l.condition(), l.args, scanCluster)
	return c, inventoryErrors().translate(err, what)
}

func (r reads) Cluster(ctx context.Context, id string) (inventory.Cluster, error) {
	var l list
	l.equal("c.id", id)
	return r.cluster(ctx, &l, "cluster "+id)
}

func (r reads) ClusterBySlug(ctx context.Context, environmentID, slug string) (inventory.Cluster, error) {
	var l list
	l.equal("c.environment_id", environmentID)
	l.equal("c.slug", slug)
	return r.cluster(ctx, &l, "cluster "+slug)
}

// ClustersByUID lists by slug; nothing under an empty fingerprint.
func (r reads) ClustersByUID(ctx context.Context, clientID, uid string) ([]inventory.Cluster, error) {
	if uid == "" {
		return nil, nil
	}
	var l list
	l.equal("c.client_id", clientID)
	l.equal("c.uid", uid)
	found, err := rows(ctx, r.raw, selectClusters+l.condition()+" ORDER BY c.slug, c.id", l.args, scanCluster)
	return found, inventoryErrors().translate(err, "clusters with fingerprint "+uid)
}

func (s inventoryStore) Cluster(ctx context.Context, id string) (inventory.Cluster, error) {
	return s.db.plain().Cluster(ctx, id)
}

func (s inventoryStore) ClusterBySlug(ctx context.Context, environmentID, slug string) (inventory.Cluster, error) {
	return s.db.plain().ClusterBySlug(ctx, environmentID, slug)
}

func (s inventoryStore) ClustersByUID(ctx context.Context, clientID, uid string) ([]inventory.Cluster, error) {
	return s.db.plain().ClustersByUID(ctx, clientID, uid)
}

// clusterSorting has the columns of each sort key of a ClusterQuery.
func clusterSorting() sorting {
	return sorting{
		"":          {sql: "c.name"},
		"name":      {sql: "c.name"},
		"enrolled":  {sql: clusterEnrolledAt, nullable: true},
		"heartbeat": {sql: clusterHeartbeatAt, nullable: true},
		"inventory": {sql: "c.last_sync_at", nullable: true},
		"nodes":     {sql: "c.node_count"},
		"pods":      {sql: "c.pod_count"},
		"version":   {sql: "c.version_order"},
	}
}

func (s inventoryStore) Clusters(ctx context.Context, q inventory.ClusterQuery) (found []inventory.Cluster, total int, err error) {
	var l list
	l.reach("c.client_id", "c.environment_id", q.Reach)
	l.equalIf("c.client_id", q.ClientID)
	l.equalIf("c.environment_id", q.EnvironmentID)
	l.contains("c.search", q.Text)
	order, err := clusterSorting().by(q.Sort, q.Desc, "c.name", "c.slug", "c.id")
	if err != nil {
		return nil, 0, err
	}
	err = s.db.snapshot(ctx, func(r reads) error {
		condition := l.condition()
		query := clusterColumns + ", COUNT(*) OVER ()" + clusterTables + condition + order + l.page(q.Limit, 500, q.Offset)
		found, err = rows(ctx, r.raw, query, l.args, func(r *sql.Rows) (inventory.Cluster, error) {
			return readCluster(func(dest ...any) error { return r.Scan(append(dest, &total)...) })
		})
		if err == nil && len(found) == 0 && q.Offset > 0 { // beyond the last page no row tells the total
			total, err = count(ctx, r.raw, "clusters c", &l)
		}
		return err
	})
	return found, total, inventoryErrors().translate(err, "list clusters")
}

func clusterSearch(c inventory.Cluster) string { return fold(c.Name + "\n" + c.Slug) }

func (t *tx) InsertCluster(ctx context.Context, c inventory.Cluster) error {
	kinds, err := json.Marshal(c.Kinds)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.ID, err)
	}
	n, err := t.q.InsertCluster(ctx, sqlgen.InsertClusterParams{
		ID: c.ID, ClientID: c.ClientID, EnvironmentID: c.EnvironmentID, Slug: c.Slug, Name: c.Name,
		Search: clusterSearch(c), Uid: c.UID, AgentID: c.AgentID, Epoch: c.Epoch, SyncNumber: c.Sync,
		FirstSyncAt: dbtype.At(c.FirstSyncAt), LastSyncAt: dbtype.At(c.LastSyncAt), CollectedAt: dbtype.At(c.CollectedAt),
		Version: c.Version, VersionOrder: versionOrder(c.Version), Platform: c.Platform, Provider: c.Provider, Kinds: string(kinds),
		NodeCount: int64(c.Counts.Nodes), NamespaceCount: int64(c.Counts.Namespaces), WorkloadCount: int64(c.Counts.Workloads),
		PodCount: int64(c.Counts.Pods), ServiceCount: int64(c.Counts.Services), EventCount: int64(c.Counts.Events),
		Dropped: c.Dropped, DroppedAt: dbtype.At(c.DroppedAt), DroppedReason: c.DroppedReason, PartlyApplied: c.PartlyApplied, Revision: c.Revision,
	})
	if err := inventoryErrors().inserted(n, err, "insert cluster "+c.ID); err != nil {
		return err
	}
	return t.putConflict(ctx, c)
}

func (t *tx) UpdateCluster(ctx context.Context, c inventory.Cluster) error {
	kinds, err := json.Marshal(c.Kinds)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.ID, err)
	}
	n, err := t.q.UpdateCluster(ctx, sqlgen.UpdateClusterParams{
		ID: c.ID, Name: c.Name, Search: clusterSearch(c), Uid: c.UID, AgentID: c.AgentID, Epoch: c.Epoch, SyncNumber: c.Sync,
		FirstSyncAt: dbtype.At(c.FirstSyncAt), LastSyncAt: dbtype.At(c.LastSyncAt), CollectedAt: dbtype.At(c.CollectedAt),
		Version: c.Version, VersionOrder: versionOrder(c.Version), Platform: c.Platform, Provider: c.Provider, Kinds: string(kinds),
		NodeCount: int64(c.Counts.Nodes), NamespaceCount: int64(c.Counts.Namespaces), WorkloadCount: int64(c.Counts.Workloads),
		PodCount: int64(c.Counts.Pods), ServiceCount: int64(c.Counts.Services), EventCount: int64(c.Counts.Events),
		Dropped: c.Dropped, DroppedAt: dbtype.At(c.DroppedAt), DroppedReason: c.DroppedReason, PartlyApplied: c.PartlyApplied, Revision: c.Revision,
	})
	if err := inventoryErrors().changed(n, err, "update cluster "+c.ID); err != nil {
		return err
	}
	return t.putConflict(ctx, c)
}

// putConflict writes the conflict, or removes it where the cluster has none.
func (t *tx) putConflict(ctx context.Context, c inventory.Cluster) error {
	what := "conflict of cluster " + c.ID
	if c.Conflict.SeenAt.IsZero() {
		return inventoryErrors().translate(t.q.DeleteClusterConflict(ctx, c.ID), what)
	}
	return inventoryErrors().translate(t.q.PutClusterConflict(ctx, sqlgen.PutClusterConflictParams{
		ClusterID: c.ID, Uid: c.Conflict.UID, AgentID: c.Conflict.AgentID,
		FirstSeenAt: dbtype.At(c.Conflict.FirstSeenAt), SeenAt: dbtype.At(c.Conflict.SeenAt),
	}), what)
}

func (t *tx) CollectorsOf(ctx context.Context, environmentID, slug string) ([]fleet.Agent, error) {
	var l list
	l.equal("a.environment_id", environmentID)
	l.equal("a.agent_type", string(fleet.TypeCollector))
	l.equal("a.cluster_slug", slug)
	found, err := rows(ctx, t.raw, selectAgents+l.condition()+" ORDER BY a.name, a.id", l.args, scanAgent)
	return found, inventoryErrors().translate(err, "collectors of "+slug)
}

func (t *tx) EndConflictsOf(ctx context.Context, agentID string) error {
	return inventoryErrors().translate(t.q.DeleteConflictsOfAgent(ctx, agentID), "end the conflicts of agent "+agentID)
}

func (s inventoryStore) EndConflicts(ctx context.Context, quietSince time.Time) (int, error) {
	var n int64
	err := s.db.inTx(ctx, func(t *tx) (err error) {
		n, err = t.q.DeleteEndedConflicts(ctx, dbtype.At(quietSince))
		return err
	})
	return int(n), inventoryErrors().translate(err, "end conflicts")
}

func (t *tx) DeleteCluster(ctx context.Context, id string, at time.Time) error {
	what := "delete cluster " + id
	cluster, err := t.q.ClusterIdentity(ctx, id)
	if err != nil {
		return inventoryErrors().translate(err, what)
	}
	err = t.q.ArchiveOnboarding(ctx, sqlgen.ArchiveOnboardingParams{
		EnvironmentID: cluster.EnvironmentID, Slug: cluster.Slug, ArchivedAt: dbtype.At(at),
	})
	if err != nil {
		return inventoryErrors().translate(err, what)
	}
	err = t.q.RevokeTokensOfArchived(ctx, sqlgen.RevokeTokensOfArchivedParams{
		EnvironmentID: cluster.EnvironmentID, Slug: cluster.Slug, RevokedAt: dbtype.At(at),
	})
	if err != nil {
		return inventoryErrors().translate(err, what)
	}
	err = t.q.MarkClusterRemoved(ctx, sqlgen.MarkClusterRemovedParams{
		EnvironmentID: cluster.EnvironmentID, ClusterSlug: cluster.Slug, ClusterRemovedAt: dbtype.At(at),
	})
	if err != nil {
		return inventoryErrors().translate(err, what)
	}
	n, err := t.q.DeleteCluster(ctx, id)
	return inventoryErrors().changed(n, err, what)
}

func (t *tx) NextEpoch(ctx context.Context, environmentID, slug string, least int64) (int64, error) {
	epoch, err := t.q.NextEpoch(ctx, sqlgen.NextEpochParams{EnvironmentID: environmentID, ClusterSlug: slug, Epoch: least})
	errs := inventoryErrors()
	errs.inUse = errs.missing // the environment is not there
	return epoch, errs.translate(err, "next epoch of "+slug)
}

func (t *tx) LastEpoch(ctx context.Context, environmentID, slug string) (int64, error) {
	epoch, err := t.q.LastEpoch(ctx, sqlgen.LastEpochParams{EnvironmentID: environmentID, ClusterSlug: slug})
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return epoch, inventoryErrors().translate(err, "last epoch of "+slug)
}
