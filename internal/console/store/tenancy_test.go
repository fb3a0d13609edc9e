package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/tenancy"
)

func TestRowsComeBackAsTheyWerePut(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Tenancy()
		house(t, db)
		gotUser, err := s.User(ctx, "ann")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(user("ann"), gotUser); diff != "" {
			t.Error(diff)
		}
		role := tenancy.Role{ID: "r", Name: "Operator", BuiltIn: true, CreatedAt: noon, Permissions: []access.Permission{access.HostsWrite, access.HostsRead}}
		write(t, db, func(x *tx) error { return x.InsertRole(ctx, role) })
		roles, err := s.Roles(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]tenancy.Role{role}, roles); diff != "" {
			t.Error(diff)
		}
		role.Permissions = []access.Permission{access.AuditRead}
		role.Name = "Auditor"
		write(t, db, func(x *tx) error { return x.UpdateRole(ctx, role) })
		write(t, db, func(x *tx) error {
			got, err := x.RoleByName(ctx, "AUDITOR")
			if diff := cmp.Diff(role, got); diff != "" {
				t.Error(diff)
			}
			return err
		})
	})
}

func TestUniqueAndMissingRowsBecomeTheDomainsErrors(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Tenancy()
		house(t, db)
		assignment := tenancy.Assignment{ID: "a", UserID: "ann", RoleID: "r", CreatedAt: noon}
		write(t, db, func(x *tx) error {
			if err := x.InsertRole(ctx, tenancy.Role{ID: "r", Name: "r", CreatedAt: noon}); err != nil {
				return err
			}
			return x.InsertAssignment(ctx, assignment)
		})
		for name, c := range map[string]struct {
			want error
			do   func(tenancy.Tx) error
		}{
			"client's name, other case": {tenancy.ErrTaken, func(x tenancy.Tx) error {
				return x.InsertClient(ctx, tenancy.Client{ID: "new", Name: "CLIENT ACME", CreatedAt: noon})
			}},
			"renamed to a taken name": {tenancy.ErrTaken, func(x tenancy.Tx) error {
				return x.UpdateClient(ctx, tenancy.Client{ID: "acme", Name: "client zeta"})
			}},
			"client that is not there": {tenancy.ErrNotFound, func(x tenancy.Tx) error {
				return x.UpdateClient(ctx, tenancy.Client{ID: "nobody", Name: "nobody"})
			}},
			"environment of no client": {tenancy.ErrNotFound, func(x tenancy.Tx) error {
				return x.InsertEnvironment(ctx, tenancy.Environment{ID: "e", ClientID: "nobody", Name: "e", CreatedAt: noon})
			}},
			"environment's name": {tenancy.ErrTaken, func(x tenancy.Tx) error {
				return x.InsertEnvironment(ctx, tenancy.Environment{ID: "e", ClientID: "acme", Name: "Prod", CreatedAt: noon})
			}},
			"environment that is not there": {tenancy.ErrNotFound, func(x tenancy.Tx) error {
				return x.UpdateEnvironment(ctx, tenancy.Environment{ID: "nobody", Name: "nobody"})
			}},
			"environment renamed to a taken name": {tenancy.ErrTaken, func(x tenancy.Tx) error {
				e := tenancy.Environment{ID: "stage", ClientID: "acme", Name: "stage", CreatedAt: noon}
				if err := x.InsertEnvironment(ctx, e); err != nil {
					return err
				}
				e.Name = "PROD"
				return x.UpdateEnvironment(ctx, e)
			}},
			"e-mail, other case": {tenancy.ErrTaken, func(x tenancy.Tx) error {
				u := user("other")
				u.Email = "ANN@example.ORG"
				return x.InsertUser(ctx, u)
			}},
			"user that is not there": {tenancy.ErrNotFound, func(x tenancy.Tx) error {
				_, err := x.User(ctx, "nobody")
				return err
			}},
			"role in use": {tenancy.ErrInUse, func(x tenancy.Tx) error { return x.DeleteRole(ctx, "r") }},
			"same assignment twice": {tenancy.ErrTaken, func(x tenancy.Tx) error {
				again := assignment
				again.ID = "b"
				return x.InsertAssignment(ctx, again)
			}},
			"assignment of another user": {tenancy.ErrNotFound, func(x tenancy.Tx) error { return x.DeleteAssignment(ctx, "bob", "a") }},
			"environment of another client": {tenancy.ErrNotFound, func(x tenancy.Tx) error {
				return x.InsertAssignment(ctx, tenancy.Assignment{
					ID: "c", UserID: "ann", RoleID: "r", CreatedAt: noon, Scope: access.Scope{ClientID: "acme", EnvironmentID: "zeta-prod"},
				})
			}},
		} {
			err := s.InTx(ctx, c.do)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", name, err, c.want)
			}
		}
		// A taken name does not spoil the transaction: what follows it still counts.
		write(t, db, func(x *tx) error {
			if err := x.InsertClient(ctx, tenancy.Client{ID: "new", Name: "Client acme", CreatedAt: noon}); !errors.Is(err, tenancy.ErrTaken) {
				t.Errorf("got %v", err)
			}
			return x.InsertClient(ctx, tenancy.Client{ID: "new", Name: "Client new", CreatedAt: noon})
		})
	})
}

