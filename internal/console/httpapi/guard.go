package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	api "prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/problem"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 1 << 20

// guard stands in front of every operation: who, may they, is it well formed; in this order, so that a
// stranger learns nothing from how a request is refused.
type guard struct {
	refuser
	config  Config
	limiter *limiter
	options *openapi3filter.Options
}

// wrap puts the guard in front of one operation.
func (g *guard) wrap(op *operation, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		defer g.recover(w, r)
		r, err := g.admit(op, r)
		if err == nil {
			err = g.validate(op, w, r)
		}
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		next(w, r)
	})
}

func (g *guard) recover(w http.ResponseWriter, r *http.Request) {
	switch fault := recover(); fault {
	case nil:
	case http.ErrAbortHandler:
		panic(fault)
	default:
		g.refuse(w, r, fmt.Errorf("panic: %v", fault))
	}
}

// admit authenticates and authorises.
func (g *guard) admit(op *operation, r *http.Request) (*http.Request, error) {
	c := caller{remoteAddr: g.config.RemoteAddr(r)}
	var err error
	switch op.Permission {
	case permissionPublic, permissionAgent:
		err = g.limiter.take(access.AddressKey(c.remoteAddr))
	case permissionInstallToken:
		if err = g.limiter.take(access.AddressKey(c.remoteAddr)); err == nil {
			if c.installToken, err = bearer(r); err == nil && c.installToken == "" {
				err = problem.New(problem.Unauthenticated, "install_token_missing", "The request carries no install token.").
					WithCure("Send the install token as Authorization: Bearer.")
			}
		}
	case permissionSession:
		c.who, err = g.who(r, c.remoteAddr)
	default:
		if c.who, err = g.who(r, c.remoteAddr); err == nil {
			err = authorise(op, c.who, r.PathValue("clientID"))
		}
	}
	if err != nil {
		return r, err
	}
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c)), nil
}

// who finds the principal: by the API token if there is an Authorization header, else by the session.
func (g *guard) who(r *http.Request, remoteAddr string) (access.Principal, error) {
	token, err := bearer(r)
	if err != nil {
		return access.Principal{}, err
	}
	if token != "" {
		return g.config.Access.PrincipalOfToken(r.Context(), token, remoteAddr)
	}
	userID := g.config.Sessions.UserID(r.Context())
	if userID == "" {
		return access.Principal{}, access.ErrUnauthenticated()
	}
	p, err := g.config.Access.Principal(r.Context(), userID)
	p.RemoteAddr = remoteAddr
	return p, err
}

// bearer reads the bearer token, "" where there is no Authorization header.
func bearer(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", nil
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if token = strings.TrimSpace(token); len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > 512 {
		return "", problem.New(problem.Unauthenticated, "authorization_invalid", "The Authorization header is not one bearer token.").
			WithCure("Send Authorization: Bearer and the token.")
	}
	return token, nil
}

// authorise checks what can be said before the row is read. For row and list the domain does the rest.
func authorise(op *operation, p access.Principal, clientID string) error {
	perm := access.Permission(op.Permission)
	switch op.Scope {
	case scopeConsole:
		if p.Allows(perm, access.Scope{}) {
			return nil
		}
	case scopeClient:
		return p.Require(perm, access.Scope{ClientID: clientID}, "such client")
	default:
		if p.AllowsSomewhere(perm) {
			return nil
		}
	}
	return access.Refuse(perm)
}

// validate holds a request against the limits and the contract. The body is read and put back.
func (g *guard) validate(op *operation, w http.ResponseWriter, r *http.Request) error {
	if err := checkQuery(op, r.URL.RawQuery); err != nil {
		return err
	}
	if op.body {
		if err := readBody(w, r); err != nil {
			return err
		}
	}
	params := make(map[string]string, len(op.path))
	for _, name := range op.path {
		params[name] = r.PathValue(name)
	}
	err := openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: op.route, Options: g.options,
	})
	if err == nil {
		return nil
	}
	fields := fieldErrors(err, "", nil)
	detail := "The request does not match the API's contract."
	if len(fields) > 0 {
		detail = strings.TrimSpace(fields[0].Pointer + " " + fields[0].Detail)
	}
	return &inputError{
		problem: problem.New(problem.Invalid, "request_invalid", detail).
			WithCure("Correct what errors lists; the contract is /api/v1/openapi.json."),
		fields: fields,
	}
}

