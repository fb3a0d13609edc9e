-- name: InsertClient :execrows
INSERT INTO clients (id, name, name_folded, created_at) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING;

-- name: UpdateClient :execrows
UPDATE clients SET name = $2, name_folded = $3 WHERE id = $1;

-- name: Client :one
SELECT * FROM clients WHERE id = $1;

-- name: InsertEnvironment :execrows
INSERT INTO environments (id, client_id, name, name_folded, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING;

-- name: UpdateEnvironment :execrows
UPDATE environments SET name = $2, name_folded = $3 WHERE id = $1;

-- name: Environment :one
SELECT * FROM environments WHERE id = $1;

-- name: EnvironmentContents :one
SELECT
    (SELECT COUNT(*) FROM clusters c WHERE c.environment_id = sqlc.arg(environment_id)) AS clusters,
    (SELECT COUNT(*) FROM agents a WHERE a.environment_id = sqlc.arg(environment_id)) AS agents,
    (SELECT COUNT(*) FROM onboardings o WHERE o.client_id = sqlc.arg(client_id) AND o.environment_id = sqlc.arg(environment_id)) AS attempts,
    (SELECT COUNT(*) FROM onboardings o WHERE o.client_id = sqlc.arg(client_id) AND o.environment_id = sqlc.arg(environment_id)
        AND o.abandoned_at IS NULL AND o.archived_at IS NULL) AS open_attempts,
    (SELECT COUNT(*) FROM install_tokens t WHERE t.client_id = sqlc.arg(client_id) AND t.environment_id = sqlc.arg(environment_id)) AS tokens,
    (SELECT COUNT(*) FROM install_tokens t WHERE t.client_id = sqlc.arg(client_id) AND t.environment_id = sqlc.arg(environment_id)
        AND t.revoked_at IS NULL AND t.expires_at > sqlc.arg(now) AND (t.max_uses = 0 OR t.uses < t.max_uses)) AS live_tokens,
    (SELECT COUNT(*) FROM role_assignments r WHERE r.environment_id = sqlc.arg(environment_id)) AS assignments;

-- name: EnvironmentNames :many
SELECT name FROM environments WHERE client_id = $1 ORDER BY name_folded, id;

-- name: DeleteEnvironmentTokens :exec
DELETE FROM install_tokens WHERE client_id = $1 AND environment_id = $2;

-- name: DeleteEnvironmentAttempts :exec
DELETE FROM onboardings WHERE client_id = $1 AND environment_id = $2;

-- name: DeleteEnvironment :execrows
DELETE FROM environments WHERE id = $1;

-- name: DeleteClient :execrows
DELETE FROM clients WHERE id = $1;

-- name: RolesHeldOn :many
SELECT u.id AS user_id, u.email, r.name AS role_name
FROM role_assignments a
JOIN users u ON u.id = a.user_id
JOIN roles r ON r.id = a.role_id
WHERE a.client_id = sqlc.arg(client_id) AND COALESCE(a.environment_id, '') = CAST(sqlc.arg(environment) AS TEXT)
ORDER BY u.email_folded, r.name_folded, a.id;

-- name: DeleteRolesHeldOn :exec
DELETE FROM role_assignments WHERE client_id = sqlc.arg(client_id) AND COALESCE(environment_id, '') = CAST(sqlc.arg(environment) AS TEXT);

-- name: InsertUser :execrows
INSERT INTO users (id, kind, email, email_folded, name, name_folded, password_hash, active, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT DO NOTHING;

-- name: UpdateUser :execrows
UPDATE users
SET email = $2, email_folded = $3, name = $4, name_folded = $5, password_hash = $6, active = $7, updated_at = $8
WHERE id = $1;

-- name: User :one
SELECT * FROM users WHERE id = $1;

-- name: UserByEmail :one
SELECT * FROM users WHERE email_folded = $1;

-- name: CountUsers :one
SELECT COUNT(*) FROM users;

-- name: CountHoldersEverywhere :one
-- Active people who hold a permission on the whole console.
SELECT COUNT(DISTINCT u.id)
FROM users u
JOIN role_assignments a ON a.user_id = u.id
JOIN role_permissions p ON p.role_id = a.role_id
WHERE u.active AND u.kind = 'person' AND a.client_id IS NULL AND p.permission = sqlc.arg(permission);

-- name: InsertRole :execrows
INSERT INTO roles (id, name, name_folded, built_in, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING;

-- name: UpdateRole :execrows
UPDATE roles SET name = $2, name_folded = $3 WHERE id = $1;

-- name: DeleteRole :execrows
DELETE FROM roles WHERE id = $1;

-- name: Role :one
SELECT sqlc.embed(r), (SELECT COUNT(DISTINCT a.user_id) FROM role_assignments a WHERE a.role_id = r.id) AS holders
FROM roles r WHERE r.id = $1;

-- name: RoleByName :one
SELECT sqlc.embed(r), (SELECT COUNT(DISTINCT a.user_id) FROM role_assignments a WHERE a.role_id = r.id) AS holders
FROM roles r WHERE r.name_folded = $1;

-- name: Roles :many
SELECT sqlc.embed(r), (SELECT COUNT(DISTINCT a.user_id) FROM role_assignments a WHERE a.role_id = r.id) AS holders
FROM roles r ORDER BY r.name_folded;

-- name: CountRoles :one
SELECT COUNT(*) FROM roles;

-- name: InsertRolePermission :exec
INSERT INTO role_permissions (role_id, permission, position) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING;

-- name: DeleteRolePermissions :exec
DELETE FROM role_permissions WHERE role_id = $1;

-- name: RolePermissions :many
SELECT * FROM role_permissions WHERE role_id = $1 ORDER BY position;

-- name: AllRolePermissions :many
SELECT * FROM role_permissions ORDER BY role_id, position;

-- name: InsertAssignment :execrows
INSERT INTO role_assignments (id, user_id, role_id, client_id, environment_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING;

-- name: DeleteAssignment :execrows
DELETE FROM role_assignments WHERE user_id = $1 AND id = $2;

-- name: Grants :many
-- One row for each permission of each assignment.
SELECT a.id, r.name AS role_name, a.client_id, a.environment_id, p.permission
FROM role_assignments a
JOIN roles r ON r.id = a.role_id
JOIN role_permissions p ON p.role_id = r.id
WHERE a.user_id = $1
ORDER BY a.created_at, a.id, p.position;
