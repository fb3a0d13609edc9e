-- name: InsertCluster :execrows
INSERT INTO clusters (
    id, client_id, environment_id, slug, name, search, uid, agent_id, epoch, sync_number,
    first_sync_at, last_sync_at, collected_at, version, version_order, platform, provider, kinds,
    node_count, namespace_count, workload_count, pod_count, service_count, event_count,
    dropped, dropped_at, dropped_reason, partly_applied, revision
) VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
    $24, $25, $26, $27, $28, $29
)
ON CONFLICT DO NOTHING;

-- name: UpdateCluster :execrows
UPDATE clusters
SET name = $2, search = $3, uid = $4, agent_id = $5, epoch = $6, sync_number = $7,
    first_sync_at = $8, last_sync_at = $9, collected_at = $10, version = $11, version_order = $12,
    platform = $13, provider = $14, kinds = $15,
    node_count = $16, namespace_count = $17, workload_count = $18, pod_count = $19, service_count = $20,
    event_count = $21, dropped = $22, dropped_at = $23, dropped_reason = $24, partly_applied = $25,
    revision = $26
WHERE id = $1;

-- name: DeleteCluster :execrows
DELETE FROM clusters WHERE id = $1;

-- name: ClusterIdentity :one
SELECT environment_id, slug FROM clusters WHERE id = $1;

-- name: PutClusterConflict :exec
INSERT INTO cluster_conflicts (cluster_id, uid, agent_id, first_seen_at, seen_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (cluster_id) DO UPDATE
SET uid = excluded.uid, agent_id = excluded.agent_id, first_seen_at = excluded.first_seen_at,
    seen_at = excluded.seen_at;

-- name: DeleteClusterConflict :exec
DELETE FROM cluster_conflicts WHERE cluster_id = $1;

-- name: DeleteConflictsOfAgent :exec
DELETE FROM cluster_conflicts WHERE agent_id = $1;

-- name: DeleteEndedConflicts :execrows
-- Those that the stored cluster outlived, and those whose reporter can report no more.
DELETE FROM cluster_conflicts
WHERE (seen_at < sqlc.arg(quiet_since_at) AND EXISTS (
        SELECT 1 FROM clusters c WHERE c.id = cluster_conflicts.cluster_id AND c.last_sync_at > cluster_conflicts.seen_at
    ))
    OR NOT EXISTS (SELECT 1 FROM agents a WHERE a.id = cluster_conflicts.agent_id AND a.revoked_at IS NULL);

-- name: NextEpoch :one
INSERT INTO cluster_epochs (environment_id, cluster_slug, epoch) VALUES ($1, $2, $3)
ON CONFLICT (environment_id, cluster_slug) DO UPDATE
SET epoch = CASE WHEN cluster_epochs.epoch >= excluded.epoch THEN cluster_epochs.epoch + 1 ELSE excluded.epoch END
RETURNING epoch;

-- name: LastEpoch :one
SELECT epoch FROM cluster_epochs WHERE environment_id = $1 AND cluster_slug = $2;

-- name: PutObject :exec
INSERT INTO inventory_objects (
    cluster_id, section, namespace, name, kind, uid, search, state, node, owner,
    restarts, ready, desired, cpu_millis, memory_bytes, occurrences, occurred_at, hash, body
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
ON CONFLICT (cluster_id, section, namespace, name, kind) DO UPDATE
SET uid = excluded.uid, state = excluded.state, node = excluded.node, owner = excluded.owner,
    restarts = excluded.restarts, ready = excluded.ready, desired = excluded.desired,
    cpu_millis = excluded.cpu_millis, memory_bytes = excluded.memory_bytes,
    occurrences = excluded.occurrences, occurred_at = excluded.occurred_at, unseen_since_at = NULL,
    hash = excluded.hash, body = excluded.body;

-- name: DeleteObject :exec
DELETE FROM inventory_objects
WHERE cluster_id = $1 AND section = $2 AND namespace = $3 AND name = $4 AND kind = $5;

-- name: MarkObjectUnseen :exec
-- The first time stays.
UPDATE inventory_objects SET unseen_since_at = sqlc.arg(unseen_since_at)
WHERE cluster_id = sqlc.arg(cluster_id) AND section = sqlc.arg(section) AND namespace = sqlc.arg(namespace)
    AND name = sqlc.arg(name) AND kind = sqlc.arg(kind) AND unseen_since_at IS NULL;

-- name: ClearObjectUnseen :exec
UPDATE inventory_objects SET unseen_since_at = NULL
WHERE cluster_id = $1 AND section = $2 AND namespace = $3 AND name = $4 AND kind = $5;

-- name: ObjectHashes :many
SELECT section, namespace, name, kind, hash, unseen_since_at FROM inventory_objects WHERE cluster_id = $1;
