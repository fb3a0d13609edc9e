package tenancy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/id"
	"prxm.uz/proxima/internal/console/problem"
)

// Roles lists every role, by name.
func (s *Service) Roles(ctx context.Context, p access.Principal) ([]Role, error) {
	if err := p.Require(access.RolesRead, access.Scope{}, "console"); err != nil {
		return nil, err
	}
	roles, err := s.store.Roles(ctx)
	if err != nil {
		return nil, fmt.Errorf("list roles: %w", err)
	}
	return roles, nil
}

// Role reads a role.
func (s *Service) Role(ctx context.Context, p access.Principal, roleID string) (Role, error) {
	if err := p.Require(access.RolesRead, access.Scope{}, "console"); err != nil {
		return Role{}, err
	}
	r, err := s.store.Role(ctx, roleID)
	return r, answer(err, "role "+roleID, "name")
}

// CreateRole adds a role of permissions that p holds on the whole console.
func (s *Service) CreateRole(ctx context.Context, p access.Principal, name string, permissions []access.Permission) (Role, error) {
	if err := checkRole(p, name, permissions); err != nil {
		return Role{}, err
	}
	r := Role{ID: id.New("rol"), Name: name, Permissions: distinct(permissions), CreatedAt: s.clock.Now()}
	err := s.store.InTx(ctx, func(tx Tx) error {
		n, err := tx.CountRoles(ctx)
		if err != nil {
			return err
		}
		if n >= mostRoles {
			return problem.New(problem.Conflict, "too_many_roles", fmt.Sprintf("There are %d roles.", n)).WithCure("Delete those that nobody holds.")
		}
		if err := tx.InsertRole(ctx, r); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(r.CreatedAt, audit.RoleCreated).On("role", r.ID, r.Name).With("permissions", join(r.Permissions)))
	})
	return r, answer(err, fmt.Sprintf("role named %q", name), "name")
}

// Version changes with the name and the permissions: who edits a role sends it back, so that they undo
// nothing that another did meanwhile.
func (r Role) Version() string {
	sum := sha256.Sum256([]byte(r.Name + "\x00" + join(r.Permissions)))
	return hex.EncodeToString(sum[:8])
}

// UpdateRole replaces the name and the permissions of a role that is not built in. What it had and
// what it gets must be held by p on the whole console. A version that is not "" must be the role's.
func (s *Service) UpdateRole(ctx context.Context, p access.Principal, roleID, version, name string, permissions []access.Permission) (Role, error) {
	if err := checkRole(p, name, permissions); err != nil {
		return Role{}, err
	}
	var r Role
	err := s.store.InTx(ctx, func(tx Tx) (err error) {
		if r, err = changeable(ctx, tx, p, roleID); err != nil {
			return err
		}
		if version != "" && version != r.Version() {
			return problem.New(problem.Conflict, "role_changed_meanwhile", "Somebody changed the role "+r.Name+" since this page was loaded.").
				WithCure("Open the role again, and make your change there.")
		}
		e := p.Did(s.clock.Now(), audit.RoleUpdated).With("name_before", r.Name).With("name_after", name).
			With("permissions_before", join(r.Permissions)).With("permissions_after", join(permissions))
		r.Name, r.Permissions = name, distinct(permissions)
		if err := tx.UpdateRole(ctx, r); err != nil {
			return err
		}
		if err := keepAdministrator(ctx, tx); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, e.On("role", r.ID, r.Name))
	})
	return r, answer(err, fmt.Sprintf("role named %q", name), "name")
}

// DeleteRole deletes a role that nobody holds and that is not built in.
func (s *Service) DeleteRole(ctx context.Context, p access.Principal, roleID string) error {
	if err := p.Require(access.RolesWrite, access.Scope{}, "console"); err != nil {
		return err
	}
	err := s.store.InTx(ctx, func(tx Tx) error {
		r, err := changeable(ctx, tx, p, roleID)
		if err != nil {
			return err
		}
		if why := r.Undeletable(); why != nil {
			return why
		}
		if err := tx.DeleteRole(ctx, roleID); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(s.clock.Now(), audit.RoleDeleted).On("role", r.ID, r.Name).With("permissions", join(r.Permissions)))
	})
	return answer(err, "role "+roleID, "name")
}

// Undeletable says what keeps a role from being deleted; nil where nothing does.
func (r Role) Undeletable() *problem.Error {
	switch {
	case r.BuiltIn:
		return builtIn(r)
	case r.Holders > 0:
		return problem.New(problem.Conflict, "in_use", "The role "+r.Name+" is held by "+counted(r.Holders, "account")+".").
			WithCure("Take it from them first; the list of people can be narrowed to who holds it.")
	}
	return nil
}

func builtIn(r Role) *problem.Error {
	return problem.New(problem.Conflict, "role_built_in", "The role "+r.Name+" is built in and cannot be changed.").
		WithCure("Make a role of your own with the permissions that you want.")
}

func changeable(ctx context.Context, tx Tx, p access.Principal, roleID string) (Role, error) {
	r, err := tx.Role(ctx, roleID)
	if err != nil {
		return Role{}, answer(err, "role "+roleID, "name")
	}
	if r.BuiltIn {
		return Role{}, builtIn(r)
	}
	return r, requireAll(p, r.Permissions, access.Scope{})
}

