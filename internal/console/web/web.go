// Package web owns the pages: it parses a request, makes a domain call, and renders a typed page. It
// judges nothing. Gates are printed as they came, and what a page says of a cluster beside them
// are facts with their ages, each compared with its own window and never folded into one light.
//
// Every page works without script. Script adds what a reload would bring: gates that change while one
// looks (server-sent events), the slug while one types, lists that keep the focus. Nothing is inline,
// so that the content policy can forbid it.
//
// It refuses to hold state: what a list shows stands in its URL, and the plain value of an install
// token exists only in the answer that minted it.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit/trail"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/health"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/tenancy"
)

// Sessions remembers who is signed in. The middleware that loads and saves a session stands around
// the handler that [New] returns.
type Sessions interface {
	// SignIn binds the session to a user and renews its token.
	SignIn(ctx context.Context, userID string) error
	// SignOut ends the session.
	SignOut(ctx context.Context) error
	// UserID is "" where nobody is signed in.
	UserID(ctx context.Context) string
	// ID names the session of the request, "" without one.
	ID(ctx context.Context) string
	// Alive tells whether the session that the request came with still is, for requests that last.
	Alive(ctx context.Context) (bool, error)
}

// Access answers who somebody is. Refusals are problems: sign_in_refused, too_many_attempts.
type Access interface {
	// SignIn checks a password; remoteAddr counts the attempts of one address.
	SignIn(ctx context.Context, email, password, remoteAddr string) (access.Principal, error)
	// SignedOut leaves the audit event of a sign-out.
	SignedOut(ctx context.Context, p access.Principal) error
	// Principal answers with problem.Unauthenticated for a user who is gone or deactivated.
	Principal(ctx context.Context, userID string) (access.Principal, error)
	// ChangePassword asks for the current password and ends the other sessions.
	ChangePassword(ctx context.Context, p access.Principal, current, next string) error
	// MintAPIToken answers the plain token of the caller once.
	MintAPIToken(ctx context.Context, p access.Principal, name string, expiresIn time.Duration) (access.APIToken, string, error)
	// APITokens lists the caller's tokens, newest first.
	APITokens(ctx context.Context, p access.Principal) ([]access.APIToken, error)
	// RevokeAPIToken ends one of the caller's tokens.
	RevokeAPIToken(ctx context.Context, p access.Principal, tokenID string) error
	// Sessions lists where the caller is signed in, the session seen last first.
	Sessions(ctx context.Context, p access.Principal) ([]access.Session, error)
	// EndSession signs the caller out in one browser.
	EndSession(ctx context.Context, p access.Principal, sessionID string) error
	// EndOtherSessions signs the caller out everywhere but in one, and counts what ended.
	EndOtherSessions(ctx context.Context, p access.Principal, keep string) (int, error)
}

// Tenancy lists and makes clients and environments.
type Tenancy interface {
	// PlacesFor lists the clients in which p holds perm anywhere, and the environments on which p does.
	PlacesFor(ctx context.Context, p access.Principal, perm access.Permission) (tenancy.Places, error)
	// CreateClient needs a name that no other client has.
	CreateClient(ctx context.Context, p access.Principal, name string) (tenancy.Client, error)
	// CreateEnvironment needs a name that no other environment of the client has.
	CreateEnvironment(ctx context.Context, p access.Principal, clientID, name string) (tenancy.Environment, error)
	// ClientSummaries reads a page of clients, with the number of all that match.
	ClientSummaries(ctx context.Context, p access.Principal, q tenancy.ClientQuery) ([]tenancy.ClientSummary, int, error)
	// EnvironmentSummaries lists the environments of one client.
	EnvironmentSummaries(ctx context.Context, p access.Principal, clientID string) ([]tenancy.EnvironmentSummary, error)
	// Client reads a client.
	Client(ctx context.Context, p access.Principal, clientID string) (tenancy.Client, error)
	// Environment reads an environment on which p holds anything.
	Environment(ctx context.Context, p access.Principal, environmentID string) (tenancy.Environment, error)
	// RenameClient needs a name that no other client has.
	RenameClient(ctx context.Context, p access.Principal, clientID, name string) (tenancy.Client, error)
	// RenameEnvironment needs a name that no other environment of the client has.
	RenameEnvironment(ctx context.Context, p access.Principal, environmentID, name string) (tenancy.Environment, error)
	// ClientContents says what stands in a client, to whoever may delete it.
	ClientContents(ctx context.Context, p access.Principal, clientID string) (tenancy.Client, tenancy.Contents, error)
	// EnvironmentContents says what stands in an environment, to whoever may delete it.
	EnvironmentContents(ctx context.Context, p access.Principal, environmentID string) (tenancy.Environment, tenancy.Contents, error)
	// DeleteClient refuses with in_use while the client has environments.
	DeleteClient(ctx context.Context, p access.Principal, clientID string) error
	// DeleteEnvironment refuses with in_use while anything is left in it.
	DeleteEnvironment(ctx context.Context, p access.Principal, environmentID string) error
}

