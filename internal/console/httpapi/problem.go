package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	api "prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/console/id"
	"prxm.uz/proxima/internal/console/problem"
)

// statusClientGone is written where the client has left: nobody reads it, logs may.
const statusClientGone = 499

// inputError is a request that the contract refuses, with every fault that was found.
type inputError struct {
	problem *problem.Error
	fields  []api.FieldError
}

func (e *inputError) Error() string { return e.problem.Error() }

func (e *inputError) Unwrap() error { return e.problem }

// ForeignOrigin answers a change that a page of another site asked for: what http.CrossOriginProtection
// denies.
func ForeignOrigin() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := "another site"
		if origin := r.Header.Get("Origin"); origin != "" {
			from = strconv.Quote(origin)
		}
		refuser{}.refuse(w, r, problem.New(problem.Forbidden, "origin_foreign", "The request would change something and comes from a page of "+from+".").
			WithCure("Use Console's own pages, or a program that sends no Origin. If that is Console's own address, PROXIMA_PUBLIC_URL has to name it."))
	})
}

// Refuse answers an error that was met in front of the API as the API does.
func Refuse(logger *slog.Logger) func(http.ResponseWriter, *http.Request, error) {
	return refuser{logger}.refuse
}

// refuser writes errors as problem+json.
type refuser struct{ logger *slog.Logger }

// refuse answers err. The text of an error that is no problem stays inside: it is logged under an id,
// and the id is the answer.
func (f refuser) refuse(w http.ResponseWriter, r *http.Request, err error) {
	ctx := r.Context()
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		w.WriteHeader(statusClientGone)
		return
	}
	e, ok := errors.AsType[*problem.Error](err)
	if !ok {
		incident := id.New("err")
		f.logger.ErrorContext(ctx, "request failed", "incident", incident, "method", r.Method, "path", r.URL.Path, "error", err)
		write(w, api.Problem{
			Type: typeOf("internal"), Title: "Something went wrong inside console", Status: http.StatusInternalServerError, Code: "internal",
			Detail: new("The request could not be carried out; console's log tells more under " + incident + "."),
			Cure:   new("Try again; if it stays, look up " + incident + " in console's log."), Instance: new("urn:proxima:incident:" + incident),
		})
		return
	}
	status := e.Kind.Status()
	if e.Err != nil {
		f.logger.InfoContext(ctx, "request refused", "code", e.Code, "path", r.URL.Path, "error", e.Err)
	}
	p := api.Problem{Type: typeOf(e.Code), Title: titleOf(e.Kind), Status: status, Code: e.Code, Detail: text(e.Message), Cure: text(e.Cure)}
	if in, ok := errors.AsType[*inputError](err); ok && len(in.fields) > 0 {
		p.Errors = &in.fields
	} else if e.Field != "" {
		p.Errors = &[]api.FieldError{{Pointer: e.Field, Detail: e.Message}}
	}
	if e.Kind == problem.Unauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="proxima"`)
	}
	if e.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfterSeconds))
	}
	write(w, p)
}

func write(w http.ResponseWriter, p api.Problem) {
	body, err := json.Marshal(p)
	if err != nil { // strings and numbers alone: it cannot be
		body = []byte(`{"type":"about:blank","title":"error","status":500,"code":"internal"}`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the client may have left
}

func typeOf(code string) string { return "urn:proxima:problem:" + code }

func titleOf(kind problem.Kind) string {
	switch kind {
	case problem.Invalid:
		return "The request is not valid"
	case problem.Unauthenticated:
		return "Not signed in"
	case problem.Forbidden:
		return "Not allowed"
	case problem.NotFound:
		return "Not found"
	case problem.Conflict:
		return "In conflict with what is stored"
	case problem.TooLarge:
		return "Too large"
	case problem.Unsupported:
		return "Not read in this form"
	case problem.Unprocessable:
		return "Refused by a rule"
	case problem.TooOld:
		return "Version too old"
	case problem.TooMany:
		return "Too many requests"
	case problem.Unavailable:
		return "Unavailable right now"
	}
	return "Error"
}
