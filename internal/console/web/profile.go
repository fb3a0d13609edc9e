package web

import (
	"net/http"
	"time"

	"github.com/mileusna/useragent"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/problem"
)

// profileData is the page about the caller.
type profileData struct {
	base
	Grants   []grantRow
	Sessions []access.Session
	// Session is the one that asks.
	Session string
	Tokens  []access.APIToken
	Mint    tokenForm
	Done    string // what was done by the form that led here
	// FaultHead heads the summary of a refusal.
	FaultHead string
	Fault     *fault
}

// grantRow is one role of the caller with where it holds.
type grantRow struct {
	Role  string
	Where string
	May   []access.Permission
}

func (s *server) profile(v *visit) error { return s.showProfile(v, http.StatusOK, "", nil) }

func (s *server) showProfile(v *visit, status int, faultHead string, told *fault) error {
	page := profileData{
		base: s.base(v, "Profile", ""), Session: s.Sessions.ID(v.ctx()), Mint: readTokenForm(v, "/profile/tokens"), Done: profileDone(v.r.URL.Query().Get("did")),
		FaultHead: faultHead, Fault: told,
	}
	page.Narrow = true
	names, err := s.names(v, access.HostsRead)
	if err != nil {
		return err
	}
	for _, g := range v.who.Grants {
		page.Grants = append(page.Grants, grantRow{Role: g.Role, Where: names.scope(g.Scope), May: g.Permissions})
	}
	if page.Sessions, err = s.Access.Sessions(v.ctx(), v.who); err != nil {
		return err
	}
	if page.Tokens, err = s.Access.APITokens(v.ctx(), v.who); err != nil {
		return err
	}
	return v.render(status, profileView(page))
}

// profileDone says what the form before led to.
func profileDone(did string) string {
	return map[string]string{
		"password": "Your password was changed, and your other sessions ended.",
		"revoke":   "The API token is revoked.",
		"end":      "That browser is signed out.",
		"others":   "You are signed out everywhere else.",
	}[did]
}

// changedProfile answers a form of the profile: back to the page, or the page with what is wrong.
func (s *server) changedProfile(v *visit, did, faultHead string, err error) error {
	if err == nil {
		v.goTo("/profile?did=" + did)
		return nil
	}
	told, status, ok := refusalOf(err)
	if !ok {
		return err
	}
	return s.showProfile(v, status, faultHead, &told)
}

func (s *server) changePassword(v *visit) error {
	current, next := v.r.PostFormValue("current"), v.r.PostFormValue("next")
	err := error(problem.New(problem.Unprocessable, "passwords_differ", "The two new passwords differ.").
		WithCure("Type the new password twice, the same both times.").InField("again"))
	if next == v.r.PostFormValue("again") {
		err = s.Access.ChangePassword(v.ctx(), v.who, current, next)
	}
	return s.changedProfile(v, "password", "Password not changed", err)
}

func (s *server) mintOwnToken(v *visit) error {
	form := readTokenForm(v, "/profile/tokens")
	t, plain, err := form.mint(func(lifetime time.Duration) (access.APIToken, string, error) {
		return s.Access.MintAPIToken(v.ctx(), v.who, form.Name, lifetime)
	})
	if err != nil {
		told, status, ok := tokenFault(err)
		if !ok {
			return err
		}
		return s.showProfile(v, status, noTokenMinted, &told)
	}
	return s.showToken(v, "", []link{{"Profile", "/profile"}}, t, plain)
}

func (s *server) ownTokenPage(v *visit) error {
	tokens, err := s.Access.APITokens(v.ctx(), v.who)
	if err != nil {
		return err
	}
	return s.tokenPage(v, "", []link{{"Profile", "/profile"}}, tokens)
}

func (s *server) revokeOwnToken(v *visit) error {
	err := s.Access.RevokeAPIToken(v.ctx(), v.who, v.r.PathValue("token"))
	return s.changedProfile(v, "revoke", "API token not revoked", err)
}

func (s *server) endSession(v *visit) error {
	err := s.Access.EndSession(v.ctx(), v.who, v.r.PathValue("session"))
	return s.changedProfile(v, "end", "Not signed out there", err)
}

func (s *server) endOtherSessions(v *visit) error {
	_, err := s.Access.EndOtherSessions(v.ctx(), v.who, s.Sessions.ID(v.ctx()))
	return s.changedProfile(v, "others", "Not signed out elsewhere", err)
}

// browserName is what people call the browser of a session.
func browserName(userAgent string) string {
	known := useragent.Parse(userAgent)
	switch {
	case known.Name != "" && known.OS != "":
		return known.Name + " on " + known.OS
	case known.Name != "":
		return known.Name
	case userAgent != "":
		return userAgent
	}
	return "A browser that gave no name"
}
