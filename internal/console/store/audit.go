package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/audit/trail"
	"prxm.uz/proxima/internal/console/store/internal/dbtype"
	"prxm.uz/proxima/internal/console/store/internal/sqlgen"
)

// AppendAudit implements audit.Tx.
func (t *tx) AppendAudit(ctx context.Context, e audit.Event) error {
	if !e.Action.Known() {
		return fmt.Errorf("audit event %q: package audit declares no such action", e.Action)
	}
	detail, err := json.Marshal(e.Detail)
	if err != nil {
		return fmt.Errorf("audit event %s: %w", e.Action, err)
	}
	if e.Detail == nil {
		detail = []byte("{}")
	}
	err = t.q.InsertAuditEvent(ctx, sqlgen.InsertAuditEventParams{
		ID: e.ID, HappenedAt: dbtype.At(e.At), ActorKind: e.ActorKind, ActorID: e.ActorID, ActorName: e.ActorName,
		Action: string(e.Action), ResourceType: e.ResourceType, ResourceID: e.ResourceID, ResourceName: e.ResourceName,
		ClientID: e.ClientID, EnvironmentID: e.EnvironmentID, RemoteAddr: e.RemoteAddr, Detail: string(detail),
	})
	if err != nil {
		return fmt.Errorf("append audit event %s: %w", e.Action, err)
	}
	return nil
}

// AuditedSince implements access.Tx.
func (t *tx) AuditedSince(ctx context.Context, a audit.Action, resourceType, resourceID string, since time.Time) (bool, error) {
	n, err := t.q.AuditedSince(ctx, sqlgen.AuditedSinceParams{
		Action: string(a), ResourceType: resourceType, ResourceID: resourceID, HappenedAt: dbtype.At(since),
	})
	if err != nil {
		return false, fmt.Errorf("look for an audit event %s: %w", a, err)
	}
	return n > 0, nil
}

// RemoveAudit implements trail.Tx.
func (t *tx) RemoveAudit(ctx context.Context, id string) error {
	if err := t.q.DeleteAuditEvent(ctx, id); err != nil {
		return fmt.Errorf("remove audit event %s: %w", id, err)
	}
	return nil
}

// RemoveAuditBefore implements trail.Tx.
func (t *tx) RemoveAuditBefore(ctx context.Context, before time.Time, most int) (int, error) {
	n, err := t.q.DeleteAuditEventsBefore(ctx, sqlgen.DeleteAuditEventsBeforeParams{HappenedAt: dbtype.At(before), Limit: int32(most)})
	if err != nil {
		return 0, fmt.Errorf("remove audit events: %w", err)
	}
	return int(n), nil
}

// Audit returns the store of package trail.
func (db *DB) Audit() trail.Store { return auditStore{db} }

type auditStore struct{ db *DB }

func (s auditStore) InTx(ctx context.Context, f func(trail.Tx) error) error {
	return s.db.inTx(ctx, func(t *tx) error { return f(t) })
}

const selectAudit = `SELECT e.id, e.happened_at, e.actor_kind, e.actor_id, e.actor_name, e.action, e.resource_type,
	e.resource_id, e.resource_name, e.client_id, e.environment_id, e.remote_addr, e.detail
FROM audit_events e`

func scanAudit(r *sql.Rows) (audit.Event, error) {
	var e audit.Event
	var at dbtype.Time
	var detail string
	err := r.Scan(&e.ID, &at, &e.ActorKind, &e.ActorID, &e.ActorName, &e.Action, &e.ResourceType,
		&e.ResourceID, &e.ResourceName, &e.ClientID, &e.EnvironmentID, &e.RemoteAddr, &detail)
	if err != nil {
		return e, err
	}
	e.At = at.Time
	return e, fromJSON(detail, &e.Detail, "audit event "+e.ID)
}

// isID tells an id of package id, such as usr_k3v…, from a name.
func isID(text string) bool { return len(text) == 30 && text[3] == '_' && !strings.Contains(text, "@") }

func (s auditStore) Events(ctx context.Context, f trail.Filter, reach access.Reach, behind trail.Position, most int) ([]audit.Event, error) {
	var l list
	l.reach("e.client_id", "e.environment_id", reach)
	switch {
	case isID(f.Actor):
		l.equal("e.actor_id", f.Actor)
	case f.Actor != "":
		l.where = append(l.where, "lower(e.actor_name) = lower("+l.arg(f.Actor)+")")
	}
	l.equalIf("e.action", string(f.Action))
	l.equalIf("e.resource_type", f.ResourceType)
	l.equalIf("e.resource_id", f.ResourceID)
	l.equalIf("e.client_id", f.ClientID)
	l.equalIf("e.environment_id", f.EnvironmentID)
	if f.ClusterSlug != "" {
		l.contains("e.detail", `"cluster_slug":"`+f.ClusterSlug+`"`)
	}
	if !f.From.IsZero() {
		l.where = append(l.where, "e.happened_at >= "+l.arg(dbtype.At(f.From)))
	}
	if !f.To.IsZero() {
		l.where = append(l.where, "e.happened_at < "+l.arg(dbtype.At(f.To)))
	}
	if !behind.At.IsZero() {
		l.where = append(l.where, "(e.happened_at, e.id) < ("+l.arg(dbtype.At(behind.At))+", "+l.arg(behind.ID)+")")
	}
	query := selectAudit + l.condition() + " ORDER BY e.happened_at DESC, e.id DESC LIMIT " + l.arg(int64(most))
	found, err := rows(ctx, s.db.reader, query, l.args, scanAudit)
	return found, sentinels{}.translate(err, "read audit events")
}
