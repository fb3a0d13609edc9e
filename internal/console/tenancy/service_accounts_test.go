package tenancy_test

import (
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/tenancy"
)

// TestServiceAccounts act by API tokens alone, which only somebody who holds as much can mint.
func TestServiceAccounts(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	acme, err := h.CreateClient(ctx, h.root, "acme")
	must(t, err)
	nightly, err := h.CreateServiceAccount(ctx, h.root, "nightly")
	must(t, err)
	_, err = h.CreateServiceAccount(ctx, h.root, "NIGHTLY")
	want(t, err, "name_taken")
	_, err = h.CreateServiceAccount(ctx, h.root, "")
	want(t, err, "name_invalid")
	_, err = h.CreateUser(ctx, h.root, nightly.Email, "a person in its place", password)
	want(t, err, "email_invalid")
	_, err = h.access.SignIn(ctx, nightly.Email, "", "")
	want(t, err, "sign_in_failed")
	_, _, err = h.ResetPassword(ctx, h.root, nightly.ID)
	want(t, err, "no_password")

	_, err = h.Assign(ctx, h.root, nightly.ID, h.role(t, tenancy.RoleOperator), access.Scope{ClientID: acme.ID})
	must(t, err)
	token, plain, err := h.MintAPIToken(ctx, h.root, nightly.ID, "ci", time.Hour)
	must(t, err)
	p, err := h.access.PrincipalOfToken(ctx, plain, "192.0.2.1")
	must(t, err)
	if p.UserID != nightly.ID || p.APITokenID != token.ID || !p.Allows(access.HostsWrite, access.Scope{ClientID: acme.ID}) || p.Allows(access.HostsRead, access.Scope{}) {
		t.Errorf("the token acts as %+v", p)
	}
	want(t, h.ChangePassword(ctx, p, "", "entirely new words"), "no_password")

	clerk := h.person(t, "clerk", access.Scope{}, access.UsersRead, access.UsersWrite)
	_, _, err = h.MintAPIToken(ctx, clerk, nightly.ID, "mine", 0)
	want(t, err, "grant_exceeds_own")
	_, _, err = h.MintAPIToken(ctx, h.root, clerk.UserID, "theirs", 0)
	want(t, err, "tokens_of_a_person")
	_, _, err = h.MintAPIToken(ctx, h.root, "usr_none", "x", 0)
	want(t, err, "not_found")
	_, _, err = h.MintAPIToken(ctx, p, nightly.ID, "x", 0)
	want(t, err, "permission_missing")

	renamed, err := h.UpdateUser(ctx, h.root, nightly.ID, tenancy.UserPatch{Name: new("hourly")})
	must(t, err)
	if renamed.Kind != tenancy.KindServiceAccount || renamed.Email == nightly.Email {
		t.Errorf("renamed to %+v", renamed)
	}
	_, err = h.CreateServiceAccount(ctx, h.root, "nightly") // the name is free again
	must(t, err)
	_, err = h.UpdateUser(ctx, h.root, nightly.ID, tenancy.UserPatch{Name: new("Nightly")})
	want(t, err, "name_taken")

	_, err = h.UpdateUser(ctx, h.root, nightly.ID, tenancy.UserPatch{Active: new(false)})
	must(t, err)
	_, err = h.access.PrincipalOfToken(ctx, plain, "")
	want(t, err, "api_token_revoked")
	_, _, err = h.MintAPIToken(ctx, h.root, nightly.ID, "late", 0)
	want(t, err, "account_deactivated")
}

// TestAServiceAccountIsNoAdministrator: it cannot sign in, so it does not count as the one who is left.
func TestAServiceAccountIsNoAdministrator(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	nightly, err := h.CreateServiceAccount(ctx, h.root, "nightly")
	must(t, err)
	_, err = h.Assign(ctx, h.root, nightly.ID, h.role(t, tenancy.RoleAdministrator), access.Scope{})
	must(t, err)
	_, err = h.UpdateUser(ctx, h.root, h.root.UserID, tenancy.UserPatch{Active: new(false)})
	want(t, err, "last_administrator")
}

// TestRolesKnowWhoHoldsThem: a role counts its holders, is listed by them, and stays while there is one.
func TestRolesKnowWhoHoldsThem(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	acme, err := h.CreateClient(ctx, h.root, "acme")
	must(t, err)
	ann := h.person(t, "ann", access.Scope{}, access.HostsRead)
	role := h.role(t, "role of ann")
	_, err = h.Assign(ctx, h.root, ann.UserID, role, access.Scope{ClientID: acme.ID}) // a second time, elsewhere
	must(t, err)
	r, err := h.Role(ctx, h.root, role)
	must(t, err)
	if r.Holders != 1 {
		t.Errorf("held by %d", r.Holders)
	}
	who, total, err := h.Users(ctx, h.root, tenancy.UserQuery{RoleID: role, Limit: 10})
	must(t, err)
	if total != 1 || who[0].ID != ann.UserID || len(who[0].Assignments) != 2 {
		t.Errorf("%d: %+v", total, who)
	}
	want(t, h.DeleteRole(ctx, h.root, role), "in_use")
	for _, a := range who[0].Assignments {
		must(t, h.Unassign(ctx, h.root, ann.UserID, a.ID))
	}
	_, err = h.UpdateRole(ctx, h.root, role, r.Version(), "of ann", []access.Permission{access.HostsRead, access.AuditRead})
	must(t, err)
	_, err = h.UpdateRole(ctx, h.root, role, r.Version(), "again", []access.Permission{access.HostsRead}) // from what was read before
	want(t, err, "role_changed_meanwhile")
	must(t, h.DeleteRole(ctx, h.root, role))
	want(t, h.DeleteRole(ctx, h.root, h.role(t, tenancy.RoleViewer)), "role_built_in")
}
