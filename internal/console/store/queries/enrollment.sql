-- name: InsertInstallToken :execrows
INSERT INTO install_tokens (
    id, client_id, environment_id, onboarding_id, name, prefix, hash, agent_type, max_uses, uses,
    created_at, created_by, expires_at, revoked_at, is_first, succeeded_at,
    refused_code, refused_agent_name, refused_agent_type, refused_cluster_slug, refused_version, refused_remote_addr
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, '', '', '', '', '', '')
ON CONFLICT DO NOTHING;

-- name: InstallTokenByHash :one
SELECT sqlc.embed(t),
    (SELECT COUNT(*) FROM agents a WHERE a.enrolled_by = t.id AND a.agent_type = 'collector') AS collectors,
    (SELECT COUNT(*) FROM agents a WHERE a.enrolled_by = t.id AND a.agent_type <> 'collector') AS others
FROM install_tokens t WHERE t.hash = $1;

-- name: InstallToken :one
SELECT sqlc.embed(t),
    (SELECT COUNT(*) FROM agents a WHERE a.enrolled_by = t.id AND a.agent_type = 'collector') AS collectors,
    (SELECT COUNT(*) FROM agents a WHERE a.enrolled_by = t.id AND a.agent_type <> 'collector') AS others
FROM install_tokens t WHERE t.id = $1;

-- name: InstallTokensOfOnboarding :many
-- Oldest first.
SELECT sqlc.embed(t),
    (SELECT COUNT(*) FROM agents a WHERE a.enrolled_by = t.id AND a.agent_type = 'collector') AS collectors,
    (SELECT COUNT(*) FROM agents a WHERE a.enrolled_by = t.id AND a.agent_type <> 'collector') AS others
FROM install_tokens t WHERE t.onboarding_id = $1
ORDER BY t.created_at, t.id;

-- name: UseInstallToken :execrows
-- One statement, so that racers cannot use more than there is.
UPDATE install_tokens SET uses = uses + 1, succeeded_at = sqlc.arg(succeeded_at)
WHERE id = sqlc.arg(id) AND (max_uses = 0 OR uses < max_uses);

-- name: SucceedInstallToken :execrows
-- Never moves back.
UPDATE install_tokens
SET succeeded_at = CASE WHEN succeeded_at > sqlc.arg(succeeded_at) THEN succeeded_at ELSE sqlc.arg(succeeded_at) END
WHERE id = sqlc.arg(id);

-- name: RevokeInstallToken :execrows
-- A second revocation keeps the time of the first.
UPDATE install_tokens SET revoked_at = COALESCE(revoked_at, sqlc.arg(revoked_at)) WHERE id = sqlc.arg(id);

-- name: RecordRefusal :execrows
UPDATE install_tokens
SET refused_at = sqlc.arg(refused_at), refused_code = sqlc.arg(refused_code),
    refused_agent_name = sqlc.arg(refused_agent_name), refused_agent_type = sqlc.arg(refused_agent_type),
    refused_cluster_slug = sqlc.arg(refused_cluster_slug), refused_version = sqlc.arg(refused_version),
    refused_remote_addr = sqlc.arg(refused_remote_addr)
WHERE id = sqlc.arg(id) AND (refused_at IS NULL OR refused_at <= sqlc.arg(refused_at));

-- name: PutFindings :exec
INSERT INTO findings (token_id, agent_name, cluster_slug, version, received_at, items)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (token_id, agent_name) DO UPDATE
SET cluster_slug = excluded.cluster_slug, version = excluded.version, received_at = excluded.received_at,
    items = excluded.items;

-- name: TrimFindings :exec
-- Keeps the newest of a token.
DELETE FROM findings
WHERE findings.token_id = sqlc.arg(token_id) AND findings.agent_name NOT IN (
    SELECT f.agent_name FROM findings f WHERE f.token_id = sqlc.arg(token_id)
    ORDER BY f.received_at DESC, f.agent_name LIMIT sqlc.arg(keep)
);

-- name: FindingsOfAgent :one
SELECT * FROM findings WHERE token_id = $1 AND agent_name = $2 AND cluster_slug = $3;

-- name: FindingsOfOnboarding :many
SELECT f.* FROM findings f
JOIN install_tokens t ON t.id = f.token_id
WHERE t.onboarding_id = $1
ORDER BY f.received_at DESC, f.agent_name, f.token_id;
