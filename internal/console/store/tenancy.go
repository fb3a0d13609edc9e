package store

import (
	"context"
	"database/sql"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/store/internal/dbtype"
	"prxm.uz/proxima/internal/console/store/internal/sqlgen"
	"prxm.uz/proxima/internal/console/tenancy"
)

// Tenancy returns the store of package tenancy.
func (db *DB) Tenancy() tenancy.Store { return tenancyStore{db} }

type tenancyStore struct{ db *DB }

func (s tenancyStore) InTx(ctx context.Context, f func(tenancy.Tx) error) error {
	return s.db.inTx(ctx, func(t *tx) error { return f(t) })
}

func tenancyErrors() sentinels {
	return sentinels{missing: tenancy.ErrNotFound, taken: tenancy.ErrTaken, inUse: tenancy.ErrInUse}
}

// ---- clients and environments

func clientFrom(c sqlgen.Client) tenancy.Client {
	return tenancy.Client{ID: c.ID, Name: c.Name, CreatedAt: c.CreatedAt.Time}
}

func environmentFrom(e sqlgen.Environment) tenancy.Environment {
	return tenancy.Environment{ID: e.ID, ClientID: e.ClientID, Name: e.Name, CreatedAt: e.CreatedAt.Time}
}

func (t *tx) InsertClient(ctx context.Context, c tenancy.Client) error {
	n, err := t.q.InsertClient(ctx, sqlgen.InsertClientParams{
		ID: c.ID, Name: c.Name, NameFolded: fold(c.Name), CreatedAt: dbtype.At(c.CreatedAt),
	})
	return tenancyErrors().inserted(n, err, "insert client "+c.ID)
}

func (t *tx) UpdateClient(ctx context.Context, c tenancy.Client) error {
	n, err := t.q.UpdateClient(ctx, sqlgen.UpdateClientParams{ID: c.ID, Name: c.Name, NameFolded: fold(c.Name)})
	return tenancyErrors().changed(n, err, "update client "+c.ID)
}

func (r reads) Client(ctx context.Context, id string) (tenancy.Client, error) {
	c, err := r.q.Client(ctx, id)
	return clientFrom(c), tenancyErrors().translate(err, "client "+id)
}

func (s tenancyStore) Client(ctx context.Context, id string) (tenancy.Client, error) {
	return s.db.plain().Client(ctx, id)
}

// Clients lists also the clients of which reach covers a single environment.
func (s tenancyStore) Clients(ctx context.Context, reach access.Reach) ([]tenancy.Client, error) {
	var l list
	l.touched("id", reach)
	query := "SELECT id, name, name_folded, created_at FROM clients" + l.condition() + " ORDER BY name_folded, id"
	found, err := rows(ctx, s.db.reader, query, l.args, func(r *sql.Rows) (tenancy.Client, error) {
		var c sqlgen.Client
		err := r.Scan(&c.ID, &c.Name, &c.NameFolded, &c.CreatedAt)
		return clientFrom(c), err
	})
	return found, tenancyErrors().translate(err, "list clients")
}

func (t *tx) InsertEnvironment(ctx context.Context, e tenancy.Environment) error {
	n, err := t.q.InsertEnvironment(ctx, sqlgen.InsertEnvironmentParams{
		ID: e.ID, ClientID: e.ClientID, Name: e.Name, NameFolded: fold(e.Name), CreatedAt: dbtype.At(e.CreatedAt),
	})
	return tenancyErrors().inserted(n, err, "insert environment "+e.ID)
}

func (t *tx) UpdateEnvironment(ctx context.Context, e tenancy.Environment) error {
	n, err := t.q.UpdateEnvironment(ctx, sqlgen.UpdateEnvironmentParams{ID: e.ID, Name: e.Name, NameFolded: fold(e.Name)})
	return tenancyErrors().changed(n, err, "update environment "+e.ID)
}

func (r reads) Environment(ctx context.Context, id string) (tenancy.Environment, error) {
	e, err := r.q.Environment(ctx, id)
	return environmentFrom(e), tenancyErrors().translate(err, "environment "+id)
}

func (s tenancyStore) Environment(ctx context.Context, id string) (tenancy.Environment, error) {
	return s.db.plain().Environment(ctx, id)
}

