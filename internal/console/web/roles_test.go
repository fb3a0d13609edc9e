package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/tenancy"
	"prxm.uz/proxima/internal/console/web/internal/fake"
)

func TestRolesAreListed(t *testing.T) {
	s := full(t)
	a := s.get("/roles", http.StatusOK)
	checkMarkup(t, a)
	wantText(t, a.byID(t, "roles"), "Administrator", "built in", "and 10 more", "On call", "and 1 more", fake.Hostile)
	if !strings.Contains(a.text, `href="/users?role=rl_call"`) {
		t.Error("the number of holders leads nowhere")
	}
	a = s.get("/users?role=rl_call", http.StatusOK)
	wantText(t, a.byID(t, "users"), "deploy pipeline", "service account")
	wantText(t, a.page, "1 account with the role On call", "Clear")
}

// TestARole is made, changed and deleted; what was typed is kept where it is refused.
func TestARole(t *testing.T) {
	s := full(t)
	back := func(a answer) answer { t.Helper(); return s.get(a.Header.Get("Location"), http.StatusOK) }
	form := url.Values{"name": {"Auditors"}}
	wantText(t, s.post("/roles/add", form, http.StatusBadRequest).byID(t, "permissions-error"), "no permission")
	form["may"] = []string{"settings:write"}
	wantText(t, s.post("/roles/add", form, http.StatusForbidden).page, "Not created", "do not hold there yourself")
	form["may"] = []string{"audit:read", "hosts:read"}
	form.Set("name", "")
	a := s.post("/roles/add", form, http.StatusBadRequest)
	wantText(t, a.byID(t, "name-error"), "0 characters")
	if !strings.Contains(a.text, `value="audit:read" checked`) || strings.Contains(a.text, `value="hosts:write" checked`) {
		t.Error("what was chosen is lost")
	}
	form.Set("name", "Auditors")
	made := s.post("/roles/add", form, http.StatusSeeOther).Header.Get("Location")
	a = s.get(made, http.StatusOK)
	checkMarkup(t, a)
	wantText(t, a.page, "Auditors", "The role is created", "Nobody.")

	path, _, _ := strings.Cut(made, "?")
	change := url.Values{"name": {"Auditors of all"}, "may": {"audit:read"}, "version": {versionOf(a)}}
	wantText(t, back(s.post(path, change, http.StatusSeeOther)).page, "Auditors of all", "1 permission", "The role is changed")
	a = s.post(path, change, http.StatusConflict) // from a page that was loaded before
	wantText(t, a.page, "Not changed", "Somebody changed the role")
	wantText(t, s.get(path+"/delete", http.StatusOK).page, "Delete the role Auditors of all?", "Nobody holds it")
	wantText(t, back(s.post(path+"/delete", nil, http.StatusSeeOther)).page, "The role is deleted")
	s.get(path, http.StatusNotFound)
}

// versionOf is what the form of a role sends back.
func versionOf(a answer) string {
	for _, n := range all(a.page, tag("input")) {
		if attr(n, "name") == "version" {
			return attr(n, "value")
		}
	}
	return ""
}

func TestARoleThatStays(t *testing.T) {
	s := full(t)
	a := s.get("/roles/rl_admin", http.StatusOK)
	wantText(t, a.page, "built in", "cannot be changed", "Copy as a new role", "Add people")
	if strings.Contains(a.text, `action="/roles/rl_admin"`) {
		t.Error("a built-in role has a form")
	}
	a = s.get("/roles/add?from=rl_call", http.StatusOK)
	wantText(t, a.page, "begins with what On call permits")
	if !strings.Contains(a.text, `value="agents:write" checked`) || strings.Contains(a.text, `value="users:write" checked`) {
		t.Error("the copy does not begin as the role")
	}
	wantText(t, s.get("/roles/rl_call", http.StatusOK).byID(t, "holders"), "deploy pipeline", "Halden Energy")
	wantText(t, s.get("/roles/rl_call/delete", http.StatusOK).page, "is held by 1 account", "Take it from them first")
	wantText(t, s.post("/roles/rl_call/delete", nil, http.StatusConflict).page, "Not deleted", "is held by 1 account")
	s.get("/roles/rl_none", http.StatusNotFound)
}

// Who may only read roles is offered nothing that would fail, and does not see who holds them.
func TestRolesForAReader(t *testing.T) {
	w := fake.Full(start)
	reader := w.Users[fake.Reader]
	reader.Grants = append(slices.Clone(reader.Grants), access.Grant{Role: "clerk", Permissions: []access.Permission{access.RolesRead}})
	w.Users[fake.Reader] = reader
	s := serve(t, w, clocktest.New(start()), fake.Reader)
	for _, path := range []string{"/roles", "/roles/rl_call"} {
		a := s.get(path, http.StatusOK)
		for _, forbidden := range []string{"/roles/add", "/delete", `action="/roles`, "/users?role", "deploy pipeline"} {
			if strings.Contains(a.text, forbidden) {
				t.Errorf("%s holds %q", path, forbidden)
			}
		}
	}
	wantText(t, s.get("/roles/rl_call", http.StatusOK).page, "one needs users:read")
	s.get("/roles/add", http.StatusForbidden)
}

func TestAServiceAccount(t *testing.T) {
	s := full(t)
	wantText(t, s.post("/users/service-account", nil, http.StatusBadRequest).byID(t, "name-error"), "0 characters")
	path, _, _ := strings.Cut(s.post("/users/service-account", url.Values{"name": {"nightly"}}, http.StatusSeeOther).Header.Get("Location"), "?")
	a := s.get(path, http.StatusOK)
	checkMarkup(t, a)
	wantText(t, a.page, "nightly", "no program can act by this account", "No role: what this account asks for is refused")
	if strings.Contains(a.text, path+"/password") {
		t.Error("a service account is offered a password")
	}
	wantText(t, s.post(path+"/tokens", url.Values{"token-name": {""}, "ends": {"30"}}, http.StatusBadRequest).byID(t, "token-name-error"), "0 characters")
	wantText(t, s.post(path+"/tokens", url.Values{"token-name": {"ci"}, "ends": {"31"}}, http.StatusUnprocessableEntity).byID(t, "ends-error"), "No end is chosen")
	a = s.post(path+"/tokens", url.Values{"token-name": {"ci"}, "ends": {"30"}}, http.StatusOK)
	checkMarkup(t, a)
	wantText(t, a.byID(t, "token"), fake.MadeToken)
	a = s.get(path, http.StatusOK)
	wantText(t, a.byID(t, "tokens"), "ci", "in 30 d")
	if strings.Contains(a.text, fake.MadeToken) {
		t.Error("the token is shown twice")
	}
	wantText(t, s.get("/users?kind="+string(tenancy.KindServiceAccount), http.StatusOK).byID(t, "users"), "nightly", "deploy pipeline")
	wantText(t, s.get("/users/"+fake.Program+"/deactivate", http.StatusOK).page, "whatever program uses one is refused")
}
