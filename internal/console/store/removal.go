package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/store/internal/dbtype"
)

func (s inventoryStore) Removal(ctx context.Context, c inventory.Cluster, now time.Time) (inventory.Removal, error) {
	r := inventory.Removal{Cluster: c}
	err := s.db.snapshot(ctx, func(read reads) error {
		var l list
		l.equal("a.environment_id", c.EnvironmentID)
		l.equal("a.cluster_slug", c.Slug)
		var err error
		if r.Agents, err = rows(ctx, read.raw, selectAgents+l.condition()+" ORDER BY a.agent_type, a.name, a.id", l.args, scanAgent); err != nil {
			return err
		}
		query := "SELECT o.display_name, (SELECT COUNT(*) FROM install_tokens t WHERE t.onboarding_id = o.id AND " + liveToken("$1") + ")" +
			" FROM onboardings o WHERE o.environment_id = $2 AND o.slug = $3 AND o.archived_at IS NULL"
		_, err = one(ctx, read.raw, query, []any{dbtype.At(now), c.EnvironmentID, c.Slug}, func(row *sql.Rows) (struct{}, error) {
			return struct{}{}, row.Scan(&r.Attempt, &r.LiveTokens)
		})
		if errors.Is(err, sql.ErrNoRows) { // it came without an attempt
			return nil
		}
		return err
	})
	return r, inventoryErrors().translate(err, "removal of cluster "+c.ID)
}