func (s tenancyStore) Environments(ctx context.Context, clientID string, reach access.Reach) ([]tenancy.Environment, error) {
	var l list
	l.equalIf("client_id", clientID)
	l.reach("client_id", "id", reach)
	query := "SELECT id, client_id, name, name_folded, created_at FROM environments" + l.condition() + " ORDER BY name_folded, id"
	found, err := rows(ctx, s.db.reader, query, l.args, func(r *sql.Rows) (tenancy.Environment, error) {
		var e sqlgen.Environment
		err := r.Scan(&e.ID, &e.ClientID, &e.Name, &e.NameFolded, &e.CreatedAt)
		return environmentFrom(e), err
	})
	return found, tenancyErrors().translate(err, "list environments")
}

// ---- users

func userFrom(u sqlgen.User) tenancy.User {
	return tenancy.User{
		ID: u.ID, Kind: tenancy.UserKind(u.Kind), Email: u.Email, Name: u.Name, PasswordHash: u.PasswordHash, Active: u.Active,
		CreatedAt: u.CreatedAt.Time, UpdatedAt: u.UpdatedAt.Time,
	}
}

func (t *tx) InsertUser(ctx context.Context, u tenancy.User) error {
	n, err := t.q.InsertUser(ctx, sqlgen.InsertUserParams{
		ID: u.ID, Kind: string(u.Kind), Email: u.Email, EmailFolded: fold(u.Email), Name: u.Name, NameFolded: fold(u.Name),
		PasswordHash: u.PasswordHash, Active: u.Active, CreatedAt: dbtype.At(u.CreatedAt), UpdatedAt: dbtype.At(u.UpdatedAt),
	})
	return tenancyErrors().inserted(n, err, "insert user "+u.ID)
}

func (t *tx) UpdateUser(ctx context.Context, u tenancy.User) error {
	n, err := t.q.UpdateUser(ctx, sqlgen.UpdateUserParams{
		ID: u.ID, Email: u.Email, EmailFolded: fold(u.Email), Name: u.Name, NameFolded: fold(u.Name),
		PasswordHash: u.PasswordHash, Active: u.Active, UpdatedAt: dbtype.At(u.UpdatedAt),
	})
	return tenancyErrors().changed(n, err, "update user "+u.ID)
}

func (r reads) User(ctx context.Context, id string) (tenancy.User, error) {
	u, err := r.q.User(ctx, id)
	return userFrom(u), tenancyErrors().translate(err, "user "+id)
}

func (s tenancyStore) User(ctx context.Context, id string) (tenancy.User, error) {
	return s.db.plain().User(ctx, id)
}

const selectUsers = "SELECT id, kind, email, name, active, created_at, updated_at FROM users"

// Users leaves the hashes of passwords where they are.
func (s tenancyStore) Users(ctx context.Context, q tenancy.UserQuery) (found []tenancy.Member, total int, err error) {
	var l list
	l.containsAny([]string{"email_folded", "name_folded"}, q.Text)
	l.equalIf("kind", string(q.Kind))
	if q.RoleID != "" {
		l.fixed("id IN (SELECT user_id FROM role_assignments WHERE role_id = " + l.arg(q.RoleID) + ")")
	}
	if q.Active != nil {
		l.equal("active", *q.Active)
	}
	err = s.db.snapshot(ctx, func(r reads) error {
		if total, err = count(ctx, r.raw, "users", &l); err != nil {
			return err
		}
		query := selectUsers + l.condition() + " ORDER BY email_folded" + l.page(q.Limit, 500, q.Offset)
		found, err = rows(ctx, r.raw, query, l.args, func(r *sql.Rows) (tenancy.Member, error) {
			var u sqlgen.User
			err := r.Scan(&u.ID, &u.Kind, &u.Email, &u.Name, &u.Active, &u.CreatedAt, &u.UpdatedAt)
			return tenancy.Member{User: userFrom(u)}, err
		})
		if err != nil || len(found) == 0 {
			return err
		}
		assigned, err := r.assignments(ctx, each(found, func(m tenancy.Member) string { return m.ID }))
		if err != nil {
			return err
		}
		byUser := map[string][]tenancy.Assignment{}
		for _, a := range assigned {
			byUser[a.UserID] = append(byUser[a.UserID], a)
		}
		for i, m := range found {
			found[i].Assignments = byUser[m.ID]
		}
		return nil
	})
	return found, total, tenancyErrors().translate(err, "list users")
}

