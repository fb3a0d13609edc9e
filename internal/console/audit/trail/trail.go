// Package trail owns reading the audit log: who may see which rows, how they are filtered and paged, their
// export, and for how long they are kept. It refuses to change a row; package audit and the store append them.
package trail

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/problem"
)

// The sizes of a page of the log.
const (
	DefaultLimit = 100
	MostLimit    = 500
)

// Filter narrows the log; empty fields do not.
type Filter struct {
	// Actor is an id, an e-mail address or the name of an agent, whole; case does not count in names.
	Actor         string
	Action        audit.Action
	ResourceType  string
	ResourceID    string
	ClientID      string
	EnvironmentID string
	// ClusterSlug keeps what was done to a cluster, to its attempts and to its agents.
	ClusterSlug string
	From        time.Time // rows of then are in
	To          time.Time // rows of then are out
}

// Query asks for one page, newest first.
type Query struct {
	Filter

	Limit int // 0 is DefaultLimit
	// Cursor is the Next of the page before, "" for the first.
	Cursor string
}

// Page is one page of the log.
type Page struct {
	Events []audit.Event
	// Next is the cursor of what is older, "" on the last page.
	Next string
}

// Position is the place of a row in the order of the log. The zero Position is before all.
type Position struct {
	At time.Time
	ID string
}

// Tx is what writing about the log needs of a transaction.
type Tx interface {
	audit.Tx

	// RemoveAudit removes the event id, if it is there.
	RemoveAudit(ctx context.Context, id string) error
	// RemoveAuditBefore removes the oldest rows of before the time, at most so many, and answers how many.
	RemoveAuditBefore(ctx context.Context, before time.Time, most int) (int, error)
}

// Store is what this package needs of the database.
type Store interface {
	// InTx runs f in one serializable transaction, and may run it again.
	InTx(ctx context.Context, f func(Tx) error) error
	// Events reads rows behind the position, newest first.
	Events(ctx context.Context, f Filter, reach access.Reach, behind Position, most int) ([]audit.Event, error)
}

// Config is what a Service stands on; every field is needed.
type Config struct {
	Store  Store
	Clock  clock.Clock
	Logger *slog.Logger
	// Retention is how long rows are kept.
	Retention time.Duration
}

// Service reads the log for a principal. It may be used from several goroutines.
type Service struct{ Config }

// New makes a Service.
func New(c Config) *Service { return &Service{c} }

// Kept is for how long rows are kept.
func (s *Service) Kept() time.Duration { return s.Retention }

// Events reads one page of the rows that p may see: those of the clients and environments in which p holds
// audit:read, and those of no client where p holds it on the whole console.
func (s *Service) Events(ctx context.Context, p access.Principal, q Query) (Page, error) {
	if err := s.check(p, q.Filter); err != nil {
		return Page{}, err
	}
	behind, err := parseCursor(q.Cursor)
	if err != nil {
		return Page{}, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = min(limit, MostLimit)
	events, err := s.Store.Events(ctx, q.Filter, p.Reach(access.AuditRead), behind, limit+1)
	if err != nil {
		return Page{}, fmt.Errorf("read the audit log: %w", err)
	}
	page := Page{Events: events}
	if len(events) > limit {
		page.Events = events[:limit]
		last := page.Events[limit-1]
		page.Next = cursor(Position{last.At, last.ID})
	}
	return page, nil
}

func (s *Service) check(p access.Principal, f Filter) error {
	switch {
	case p.UserID == "":
		return access.ErrUnauthenticated()
	case !p.AllowsSomewhere(access.AuditRead):
		return access.Refuse(access.AuditRead)
	case !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To):
		return problem.New(problem.Invalid, "range_invalid", "The range ends before it begins: from "+f.From.UTC().Format(time.RFC3339)+" to "+f.To.UTC().Format(time.RFC3339)+".").
			WithCure("Give a from that is before to.").InField("from")
	case f.ClusterSlug != "" && f.EnvironmentID == "":
		return problem.New(problem.Invalid, "environment_missing", "The slug "+strconv.Quote(f.ClusterSlug)+" names a cluster within its environment alone.").
			WithCure("Give its environment as well.").InField("environment")
	}
	return nil
}

