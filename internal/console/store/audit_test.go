package store

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/audit/trail"
)

// putEvents writes the events "0", "1" and so on, a second apart; every two share a time.
func putEvents(t testing.TB, db *DB, events ...audit.Event) {
	t.Helper()
	write(t, db, func(x *tx) error {
		for i, e := range events {
			e.ID, e.At = fmt.Sprintf("%04d", i), after(time.Duration(i/2)*time.Second)
			if err := x.AppendAudit(t.Context(), e); err != nil {
				return err
			}
		}
		return nil
	})
}

func by(actor string, a audit.Action) audit.Event {
	return audit.Event{ActorKind: audit.ActorUser, ActorID: "usr_" + strings.Repeat(actor[:1], 26), ActorName: actor, Action: a, RemoteAddr: "192.0.2.7"}
}

func TestTheAuditLogIsReadByFilterAndReach(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		events := []audit.Event{
			by("Ann@example.org", audit.ClientCreated).On("client", "acme", "Acme").In("acme", ""),
			by("Ann@example.org", audit.RoleCreated).On("role", "r", "Role"),
			by("bob@example.org", audit.ClusterRemoved).On("cluster", "c1", "One").In("acme", "acme-prod").With("cluster_slug", "one"),
			by("bob@example.org", audit.ClusterRemoved).On("cluster", "c2", "Two").In("zeta", "zeta-prod").With("cluster_slug", "one"),
			by("Ann@example.org", audit.AgentRevoked).On("agent", "a1", "col").In("acme", "acme-prod").With("cluster_slug", "one-more"),
		}
		putEvents(t, db, events...)
		all := access.Reach{All: true}
		for name, c := range map[string]struct {
			filter trail.Filter
			reach  access.Reach
			want   string
		}{
			"all":          {trail.Filter{}, all, "4 3 2 1 0"},
			"nobody":       {trail.Filter{}, access.Reach{}, ""},
			"one client":   {trail.Filter{}, access.Reach{Scopes: []access.Scope{{ClientID: "acme"}}}, "4 2 0"},
			"one env":      {trail.Filter{}, access.Reach{Scopes: []access.Scope{{ClientID: "zeta", EnvironmentID: "zeta-prod"}}}, "3"},
			"foreign":      {trail.Filter{ClientID: "acme"}, access.Reach{Scopes: []access.Scope{{ClientID: "zeta"}}}, ""},
			"actor":        {trail.Filter{Actor: "ANN@example.org"}, all, "4 1 0"},
			"actor's id":   {trail.Filter{Actor: "usr_" + strings.Repeat("b", 26)}, all, "3 2"},
			"action":       {trail.Filter{Action: audit.RoleCreated}, all, "1"},
			"resource":     {trail.Filter{ResourceType: "cluster", ResourceID: "c2"}, all, "3"},
			"client":       {trail.Filter{ClientID: "acme"}, all, "4 2 0"},
			"environment":  {trail.Filter{EnvironmentID: "acme-prod"}, all, "4 2"},
			"cluster":      {trail.Filter{EnvironmentID: "acme-prod", ClusterSlug: "one"}, all, "2"},
			"wildcard":     {trail.Filter{EnvironmentID: "acme-prod", ClusterSlug: "%"}, all, ""},
			"from":         {trail.Filter{From: after(time.Second)}, all, "4 3 2"},
			"to":           {trail.Filter{To: after(time.Second)}, all, "1 0"},
			"all together": {trail.Filter{Actor: "bob@example.org", Action: audit.ClusterRemoved, ClientID: "acme", From: noon, To: after(time.Hour)}, all, "2"},
		} {
			found, err := db.Audit().Events(t.Context(), c.filter, c.reach, trail.Position{}, 100)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range found {
				got = append(got, strings.TrimPrefix(e.ID, "000"))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
		found, err := db.Audit().Events(t.Context(), trail.Filter{Action: audit.AgentRevoked}, all, trail.Position{}, 1)
		want := events[4]
		want.ID, want.At = "0004", after(2*time.Second)
		if diff := cmp.Diff([]audit.Event{want}, found); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
}

func TestTheAuditLogIsPagedByPosition(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		var events []audit.Event
		for range 25 {
			events = append(events, by("ann@example.org", audit.ClientCreated))
		}
		putEvents(t, db, events...)
		var got []string
		for behind := (trail.Position{}); ; {
			found, err := db.Audit().Events(t.Context(), trail.Filter{}, access.Reach{All: true}, behind, 7)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range found {
				got = append(got, e.ID)
				behind = trail.Position{At: e.At, ID: e.ID}
			}
			if len(found) < 7 {
				break
			}
		}
		if len(got) != 25 || !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("read %v", got)
		}
	})
}

func TestUndeclaredActionsAreNotStored(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		err := db.inTx(t.Context(), func(x *tx) error { return x.AppendAudit(t.Context(), by("ann@example.org", "meddled")) })
		if err == nil || !strings.Contains(err.Error(), `"meddled"`) {
			t.Errorf("%v", err)
		}
	})
}

func TestEachFilterOfTheAuditLogHasAnIndex(t *testing.T) {
	db := openSQLiteCopy(t)
	for condition, index := range map[string]string{
		"client_id = 'a'":                           "audit_events_client",
		"environment_id = 'a'":                      "audit_events_environment",
		"action = 'a'":                              "audit_events_action",
		"actor_id = 'a'":                            "audit_events_actor",
		"lower(e.actor_name) = lower('a')":          "audit_events_actor_name",
		"resource_type = 'a' AND resource_id = 'b'": "audit_events_resource",
		"(e.happened_at, e.id) < (1, 'a')":          "audit_events_time",
	} {
		found, err := rows(t.Context(), db.reader, "EXPLAIN QUERY PLAN "+selectAudit+" WHERE "+condition+" ORDER BY e.happened_at DESC, e.id DESC LIMIT 100", nil, scanPlan)
		plan := strings.Join(found, "; ")
		if err != nil || !strings.Contains(plan, index+" ") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s: %s, %v", condition, plan, err)
		}
	}
}

func scanPlan(r *sql.Rows) (string, error) {
	var id, parent, unused int
	var detail string
	err := r.Scan(&id, &parent, &unused, &detail)
	return detail, err
}
