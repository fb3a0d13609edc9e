package tenancy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/id"
	"prxm.uz/proxima/internal/console/problem"
)

// Service changes and lists clients, environments, users and roles for a principal. Every change leaves
// an audit row in its own transaction. It may be used from several goroutines.
type Service struct {
	store  Store
	hasher *access.Hasher
	clock  clock.Clock
}

// New makes a Service.
func New(store Store, hasher *access.Hasher, c clock.Clock) *Service {
	return &Service{store: store, hasher: hasher, clock: c}
}

// The names of the built-in roles.
const (
	RoleAdministrator = "Administrator"
	RoleOperator      = "Operator"
	RoleViewer        = "Viewer"
)

func builtInRoles() []Role {
	return []Role{
		{Name: RoleAdministrator, Permissions: access.Permissions()},
		{Name: RoleOperator, Permissions: []access.Permission{
			access.HostsRead, access.HostsWrite, access.AgentsRead, access.AgentsWrite, access.ClientsRead,
			access.KubernetesRead, access.AuditRead,
		}},
		{Name: RoleViewer, Permissions: []access.Permission{access.HostsRead, access.ClientsRead, access.AgentsRead}},
	}
}

// EnsureRoles makes the built-in roles, and brings their permissions up to what this build says. Call
// it at start; replicas may do so at once.
func (s *Service) EnsureRoles(ctx context.Context) error {
	for _, want := range builtInRoles() {
		err := s.store.InTx(ctx, func(tx Tx) error {
			have, err := tx.RoleByName(ctx, want.Name)
			if errors.Is(err, ErrNotFound) {
				r := want
				r.ID, r.BuiltIn, r.CreatedAt = id.New("rol"), true, s.clock.Now()
				return tx.InsertRole(ctx, r)
			}
			if err != nil {
				return err
			}
			if equalPermissions(have.Permissions, want.Permissions) {
				return nil
			}
			have.Permissions = want.Permissions
			return tx.UpdateRole(ctx, have)
		})
		if err != nil && !errors.Is(err, ErrTaken) { // taken: another replica was faster
			return fmt.Errorf("ensure the role %s: %w", want.Name, err)
		}
	}
	return nil
}

// EnsureAdministrator makes the first user, an administrator of the whole console, where there is no
// user at all; it tells whether it did. The roles are ensured first.
func (s *Service) EnsureAdministrator(ctx context.Context, email, password string) (bool, error) {
	if err := s.EnsureRoles(ctx); err != nil {
		return false, err
	}
	created := false
	var u User
	err := s.store.InTx(ctx, func(tx Tx) error {
		created = false
		n, err := tx.CountUsers(ctx)
		if err != nil || n > 0 {
			return err
		}
		if u.ID == "" { // hashed once, although the transaction may run again
			if u, err = s.newUser(ctx, email, "Administrator", password); err != nil {
				return err
			}
		}
		role, err := tx.RoleByName(ctx, RoleAdministrator)
		if err != nil {
			return err
		}
		if err := tx.InsertUser(ctx, u); err != nil {
			return err
		}
		a := Assignment{ID: id.New("asg"), UserID: u.ID, RoleID: role.ID, CreatedAt: u.CreatedAt}
		if err := tx.InsertAssignment(ctx, a); err != nil {
			return err
		}
		created = true
		return tx.AppendAudit(ctx, audit.System(u.CreatedAt, audit.AdministratorCreated).On("user", u.ID, u.Email))
	})
	if errors.Is(err, ErrTaken) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("first administrator: %w", err)
	}
	return created, nil
}

// answer turns what a Store says into a problem; what names the row, field the input that is taken.
func answer(err error, what, field string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotFound):
		return notFound(what)
	case errors.Is(err, ErrTaken):
		return problem.New(problem.Conflict, "name_taken", "There is already a "+what+".").
			WithCure("Choose another " + field + "; upper and lower case count as the same.").InField(field).Because(err)
	case errors.Is(err, ErrInUse):
		return problem.New(problem.Conflict, "in_use", "The "+what+" is still in use.").
			WithCure("Take away first what refers to it.").Because(err)
	default:
		if _, ok := errors.AsType[*problem.Error](err); ok {
			return err
		}
		return fmt.Errorf("%s: %w", what, err)
	}
}

func notFound(what string) error {
	return problem.New(problem.NotFound, "not_found", "There is no "+what+".").
		WithCure("Check the id; if it is right, you have no role where it lives.")
}

func equalPermissions(a, b []access.Permission) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