// exportBatch is how many rows an export holds at once.
const exportBatch = 500

// Export begins an export: it writes the row about it, and answers a function that emits each row that p may
// see, newest first, as the log stood then. Emit's error ends it.
func (s *Service) Export(ctx context.Context, p access.Principal, f Filter) (func(ctx context.Context, emit func(audit.Event) error) error, error) {
	if err := s.check(p, f); err != nil {
		return nil, err
	}
	now := s.Clock.Now()
	e := p.Did(now, audit.AuditExported).On("audit_log", "", "").In(f.ClientID, f.EnvironmentID)
	for name, value := range map[string]string{
		"actor": f.Actor, "action": string(f.Action), "resource_type": f.ResourceType, "resource_id": f.ResourceID,
		"cluster_slug": f.ClusterSlug, "from": stamp(f.From), "to": stamp(f.To),
	} {
		if value != "" {
			e = e.With(name, value)
		}
	}
	if !p.Allows(access.AuditRead, access.Scope{ClientID: e.ClientID, EnvironmentID: e.EnvironmentID}) {
		e = e.In("", "") // a foreign client does not read of those who asked in vain
	}
	if err := s.Store.InTx(ctx, func(tx Tx) error { return tx.AppendAudit(ctx, e) }); err != nil {
		return nil, fmt.Errorf("record an export of the audit log: %w", err)
	}
	return func(ctx context.Context, emit func(audit.Event) error) error {
		for behind := (Position{At: now}); ; {
			events, err := s.Store.Events(ctx, f, p.Reach(access.AuditRead), behind, exportBatch)
			if err != nil {
				return fmt.Errorf("read the audit log: %w", err)
			}
			for _, e := range events {
				if err := emit(e); err != nil {
					return err
				}
			}
			if len(events) < exportBatch {
				return nil
			}
			last := events[len(events)-1]
			behind = Position{last.At, last.ID}
		}
	}, nil
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// pruneBatch bounds what one transaction removes, so that no writer waits for long.
const pruneBatch = 500

// Prune removes the rows that were kept for their time, and leaves one row that says how many went. It counts on
// while it runs, in the transaction of each batch, so that it is true whenever the process ends. Replicas may
// prune at once: each row is removed once, and counted by who removed it.
func (s *Service) Prune(ctx context.Context) error {
	until := s.Clock.Now().Add(-s.Retention)
	total, told := 0, audit.System(s.Clock.Now(), audit.AuditPruned).On("audit_log", "", "").With("until", stamp(until))
	for {
		n := 0
		err := s.Store.InTx(ctx, func(tx Tx) (err error) {
			if n, err = tx.RemoveAuditBefore(ctx, until, pruneBatch); err != nil || n == 0 {
				return err
			}
			if err := tx.RemoveAudit(ctx, told.ID); err != nil {
				return err
			}
			return tx.AppendAudit(ctx, told.With("removed", strconv.Itoa(total+n)))
		})
		if err != nil {
			return fmt.Errorf("remove rows of the audit log: %w", err)
		}
		total += n
		if n < pruneBatch {
			break
		}
	}
	if total > 0 {
		s.Logger.InfoContext(ctx, "rows of the audit log were removed", "rows", total, "until", stamp(until))
	}
	return nil
}

func cursor(p Position) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.At.UnixMicro(), 10) + " " + p.ID))
}

func parseCursor(text string) (Position, error) {
	if text == "" {
		return Position{}, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	micros, id, ok := strings.Cut(string(plain), " ")
	at, number := strconv.ParseInt(micros, 10, 64)
	if err != nil || !ok || number != nil || at <= 0 || len(id) > 64 {
		return Position{}, problem.New(problem.Invalid, "cursor_invalid", "The cursor is none that a page of the audit log ended with.").
			WithCure("Take next of the page before, or begin without a cursor.").InField("cursor")
	}
	return Position{At: time.UnixMicro(at).UTC(), ID: id}, nil
}
