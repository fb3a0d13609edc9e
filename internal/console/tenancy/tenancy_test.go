package tenancy_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/console/store"
	"prxm.uz/proxima/internal/console/tenancy"
)

const password = "correct horse battery"

// recording counts the audit rows that pass through the real store, and can refuse them.
type recording struct {
	tenancy.Store
	actions []string
	refuse  error
}

type recordingTx struct {
	tenancy.Tx
	r *recording
}

func (r *recording) InTx(ctx context.Context, f func(tenancy.Tx) error) error {
	return r.Store.InTx(ctx, func(tx tenancy.Tx) error { return f(recordingTx{tx, r}) })
}

func (t recordingTx) AppendAudit(ctx context.Context, e audit.Event) error {
	if t.r.refuse != nil {
		return t.r.refuse
	}
	t.r.actions = append(t.r.actions, string(e.Action))
	return t.Tx.AppendAudit(ctx, e)
}

type house struct {
	*tenancy.Service
	access *access.Service
	audit  *recording
	root   access.Principal
}

func newHouse(t *testing.T) house {
	t.Helper()
	c := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "proxima.db"), Clock: c})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	hasher, err := access.NewHasher(access.Cost{MemoryKiB: 64, Iterations: 1, Parallelism: 1})
	must(t, err)
	r := &recording{Store: db.Tenancy()}
	h := house{Service: tenancy.New(r, hasher, c), access: access.New(db.Access(), hasher, c, slog.New(slog.DiscardHandler)), audit: r}
	for want := range 2 {
		made, err := h.EnsureAdministrator(t.Context(), "root@example.com", password)
		if err != nil || made != (want == 0) {
			t.Fatalf("run %d: made %v, %v", want, made, err)
		}
	}
	h.root, err = h.access.SignIn(t.Context(), "root@example.com", password, "")
	must(t, err)
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h house) role(t *testing.T, name string) string {
	t.Helper()
	roles, err := h.Roles(t.Context(), h.root)
	must(t, err)
	for _, r := range roles {
		if r.Name == name {
			return r.ID
		}
	}
	t.Fatalf("no role %s", name)
	return ""
}

// person makes a user with a role of the permissions on the scope.
func (h house) person(t *testing.T, name string, scope access.Scope, permissions ...access.Permission) access.Principal {
	t.Helper()
	u, err := h.CreateUser(t.Context(), h.root, name+"@example.com", name, password)
	must(t, err)
	r, err := h.CreateRole(t.Context(), h.root, "role of "+name, permissions)
	must(t, err)
	_, err = h.Assign(t.Context(), h.root, u.ID, r.ID, scope)
	must(t, err)
	p, err := h.access.Principal(t.Context(), u.ID)
	must(t, err)
	return p
}