func TestReachDecidesWhatListsShow(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Tenancy()
		house(t, db)
		for name, c := range map[string]struct {
			reach        access.Reach
			clients      []string
			environments []string
		}{
			"nobody": {access.Reach{}, nil, nil},
			"all":    {access.Reach{All: true}, []string{"acme", "zeta"}, []string{"acme-prod", "acme-test", "zeta-prod", "zeta-test"}},
			"client": {access.Reach{Scopes: []access.Scope{{ClientID: "zeta"}}}, []string{"zeta"}, []string{"zeta-prod", "zeta-test"}},
			"environment": {
				access.Reach{Scopes: []access.Scope{{ClientID: "acme", EnvironmentID: "acme-test"}}}, []string{"acme"}, []string{"acme-test"},
			},
			"both": {
				access.Reach{Scopes: []access.Scope{{ClientID: "acme", EnvironmentID: "acme-test"}, {ClientID: "zeta"}}},
				[]string{"acme", "zeta"},
				[]string{"acme-test", "zeta-prod", "zeta-test"},
			},
			"another client's environment": {access.Reach{Scopes: []access.Scope{{ClientID: "acme", EnvironmentID: "zeta-prod"}}}, []string{"acme"}, nil},
		} {
			clients, err := s.Clients(ctx, c.reach)
			if err != nil {
				t.Fatal(err)
			}
			environments, err := s.Environments(ctx, "", c.reach)
			if err != nil {
				t.Fatal(err)
			}
			var gotClients, gotEnvironments []string
			for _, one := range clients {
				gotClients = append(gotClients, one.ID)
			}
			for _, one := range environments {
				gotEnvironments = append(gotEnvironments, one.ID)
			}
			slices.Sort(gotEnvironments)
			places, err := s.Places(ctx, c.reach)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(clients, places.Clients); diff != "" {
				t.Errorf("%s: clients of the places %s", name, diff)
			}
			slices.SortFunc(environments, func(a, b tenancy.Environment) int {
				return strings.Compare(a.ClientID+" "+a.Name, b.ClientID+" "+b.Name)
			})
			if diff := cmp.Diff(environments, places.Environments); diff != "" {
				t.Errorf("%s: environments of the places %s", name, diff)
			}
			if diff := cmp.Diff(c.clients, gotClients); diff != "" {
				t.Errorf("%s: clients %s", name, diff)
			}
			if diff := cmp.Diff(c.environments, gotEnvironments); diff != "" {
				t.Errorf("%s: environments %s", name, diff)
			}
		}
		if found, err := s.Environments(ctx, "acme", access.Reach{All: true}); err != nil || len(found) != 2 {
			t.Errorf("environments of acme: %v, %v", found, err)
		}
	})
}

func TestListsAreInTheOrderOfBytes(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		house(t, db)
		// What a locale would order as a B b é z Z; names are folded, so case does not count.
		for _, name := range []string{"z", "é", "B", "a", "Z2", "ä"} {
			write(t, db, func(x *tx) error {
				return x.InsertEnvironment(ctx, tenancy.Environment{ID: "id-" + name, ClientID: "zeta", Name: name, CreatedAt: noon})
			})
		}
		found, err := db.Tenancy().Environments(ctx, "zeta", access.Reach{All: true})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range found {
			names = append(names, e.Name)
		}
		if diff := cmp.Diff([]string{"a", "B", "prod", "test", "z", "Z2", "ä", "é"}, names); diff != "" {
			t.Error(diff)
		}
	})
}

var errLast = errors.New("the last administrator stays")

func TestTheLastAdministratorStays(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Tenancy()
		write(t, db, func(x *tx) error {
			if err := x.InsertRole(ctx, tenancy.Role{ID: "admin", Name: "admin", CreatedAt: noon, Permissions: []access.Permission{access.UsersWrite}}); err != nil {
				return err
			}
			for _, id := range []string{"ann", "bob"} {
				if err := x.InsertUser(ctx, user(id)); err != nil {
					return err
				}
				if err := x.InsertAssignment(ctx, tenancy.Assignment{ID: "of-" + id, UserID: id, RoleID: "admin", CreatedAt: noon}); err != nil {
					return err
				}
			}
			return nil
		})
		retire := func(ctx context.Context, id string) error {
			return s.InTx(ctx, func(x tenancy.Tx) error {
				n, err := x.CountAdministrators(ctx)
				if err != nil {
					return err
				}
				if n < 2 {
					return errLast
				}
				u, err := x.User(ctx, id)
				if err != nil {
					return err
				}
				u.Active = false
				return x.UpdateUser(ctx, u)
			})
		}
		done := make(chan error)
		for _, id := range []string{"ann", "bob"} {
			go func() { done <- retire(ctx, id) }()
		}
		refused := 0
		for range 2 {
			switch err := <-done; {
			case errors.Is(err, errLast):
				refused++
			case err != nil:
				t.Error(err)
			}
		}
		if refused != 1 {
			t.Errorf("%d of 2 were refused, want exactly 1", refused)
		}
		write(t, db, func(x *tx) error {
			n, err := x.CountAdministrators(ctx)
			if n != 1 {
				t.Errorf("%d administrators are left", n)
			}
			return err
		})
	})
}