func checkQuery(op *operation, raw string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return invalid("query_invalid", "The query string cannot be read.", "Escape its special characters.")
	}
	for name, given := range values {
		switch {
		case !op.query[name]:
			return problem.New(problem.Invalid, "query_unknown", fmt.Sprintf("There is no query parameter %q.", name)).
				WithCure("Remove it.").InField(name)
		case len(given) > 1:
			return problem.New(problem.Invalid, "query_repeated", fmt.Sprintf("The query parameter %q is given %d times.", name, len(given))).
				WithCure("Give it once.").InField(name)
		case !utf8.ValidString(given[0]), strings.ContainsRune(given[0], 0):
			return problem.New(problem.Invalid, "query_invalid", fmt.Sprintf("The query parameter %q is not text.", name)).
				WithCure("Send UTF-8 without the character NUL.").InField(name)
		}
	}
	return nil
}

func readBody(w http.ResponseWriter, r *http.Request) error {
	if coding := strings.Join(r.Header.Values("Content-Encoding"), ", "); coding != "" && !strings.EqualFold(coding, "identity") {
		w.Header().Set("Accept-Encoding", "identity") // RFC 9110, section 15.5.16
		return problem.New(problem.Unsupported, "content_encoding_unsupported", fmt.Sprintf("The body is declared as encoded by %q, and bodies are read as they are.", coding)).
			WithCure("Send the body uncompressed, without Content-Encoding.")
	}
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, declared := parameters["charset"]
	switch {
	case err != nil || kind != "application/json":
		return invalid("content_type_invalid", "The body is not declared as JSON.", "Send Content-Type: application/json.")
	case declared && !strings.EqualFold(charset, "utf-8"):
		return invalid("content_type_invalid", fmt.Sprintf("The body is declared in the character set %q, and JSON is read as UTF-8.", charset), "Send UTF-8 and Content-Type: application/json.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem.New(problem.TooLarge, "body_too_large", fmt.Sprintf("The body has more than %d bytes.", maxBody)).WithCure("Send less.")
	}
	if err != nil {
		if r.Context().Err() != nil {
			return r.Context().Err()
		}
		return invalid("body_unreadable", "The body could not be read to its end.", "Send it again.")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return invalid("body_missing", "The request has no body.", "Send a JSON object.")
	}
	if err := checkJSON(body); err != nil {
		return invalid("json_invalid", "The JSON is refused: "+err.Error()+".", "Send one well-formed JSON object.")
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

func invalid(code, message, cure string) error {
	return problem.New(problem.Invalid, code, message).WithCure(cure)
}

// maxFieldErrors bounds how many faults an answer lists.
const maxFieldErrors = 20

// fieldErrors flattens what the validator found. Only its reasons are passed on, never the values.
func fieldErrors(err error, at string, found []api.FieldError) []api.FieldError {
	if len(found) >= maxFieldErrors {
		return found
	}
	if e, ok := err.(*openapi3filter.RequestError); ok { //nolint:errorlint // the tree is walked level by level
		switch {
		case e.Parameter != nil:
			at = e.Parameter.Name
		case e.RequestBody != nil:
			at = "body"
		}
		if e.Err == nil {
			return append(found, api.FieldError{Pointer: at, Detail: e.Reason})
		}
		return fieldErrors(e.Err, at, found)
	}
	if many, ok := err.(openapi3.MultiError); ok { //nolint:errorlint // as above
		for _, one := range many {
			found = fieldErrors(one, at, found)
		}
		return found
	}
	if e, ok := errors.AsType[*openapi3.SchemaError](err); ok {
		if pointer := e.JSONPointer(); len(pointer) > 0 {
			at = "/" + strings.Join(pointer, "/")
		}
		return append(found, api.FieldError{Pointer: at, Detail: e.Reason})
	}
	if errors.Is(err, openapi3filter.ErrInvalidRequired) {
		return append(found, api.FieldError{Pointer: at, Detail: "is required"})
	}
	return append(found, api.FieldError{Pointer: at, Detail: "is not valid"})
}

// caller is who a request comes from.
type caller struct {
	who          access.Principal
	installToken string
	remoteAddr   string
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}