// People lists and changes users, roles, who holds them, and the API tokens of others.
type People interface {
	// Users reads a page of users with their roles, and counts all that match.
	Users(ctx context.Context, p access.Principal, q tenancy.UserQuery) ([]tenancy.Member, int, error)
	// User reads a user with the roles assigned.
	User(ctx context.Context, p access.Principal, userID string) (tenancy.User, []tenancy.Assignment, error)
	// Invite adds a user with a role, and answers the password that it made.
	Invite(ctx context.Context, p access.Principal, i tenancy.Invitation) (tenancy.User, string, error)
	// CreateServiceAccount adds an account for a program.
	CreateServiceAccount(ctx context.Context, p access.Principal, name string) (tenancy.User, error)
	// UpdateUser changes what the patch names.
	UpdateUser(ctx context.Context, p access.Principal, userID string, patch tenancy.UserPatch) (tenancy.User, error)
	// ResetPassword answers the password that it made.
	ResetPassword(ctx context.Context, p access.Principal, userID string) (tenancy.User, string, error)
	// Roles lists every role.
	Roles(ctx context.Context, p access.Principal) ([]tenancy.Role, error)
	// Role reads a role.
	Role(ctx context.Context, p access.Principal, roleID string) (tenancy.Role, error)
	// CreateRole adds a role of permissions that p holds.
	CreateRole(ctx context.Context, p access.Principal, name string, permissions []access.Permission) (tenancy.Role, error)
	// UpdateRole replaces name and permissions; role_changed_meanwhile where the version is another.
	UpdateRole(ctx context.Context, p access.Principal, roleID, version, name string, permissions []access.Permission) (tenancy.Role, error)
	// DeleteRole deletes a role that nobody holds.
	DeleteRole(ctx context.Context, p access.Principal, roleID string) error
	// Assign gives a role to a user on a scope.
	Assign(ctx context.Context, p access.Principal, userID, roleID string, scope access.Scope) (tenancy.Assignment, error)
	// Unassign takes an assignment away.
	Unassign(ctx context.Context, p access.Principal, userID, assignmentID string) error
	// APITokens lists the API tokens of a user, newest first.
	APITokens(ctx context.Context, p access.Principal, userID string) ([]access.APIToken, error)
	// MintAPIToken answers the plain token of a service account once.
	MintAPIToken(ctx context.Context, p access.Principal, userID, name string, expiresIn time.Duration) (access.APIToken, string, error)
	// RevokeAPIToken ends an API token of a user.
	RevokeAPIToken(ctx context.Context, p access.Principal, userID, tokenID string) error
}

// Onboarding records attempts and measures them.
type Onboarding interface {
	// Record records an attempt or resumes the one on the same slug.
	Record(ctx context.Context, p access.Principal, clientID, environmentID, displayName string) (onboarding.Recorded, error)
	// AddToken mints a further token for the attempt and returns its plain value once.
	AddToken(ctx context.Context, p access.Principal, attemptID string) (enrollment.Token, string, error)
	// List lists the attempts of a client, of all clients where clientID is "".
	List(ctx context.Context, p access.Principal, clientID string, unfinished bool) ([]onboarding.Attempt, error)
	// Status measures an attempt now.
	Status(ctx context.Context, p access.Principal, id string) (onboarding.Status, error)
	// Abandon stamps an attempt abandoned and leaves all else.
	Abandon(ctx context.Context, p access.Principal, id string) error
	// Command prints a placeholder where plainToken is "".
	Command(ctx context.Context, p access.Principal, id, plainToken string) (onboarding.Command, error)
}

// Inventory reads clusters and their objects. The reach of a list is the service's own affair.
type Inventory interface {
	// Clusters reads a page of clusters, with the number of all that match.
	Clusters(ctx context.Context, p access.Principal, q inventory.ClusterQuery) ([]inventory.Cluster, int, error)
	// Cluster reads a cluster.
	Cluster(ctx context.Context, p access.Principal, id string) (inventory.Cluster, error)
	// Objects reads a page of one section.
	Objects(ctx context.Context, p access.Principal, q inventory.Query) (inventory.Page, error)
	// Object reads one object whole.
	Object(ctx context.Context, p access.Principal, clusterID string, k inventory.Key) (inventory.Object, error)
	// AcceptIdentity takes the fingerprint uid for the cluster, if that is the one reported last.
	AcceptIdentity(ctx context.Context, p access.Principal, clusterID, uid string) (inventory.Cluster, error)
	// Removal tells what Remove would do, and changes nothing.
	Removal(ctx context.Context, p access.Principal, clusterID string) (inventory.Removal, error)
	// Remove deletes a cluster with its inventory and archives its attempt; cluster_alive while a
	// collector of it is there.
	Remove(ctx context.Context, p access.Principal, clusterID string) error
}

