// Package httpapi is the edge that speaks the HTTP contract of api/openapi/console.yaml. A guard in
// front of every operation authenticates, authorises and validates from the contract itself; behind it
// a handler translates, makes one domain call, and renders. It refuses to start with an operation that
// does not say who may call it.
package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"

	api "prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/audit/trail"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/health"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/console/tenancy"
)

// Access is what the API needs of package access.
type Access interface {
	// Principal answers who a user is, or Unauthenticated.
	Principal(ctx context.Context, userID string) (access.Principal, error)
	// PrincipalOfToken answers who an API token acts as, or Unauthenticated.
	PrincipalOfToken(ctx context.Context, plain, remoteAddr string) (access.Principal, error)
	// MintAPIToken answers the plain token once.
	MintAPIToken(ctx context.Context, p access.Principal, name string, expiresIn time.Duration) (access.APIToken, string, error)
	// APITokens lists the caller's tokens.
	APITokens(ctx context.Context, p access.Principal) ([]access.APIToken, error)
	// RevokeAPIToken ends one of the caller's tokens.
	RevokeAPIToken(ctx context.Context, p access.Principal, tokenID string) error
	// Sessions lists where the caller is signed in.
	Sessions(ctx context.Context, p access.Principal) ([]access.Session, error)
	// EndSession signs the caller out in one browser.
	EndSession(ctx context.Context, p access.Principal, sessionID string) error
	// EndOtherSessions signs the caller out everywhere but in one, and counts what ended.
	EndOtherSessions(ctx context.Context, p access.Principal, keep string) (int, error)
}

// Sessions tells who is signed in; its middleware must stand outside of this handler.
type Sessions interface {
	// UserID is "" where nobody is signed in.
	UserID(ctx context.Context) string
	// SignIn renews the session for the user.
	SignIn(ctx context.Context, userID string) error
	// ID names the session of the request, "" without one.
	ID(ctx context.Context) string
}

// Tenancy is what the API needs of package tenancy.
type Tenancy interface {
	// Clients lists the clients that the caller may read.
	Clients(ctx context.Context, p access.Principal) ([]tenancy.Client, error)
	// Client reads one client.
	Client(ctx context.Context, p access.Principal, clientID string) (tenancy.Client, error)
	// CreateClient adds a client.
	CreateClient(ctx context.Context, p access.Principal, name string) (tenancy.Client, error)
	// RenameClient renames a client.
	RenameClient(ctx context.Context, p access.Principal, clientID, name string) (tenancy.Client, error)
	// Environments lists the environments of a client that the caller may read.
	Environments(ctx context.Context, p access.Principal, clientID string) ([]tenancy.Environment, error)
	// CreateEnvironment adds an environment.
	CreateEnvironment(ctx context.Context, p access.Principal, clientID, name string) (tenancy.Environment, error)
	// RenameEnvironment renames an environment.
	RenameEnvironment(ctx context.Context, p access.Principal, environmentID, name string) (tenancy.Environment, error)
	// DeleteClient answers with the problem in_use while the client has environments.
	DeleteClient(ctx context.Context, p access.Principal, clientID string) error
	// DeleteEnvironment answers with the problem in_use while anything is left in the environment.
	DeleteEnvironment(ctx context.Context, p access.Principal, environmentID string) error
	// Users reads a page of users with their roles, and counts all that match.
	Users(ctx context.Context, p access.Principal, q tenancy.UserQuery) ([]tenancy.Member, int, error)
	// User reads a user with the roles assigned.
	User(ctx context.Context, p access.Principal, userID string) (tenancy.User, []tenancy.Assignment, error)
	// Assignments lists the roles of a user.
	Assignments(ctx context.Context, p access.Principal, userID string) ([]tenancy.Assignment, error)
	// CreateUser adds a user without any role.
	CreateUser(ctx context.Context, p access.Principal, email, name, password string) (tenancy.User, error)
	// CreateServiceAccount adds an account for a program.
	CreateServiceAccount(ctx context.Context, p access.Principal, name string) (tenancy.User, error)
	// UpdateUser changes what the patch names.
	UpdateUser(ctx context.Context, p access.Principal, userID string, patch tenancy.UserPatch) (tenancy.User, error)
	// APITokens lists the API tokens of another person.
	APITokens(ctx context.Context, p access.Principal, userID string) ([]access.APIToken, error)
	// MintAPIToken answers the plain token of a service account once.
	MintAPIToken(ctx context.Context, p access.Principal, userID, name string, expiresIn time.Duration) (access.APIToken, string, error)
	// RevokeAPIToken ends an API token of another person.
	RevokeAPIToken(ctx context.Context, p access.Principal, userID, tokenID string) error
	// ChangePassword sets the caller's own password and ends every session of theirs.
	ChangePassword(ctx context.Context, p access.Principal, current, next string) error
	// Roles lists every role.
	Roles(ctx context.Context, p access.Principal) ([]tenancy.Role, error)
	// Role reads a role.
	Role(ctx context.Context, p access.Principal, roleID string) (tenancy.Role, error)
	// CreateRole adds a role.
	CreateRole(ctx context.Context, p access.Principal, name string, permissions []access.Permission) (tenancy.Role, error)
	// UpdateRole replaces name and permissions, of any version where it is "".
	UpdateRole(ctx context.Context, p access.Principal, roleID, version, name string, permissions []access.Permission) (tenancy.Role, error)
	// DeleteRole deletes a role that nobody holds.
	DeleteRole(ctx context.Context, p access.Principal, roleID string) error
	// Assign gives a role to a user on a scope.
	Assign(ctx context.Context, p access.Principal, userID, roleID string, scope access.Scope) (tenancy.Assignment, error)
	// Unassign takes an assignment away.
	Unassign(ctx context.Context, p access.Principal, userID, assignmentID string) error
}

