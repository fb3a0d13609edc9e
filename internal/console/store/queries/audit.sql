-- name: InsertAuditEvent :exec
INSERT INTO audit_events (
    id, happened_at, actor_kind, actor_id, actor_name, action, resource_type, resource_id, resource_name,
    client_id, environment_id, remote_addr, detail
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

-- name: AuditedSince :one
SELECT COUNT(*) FROM audit_events
WHERE action = $1 AND resource_type = $2 AND resource_id = $3 AND happened_at > $4;

-- name: DeleteAuditEvent :exec
DELETE FROM audit_events WHERE id = $1;

-- name: DeleteAuditEventsBefore :execrows
DELETE FROM audit_events WHERE id IN (
    SELECT e.id FROM audit_events e WHERE e.happened_at < $1 ORDER BY e.happened_at, e.id LIMIT $2
);
