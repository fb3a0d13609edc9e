package web

import (
	"net/http"

	"prxm.uz/proxima/internal/console/access"
)

// signInView is the page that asks who somebody is.
type signInData struct {
	base
	Email string
	Next  string
	Fault *fault
}

// home sends whoever is signed in to the first of the pages that they may see.
func (s *server) home(v *visit) error {
	switch {
	case v.who.AllowsSomewhere(access.HostsRead):
		v.goTo("/clusters")
	case v.who.AllowsSomewhere(access.AgentsRead):
		v.goTo("/hosts")
	default:
		v.goTo("/profile")
	}
	return nil
}

func (s *server) signInPage(v *visit) error {
	next := localPath(v.r.URL.Query().Get("next"))
	if v.who.UserID != "" {
		v.goTo(next)
		return nil
	}
	return v.render(http.StatusOK, signInView(signInData{base: s.base(v, "Sign in", ""), Next: next}))
}

func (s *server) signIn(v *visit) error {
	email, next := v.form("email"), localPath(v.r.PostFormValue("next"))
	who, err := s.Access.SignIn(v.ctx(), email, v.r.PostFormValue("password"), remoteAddr(v.r))
	if err != nil {
		told, status, ok := faultOf(err)
		if !ok {
			return err
		}
		page := signInData{base: s.base(v, "Not signed in", ""), Email: email, Next: next, Fault: &told}
		page.Who = access.Principal{}
		return v.render(status, signInView(page))
	}
	if err := s.Sessions.SignIn(v.ctx(), who.UserID); err != nil {
		return err
	}
	v.goTo(next)
	return nil
}

func (s *server) signOut(v *visit) error {
	if err := s.Sessions.SignOut(v.ctx()); err != nil {
		return err
	}
	if v.who.UserID != "" {
		if err := s.Access.SignedOut(v.ctx(), v.who); err != nil {
			return err
		}
	}
	v.goTo("/signin")
	return nil
}

// setTheme remembers the choice in a cookie, so that the server paints the first frame right.
func (s *server) setTheme(v *visit) error {
	cookie := &http.Cookie{
		Name: themeCookie, Value: v.r.PostFormValue("theme"), Path: "/", MaxAge: 365 * 24 * 3600,
		HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode,
	}
	if cookie.Value != "light" && cookie.Value != "dark" {
		cookie.Value, cookie.MaxAge = "", -1
	}
	http.SetCookie(v.w, cookie)
	v.goTo(localPath(v.r.PostFormValue("next")))
	return nil
}

func (s *server) serveStatic(v *visit) error { return s.static.serve(v.w, v.r) }

func (s *server) favicon(v *visit) error {
	http.Redirect(v.w, v.r, s.static.url("favicon.svg"), http.StatusSeeOther)
	return nil
}