// Enrollment is what the API needs of package enrollment.
type Enrollment interface {
	// Challenge answers a text to sign.
	Challenge(ctx context.Context) (challenge string, expires time.Time, err error)
	// Enroll decides whether a stranger becomes an agent.
	Enroll(ctx context.Context, token string, r enrollment.Request, remoteAddr string) (enrollment.Response, error)
	// PostFindings keeps what an agent found about itself.
	PostFindings(ctx context.Context, token string, f enrollment.FindingsPost) error
	// Renew issues a new credential to the holder of the key.
	Renew(ctx context.Context, agentID string, r enrollment.RenewRequest, remoteAddr string) (enrollment.Credential, error)
	// Tokens lists the install tokens that the caller may manage, with the number of all that match.
	Tokens(ctx context.Context, p access.Principal, q enrollment.TokenQuery) ([]enrollment.Token, int, error)
	// FindingsOf reads the self-check that an agent posted last; nil if none.
	FindingsOf(ctx context.Context, p access.Principal, a fleet.Agent) (*enrollment.Findings, error)
	// Mint answers the plain token once.
	Mint(ctx context.Context, p access.Principal, r enrollment.MintRequest) (enrollment.Token, string, error)
	// Revoke ends an install token.
	Revoke(ctx context.Context, p access.Principal, tokenID string) error
}

// Onboarding is what the API needs of package onboarding.
type Onboarding interface {
	// Record makes an attempt, or comes back to it.
	Record(ctx context.Context, p access.Principal, clientID, environmentID, displayName string) (onboarding.Recorded, error)
	// List lists the attempts that the caller may read.
	List(ctx context.Context, p access.Principal, clientID string, unfinished bool) ([]onboarding.Attempt, error)
	// Status measures an attempt.
	Status(ctx context.Context, p access.Principal, id string) (onboarding.Status, error)
	// Abandon gives an attempt up.
	Abandon(ctx context.Context, p access.Principal, id string) error
	// Command prints a placeholder where plainToken is "".
	Command(ctx context.Context, p access.Principal, id, plainToken string) (onboarding.Command, error)
}

// Inventory is what the API needs of package inventory.
type Inventory interface {
	// Clusters lists the clusters that the caller may read, with the number of all that match.
	Clusters(ctx context.Context, p access.Principal, q inventory.ClusterQuery) ([]inventory.Cluster, int, error)
	// Cluster reads one cluster.
	Cluster(ctx context.Context, p access.Principal, clusterID string) (inventory.Cluster, error)
	// Objects reads one page of a section.
	Objects(ctx context.Context, p access.Principal, q inventory.Query) (inventory.Page, error)
	// AcceptIdentity takes a new fingerprint.
	AcceptIdentity(ctx context.Context, p access.Principal, clusterID, uid string) (inventory.Cluster, error)
	// Removal tells what Remove would do, and changes nothing.
	Removal(ctx context.Context, p access.Principal, clusterID string) (inventory.Removal, error)
	// Remove removes a cluster and archives its attempt.
	Remove(ctx context.Context, p access.Principal, clusterID string) error
}

// Fleet is what the API needs of package fleet.
type Fleet interface {
	// Agents lists the agents that the caller may read, with the number of all that match.
	Agents(ctx context.Context, p access.Principal, f fleet.Filter) ([]fleet.Agent, int, error)
	// Agent reads one agent.
	Agent(ctx context.Context, p access.Principal, agentID string) (fleet.Agent, error)
	// RotateCredentials makes an online agent fetch a fresh credential.
	RotateCredentials(ctx context.Context, p access.Principal, agentID string) (fleet.Agent, error)
	// ReleaseIdentity lets another key take the agent's name.
	ReleaseIdentity(ctx context.Context, p access.Principal, agentID string) (fleet.Agent, error)
	// Revoke ends an agent's credential.
	Revoke(ctx context.Context, p access.Principal, agentID string) (fleet.Agent, error)
	// Delete removes an agent's record.
	Delete(ctx context.Context, p access.Principal, agentID string) error
}