// Fleet lists agents and ends their identities.
type Fleet interface {
	// Agents reads a page of agents, with the number of all that match.
	Agents(ctx context.Context, p access.Principal, f fleet.Filter) ([]fleet.Agent, int, error)
	// Agent reads an agent.
	Agent(ctx context.Context, p access.Principal, agentID string) (fleet.Agent, error)
	// RotateCredentials makes an online agent fetch a fresh credential.
	RotateCredentials(ctx context.Context, p access.Principal, agentID string) (fleet.Agent, error)
	// ReleaseIdentity lets the next enrolment under the agent's name take its place (D-34).
	ReleaseIdentity(ctx context.Context, p access.Principal, agentID string) (fleet.Agent, error)
	// Revoke ends the agent's credential and keeps its record.
	Revoke(ctx context.Context, p access.Principal, agentID string) (fleet.Agent, error)
	// Delete ends the agent's credential and its record (B-102).
	Delete(ctx context.Context, p access.Principal, agentID string) error
}

// Audit reads the audit log.
type Audit interface {
	// Events reads a page of the rows that p may see.
	Events(ctx context.Context, p access.Principal, q trail.Query) (trail.Page, error)
	// Kept is for how long rows are kept.
	Kept() time.Duration
}

// Enrollment lists, mints and revokes install tokens, and keeps what agents found about themselves.
type Enrollment interface {
	// Tokens lists the install tokens that the caller may manage, with the number of all that match.
	Tokens(ctx context.Context, p access.Principal, q enrollment.TokenQuery) ([]enrollment.Token, int, error)
	// TokenOf reads one of them.
	TokenOf(ctx context.Context, p access.Principal, tokenID string) (enrollment.Token, error)
	// Mint answers the plain token once.
	Mint(ctx context.Context, p access.Principal, r enrollment.MintRequest) (enrollment.Token, string, error)
	// Revoke ends a token; agents that enrolled with it stay.
	Revoke(ctx context.Context, p access.Principal, tokenID string) error
	// FindingsOf reads the self-check that an agent posted last; nil if none.
	FindingsOf(ctx context.Context, p access.Principal, a fleet.Agent) (*enrollment.Findings, error)
}

// Health measures what Console stands on.
type Health interface {
	// Report measures now, within health.Bound.
	Report(ctx context.Context, p access.Principal) (health.Report, error)
}

// Config is what the pages stand on. Every field is needed.
type Config struct {
	Sessions   Sessions
	Access     Access
	Tenancy    Tenancy
	People     People
	Onboarding Onboarding
	Inventory  Inventory
	Fleet      Fleet
	Audit      Audit
	Enrollment Enrollment
	Health     Health
	Clock      clock.Clock
	Logger     *slog.Logger
	// Version is shown at the foot of every page.
	Version string
	// PublicURL is the address at which people reach console; cookies are Secure where it is https.
	PublicURL string
	// SyncInterval is console's own PROXIMA_K8S_SYNC_INTERVAL. An inventory older than twice
	// that is marked as old.
	SyncInterval time.Duration
	// Template is the number of the permission template that credentials are issued under now.
	Template int
}

// server is the handler of all pages.
type server struct {
	Config
	static  assets
	streams streams
	// host is the public address without its scheme, for pages that nobody is signed in to.
	host   string
	secure bool
}

// Pages is the handler of all pages, to be mounted at "/".
type Pages struct {
	http.Handler

	server *server
}

// Refuse answers an error that was met in front of the pages with the page of it.
func (p *Pages) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	headers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.server.fail(&visit{w: w, r: r, now: p.server.Clock.Now()}, err) //nolint:contextcheck // the request carries it
	})).ServeHTTP(w, r)
}

// New makes the pages. A field that is missing is an error that names it.
func New(c Config) (*Pages, error) {
	missing := map[string]bool{
		"Sessions": c.Sessions == nil, "Access": c.Access == nil, "Tenancy": c.Tenancy == nil, "People": c.People == nil,
		"Onboarding": c.Onboarding == nil, "Inventory": c.Inventory == nil, "Fleet": c.Fleet == nil, "Audit": c.Audit == nil, "Health": c.Health == nil,
		"Enrollment": c.Enrollment == nil, "Template": c.Template < 1,
		"Clock": c.Clock == nil, "Logger": c.Logger == nil, "SyncInterval": c.SyncInterval <= 0,
	}
	for field, is := range missing {
		if is {
			return nil, errors.New("web: Config." + field + " is missing; console sets it when it starts")
		}
	}
	static, err := loadAssets()
	if err != nil {
		return nil, err
	}
	s := &server{Config: c, static: static, secure: strings.HasPrefix(c.PublicURL, "https:")}
	if u, err := url.Parse(c.PublicURL); err == nil {
		s.host = u.Host
	}
	return &Pages{headers(s.router()), s}, nil
}
