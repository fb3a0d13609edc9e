-- name: InsertAPIToken :execrows
INSERT INTO api_tokens (id, user_id, name, prefix, hash, created_at, expires_at, last_used_at, revoked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT DO NOTHING;

-- name: APITokenByHash :one
SELECT * FROM api_tokens WHERE hash = $1;

-- name: APITokens :many
SELECT * FROM api_tokens WHERE user_id = $1 ORDER BY created_at DESC, id;

-- name: RevokeAPIToken :execrows
-- A second revocation keeps the time of the first.
UPDATE api_tokens SET revoked_at = COALESCE(revoked_at, sqlc.arg(revoked_at))
WHERE user_id = sqlc.arg(user_id) AND id = sqlc.arg(id);

-- name: RevokeAPITokensOfUser :execrows
-- Those that still work; others stay as they ended.
UPDATE api_tokens SET revoked_at = sqlc.arg(revoked_at)
WHERE user_id = sqlc.arg(user_id) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > sqlc.arg(revoked_at));

-- name: TouchAPIToken :exec
UPDATE api_tokens SET last_used_at = sqlc.arg(last_used_at)
WHERE id = sqlc.arg(id) AND (last_used_at IS NULL OR last_used_at < sqlc.arg(last_used_at));

-- name: InsertSession :exec
INSERT INTO sessions (id, token_hash, user_id, data, created_at, seen_at, expires_at, remote_addr, user_agent)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: UpdateSession :execrows
-- One that was ended meanwhile stays ended.
UPDATE sessions
SET user_id = sqlc.arg(user_id), data = sqlc.arg(data), seen_at = sqlc.arg(seen_at), expires_at = sqlc.arg(expires_at),
    remote_addr = sqlc.arg(remote_addr), user_agent = sqlc.arg(user_agent)
WHERE token_hash = sqlc.arg(token_hash);

-- name: Session :one
SELECT * FROM sessions WHERE token_hash = $1 AND expires_at > $2;

-- name: SessionsOfUser :many
SELECT * FROM sessions WHERE user_id = $1 AND expires_at > $2 ORDER BY seen_at DESC, id;

-- name: DeleteSessionOfUser :execrows
DELETE FROM sessions WHERE user_id = $1 AND id = $2;

-- name: DeleteSession :exec
DELETE FROM sessions WHERE token_hash = $1;

-- name: DeleteSessionsOfUser :exec
DELETE FROM sessions WHERE user_id = $1;

-- name: DeleteExpiredSessions :exec
DELETE FROM sessions WHERE expires_at <= $1;

-- name: CountSignInAttempts :one
SELECT COUNT(*) FROM sign_in_attempts WHERE attempt_key = $1 AND failed_at >= $2;

-- name: InsertSignInAttempt :exec
INSERT INTO sign_in_attempts (attempt_key, failed_at) VALUES ($1, $2);

-- name: DeleteOldSignInAttempts :exec
DELETE FROM sign_in_attempts WHERE failed_at < $1;

-- name: DeleteSignInAttemptsAt :exec
DELETE FROM sign_in_attempts WHERE attempt_key = $1 AND failed_at = $2;

-- name: DeleteSignInAttempts :exec
DELETE FROM sign_in_attempts WHERE attempt_key = $1;
