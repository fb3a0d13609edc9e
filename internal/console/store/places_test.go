package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/tenancy"
)

func TestSummariesCountWhatIsInSight(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Tenancy()
		house(t, db)
		putCluster(t, db, cluster("one", "one"))
		putCluster(t, db, cluster("two", "two"))
		everything := tenancy.Sight{Environments: access.Reach{All: true}, Clusters: access.Reach{All: true}}
		oneEnvironment := access.Reach{Scopes: []access.Scope{{ClientID: "acme", EnvironmentID: "acme-test"}}}
		for name, c := range map[string]struct {
			query tenancy.ClientQuery
			sight tenancy.Sight
			total int
			want  string
		}{
			"all":           {tenancy.ClientQuery{Limit: 10}, everything, 2, "[acme 2 2 zeta 2 0]"},
			"text":          {tenancy.ClientQuery{Text: "ZET", Limit: 10}, everything, 1, "[zeta 2 0]"},
			"no wildcard":   {tenancy.ClientQuery{Text: "%", Limit: 10}, everything, 0, "[]"},
			"second page":   {tenancy.ClientQuery{Limit: 1, Offset: 1}, everything, 2, "[zeta 2 0]"},
			"one of its":    {tenancy.ClientQuery{Limit: 10}, tenancy.Sight{Environments: oneEnvironment, Clusters: oneEnvironment}, 1, "[acme 1 0]"},
			"no clusters":   {tenancy.ClientQuery{Limit: 10}, tenancy.Sight{Environments: access.Reach{All: true}}, 2, "[acme 2 0 zeta 2 0]"},
			"nothing":       {tenancy.ClientQuery{Limit: 10}, tenancy.Sight{}, 0, "[]"},
			"clusters only": {tenancy.ClientQuery{Limit: 10}, tenancy.Sight{Clusters: access.Reach{All: true}}, 0, "[]"},
		} {
			found, total, err := s.ClientSummaries(ctx, c.query, c.sight)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, one := range found {
				got = append(got, fmt.Sprintf("%s %d %d", one.ID, one.Environments, one.Clusters))
				if one.Name != "Client "+one.ID || !one.CreatedAt.Equal(noon) {
					t.Errorf("%s: %+v", name, one)
				}
			}
			if total != c.total || fmt.Sprint(got) != c.want {
				t.Errorf("%s: %v of %d, want %s of %d", name, got, total, c.want, c.total)
			}
		}
		found, err := s.EnvironmentSummaries(ctx, "acme", everything)
		want := []tenancy.EnvironmentSummary{
			{Environment: tenancy.Environment{ID: "acme-prod", ClientID: "acme", Name: "prod", CreatedAt: noon}, Clusters: 2},
			{Environment: tenancy.Environment{ID: "acme-test", ClientID: "acme", Name: "test", CreatedAt: noon}},
		}
		if diff := cmp.Diff(want, found); err != nil || diff != "" {
			t.Error(err, diff)
		}
		found, err = s.EnvironmentSummaries(ctx, "acme", tenancy.Sight{Environments: oneEnvironment})
		if diff := cmp.Diff(want[1:], found); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
}

func TestWhatIsInAnEnvironmentIsCountedAndHoldsIt(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Tenancy()
		house(t, db)
		prod := tenancy.Environment{ID: "acme-prod", ClientID: "acme", Name: "prod"}
		scope := access.Scope{ClientID: "acme", EnvironmentID: "acme-prod"}
		write(t, db, func(x *tx) error {
			if err := x.InsertRole(ctx, tenancy.Role{ID: "r", Name: "Operator", CreatedAt: noon}); err != nil {
				return err
			}
			for id, at := range map[string]access.Scope{"here": scope, "above": {ClientID: "acme"}, "beside": {ClientID: "acme", EnvironmentID: "acme-test"}} {
				if err := x.InsertAssignment(ctx, tenancy.Assignment{ID: id, UserID: "ann", RoleID: "r", Scope: at, CreatedAt: noon}); err != nil {
					return err
				}
			}
			return nil
		})
		for _, id := range []string{"open", "abandoned", "archived"} {
			a := attempt(id, id)
			if id == "archived" {
				a.ArchivedAt = noon
			}
			putAttempt(t, db, a)
		}
		write(t, db, func(x *tx) error { return x.SetAbandoned(ctx, "abandoned", noon) })
		for id, change := range map[string]func(uses, most *int, expires *time.Time){
			"live": func(*int, *int, *time.Time) {}, "unlimited": func(_, most *int, _ *time.Time) { *most = 0 },
			"expired": func(_, _ *int, expires *time.Time) { *expires = noon }, "used": func(uses, most *int, _ *time.Time) { *uses, *most = 1, 1 },
		} {
			one := token(id)
			change(&one.Uses, &one.MaxUses, &one.ExpiresAt)
			one.OnboardingID = "archived"
			putToken(t, db, one)
		}
		putAgent(t, db, collector("agent", "one", ""))
		putCluster(t, db, cluster("one", "one"))
		got, err := s.EnvironmentContents(ctx, prod, noon)
		if err != nil {
			t.Fatal(err)
		}
		want := tenancy.Contents{Clusters: 1, Agents: 1, Attempts: 1, Tokens: 2, PastAttempts: 2, PastTokens: 2, Assignments: 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if err := s.InTx(ctx, func(x tenancy.Tx) error { return x.DeleteEnvironment(ctx, prod) }); !errors.Is(err, tenancy.ErrInUse) {
			t.Errorf("deleted with a cluster and an agent: %v", err)
		}
		if err := s.InTx(ctx, func(x tenancy.Tx) error { return x.DeleteClient(ctx, "acme") }); !errors.Is(err, tenancy.ErrInUse) {
			t.Errorf("deleted with environments: %v", err)
		}
		write(t, db, func(x *tx) error {
			if _, err := x.raw.ExecContext(ctx, "DELETE FROM clusters"); err != nil {
				return err
			}
			_, err := x.raw.ExecContext(ctx, "DELETE FROM agents")
			return err
		})
		held, err := db.plain().RolesHeldOn(ctx, scope)
		if diff := cmp.Diff([]tenancy.HeldRole{{UserID: "ann", Email: user("ann").Email, Role: "Operator"}}, held); err != nil || diff != "" {
			t.Error(err, diff)
		}
		write(t, db, func(x *tx) error {
			if err := x.DeleteRolesHeldOn(ctx, scope); err != nil {
				return err
			}
			return x.DeleteEnvironment(ctx, prod)
		})
		left, err := s.Assignments(ctx, "ann")
		if err != nil || len(left) != 2 {
			t.Errorf("roles left: %v, %v", left, err)
		}
		contents, err := s.ClientContents(ctx, "acme")
		if diff := cmp.Diff(tenancy.Contents{Environments: []string{"test"}, Assignments: 1}, contents); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
}
