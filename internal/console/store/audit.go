package store

import (
	"context"
	"encoding/json"
	"fmt"

	"prxm.uz/proxima/internal/console/audit"
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
