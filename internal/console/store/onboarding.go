package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/store/internal/dbtype"
	"prxm.uz/proxima/internal/console/store/internal/sqlgen"
)

// recheckDoneAfter is after how long an attempt whose inventory is proved is looked at again.
const recheckDoneAfter = time.Hour

// Onboarding returns the store of package onboarding.
func (db *DB) Onboarding() onboarding.Store { return onboardingStore{db} }

type onboardingStore struct{ db *DB }

func (s onboardingStore) InTx(ctx context.Context, f func(onboarding.Tx) error) error {
	return s.db.inTx(ctx, func(t *tx) error { return f(t) })
}

func onboardingErrors() sentinels {
	return sentinels{missing: onboarding.ErrNotFound, taken: onboarding.ErrTaken}
}

// selectAttempts is the one way to read attempts; scanAttempt takes its columns.
const selectAttempts = `SELECT o.id, o.client_id, c.name, o.environment_id, e.name, o.slug, o.display_name, o.created_at,
	o.created_by, COALESCE(NULLIF(u.name, ''), u.email, ''), o.abandoned_at, o.archived_at, o.inventory_done_at,
	o.access_done_at, o.last_status, o.last_checked_at
FROM onboardings o
JOIN clients c ON c.id = o.client_id
JOIN environments e ON e.id = o.environment_id
LEFT JOIN users u ON u.id = o.created_by`

func scanAttempt(r *sql.Rows) (onboarding.Attempt, error) {
	var a onboarding.Attempt
	var createdAt, abandonedAt, archivedAt, inventoryDoneAt, accessDoneAt, checkedAt dbtype.Time
	var status string
	err := r.Scan(&a.ID, &a.ClientID, &a.ClientName, &a.EnvironmentID, &a.EnvironmentName, &a.Slug, &a.DisplayName,
		&createdAt, &a.CreatedBy, &a.CreatedByName, &abandonedAt, &archivedAt, &inventoryDoneAt,
		&accessDoneAt, &status, &checkedAt)
	if err != nil {
		return a, err
	}
	a.CreatedAt, a.AbandonedAt, a.ArchivedAt = createdAt.Time, abandonedAt.Time, archivedAt.Time
	a.InventoryDoneAt, a.AccessDoneAt, a.LastCheckedAt = inventoryDoneAt.Time, accessDoneAt.Time, checkedAt.Time
	return a, fromJSON(status, &a.LastStatus, "attempt "+a.ID)
}

func (r reads) Attempt(ctx context.Context, id string) (onboarding.Attempt, error) {
	var l list
	l.equal("o.id", id)
	a, err := one(ctx, r.raw, selectAttempts+l.condition(), l.args, scanAttempt)
	return a, onboardingErrors().translate(err, "attempt "+id)
}

func (s onboardingStore) Attempt(ctx context.Context, id string) (onboarding.Attempt, error) {
	return s.db.plain().Attempt(ctx, id)
}

func (t *tx) AttemptBySlug(ctx context.Context, environmentID, slug string) (onboarding.Attempt, error) {
	var l list
	l.equal("o.environment_id", environmentID)
	l.equal("o.slug", slug)
	l.fixed("o.archived_at IS NULL")
	a, err := one(ctx, t.raw, selectAttempts+l.condition(), l.args, scanAttempt)
	return a, onboardingErrors().translate(err, "attempt on "+slug)
}

func (s onboardingStore) Attempts(ctx context.Context, clientID string, reach access.Reach, unfinished bool) ([]onboarding.Attempt, error) {
	var l list
	l.equalIf("o.client_id", clientID)
	l.reach("o.client_id", "o.environment_id", reach)
	if unfinished {
		l.fixed("o.inventory_done_at IS NULL AND o.abandoned_at IS NULL AND o.archived_at IS NULL")
	}
	query := selectAttempts + l.condition() + " ORDER BY o.created_at DESC, o.id"
	found, err := rows(ctx, s.db.reader, query, l.args, scanAttempt)
	return found, onboardingErrors().translate(err, "list attempts")
}

func (t *tx) InsertAttempt(ctx context.Context, a onboarding.Attempt) error {
	status, err := toJSON(a.LastStatus)
	if err != nil {
		return err
	}
	n, err := t.q.InsertOnboarding(ctx, sqlgen.InsertOnboardingParams{
		ID: a.ID, ClientID: a.ClientID, EnvironmentID: a.EnvironmentID, Slug: a.Slug, DisplayName: a.DisplayName,
		CreatedAt: dbtype.At(a.CreatedAt), CreatedBy: a.CreatedBy, AbandonedAt: dbtype.At(a.AbandonedAt),
		ArchivedAt: dbtype.At(a.ArchivedAt), InventoryDoneAt: dbtype.At(a.InventoryDoneAt),
		AccessDoneAt: dbtype.At(a.AccessDoneAt), LastStatus: status, LastCheckedAt: dbtype.At(a.LastCheckedAt),
	})
	return onboardingErrors().inserted(n, err, "insert attempt "+a.ID)
}

func (t *tx) SetAbandoned(ctx context.Context, id string, at time.Time) error {
	n, err := t.q.SetOnboardingAbandoned(ctx, sqlgen.SetOnboardingAbandonedParams{ID: id, AbandonedAt: dbtype.At(at)})
	return onboardingErrors().changed(n, err, "abandon attempt "+id)
}

