package web

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/problem"
)

// visit is one request: who came, when, and how to answer.
type visit struct {
	w   http.ResponseWriter
	r   *http.Request
	now time.Time
	// who is the zero value where nobody is signed in.
	who access.Principal
}

func (v *visit) ctx() context.Context { return v.r.Context() }

// may tells whether the caller holds the permission somewhere; the domain decides about the row.
func (v *visit) may(perm access.Permission) bool { return v.who.AllowsSomewhere(perm) }

// partial tells whether script asked, and will take a part out of the answer.
func (v *visit) partial() bool { return v.r.Header.Get("Hx-Request") == "true" }

// visit establishes who asks, holds the route's need against that, serves, and turns an error into a
// page. It is the one place where a page is let through.
func (s *server) visit(w http.ResponseWriter, r *http.Request, rt route) {
	v := &visit{w: w, r: r, now: s.Clock.Now()}
	err := s.identify(v)
	switch {
	case err == nil:
		err = s.admit(v, rt)
	case rt.need == needNothing: // a public page is shown, whatever is wrong with the session
		err = nil
	}
	if err == nil {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err = readForm(r); err == nil {
			err = rt.serve(v)
		}
	}
	if err != nil {
		s.fail(v, err)
	}
}

// maxForm bounds a posted form, in bytes.
const maxForm = 64 << 10

// readForm reads a posted form, so that one that cannot be read is not taken for an empty one.
func readForm(r *http.Request) error {
	if r.Method != http.MethodPost {
		return nil
	}
	err := r.ParseForm()
	if err == nil {
		if err = r.ParseMultipartForm(maxForm); errors.Is(err, http.ErrNotMultipart) {
			err = nil
		}
	}
	switch {
	case err == nil:
		return nil
	case r.Context().Err() != nil:
		return r.Context().Err()
	case errors.As(err, new(*http.MaxBytesError)):
		return err
	}
	return problem.New(problem.Invalid, "form_unreadable", "The form that was sent cannot be read.").
		WithCure("Go back, load the page anew and send the form again. Nothing was changed by your request.").Because(err)
}

// identify reads the session. A session of somebody who is gone or deactivated is ended.
func (s *server) identify(v *visit) error {
	id := s.Sessions.UserID(v.ctx())
	if id == "" {
		return nil
	}
	who, err := s.Access.Principal(v.ctx(), id)
	if problem.Is(err, problem.Unauthenticated) {
		return s.Sessions.SignOut(v.ctx())
	}
	if err != nil {
		return err
	}
	who.RemoteAddr = remoteAddr(v.r)
	v.who = who
	return nil
}

// Errors of this package's own; the rest come from the domain.
var (
	errSignInFirst = errors.New("nobody is signed in")
	errNoSuchPage  = problem.New(problem.NotFound, "no_such_page", "No page has this address.").WithCure("Open the list of clusters and go on from there.")
	errMethod      = errors.New("the address does not take this method")
)

// admit holds a route's need against the caller.
func (s *server) admit(v *visit, rt route) error {
	perm := access.Permission(rt.need)
	switch {
	case rt.need == needNothing:
		return nil
	case v.who.UserID == "":
		return errSignInFirst
	case rt.need == needSession, rt.at != onConsole && v.may(perm), v.who.Allows(perm, access.Scope{}):
		return nil
	case v.may(perm):
		return problem.New(problem.Forbidden, "forbidden", "This page needs the permission "+string(perm)+" on the whole console, and your roles carry it for a part of it alone.").
			WithCure("Ask whoever administers roles in this console for it. Nothing was changed by your request.")
	default:
		return problem.New(problem.Forbidden, "forbidden", "This page needs the permission "+string(perm)+", and none of your roles carries it.").
			WithCure("Ask whoever administers roles in this console for it. Nothing was changed by your request.")
	}
}

// toSignIn sends the caller to the sign-in page and back afterwards. A form that was sent is lost; the
// page on which it stands cannot be known for sure, so the way back is the start.
func (s *server) toSignIn(v *visit) {
	target := "/signin"
	if v.r.Method == http.MethodGet && !strings.HasSuffix(v.r.URL.Path, "/events") && v.r.URL.Path != "/" {
		target += "?next=" + url.QueryEscape(v.r.URL.RequestURI())
	}
	v.goTo(target)
}

// goTo sends the browser to a local address. Where script asked, the whole page is to go there, and
// not only the part that script would have swapped.
func (v *visit) goTo(target string) {
	if v.partial() {
		if v.r.Header.Get("Hx-Current-Url") != "" && strings.HasPrefix(target, "/signin") {
			target = "/signin?next=" + url.QueryEscape(localPath(pathOf(v.r.Header.Get("Hx-Current-Url"))))
		}
		v.w.Header().Set("Hx-Redirect", target)
		v.w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(v.w, v.r, target, http.StatusSeeOther)
}

// render writes a page. It is made in full first, so that an error in the middle does not leave half
// of one.
func (v *visit) render(status int, page templ.Component) error {
	var b bytes.Buffer
	if err := page.Render(v.ctx(), &b); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes()) // the client went away: nobody is left to tell
	return nil
}

// left tells that err came of the browser going away, or of console stopping: nobody is left to tell, and nothing
// is wrong.
func (v *visit) left(err error) bool { return errors.Is(err, context.Canceled) && v.ctx().Err() != nil }

// form reads one value of the posted form, without white space around it.
func (v *visit) form(name string) string { return strings.TrimSpace(v.r.PostFormValue(name)) }

// localPath returns next if it is an address within console, and "/" otherwise. A browser reads
// backslashes as slashes and drops control characters, so both are refused.
func localPath(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r <= ' ' || r == 0x7f }) {
		return "/"
	}
	u, err := url.Parse(next)
	if err != nil || u.Host != "" || u.Scheme != "" {
		return "/"
	}
	if u.Path == "/signin" || u.Path == "/signout" {
		return "/"
	}
	return next
}

// pathOf is the path and query of an address that the browser told.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "/"
	}
	return u.RequestURI()
}

// remoteAddr is the caller's address without its port. Where proxies are trusted, console has written
// the caller's address there before.
func remoteAddr(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// base is what every page has.
type base struct {
	Title   string
	Place   string // the entry of the navigation that is current: "clusters", "hosts" or ""
	Who     access.Principal
	Now     time.Time
	Theme   string // "light", "dark", or "" to follow the system
	Version string
	Host    string
	Assets  assets
	// Here is the address of this page, to come back to; the start where the page answers a form.
	Here string
	// Said is announced to screen readers when script swaps a list.
	Said string
	// Refresh, where not zero, reloads the page after so many seconds if there is no script.
	Refresh int
	// Location, where set, replaces the address that the browser shows.
	Location string
	// Narrow pages hold text and forms rather than tables.
	Narrow bool
}

// base fills in what every page has.
func (s *server) base(v *visit, title, place string) base {
	b := base{
		Title: title, Place: place, Who: v.who, Now: v.now, Theme: themeOf(v.r),
		Version: s.Version, Host: s.host, Assets: s.static, Here: "/",
	}
	if v.r.Method == http.MethodGet {
		b.Here = v.r.URL.RequestURI()
	}
	return b
}

const themeCookie = "proxima_theme"

// themes are the values of the theme cookie; "" follows the system.
func themes() []string { return []string{"", "light", "dark"} }

func themeOf(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil || !slices.Contains(themes(), c.Value) {
		return ""
	}
	return c.Value
}
