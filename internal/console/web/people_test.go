package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/web/internal/fake"
)

func TestPeopleAreListed(t *testing.T) {
	s := full(t)
	a := s.get("/users", http.StatusOK)
	wantText(t, a.byID(t, "users"), "Mira Okafor", "Administrator on the whole console", "Viewer on Halden Energy", "Ida Berg", "Deactivated", "None")
	wantText(t, a.page, "1 to 100 of 135 accounts", "Invite a colleague")
	wantText(t, s.get("/users?q=jonas", http.StatusOK).page, "1 account")
	wantText(t, s.get("/users?state=deactivated", http.StatusOK).byID(t, "users"), "Ida Berg")
	wantText(t, s.get("/users?q=zzz", http.StatusOK).page, "Nobody matches", "Clear filter")
	if got := s.get("/users?page=9", http.StatusSeeOther).Header.Get("Location"); got != "/users?page=2" {
		t.Errorf("beyond the last page: %q", got)
	}
}

// TestAnInvitation shows the password once, with what to tell the colleague.
func TestAnInvitation(t *testing.T) {
	s := full(t)
	form := url.Values{"email": {"ann"}, "name": {"Ann Sol"}, "role": {"rl_viewer"}, "place": {"cl_kivu/en_kivu_prod"}}
	a := s.post("/users/invite", form, http.StatusBadRequest)
	wantText(t, a.byID(t, "email-error"), "is not an e-mail address")
	if attr(a.byID(t, "name"), "value") != "Ann Sol" || !strings.Contains(a.text, `value="cl_kivu/en_kivu_prod" selected`) {
		t.Error("what was typed is lost")
	}
	form.Set("email", "ann@ostmark.example")
	a = s.post("/users/invite", form, http.StatusOK)
	checkMarkup(t, a)
	wantText(t, a.byID(t, "password"), fake.Made)
	wantText(t, a.byID(t, "message"), "https://console.ostmark.example", "ann@ostmark.example", fake.Made, "under Profile")
	address := attr(all(a.page, tag("body"))[0], "data-location")
	a = s.get(address, http.StatusOK)
	wantText(t, a.byID(t, "roles"), "Viewer", "Kivu Telecom / prod")
	if strings.Contains(a.text, fake.Made) {
		t.Error("the password is shown twice")
	}
	form.Set("email", "bob@ostmark.example")
	form.Set("place", "cl_none")
	wantText(t, s.post("/users/invite", form, http.StatusUnprocessableEntity).byID(t, "place-error"), "no client cl_none")
}

func TestAPerson(t *testing.T) {
	s := full(t)
	path := "/users/" + fake.Reader
	wantText(t, s.get(path, http.StatusOK).page, "Jonas Lind", "Active", "Take away", fake.Hostile, "no end")
	back := func(a answer) answer { t.Helper(); return s.get(a.Header.Get("Location"), http.StatusOK) }

	wantText(t, s.post(path+"/name", url.Values{"name": {""}}, http.StatusBadRequest).byID(t, "name-error"), "0 characters")
	wantText(t, back(s.post(path+"/name", url.Values{"name": {"Jonas L."}}, http.StatusSeeOther)).page, "Jonas L.", "The name was changed")
	wantText(t, s.post(path+"/roles", nil, http.StatusUnprocessableEntity).byID(t, "role-error"), "No role is chosen")
	exceeds := url.Values{"role": {"rl_admin"}, "place": {"cl_kivu"}}
	wantText(t, s.post(path+"/roles", exceeds, http.StatusForbidden).page, "Role not assigned", "which you do not hold there yourself", "Ask somebody who holds it")
	wantText(t, back(s.post(path+"/roles", url.Values{"role": {"rl_viewer"}, "place": {""}}, http.StatusSeeOther)).byID(t, "roles"), "the whole console")
	wantText(t, back(s.post(path+"/roles/as_jonas/remove", nil, http.StatusSeeOther)).page, "taken away")
	s.post(path+"/roles/as_jonas/remove", nil, http.StatusNotFound)

	wantText(t, s.get(path+"/tokens/at_jonas/revoke", http.StatusOK).page, "The next request", "audit log")
	wantText(t, back(s.post(path+"/tokens/at_jonas/revoke", nil, http.StatusSeeOther)).page, "The API token is revoked", "Revoked")
	s.get(path+"/tokens/at_jonas/revoke", http.StatusNotFound)

	wantText(t, s.get(path+"/deactivate", http.StatusOK).page, "Deactivate Jonas L.?", "at once", "Every API token")
	wantText(t, back(s.post(path+"/deactivate", nil, http.StatusSeeOther)).page, "Deactivated", "Activate…")
	wantText(t, back(s.post(path+"/activate", nil, http.StatusSeeOther)).page, "active again")
	wantText(t, s.post(path+"/password", nil, http.StatusOK).page, fake.Made, "Shown once")
	wantText(t, s.post("/users/"+fake.Admin+"/deactivate", nil, http.StatusConflict).page, "Nothing was changed", "leave nobody")
	s.get(path+"/promote", http.StatusNotFound)
	s.get("/users/us_none", http.StatusNotFound)
}

// Who may only read is offered nothing that would fail.
func TestPeopleForAReader(t *testing.T) {
	w := fake.Full(start)
	reader := w.Users[fake.Reader]
	reader.Grants = append(slices.Clone(reader.Grants), access.Grant{Role: "clerk", Permissions: []access.Permission{access.UsersRead}})
	w.Users[fake.Reader] = reader
	s := serve(t, w, clocktest.New(start()), fake.Reader)
	for _, path := range []string{"/users", "/users/" + fake.Admin} {
		a := s.get(path, http.StatusOK)
		for _, n := range all(a.page, tag("form")) {
			if action := attr(n, "action"); strings.HasPrefix(action, "/users/") {
				t.Errorf("%s offers a form to %s", path, action)
			}
		}
		for _, n := range all(a.page, tag("a")) {
			if href := attr(n, "href"); strings.HasSuffix(href, "/invite") || strings.HasSuffix(href, "/deactivate") || strings.HasSuffix(href, "/revoke") || strings.HasSuffix(href, "/password") {
				t.Errorf("%s offers %s", path, href)
			}
		}
	}
}