func (t *tx) CountUsers(ctx context.Context) (int, error) {
	n, err := t.q.CountUsers(ctx)
	return int(n), tenancyErrors().translate(err, "count users")
}

func (t *tx) CountAdministrators(ctx context.Context) (int, error) {
	n, err := t.q.CountHoldersEverywhere(ctx, string(access.UsersWrite))
	return int(n), tenancyErrors().translate(err, "count administrators")
}

func (t *tx) DeleteSessionsOfUser(ctx context.Context, userID string) error {
	return tenancyErrors().translate(t.q.DeleteSessionsOfUser(ctx, dbtype.Text(userID)), "delete the sessions of "+userID)
}

func (s tenancyStore) APITokens(ctx context.Context, userID string) ([]access.APIToken, error) {
	return s.db.plain().APITokens(ctx, userID)
}

func (t *tx) RevokeAPIToken(ctx context.Context, userID, id string, at time.Time) error {
	n, err := t.q.RevokeAPIToken(ctx, sqlgen.RevokeAPITokenParams{UserID: userID, ID: id, RevokedAt: dbtype.At(at)})
	return tenancyErrors().changed(n, err, "revoke API token "+id)
}

func (t *tx) RevokeAPITokensOfUser(ctx context.Context, userID string, at time.Time) (int, error) {
	n, err := t.q.RevokeAPITokensOfUser(ctx, sqlgen.RevokeAPITokensOfUserParams{UserID: userID, RevokedAt: dbtype.At(at)})
	return int(n), tenancyErrors().translate(err, "revoke the API tokens of "+userID)
}

// ---- roles and assignments

func roleFrom(r sqlgen.Role, holders int64, permissions []sqlgen.RolePermission) tenancy.Role {
	return tenancy.Role{
		ID: r.ID, Name: r.Name, BuiltIn: r.BuiltIn, CreatedAt: r.CreatedAt.Time, Holders: int(holders),
		Permissions: each(permissions, func(p sqlgen.RolePermission) access.Permission { return access.Permission(p.Permission) }),
	}
}

func (t *tx) InsertRole(ctx context.Context, r tenancy.Role) error {
	n, err := t.q.InsertRole(ctx, sqlgen.InsertRoleParams{
		ID: r.ID, Name: r.Name, NameFolded: fold(r.Name), BuiltIn: r.BuiltIn, CreatedAt: dbtype.At(r.CreatedAt),
	})
	if err := tenancyErrors().inserted(n, err, "insert role "+r.ID); err != nil {
		return err
	}
	return t.putPermissions(ctx, r)
}

// UpdateRole writes name and permissions.
func (t *tx) UpdateRole(ctx context.Context, r tenancy.Role) error {
	n, err := t.q.UpdateRole(ctx, sqlgen.UpdateRoleParams{ID: r.ID, Name: r.Name, NameFolded: fold(r.Name)})
	if err := tenancyErrors().changed(n, err, "update role "+r.ID); err != nil {
		return err
	}
	if err := t.q.DeleteRolePermissions(ctx, r.ID); err != nil {
		return tenancyErrors().translate(err, "update role "+r.ID)
	}
	return t.putPermissions(ctx, r)
}

func (t *tx) putPermissions(ctx context.Context, r tenancy.Role) error {
	for i, p := range r.Permissions {
		err := t.q.InsertRolePermission(ctx, sqlgen.InsertRolePermissionParams{RoleID: r.ID, Permission: string(p), Position: int64(i)})
		if err != nil {
			return tenancyErrors().translate(err, "permissions of role "+r.ID)
		}
	}
	return nil
}

func (t *tx) DeleteRole(ctx context.Context, id string) error {
	n, err := t.q.DeleteRole(ctx, id)
	return tenancyErrors().changed(n, err, "delete role "+id)
}

func (r reads) role(ctx context.Context, found sqlgen.Role, holders int64, err error, what string) (tenancy.Role, error) {
	if err != nil {
		return tenancy.Role{}, tenancyErrors().translate(err, what)
	}
	permissions, err := r.q.RolePermissions(ctx, found.ID)
	return roleFrom(found, holders, permissions), tenancyErrors().translate(err, what)
}

