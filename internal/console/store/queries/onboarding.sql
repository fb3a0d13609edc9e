-- name: InsertOnboarding :execrows
INSERT INTO onboardings (
    id, client_id, environment_id, slug, display_name, created_at, created_by, abandoned_at, archived_at,
    inventory_done_at, access_done_at, last_status, last_checked_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT DO NOTHING;

-- name: SetOnboardingAbandoned :execrows
UPDATE onboardings SET abandoned_at = $2 WHERE id = $1;

-- name: ArchiveOnboarding :exec
UPDATE onboardings SET archived_at = sqlc.arg(archived_at)
WHERE environment_id = sqlc.arg(environment_id) AND slug = sqlc.arg(slug) AND archived_at IS NULL;

-- name: RevokeTokensOfArchived :exec
-- Those of the attempt that is archived with its cluster.
UPDATE install_tokens SET revoked_at = sqlc.arg(revoked_at)
WHERE revoked_at IS NULL AND onboarding_id IN (
    SELECT o.id FROM onboardings o
    WHERE o.environment_id = sqlc.arg(environment_id) AND o.slug = sqlc.arg(slug) AND o.archived_at = sqlc.arg(revoked_at)
);

-- name: PutOnboardingStatus :execrows
-- A later check stays.
UPDATE onboardings
SET last_status = sqlc.arg(last_status), last_checked_at = sqlc.arg(last_checked_at)
WHERE id = sqlc.arg(id) AND (last_checked_at IS NULL OR last_checked_at <= sqlc.arg(last_checked_at));

-- name: StampInventoryDone :exec
-- A proof is stamped once and never cleared (X-29).
UPDATE onboardings SET inventory_done_at = sqlc.arg(inventory_done_at)
WHERE id = sqlc.arg(id) AND inventory_done_at IS NULL;

-- name: OpenOnboardings :many
SELECT id FROM onboardings
WHERE archived_at IS NULL AND abandoned_at IS NULL
    AND (inventory_done_at IS NULL OR last_checked_at IS NULL OR last_checked_at < sqlc.arg(checked_before_at))
ORDER BY created_at, id;

-- name: OnboardingScope :one
SELECT client_id, environment_id FROM onboardings WHERE id = $1 AND archived_at IS NULL;
