-- name: InsertAuditEvent :exec
INSERT INTO audit_events (
    id, happened_at, actor_kind, actor_id, actor_name, action, resource_type, resource_id, resource_name,
    client_id, environment_id, remote_addr, detail
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);
