// Package problem owns the errors that people and programs outside may see: a kind, a stable code and
// a text that names the value and the cure. Domain packages answer with it; httpapi and web write
// it out, and nothing decides by the text.
package problem

import (
	"errors"
	"fmt"
	"net/http"
)

// Kind sorts problems by what the caller can do about them.
type Kind int

// The kinds, with their HTTP statuses.
const (
	Invalid         Kind = iota + 1 // 400: the input breaks a rule
	Unauthenticated                 // 401: nobody signed in, or a credential that is not known
	Forbidden                       // 403: signed in, and not allowed
	NotFound                        // 404: not there, or not for this caller to know of
	Conflict                        // 409: what is stored stands against it
	TooLarge                        // 413: larger than a limit
	Unsupported                     // 415: in a form that is not read
	Unprocessable                   // 422: well formed, and refused by a rule about its meaning
	TooOld                          // 426: the caller's version is below the oldest that is served
	TooMany                         // 429: a rate is exceeded
	Unavailable                     // 503: a part that is needed does not answer
)

// Status is the HTTP status of the kind (RFC 9110, section 15), 500 for none of them.
func (k Kind) Status() int {
	switch k {
	case Invalid:
		return http.StatusBadRequest
	case Unauthenticated:
		return http.StatusUnauthorized
	case Forbidden:
		return http.StatusForbidden
	case NotFound:
		return http.StatusNotFound
	case Conflict:
		return http.StatusConflict
	case TooLarge:
		return http.StatusRequestEntityTooLarge
	case Unsupported:
		return http.StatusUnsupportedMediaType
	case Unprocessable:
		return http.StatusUnprocessableEntity
	case TooOld:
		return http.StatusUpgradeRequired
	case TooMany:
		return http.StatusTooManyRequests
	case Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// Error is a problem. Code is stable and part of the contract; Message is one or two sentences for a
// person; Field names the input at fault, if one is.
type Error struct {
	Kind    Kind
	Code    string
	Message string
	Cure    string
	Field   string
	// RetryAfterSeconds is set with TooMany, and with Unavailable where that is expected to pass.
	RetryAfterSeconds int
	// Err is the cause; it is logged and never shown.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return e.Code + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes a problem without a cause.
func New(kind Kind, code, message string) *Error {
	return &Error{Kind: kind, Code: code, Message: message}
}

// WithCure adds what cures the problem.
func (e *Error) WithCure(cure string) *Error {
	c := *e
	c.Cure = cure
	return &c
}

// InField adds the name of the input at fault.
func (e *Error) InField(field string) *Error {
	c := *e
	c.Field = field
	return &c
}

// Because adds the cause.
func (e *Error) Because(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// CodeOf returns the code of the problem in err's chain, or "".
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Is tells whether err is a problem of the given kind.
func Is(err error, kind Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == kind
}