func want(t *testing.T, err error, code string) {
	t.Helper()
	if problem.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestTheLastAdministratorStays(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	_, err := h.UpdateUser(ctx, h.root, h.root.UserID, tenancy.UserPatch{Active: new(false)})
	want(t, err, "last_administrator")
	_, held, err := h.User(ctx, h.root, h.root.UserID)
	must(t, err)
	want(t, h.Unassign(ctx, h.root, h.root.UserID, held[0].ID), "last_administrator")

	bob, err := h.CreateUser(ctx, h.root, "bob@example.com", "Bob", password)
	must(t, err)
	_, err = h.Assign(ctx, h.root, bob.ID, h.role(t, tenancy.RoleAdministrator), access.Scope{})
	must(t, err)
	must(t, h.Unassign(ctx, h.root, h.root.UserID, held[0].ID))
}

func TestNobodyGivesMoreThanTheyHold(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	acme, err := h.CreateClient(ctx, h.root, "acme")
	must(t, err)
	cat := h.person(t, "cat", access.Scope{}, access.RolesWrite, access.RolesRead, access.UsersWrite, access.UsersRead, access.HostsRead)
	_, err = h.CreateRole(ctx, cat, "too much", []access.Permission{access.HostsWrite})
	want(t, err, "grant_exceeds_own")
	_, err = h.Assign(ctx, cat, cat.UserID, h.role(t, tenancy.RoleAdministrator), access.Scope{})
	want(t, err, "grant_exceeds_own")
	_, err = h.Assign(ctx, cat, cat.UserID, h.role(t, tenancy.RoleOperator), access.Scope{ClientID: acme.ID})
	want(t, err, "grant_exceeds_own")
	_, err = h.UpdateUser(ctx, cat, h.root.UserID, tenancy.UserPatch{Password: new("a password of mine")})
	want(t, err, "grant_exceeds_own")
	_, err = h.UpdateUser(ctx, cat, h.root.UserID, tenancy.UserPatch{Active: new(false)})
	want(t, err, "grant_exceeds_own")
	_, held, err := h.User(ctx, h.root, h.root.UserID)
	must(t, err)
	want(t, h.Unassign(ctx, cat, h.root.UserID, held[0].ID), "grant_exceeds_own")
	made, err := h.CreateRole(ctx, cat, "enough", []access.Permission{access.HostsRead})
	must(t, err)
	_, err = h.Assign(ctx, cat, h.root.UserID, made.ID, access.Scope{ClientID: acme.ID})
	must(t, err)
	_, err = h.UpdateRole(ctx, h.root, h.role(t, tenancy.RoleViewer), "", "Viewer", []access.Permission{access.HostsRead})
	want(t, err, "role_built_in")
	want(t, h.DeleteRole(ctx, h.root, made.ID), "in_use")
}

func TestStrangersSeeNothing(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	acme, err := h.CreateClient(ctx, h.root, "acme")
	must(t, err)
	zeta, err := h.CreateClient(ctx, h.root, "zeta")
	must(t, err)
	prod, err := h.CreateEnvironment(ctx, h.root, acme.ID, "prod")
	must(t, err)
	test, err := h.CreateEnvironment(ctx, h.root, acme.ID, "test")
	must(t, err)
	dan := h.person(t, "dan", access.Scope{ClientID: acme.ID, EnvironmentID: prod.ID}, access.ClientsRead, access.HostsRead)
	clients, err := h.Clients(ctx, dan)
	must(t, err)
	environments, err := h.Environments(ctx, dan, acme.ID)
	must(t, err)
	if len(clients) != 1 || clients[0].ID != acme.ID || len(environments) != 1 || environments[0].ID != prod.ID {
		t.Errorf("dan sees %v and %v", clients, environments)
	}
	_, err = h.Client(ctx, dan, zeta.ID)
	want(t, err, "not_found")
	_, err = h.Environments(ctx, dan, zeta.ID)
	want(t, err, "not_found")
	_, err = h.Environment(ctx, dan, test.ID)
	want(t, err, "not_found")
	_, err = h.RenameClient(ctx, dan, zeta.ID, "x")
	want(t, err, "not_found")
	_, err = h.RenameClient(ctx, dan, acme.ID, "x")
	want(t, err, "permission_missing")
	_, err = h.RenameEnvironment(ctx, dan, test.ID, "x")
	want(t, err, "not_found")
	_, err = h.RenameEnvironment(ctx, dan, prod.ID, "x")
	want(t, err, "permission_missing")
}

func TestEachChangeLeavesARowOrNothing(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	acme, err := h.CreateClient(ctx, h.root, "acme")
	must(t, err)
	dev, err := h.CreateEnvironment(ctx, h.root, acme.ID, "dev")
	must(t, err)
	empty, err := h.CreateClient(ctx, h.root, "empty")
	must(t, err)
	nightly, err := h.CreateServiceAccount(ctx, h.root, "nightly")
	must(t, err)
	before := len(h.audit.actions)
	changes := []func() error{
		func() error { _, err := h.CreateClient(ctx, h.root, "zeta"); return err },
		func() error { _, err := h.RenameClient(ctx, h.root, acme.ID, "Acme"); return err },
		func() error { _, err := h.CreateEnvironment(ctx, h.root, acme.ID, "prod"); return err },
		func() error { _, err := h.RenameEnvironment(ctx, h.root, dev.ID, "test"); return err },
		func() error { return h.DeleteEnvironment(ctx, h.root, dev.ID) },
		func() error { return h.DeleteClient(ctx, h.root, empty.ID) },
		func() error { _, err := h.CreateUser(ctx, h.root, "bob@example.com", "Bob", password); return err },
		func() error {
			_, err := h.UpdateUser(ctx, h.root, h.root.UserID, tenancy.UserPatch{Name: new("Root")})
			return err
		},
		func() error {
			_, err := h.CreateRole(ctx, h.root, "r", []access.Permission{access.HostsRead})
			return err
		},
		func() error {
			_, _, err := h.Invite(ctx, h.root, tenancy.Invitation{Email: "cat@example.com", Name: "Cat"})
			return err
		},
		func() error { _, err := h.CreateServiceAccount(ctx, h.root, "hourly"); return err },
		func() error { _, _, err := h.MintAPIToken(ctx, h.root, nightly.ID, "ci", 0); return err },
		func() error { return h.ChangePassword(ctx, h.root, password, "entirely new words") },
	}
	h.audit.refuse = errors.New("the log is full")
	for i, change := range changes {
		if err := change(); !errors.Is(err, h.audit.refuse) {
			t.Errorf("change %d without its audit row: %v", i, err)
		}
	}
	h.audit.refuse = nil
	for i, change := range changes {
		if err := change(); err != nil {
			t.Errorf("change %d, which had left nothing before: %v", i, err)
		}
	}
	if got := len(h.audit.actions) - before; got < len(changes) {
		t.Errorf("%d changes left %d rows: %v", len(changes), got, h.audit.actions)
	}
}

// TestRevokingATokenIsAudited: once, and only where it changed something.
func TestRevokingATokenIsAudited(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	ann := h.person(t, "ann", access.Scope{}, access.UsersRead)
	token, _, err := h.access.MintAPIToken(ctx, ann, "ci", 0)
	must(t, err)
	before := len(h.audit.actions)
	h.audit.refuse = errors.New("the log is full")
	if err := h.RevokeAPIToken(ctx, h.root, ann.UserID, token.ID); !errors.Is(err, h.audit.refuse) {
		t.Errorf("revoked without its audit row: %v", err)
	}
	h.audit.refuse = nil
	for range 2 {
		must(t, h.RevokeAPIToken(ctx, h.root, ann.UserID, token.ID))
	}
	if got := h.audit.actions[before:]; len(got) != 1 || got[0] != "api_token_revoked" {
		t.Errorf("audited: %v", got)
	}
	want(t, h.RevokeAPIToken(ctx, h.root, h.root.UserID, token.ID), "not_found")
	want(t, h.RevokeAPIToken(ctx, ann, ann.UserID, token.ID), "permission_missing")
}

func TestNames(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	_, err := h.CreateUser(ctx, h.root, "ROOT@example.com", "x", password)
	want(t, err, "name_taken")
	for _, email := range []string{"", "ann", "Ann <ann@example.com>", "ann@example.com ", "a\nb@example.com", "a@b@c"} {
		_, err := h.CreateUser(ctx, h.root, email, "x", password)
		want(t, err, "email_invalid")
	}
	_, err = h.CreateUser(ctx, h.root, "ann@example.com", "x", "short")
	want(t, err, "password_invalid")
	_, err = h.CreateRole(ctx, h.root, "x", []access.Permission{"clusters:write"})
	want(t, err, "permission_unknown")
	_, err = h.Assign(ctx, h.root, h.root.UserID, "rol_none", access.Scope{})
	want(t, err, "reference_unknown")
}

// TestInvite: user and role together or neither, and nobody gives what they do not hold.
func TestInvite(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	acme, err := h.CreateClient(ctx, h.root, "acme")
	must(t, err)
	there := func(email string) bool {
		t.Helper()
		_, total, err := h.Users(ctx, h.root, tenancy.UserQuery{Text: email, Limit: 1})
		must(t, err)
		return total > 0
	}
	viewer := tenancy.Invitation{Email: "ann@example.com", Name: "Ann", RoleID: h.role(t, tenancy.RoleViewer), Scope: access.Scope{ClientID: acme.ID}}
	before := len(h.audit.actions)
	ann, made, err := h.Invite(ctx, h.root, viewer)
	must(t, err)
	if got := h.audit.actions[before:]; len(got) != 2 || got[0] != "user_created" || got[1] != "role_assigned" {
		t.Errorf("audited: %v", got)
	}
	p, err := h.access.SignIn(ctx, "ann@example.com", made, "")
	must(t, err)
	if p.UserID != ann.ID || !p.Allows(access.HostsRead, access.Scope{ClientID: acme.ID}) || p.Allows(access.HostsRead, access.Scope{}) {
		t.Errorf("ann is %+v", p)
	}
	_, _, err = h.Invite(ctx, h.root, viewer)
	want(t, err, "name_taken")

	clerk := h.person(t, "clerk", access.Scope{}, access.UsersWrite, access.UsersRead)
	hirer := h.person(t, "hirer", access.Scope{}, access.UsersWrite, access.RolesWrite)
	for code, try := range map[string]struct {
		by access.Principal
		i  tenancy.Invitation
	}{
		"permission_missing": {clerk, tenancy.Invitation{Email: "new@example.com", Name: "New", RoleID: viewer.RoleID}},
		"grant_exceeds_own":  {hirer, tenancy.Invitation{Email: "new@example.com", Name: "New", RoleID: viewer.RoleID}},
		"reference_unknown":  {h.root, tenancy.Invitation{Email: "new@example.com", Name: "New", RoleID: viewer.RoleID, Scope: access.Scope{ClientID: "cli_none"}}},
		"scope_invalid":      {h.root, tenancy.Invitation{Email: "new@example.com", Name: "New", RoleID: viewer.RoleID, Scope: access.Scope{EnvironmentID: "x"}}},
		"name_invalid":       {h.root, tenancy.Invitation{Email: "new@example.com", RoleID: viewer.RoleID}},
	} {
		_, made, err := h.Invite(ctx, try.by, try.i)
		want(t, err, code)
		if there("new@example.com") || made != "" {
			t.Errorf("%s: the user was made", code)
		}
	}
	_, _, err = h.Invite(ctx, clerk, tenancy.Invitation{Email: "bob@example.com", Name: "Bob"})
	must(t, err)
	if !there("bob@example.com") {
		t.Error("without a role nobody is invited")
	}
	_, made, err = h.ResetPassword(ctx, h.root, ann.ID)
	must(t, err)
	_, err = h.access.SignIn(ctx, "ann@example.com", made, "")
	must(t, err)
	_, _, err = h.ResetPassword(ctx, clerk, ann.ID)
	want(t, err, "grant_exceeds_own")
}
