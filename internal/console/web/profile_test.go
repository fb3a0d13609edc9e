package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"prxm.uz/proxima/internal/console/web/internal/fake"
)

func TestOwnTokensAndSessions(t *testing.T) {
	s := full(t)
	back := func(a answer) answer { t.Helper(); return s.get(a.Header.Get("Location"), http.StatusOK) }
	a := s.get("/profile", http.StatusOK)
	checkMarkup(t, a)
	wantText(t, a.byID(t, "sessions"), "Firefox on Linux", "this browser", "Safari on iOS", "2001:db8::17", "Sign out")
	wantText(t, a.byID(t, "tokens"), "deploy pipeline", "old laptop", "Revoked")

	wantText(t, s.post("/profile/tokens", url.Values{"token-name": {""}, "ends": {"never"}}, http.StatusBadRequest).byID(t, "token-name-error"), "0 characters")
	a = s.post("/profile/tokens", url.Values{"token-name": {"laptop"}, "ends": {"never"}}, http.StatusOK)
	wantText(t, a.byID(t, "token"), fake.MadeToken)
	wantText(t, a.page, "works until it is revoked")
	a = s.get("/profile", http.StatusOK)
	wantText(t, a.byID(t, "tokens"), "laptop", "no end")
	if strings.Contains(a.text, fake.MadeToken) {
		t.Error("the token is shown twice")
	}
	wantText(t, s.get("/profile/tokens/at_ci/revoke", http.StatusOK).page, "Revoke the API token deploy pipeline?")
	wantText(t, back(s.post("/profile/tokens/at_ci/revoke", nil, http.StatusSeeOther)).page, "The API token is revoked")
	s.get("/profile/tokens/at_jonas/revoke", http.StatusNotFound) // another person's
	s.post("/profile/tokens/at_jonas/revoke", nil, http.StatusNotFound)

	s.post("/profile/sessions/se_none/end", nil, http.StatusNotFound)
	a = back(s.post("/profile/sessions/se_phone/end", nil, http.StatusSeeOther))
	wantText(t, a.page, "That browser is signed out")
	if strings.Contains(a.text, "Safari on iOS") || strings.Contains(a.text, "end-others") {
		t.Error("the session is still listed")
	}
	s = full(t)
	a = back(s.post("/profile/sessions/end-others", nil, http.StatusSeeOther))
	wantText(t, a.page, "signed out everywhere else")
	wantText(t, a.byID(t, "sessions"), "this browser")
}

// TestPasswordFaultsNameTheirField holds the fields of the domain's faults to those of the form.
func TestPasswordFaultsNameTheirField(t *testing.T) {
	s := full(t)
	form := url.Values{"current": {"wrong"}, "next": {"another quite long one"}, "again": {"another quite long one"}}
	wantText(t, s.post("/profile/password", form, http.StatusUnprocessableEntity).byID(t, "current-error"), "does not match")
	form.Set("current", fake.Password)
	form.Set("again", "another")
	wantText(t, s.post("/profile/password", form, http.StatusUnprocessableEntity).byID(t, "again-error"), "differ")
}
