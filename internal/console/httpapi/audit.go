package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"time"

	api "prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/audit/trail"
)

// ListAudit implements the operation listAudit.
func (s *server) ListAudit(ctx context.Context, r api.ListAuditRequestObject) (api.ListAuditResponseObject, error) {
	q := trail.Query{Filter: auditFilter(api.ExportAuditParams{
		Actor: r.Params.Actor, Action: r.Params.Action, ResourceType: r.Params.ResourceType, ResourceID: r.Params.ResourceID,
		Client: r.Params.Client, Environment: r.Params.Environment, ClusterSlug: r.Params.ClusterSlug, From: r.Params.From, To: r.Params.To,
	}), Limit: limit(r.Params.Limit), Cursor: given(r.Params.Cursor)}
	page, err := s.Audit.Events(ctx, who(ctx), q)
	if err != nil {
		return nil, err
	}
	return api.ListAudit200JSONResponse{Items: each(page.Events, auditEvent), Next: text(page.Next)}, nil
}

// ExportAudit implements the operation exportAudit.
func (s *server) ExportAudit(ctx context.Context, r api.ExportAuditRequestObject) (api.ExportAuditResponseObject, error) {
	rows, err := s.Audit.Export(ctx, who(ctx), auditFilter(r.Params))
	if err != nil {
		return nil, err
	}
	return auditLines{ctx: ctx, server: s, rows: rows}, nil
}

func auditFilter(p api.ExportAuditParams) trail.Filter {
	return trail.Filter{
		Actor: given(p.Actor), Action: audit.Action(given(p.Action)), ResourceType: given(p.ResourceType), ResourceID: given(p.ResourceID),
		ClientID: given(p.Client), EnvironmentID: given(p.Environment), ClusterSlug: given(p.ClusterSlug), From: given(p.From), To: given(p.To),
	}
}

// auditLines writes an export while it is read.
type auditLines struct {
	ctx    context.Context //nolint:containedctx // the generated code hands none to what writes an answer
	server *server
	rows   func(ctx context.Context, emit func(audit.Event) error) error
}

const (
	// lineEvery is how many rows go out between two looks at whether the caller still takes them.
	lineEvery = 500
	// lineTimeout is how long a caller may take for those.
	lineTimeout = time.Minute
)

// VisitExportAuditResponse implements api.ExportAuditResponseObject. An export that fails underway breaks its
// connection off: the status is out by then, and what was sent must not be taken for the whole.
func (a auditLines) VisitExportAuditResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="audit-`+a.server.Clock.Now().UTC().Format("2006-01-02")+`.jsonl"`)
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	out := bufio.NewWriter(w)
	lines, n := json.NewEncoder(out), 0
	err := a.rows(a.ctx, func(e audit.Event) error {
		if n%lineEvery == 0 {
			_ = control.SetWriteDeadline(clock.System().Now().Add(lineTimeout)) // what cannot have one ends by the context
		}
		n++
		return lines.Encode(auditEvent(e))
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		if a.ctx.Err() == nil {
			a.server.Logger.WarnContext(a.ctx, "an export of the audit log broke off", "rows", n, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	return nil
}

func auditEvent(e audit.Event) api.AuditEvent {
	out := api.AuditEvent{
		ID: e.ID, At: e.At.UTC(), ActorKind: api.AuditEventActorKind(e.ActorKind), ActorID: text(e.ActorID), ActorName: text(e.ActorName),
		Action: string(e.Action), Sentence: e.Sentence(), ResourceType: text(e.ResourceType), ResourceID: text(e.ResourceID),
		ResourceName: text(e.ResourceName), ClientID: text(e.ClientID), EnvironmentID: text(e.EnvironmentID), RemoteAddr: text(e.RemoteAddr),
	}
	if len(e.Detail) > 0 {
		out.Detail = &e.Detail
	}
	return out
}
