package web

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"

	"prxm.uz/proxima/internal/console/problem"
)

// failurePage is the page of an error.
type failurePage struct {
	base
	Status  int
	Head    string
	Message string
	Cure    string
	// Ref ties the page to a line of the log; set where the cause is not the caller's to know.
	Ref string
}

// fail turns an error into an answer. Inner texts never leave: they go to the log under a reference
// that the page shows.
func (s *server) fail(v *visit, err error) {
	switch {
	case errors.Is(err, errSignInFirst):
		s.toSignIn(v)
		return
	case v.left(err):
		return
	}
	page := s.failure(v, err)
	if p, ok := errors.AsType[*problem.Error](err); ok && p.RetryAfterSeconds > 0 {
		v.w.Header().Set("Retry-After", strconv.Itoa(p.RetryAfterSeconds))
	}
	if page.Ref != "" {
		s.Logger.ErrorContext(v.ctx(), "page failed", "ref", page.Ref, "method", v.r.Method,
			"path", v.r.URL.Path, "user", v.who.UserID, "error", err)
	}
	if err := v.render(page.Status, failureView(page)); err != nil && !v.left(err) {
		s.Logger.ErrorContext(v.ctx(), "page of an error not rendered", "error", err)
		http.Error(v.w, page.Head, page.Status)
	}
}

// failure chooses status and words.
func (s *server) failure(v *visit, err error) failurePage {
	page := failurePage{base: s.base(v, "", "")}
	page.Narrow = true
	var p *problem.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errMethod):
		page.Status, page.Head = http.StatusMethodNotAllowed, "This address does not take "+v.r.Method
		page.Message = "It takes " + v.w.Header().Get("Allow") + ". Nothing was changed by your request."
	case errors.As(err, &tooLarge):
		page.Status, page.Head = http.StatusRequestEntityTooLarge, "The form is too large"
		page.Message = "A form may hold 64 KiB. Nothing was changed by your request."
	case errors.As(err, &p):
		page.Status, page.Head = p.Kind.Status(), headOf(p.Kind)
		page.Message, page.Cure = p.Message, p.Cure
		if p.Kind == problem.Unavailable {
			page.Ref = reference()
		}
	default:
		page.Status, page.Head = http.StatusInternalServerError, "Console could not make this page"
		page.Message = "It met a fault of its own. It shows nothing rather than old rows without their age."
		page.Cure = "Try again. If it stays, give whoever runs Console the reference on this page; the log has a line under it."
		page.Ref = reference()
	}
	page.Title = page.Head
	return page
}

// reference is a short random name of one failure.
func reference() string { return rand.Text()[:12] }

// headOf is the head of such a page.
func headOf(k problem.Kind) string {
	switch k {
	case problem.Invalid, problem.Unprocessable:
		return "The request breaks a rule"
	case problem.Unauthenticated:
		return "Nobody is signed in"
	case problem.Forbidden:
		return "You may not do this"
	case problem.NotFound:
		return "Not found"
	case problem.Conflict:
		return "What is stored stands against this"
	case problem.TooLarge:
		return "The request is too large"
	case problem.Unsupported:
		return "The request has a form that is not read"
	case problem.TooOld:
		return "The version is too old"
	case problem.TooMany:
		return "Too many requests"
	case problem.Unavailable:
		return "A part of Console does not answer"
	}
	return "Console could not make this page"
}

// fault is what a form shows of a problem that its user can mend.
type fault struct {
	Field   string // name of the input, or ""
	Message string
	Cure    string
}

// faultOf returns what a form can show of err, and the status for it. Other errors are for [fail].
func faultOf(err error) (fault, int, bool) {
	p, ok := errors.AsType[*problem.Error](err)
	if !ok {
		return fault{}, 0, false
	}
	switch p.Kind {
	case problem.Invalid, problem.Unprocessable, problem.Conflict, problem.TooMany, problem.Unauthenticated:
		return fault{Field: p.Field, Message: p.Message, Cure: p.Cure}, p.Kind.Status(), true
	case problem.Forbidden, problem.NotFound, problem.TooLarge, problem.Unsupported, problem.TooOld, problem.Unavailable:
		return fault{}, 0, false
	}
	return fault{}, 0, false
}