// Health is what the API needs of package health.
type Health interface {
	// Report measures what Console stands on.
	Report(ctx context.Context, p access.Principal) (health.Report, error)
}

// Audit is what the API needs of package trail.
type Audit interface {
	// Events reads a page of the rows that the caller may see.
	Events(ctx context.Context, p access.Principal, q trail.Query) (trail.Page, error)
	// Export begins an export, and answers what emits its rows.
	Export(ctx context.Context, p access.Principal, f trail.Filter) (func(ctx context.Context, emit func(audit.Event) error) error, error)
}

// Config is what the API stands on; every field is needed.
type Config struct {
	Access     Access
	Sessions   Sessions
	Tenancy    Tenancy
	Enrollment Enrollment
	Onboarding Onboarding
	Inventory  Inventory
	Fleet      Fleet
	Health     Health
	Audit      Audit
	Clock      clock.Clock
	Logger     *slog.Logger
	// RemoteAddr answers the caller's address, trusted proxies looked through. Nil takes r.RemoteAddr.
	RemoteAddr func(r *http.Request) string
}

// New makes the handler of everything under /api/. Console wraps it in the session middleware and in
// http.CrossOriginProtection.
func New(c Config) (http.Handler, error) {
	if c.RemoteAddr == nil {
		c.RemoteAddr = func(r *http.Request) string { return r.RemoteAddr }
	}
	operations, err := readContract()
	if err != nil {
		return nil, err
	}
	out := refuser{logger: c.Logger}
	g := &guard{
		refuser: out, config: c, limiter: newLimiter(c.Clock),
		options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, MultiError: true, SkipSettingDefaults: true,
		},
	}
	badRequest := func(w http.ResponseWriter, r *http.Request, _ error) {
		out.refuse(w, r, invalid("request_invalid", "The request could not be read.", "Hold it against the API's contract."))
	}
	strict := api.NewStrictHandlerWithOptions(&server{Config: c}, nil, api.StrictHTTPServerOptions{
		RequestErrorHandlerFunc: badRequest, ResponseErrorHandlerFunc: out.refuse,
	})
	m := &guarded{mux: http.NewServeMux(), operations: operations, guard: g, served: map[string]bool{}}
	api.HandlerWithOptions(strict, api.StdHTTPServerOptions{BaseRouter: m, ErrorHandlerFunc: badRequest})
	for pattern := range operations {
		if !m.served[pattern] {
			m.unknown = append(m.unknown, errors.New("the contract has "+pattern+", the generated code has not: generate it anew"))
		}
	}
	contract, err := api.GetSpecJSON()
	if err != nil {
		return nil, fmt.Errorf("read the API's contract: %w", err)
	}
	m.mux.HandleFunc("GET /api/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(contract) // the client may have left
	})
	m.served["GET /api/v1/openapi.json"] = true
	return m, errors.Join(m.unknown...)
}

// guarded is the router: the generated code registers its handlers, and each gets its guard.
type guarded struct {
	mux        *http.ServeMux
	operations map[string]*operation
	guard      *guard
	served     map[string]bool
	unknown    []error
}

// HandleFunc implements the generated code's ServeMux.
func (m *guarded) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	op := m.operations[pattern]
	if op == nil {
		m.unknown = append(m.unknown, errors.New("the generated code serves "+pattern+", which the contract has not: generate it anew"))
		return
	}
	m.served[pattern] = true
	m.mux.Handle(pattern, m.guard.wrap(op, handler))
}

// ServeHTTP answers unknown paths and methods as problems too, and never redirects.
func (m *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler, pattern := m.mux.Handler(r)
	clean := path.Clean(r.URL.Path) == r.URL.Path // the mux would redirect the others
	if clean && m.served[pattern] {
		m.mux.ServeHTTP(w, r)
		return
	}
	answer := &headOnly{header: http.Header{}}
	if !m.served[pattern] {
		handler.ServeHTTP(answer, r)
	}
	if clean && answer.status == http.StatusMethodNotAllowed {
		allow := answer.header.Get("Allow")
		w.Header().Set("Allow", allow)
		write(w, api.Problem{
			Type: typeOf("method_not_allowed"), Title: "Method not allowed", Status: answer.status, Code: "method_not_allowed",
			Detail: new("This path does not know the method " + r.Method + "."), Cure: new("Use one of: " + allow + "."),
		})
		return
	}
	m.guard.refuse(w, r, problem.New(problem.NotFound, "path_unknown", "The API has no such path.").
		WithCure("Look it up in the contract, /api/v1/openapi.json."))
}

// headOnly keeps the status and the headers of an answer.
type headOnly struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (h *headOnly) Header() http.Header { return h.header }

// Write implements http.ResponseWriter.
func (h *headOnly) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (h *headOnly) WriteHeader(status int) { h.status = status }
