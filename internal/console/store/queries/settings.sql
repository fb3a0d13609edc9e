-- name: Setting :one
SELECT value FROM settings WHERE name = $1;

-- name: InsertSetting :exec
INSERT INTO settings (name, value) VALUES ($1, $2)
ON CONFLICT DO NOTHING;

-- name: PutSetting :exec
INSERT INTO settings (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: TakeLease :execrows
-- Takes a lease that is free, over or the holder's own.
INSERT INTO leases (name, holder, held_until)
VALUES (sqlc.arg(name), sqlc.arg(holder), sqlc.arg(held_until))
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
WHERE leases.holder = excluded.holder OR leases.held_until <= sqlc.arg(now_at);
