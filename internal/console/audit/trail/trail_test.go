package trail_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/audit/trail"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/test/storetest"
)

var engines storetest.Engines

func TestMain(m *testing.M) {
	code, err := storetest.Main(m, &engines)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const day = 24 * time.Hour

func who(scopes ...access.Scope) access.Principal {
	p := access.Principal{UserID: "usr_a", Email: "ann@example.com", RemoteAddr: "192.0.2.7"}
	for _, s := range scopes {
		p.Grants = append(p.Grants, access.Grant{Permissions: []access.Permission{access.AuditRead}, Scope: s})
	}
	return p
}

func open(db *storetest.Database, c *clocktest.Manual, retention time.Duration) *trail.Service {
	return trail.New(trail.Config{Store: db.Audit(), Clock: c, Logger: slog.New(slog.DiscardHandler), Retention: retention})
}

// put writes n events, a minute apart, the first one at the time.
func put(t *testing.T, db *storetest.Database, from time.Time, n int, clientID string) {
	t.Helper()
	err := db.Audit().InTx(t.Context(), func(tx trail.Tx) error {
		for i := range n {
			at := from.Add(time.Duration(i) * time.Minute)
			if err := tx.AppendAudit(t.Context(), who().Did(at, audit.ClientRenamed).On("client", clientID, clientID).In(clientID, "")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func code(err error) string {
	if p, ok := errors.AsType[*problem.Error](err); ok {
		return p.Code
	}
	return fmt.Sprint(err)
}

func TestPages(t *testing.T) {
	engines.Each(t, func(t *testing.T, db *storetest.Database) {
		s := open(db, clocktest.New(storetest.Noon()), day)
		put(t, db, storetest.Noon(), 12, "acme")
		put(t, db, storetest.Noon(), 3, "zeta")
		for name, c := range map[string]struct {
			who  access.Principal
			want int
		}{"console": {who(access.Scope{}), 15}, "client": {who(access.Scope{ClientID: "acme"}), 12}, "environment": {who(access.Scope{ClientID: "acme", EnvironmentID: "e"}), 0}} {
			seen, pages := map[string]bool{}, 0
			for q := (trail.Query{Limit: 5}); ; pages++ {
				page, err := s.Events(t.Context(), c.who, q)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range page.Events {
					seen[e.ID] = true
				}
				if q.Cursor = page.Next; q.Cursor == "" {
					break
				}
			}
			if len(seen) != c.want || pages > 2 {
				t.Errorf("%s: %d events on %d further pages, want %d", name, len(seen), pages, c.want)
			}
		}
		noon := storetest.Noon()
		for want, c := range map[string]struct {
			who access.Principal
			q   trail.Query
		}{
			"unauthenticated":     {},
			"permission_missing":  {who: who()},
			"cursor_invalid":      {who: who(access.Scope{}), q: trail.Query{Cursor: "%"}},
			"range_invalid":       {who: who(access.Scope{}), q: trail.Query{Filter: trail.Filter{From: noon, To: noon}}},
			"environment_missing": {who: who(access.Scope{}), q: trail.Query{Filter: trail.Filter{ClusterSlug: "one"}}},
		} {
			if _, err := s.Events(t.Context(), c.who, c.q); code(err) != want {
				t.Errorf("%s: %v", want, err)
			}
			if c.q.Cursor == "" {
				if _, err := s.Export(t.Context(), c.who, c.q.Filter); code(err) != want {
					t.Errorf("export, %s: %v", want, err)
				}
			}
		}
	})
}

func TestExport(t *testing.T) {
	engines.Each(t, func(t *testing.T, db *storetest.Database) {
		noon := storetest.Noon()
		s := open(db, clocktest.New(noon), day)
		put(t, db, noon.Add(-day), 1203, "acme")
		put(t, db, noon.Add(-day), 2, "zeta")
		emit, err := s.Export(t.Context(), who(access.Scope{ClientID: "acme"}), trail.Filter{Actor: "ann@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		last := noon
		if err := emit(t.Context(), func(e audit.Event) error {
			if e.At.After(last) || e.ClientID != "acme" {
				t.Errorf("%+v after %v", e, last)
			}
			seen[e.ID], last = true, e.At
			return nil
		}); err != nil || len(seen) != 1203 {
			t.Errorf("%d events, %v", len(seen), err)
		}
		page, err := s.Events(t.Context(), who(access.Scope{}), trail.Query{Filter: trail.Filter{Action: audit.AuditExported}})
		if err != nil || len(page.Events) != 1 || page.Events[0].Detail["actor"] != "ann@example.com" || page.Events[0].RemoteAddr != "192.0.2.7" {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

func TestRetention(t *testing.T) {
	engines.Each(t, func(t *testing.T, db *storetest.Database) {
		noon := storetest.Noon()
		put(t, db, noon.Add(-3*day), 1100, "acme")
		put(t, db, noon.Add(-day), 2, "acme") // the first is exactly as old as is kept
		var replicas sync.WaitGroup
		for range 3 {
			replicas.Go(func() {
				if err := open(db, clocktest.New(noon), day).Prune(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		replicas.Wait()
		page, err := open(db, clocktest.New(noon), day).Events(t.Context(), who(access.Scope{}), trail.Query{})
		if err != nil {
			t.Fatal(err)
		}
		removed, kept, rows := 0, 0, 0
		for _, e := range page.Events {
			if e.Action != audit.AuditPruned {
				kept++
				continue
			}
			rows++
			n := 0
			if _, err := fmt.Sscan(e.Detail["removed"], &n); err != nil || e.Detail["until"] != "2026-02-28T12:00:00Z" {
				t.Errorf("%+v, %v", e, err)
			}
			removed += n
		}
		if kept != 2 || removed != 1100 || rows < 1 || rows > 3 {
			t.Errorf("%d kept, %d removed by %d rows", kept, removed, rows)
		}
		if err := open(db, clocktest.New(noon), day).Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := db.Audits(t, string(audit.AuditPruned)); n != rows {
			t.Errorf("a run that removed nothing left a row")
		}
	})
}