func TestGrantsAndAdministratorsFollowScope(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		house(t, db)
		scope := access.Scope{ClientID: "acme", EnvironmentID: "acme-prod"}
		write(t, db, func(x *tx) error {
			role := tenancy.Role{ID: "r", Name: "Admin", CreatedAt: noon, Permissions: []access.Permission{access.UsersWrite, access.AuditRead}}
			if err := x.InsertRole(ctx, role); err != nil {
				return err
			}
			return x.InsertAssignment(ctx, tenancy.Assignment{ID: "a", UserID: "ann", RoleID: "r", Scope: scope, CreatedAt: noon})
		})
		grants, err := db.Access().Grants(ctx, "ann")
		if err != nil {
			t.Fatal(err)
		}
		want := []access.Grant{{Role: "Admin", Scope: scope, Permissions: []access.Permission{access.UsersWrite, access.AuditRead}}}
		if diff := cmp.Diff(want, grants); diff != "" {
			t.Error(diff)
		}
		write(t, db, func(x *tx) error {
			n, err := x.CountAdministrators(ctx)
			if n != 0 {
				t.Errorf("an administrator of one environment counts as one of the whole console")
			}
			return err
		})
		assignments, err := db.Tenancy().Assignments(ctx, "ann")
		if err != nil || len(assignments) != 1 || assignments[0].RoleName != "Admin" || assignments[0].Scope != scope {
			t.Errorf("assignments %v, %v", assignments, err)
		}
	})
}

func TestUsersAreListedByPage(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Tenancy()
		house(t, db)
		write(t, db, func(x *tx) error {
			if err := x.InsertRole(ctx, tenancy.Role{ID: "r", Name: "Viewer", CreatedAt: noon}); err != nil {
				return err
			}
			for i := range 1200 {
				u := user(fmt.Sprintf("u%04d", i))
				u.Active = i%3 != 0
				if i == 7 {
					u.Name = "Öznur Ågren 100%"
				}
				if err := x.InsertUser(ctx, u); err != nil {
					return err
				}
			}
			return errors.Join(
				x.InsertAssignment(ctx, tenancy.Assignment{ID: "a1", UserID: "u0003", RoleID: "r", CreatedAt: noon, Scope: access.Scope{ClientID: "acme", EnvironmentID: "acme-prod"}}),
				x.InsertAssignment(ctx, tenancy.Assignment{ID: "a2", UserID: "u0003", RoleID: "r", CreatedAt: after(1)}),
			)
		})
		list := func(q tenancy.UserQuery) (ids []string, found []tenancy.Member, total int) {
			t.Helper()
			found, total, err := s.Users(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range found {
				ids = append(ids, m.ID)
				if m.PasswordHash != "" {
					t.Errorf("%s is listed with a hash", m.ID)
				}
			}
			return ids, found, total
		}
		ids, found, total := list(tenancy.UserQuery{Limit: 3, Offset: 3})
		if diff := cmp.Diff([]string{"u0002", "u0003", "u0004"}, ids); diff != "" || total != 1201 {
			t.Errorf("%d in all; %s", total, diff)
		}
		want := []tenancy.Assignment{
			{ID: "a1", UserID: "u0003", RoleID: "r", RoleName: "Viewer", Scope: access.Scope{ClientID: "acme", EnvironmentID: "acme-prod"}, ClientName: "Client acme", EnvironmentName: "prod", CreatedAt: noon},
			{ID: "a2", UserID: "u0003", RoleID: "r", RoleName: "Viewer", CreatedAt: after(1).Truncate(time.Microsecond)},
		}
		if diff := cmp.Diff(want, found[1].Assignments); diff != "" || found[0].Assignments != nil {
			t.Error(diff)
		}
		if _, _, total := list(tenancy.UserQuery{Active: new(false), Limit: 10}); total != 400 {
			t.Errorf("%d deactivated", total)
		}
		for text, want := range map[string]int{"ÖZNUR åg": 1, "100%": 1, "U000": 10, "@example.ORG": 1201, "nobody": 0, "_": 0} {
			if _, _, total := list(tenancy.UserQuery{Text: text, Limit: 10}); total != want {
				t.Errorf("%q finds %d, want %d", text, total, want)
			}
		}
		if _, _, total := list(tenancy.UserQuery{Kind: tenancy.KindServiceAccount, Limit: 10}); total != 0 {
			t.Errorf("%d service accounts", total)
		}
	})
}