// Assign gives a role to a user on a scope. Nobody gives what they do not hold on that scope.
func (s *Service) Assign(ctx context.Context, p access.Principal, userID, roleID string, scope access.Scope) (Assignment, error) {
	if err := p.Require(access.RolesWrite, access.Scope{}, "console"); err != nil {
		return Assignment{}, err
	}
	a := Assignment{ID: id.New("asg"), UserID: userID, RoleID: roleID, Scope: scope, CreatedAt: s.clock.Now()}
	err := s.store.InTx(ctx, func(tx Tx) error {
		u, err := tx.User(ctx, userID)
		if err != nil {
			return answer(err, "user "+userID, "userID")
		}
		a, err = assign(ctx, tx, p, u, a)
		return err
	})
	if errors.Is(err, ErrTaken) {
		return Assignment{}, problem.New(problem.Conflict, "already_assigned", "The user holds this role on this scope already.").
			WithCure("Nothing has to be done; to give more, choose another role or a wider scope.").InField("roleID")
	}
	return a, answer(err, "assignment", "roleID")
}

// assign gives the role of a to u, and answers the assignment with the role's name.
func assign(ctx context.Context, tx Tx, p access.Principal, u User, a Assignment) (Assignment, error) {
	role, err := tx.Role(ctx, a.RoleID)
	if err != nil {
		return a, unprocessable(err, "role "+a.RoleID, "roleID")
	}
	if err := checkScope(ctx, tx, a.Scope); err != nil {
		return a, err
	}
	if err := requireAll(p, role.Permissions, a.Scope); err != nil {
		return a, err
	}
	a.RoleName = role.Name
	if err := tx.InsertAssignment(ctx, a); err != nil {
		return a, err
	}
	return a, tx.AppendAudit(ctx, p.Did(a.CreatedAt, audit.RoleAssigned).On("user", u.ID, u.Email).
		In(a.Scope.ClientID, a.Scope.EnvironmentID).With("role", role.Name))
}

func checkScope(ctx context.Context, tx Tx, scope access.Scope) error {
	if scope.EnvironmentID != "" && scope.ClientID == "" {
		return problem.New(problem.Invalid, "scope_invalid", "An environment needs its client.").
			WithCure("Send clientID as well.").InField("clientID")
	}
	if scope.ClientID != "" {
		if _, err := tx.Client(ctx, scope.ClientID); err != nil {
			return unprocessable(err, "client "+scope.ClientID, "clientID")
		}
	}
	if scope.EnvironmentID == "" {
		return nil
	}
	e, err := tx.Environment(ctx, scope.EnvironmentID)
	if err == nil && e.ClientID != scope.ClientID {
		err = ErrNotFound
	}
	return unprocessable(err, "environment "+scope.EnvironmentID+" of this client", "environmentID")
}

// Unassign takes a role from a user; the last administrator keeps theirs.
func (s *Service) Unassign(ctx context.Context, p access.Principal, userID, assignmentID string) error {
	if err := p.Require(access.RolesWrite, access.Scope{}, "console"); err != nil {
		return err
	}
	what := "assignment " + assignmentID
	assignments, err := s.store.Assignments(ctx, userID)
	if err != nil {
		return answer(err, what, "assignmentID")
	}
	i := slices.IndexFunc(assignments, func(a Assignment) bool { return a.ID == assignmentID })
	if i < 0 {
		return notFound(what)
	}
	a := assignments[i]
	err = s.store.InTx(ctx, func(tx Tx) error {
		role, err := tx.Role(ctx, a.RoleID)
		if err != nil {
			return err
		}
		if err := requireAll(p, role.Permissions, a.Scope); err != nil {
			return err
		}
		u, err := tx.User(ctx, userID)
		if err != nil {
			return err
		}
		if err := tx.DeleteAssignment(ctx, userID, assignmentID); err != nil {
			return err
		}
		if err := keepAdministrator(ctx, tx); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(s.clock.Now(), audit.RoleUnassigned).On("user", u.ID, u.Email).
			In(a.Scope.ClientID, a.Scope.EnvironmentID).With("role", role.Name))
	})
	return answer(err, what, "assignmentID")
}

func checkRole(p access.Principal, name string, permissions []access.Permission) error {
	if err := p.Require(access.RolesWrite, access.Scope{}, "console"); err != nil {
		return err
	}
	if err := access.CheckName("name", name, maxRoleName); err != nil {
		return err
	}
	if len(permissions) == 0 {
		return problem.New(problem.Invalid, "permissions_missing", "The role has no permission.").WithCure("Give at least one.").InField("permissions")
	}
	for _, perm := range permissions {
		if !perm.Known() {
			return problem.New(problem.Invalid, "permission_unknown", fmt.Sprintf("There is no permission %q.", perm)).
				WithCure("Choose of: " + join(access.Permissions()) + ".").InField("permissions")
		}
	}
	return requireAll(p, permissions, access.Scope{})
}

// requireAll refuses what p does not hold itself on the scope.
func requireAll(p access.Principal, permissions []access.Permission, scope access.Scope) error {
	for _, perm := range permissions {
		if !p.Allows(perm, scope) {
			return problem.New(problem.Forbidden, "grant_exceeds_own", "This takes the permission "+string(perm)+", which you do not hold there yourself.").
				WithCure("Ask somebody who holds it.")
		}
	}
	return nil
}

func unprocessable(err error, what, field string) error {
	if errors.Is(err, ErrNotFound) {
		return problem.New(problem.Unprocessable, "reference_unknown", "There is no "+what+".").WithCure("Check the id.").InField(field)
	}
	return answer(err, what, field)
}

func problemOf(err error) (*problem.Error, bool) { return errors.AsType[*problem.Error](err) }

func distinct(permissions []access.Permission) []access.Permission {
	var out []access.Permission
	for _, p := range permissions {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

func join(permissions []access.Permission) string {
	words := make([]string, len(permissions))
	for i, p := range permissions {
		words[i] = string(p)
	}
	return strings.Join(words, ", ")
}