func (r reads) Role(ctx context.Context, id string) (tenancy.Role, error) {
	found, err := r.q.Role(ctx, id)
	return r.role(ctx, found.Role, found.Holders, err, "role "+id)
}

func (r reads) RoleByName(ctx context.Context, name string) (tenancy.Role, error) {
	found, err := r.q.RoleByName(ctx, fold(name))
	return r.role(ctx, found.Role, found.Holders, err, "role named "+name)
}

func (t *tx) CountRoles(ctx context.Context) (int, error) {
	n, err := t.q.CountRoles(ctx)
	return int(n), tenancyErrors().translate(err, "count roles")
}

func (s tenancyStore) Role(ctx context.Context, id string) (role tenancy.Role, err error) {
	err = s.db.snapshot(ctx, func(r reads) error {
		role, err = r.Role(ctx, id)
		return err
	})
	return role, err
}

func (s tenancyStore) Roles(ctx context.Context) ([]tenancy.Role, error) {
	var all []tenancy.Role
	err := s.db.snapshot(ctx, func(r reads) error {
		found, err := r.q.Roles(ctx)
		if err != nil {
			return tenancyErrors().translate(err, "list roles")
		}
		permissions, err := r.q.AllRolePermissions(ctx)
		if err != nil {
			return tenancyErrors().translate(err, "list the permissions of roles")
		}
		byRole := map[string][]sqlgen.RolePermission{}
		for _, p := range permissions {
			byRole[p.RoleID] = append(byRole[p.RoleID], p)
		}
		all = each(found, func(one sqlgen.RolesRow) tenancy.Role { return roleFrom(one.Role, one.Holders, byRole[one.Role.ID]) })
		return nil
	})
	return all, err
}

func (t *tx) InsertAssignment(ctx context.Context, a tenancy.Assignment) error {
	n, err := t.q.InsertAssignment(ctx, sqlgen.InsertAssignmentParams{
		ID: a.ID, UserID: a.UserID, RoleID: a.RoleID, ClientID: dbtype.Text(a.Scope.ClientID),
		EnvironmentID: dbtype.Text(a.Scope.EnvironmentID), CreatedAt: dbtype.At(a.CreatedAt),
	})
	return tenancyErrors().inserted(n, err, "insert assignment "+a.ID)
}

func (t *tx) DeleteAssignment(ctx context.Context, userID, id string) error {
	n, err := t.q.DeleteAssignment(ctx, sqlgen.DeleteAssignmentParams{UserID: userID, ID: id})
	return tenancyErrors().changed(n, err, "delete assignment "+id)
}

func (s tenancyStore) Assignments(ctx context.Context, userID string) ([]tenancy.Assignment, error) {
	return s.db.plain().Assignments(ctx, userID)
}

func (r reads) Assignments(ctx context.Context, userID string) ([]tenancy.Assignment, error) {
	found, err := r.assignments(ctx, []string{userID})
	return found, tenancyErrors().translate(err, "assignments of "+userID)
}

const selectAssignments = `SELECT a.id, a.user_id, a.role_id, r.name, a.client_id, a.environment_id, a.created_at,
	COALESCE(c.name, ''), COALESCE(e.name, '')
FROM role_assignments a
JOIN roles r ON r.id = a.role_id
LEFT JOIN clients c ON c.id = a.client_id
LEFT JOIN environments e ON e.id = a.environment_id`

// assignments lists the roles of several users, the oldest first.
func (r reads) assignments(ctx context.Context, userIDs []string) ([]tenancy.Assignment, error) {
	var l list
	l.fixed(l.in("a.user_id", userIDs))
	return rows(ctx, r.raw, selectAssignments+l.condition()+" ORDER BY a.created_at, a.id", l.args, func(r *sql.Rows) (tenancy.Assignment, error) {
		var a tenancy.Assignment
		var clientID, environmentID dbtype.Text
		var createdAt dbtype.Time
		err := r.Scan(&a.ID, &a.UserID, &a.RoleID, &a.RoleName, &clientID, &environmentID, &createdAt, &a.ClientName, &a.EnvironmentName)
		a.Scope, a.CreatedAt = scopeFrom(clientID, environmentID), createdAt.Time
		return a, err
	})
}
