-- name: InsertAgent :execrows
INSERT INTO agents (
    id, client_id, environment_id, agent_type, cluster_slug, name, public_key, enrolled_by, enrolled_at,
    version, capability, template, credential_issued_at, credential_expires_at, revoked_at, released_at,
    heartbeat_at, presence_at, role, reported_sync, published_slug, published_slug_at, sync_interval_seconds
) VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23
)
ON CONFLICT DO NOTHING;

-- name: BindAgent :execrows
UPDATE agents
SET public_key = $2, enrolled_by = $3, enrolled_at = $4, version = $5, capability = $6, template = $7,
    credential_issued_at = $8, credential_expires_at = $9, revoked_at = $10, released_at = $11,
    cluster_removed_at = $12
WHERE id = $1;

-- name: AgentKey :one
SELECT public_key FROM agents WHERE id = $1;

-- name: RevokeAgent :execrows
UPDATE agents SET revoked_at = COALESCE(revoked_at, sqlc.arg(revoked_at)) WHERE id = sqlc.arg(id);

-- name: ReleaseAgent :execrows
UPDATE agents SET public_key = '', released_at = sqlc.arg(released_at) WHERE id = sqlc.arg(id);

-- name: DeleteAgent :execrows
DELETE FROM agents WHERE id = $1;

-- name: PutRevokedKey :exec
INSERT INTO revoked_keys (public_key, agent_id, revoked_at) VALUES ($1, $2, $3)
ON CONFLICT (public_key) DO UPDATE SET agent_id = excluded.agent_id, revoked_at = excluded.revoked_at;

-- name: SuspendAgent :execrows
UPDATE agents SET suspended_at = sqlc.arg(suspended_at), suspended_why = sqlc.arg(suspended_why) WHERE id = sqlc.arg(id);

-- name: MarkClusterRemoved :exec
UPDATE agents SET cluster_removed_at = sqlc.arg(cluster_removed_at)
WHERE environment_id = sqlc.arg(environment_id) AND cluster_slug = sqlc.arg(cluster_slug) AND cluster_slug <> '';

-- name: RevokedKeys :many
SELECT public_key, revoked_at FROM revoked_keys WHERE revoked_at >= $1;

-- name: SuspendedKeys :many
SELECT public_key, suspended_at FROM agents WHERE suspended_at >= $1 AND public_key <> '';

-- name: RecordPulse :execrows
UPDATE agents
SET heartbeat_at = sqlc.arg(heartbeat_at), capability = sqlc.arg(capability)
WHERE id = sqlc.arg(id) AND revoked_at IS NULL
    AND (heartbeat_at IS NULL OR heartbeat_at < sqlc.arg(heartbeat_at));

-- name: RecordPresence :execrows
UPDATE agents
SET presence_at = sqlc.arg(presence_at), version = sqlc.arg(version), capability = sqlc.arg(capability),
    role = sqlc.arg(role), sync_interval_seconds = sqlc.arg(sync_interval_seconds)
WHERE id = sqlc.arg(id) AND revoked_at IS NULL
    AND (presence_at IS NULL OR presence_at < sqlc.arg(presence_at));

-- name: RecordReportedSync :exec
UPDATE agents
SET reported_sync = sqlc.arg(reported_sync), reported_sync_at = sqlc.arg(reported_sync_at)
WHERE id = sqlc.arg(id) AND revoked_at IS NULL
    AND (reported_sync_at IS NULL OR reported_sync_at < sqlc.arg(reported_sync_at));

-- name: RenewCredential :execrows
UPDATE agents
SET template = $2, credential_issued_at = $3, credential_expires_at = $4
WHERE id = $1;

-- name: RecordPublishedSlug :execrows
UPDATE agents
SET published_slug = sqlc.arg(published_slug), published_slug_at = sqlc.arg(published_slug_at)
WHERE id = sqlc.arg(id) AND (published_slug_at IS NULL OR published_slug_at <= sqlc.arg(published_slug_at));