// Rows reads with at most eight queries on one state of the database. A fact that fails there is read
// once more by itself, since on PostgreSQL a failed query spoils those after it.
func (s onboardingStore) Rows(ctx context.Context, id string) (onboarding.Rows, error) {
	var all onboarding.Rows
	facts := []struct {
		failed *error
		read   func(reads) error
	}{
		{&all.Unread.Tokens, func(r reads) (err error) { all.Tokens, err = r.TokensOfOnboarding(ctx, id); return err }},
		{&all.Unread.Collectors, func(r reads) (err error) { all.Collectors, err = r.collectorsOf(ctx, id); return err }},
		{&all.Unread.Others, func(r reads) (err error) { all.Others, err = r.othersOf(ctx, all.Attempt); return err }},
		{&all.Unread.Findings, func(r reads) (err error) { all.Findings, err = r.FindingsOfOnboarding(ctx, id); return err }},
		{&all.Unread.Cluster, func(r reads) (err error) { all.Cluster, all.SameUID, err = r.clusterOf(ctx, all.Attempt); return err }},
	}
	err := s.db.snapshot(ctx, func(r reads) (err error) {
		if all.Attempt, err = r.Attempt(ctx, id); err != nil {
			return err
		}
		for _, f := range facts {
			*f.failed = f.read(r)
		}
		return nil
	})
	if err != nil {
		return all, err
	}
	for _, f := range facts {
		if *f.failed != nil {
			*f.failed = f.read(s.db.plain())
		}
	}
	return all, ctx.Err()
}

// clusterOf finds the cluster on the attempt's slug, nil if none, and others with its fingerprint.
func (r reads) clusterOf(ctx context.Context, a onboarding.Attempt) (found *inventory.Cluster, same []inventory.Cluster, err error) {
	cluster, err := r.ClusterBySlug(ctx, a.EnvironmentID, a.Slug)
	switch {
	case errors.Is(err, inventory.ErrNotFound):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	alike, err := r.ClustersByUID(ctx, cluster.ClientID, cluster.UID)
	for _, c := range alike {
		if c.ID != cluster.ID {
			same = append(same, c)
		}
	}
	return &cluster, same, err
}

// collectorsOf lists the collectors that enrolled with any token of the attempt, the first one first.
func (r reads) collectorsOf(ctx context.Context, onboardingID string) ([]fleet.Agent, error) {
	var l list
	l.fixed("a.agent_type = 'collector'")
	l.equal("t.onboarding_id", onboardingID)
	query := selectAgents + " JOIN install_tokens t ON t.id = a.enrolled_by" + l.condition() + " ORDER BY a.enrolled_at, a.name, a.id"
	found, err := rows(ctx, r.raw, query, l.args, scanAgent)
	return found, onboardingErrors().translate(err, "collectors of attempt "+onboardingID)
}

// othersOf lists the collectors on the attempt's slug that enrolled with a token of something else.
func (r reads) othersOf(ctx context.Context, a onboarding.Attempt) ([]fleet.Agent, error) {
	var l list
	l.fixed("a.agent_type = 'collector'")
	l.equal("a.environment_id", a.EnvironmentID)
	l.equal("a.cluster_slug", a.Slug)
	l.fixed("(t.onboarding_id IS NULL OR t.onboarding_id <> " + l.arg(a.ID) + ")")
	query := selectAgents + " LEFT JOIN install_tokens t ON t.id = a.enrolled_by" + l.condition() + " ORDER BY a.enrolled_at, a.name, a.id"
	found, err := rows(ctx, r.raw, query, l.args, scanAgent)
	return found, onboardingErrors().translate(err, "other collectors on "+a.Slug)
}

// PutStatus passes over a summary that is older than the stored one, but stamps all the same.
func (s onboardingStore) PutStatus(ctx context.Context, id string, summary onboarding.Summary, checkedAt, inventoryDoneAt time.Time) error {
	status, err := toJSON(&summary)
	if err != nil {
		return err
	}
	what := "status of attempt " + id
	return s.db.inTx(ctx, func(t *tx) error {
		_, err := t.q.PutOnboardingStatus(ctx, sqlgen.PutOnboardingStatusParams{ID: id, LastStatus: status, LastCheckedAt: dbtype.At(checkedAt)})
		if err == nil && !inventoryDoneAt.IsZero() {
			err = t.q.StampInventoryDone(ctx, sqlgen.StampInventoryDoneParams{ID: id, InventoryDoneAt: dbtype.At(inventoryDoneAt)})
		}
		return onboardingErrors().translate(err, what)
	})
}

func (s onboardingStore) Ready(ctx context.Context) error { return s.db.Ready(ctx) }

func (s onboardingStore) Open(ctx context.Context) ([]string, error) {
	before := s.db.clock.Now().Add(-recheckDoneAfter)
	ids, err := s.db.read.OpenOnboardings(ctx, dbtype.At(before))
	return ids, onboardingErrors().translate(err, "list open attempts")
}

func (s onboardingStore) Lease(ctx context.Context, name, holder string, now, until time.Time) (bool, error) {
	return s.db.lease(ctx, name, holder, now, until)
}
