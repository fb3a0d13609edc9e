// Package tenancy owns clients, their environments, the people and the roles: who belongs to what. It
// refuses names that another row holds and acts that the caller's grants do not cover.
package tenancy

import (
	"context"
	"time"

	"prxm.uz/proxima/internal/console/access"
)

// Client is an organisation whose clusters are looked after.
type Client struct {
	ID        string
	Name      string
	CreatedAt time.Time
}

// Environment is one environment of a client, such as prod.
type Environment struct {
	ID        string
	ClientID  string
	Name      string
	CreatedAt time.Time
}

// Places are clients with their environments: the clients by name, the environments by client and name.
type Places struct {
	Clients      []Client
	Environments []Environment
}

// UserKind tells people from programs.
type UserKind string

// The kinds of users. A service account has no password and acts by API tokens alone.
const (
	KindPerson         UserKind = "person"
	KindServiceAccount UserKind = "service_account"
)

// User is who may act: a person who signs in, or a service account. PasswordHash is an argon2id string.
type User struct {
	ID           string
	Kind         UserKind
	Email        string // as typed; unique after folding its case
	Name         string
	PasswordHash string
	Active       bool
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Member is a user with the roles assigned.
type Member struct {
	User

	Assignments []Assignment
}

// UserQuery narrows a list of users; empty fields do not.
type UserQuery struct {
	Text   string // part of the e-mail address or the name
	Kind   UserKind
	RoleID string // holds this role anywhere
	Active *bool
	Limit  int
	Offset int
}

// Role is a named set of permissions. Built-in roles cannot be changed.
type Role struct {
	ID          string
	Name        string
	BuiltIn     bool
	Permissions []access.Permission
	CreatedAt   time.Time
	Holders     int // the users who hold it anywhere, deactivated ones included
}

// Assignment gives a role to a user on a scope. The names of client and environment are empty where the
// scope is wider.
type Assignment struct {
	ID              string
	UserID          string
	RoleID          string
	RoleName        string
	Scope           access.Scope
	ClientName      string
	EnvironmentName string
	CreatedAt       time.Time
}

// Tx is what this package needs of a transaction. Lookups answer ErrNotFound, inserts ErrTaken where a
// unique name is held by another row.
type Tx interface {
	access.Tx

	// InsertClient answers ErrTaken where the name is held.
	InsertClient(ctx context.Context, c Client) error
	// UpdateClient writes the name.
	UpdateClient(ctx context.Context, c Client) error
	// Client answers ErrNotFound where there is none.
	Client(ctx context.Context, id string) (Client, error)
	// InsertEnvironment answers ErrTaken where the client has one of that name.
	InsertEnvironment(ctx context.Context, e Environment) error
	// UpdateEnvironment writes the name; ErrTaken where another of the client holds it.
	UpdateEnvironment(ctx context.Context, e Environment) error
	// Environment answers ErrNotFound where there is none.
	Environment(ctx context.Context, id string) (Environment, error)
	// ClientContents counts what stands in a client.
	ClientContents(ctx context.Context, clientID string) (Contents, error)
	// EnvironmentContents counts what stands in an environment; tokens that work at now are live.
	EnvironmentContents(ctx context.Context, e Environment, now time.Time) (Contents, error)
	// DeleteClient answers ErrInUse while anything is in the client.
	DeleteClient(ctx context.Context, id string) error
	// DeleteEnvironment deletes its attempts and tokens too; ErrInUse while a cluster or an agent is in it.
	DeleteEnvironment(ctx context.Context, e Environment) error
	// RolesHeldOn lists the roles that are held on exactly this scope.
	RolesHeldOn(ctx context.Context, scope access.Scope) ([]HeldRole, error)
	// DeleteRolesHeldOn takes them away.
	DeleteRolesHeldOn(ctx context.Context, scope access.Scope) error

	// InsertUser answers ErrTaken where the e-mail address is held.
	InsertUser(ctx context.Context, u User) error
	// UpdateUser writes everything but the kind and the time of creation.
	UpdateUser(ctx context.Context, u User) error
	// User answers ErrNotFound where there is none.
	User(ctx context.Context, id string) (User, error)
	// CountUsers counts the inactive too.
	CountUsers(ctx context.Context) (int, error)
	// CountAdministrators counts active people who hold users:write on the whole console.
	CountAdministrators(ctx context.Context) (int, error)
	// DeleteSessionsOfUser signs the user out everywhere.
	DeleteSessionsOfUser(ctx context.Context, userID string) error
	// RevokeAPITokensOfUser ends all that still work, and counts them.
	RevokeAPITokensOfUser(ctx context.Context, userID string, at time.Time) (int, error)

	// InsertRole answers ErrTaken where the name is held.
	InsertRole(ctx context.Context, r Role) error
	// UpdateRole writes name and permissions.
	UpdateRole(ctx context.Context, r Role) error
	// DeleteRole answers ErrInUse while the role is assigned.
	DeleteRole(ctx context.Context, id string) error
	// Role answers ErrNotFound where there is none.
	Role(ctx context.Context, id string) (Role, error)
	// RoleByName finds a role by its name, whatever the case.
	RoleByName(ctx context.Context, name string) (Role, error)
	// CountRoles counts the built-in ones too.
	CountRoles(ctx context.Context) (int, error)

	// Assignments lists the roles of a user, the oldest first.
	Assignments(ctx context.Context, userID string) ([]Assignment, error)
	// InsertAssignment answers ErrTaken where the user holds the role on the scope.
	InsertAssignment(ctx context.Context, a Assignment) error
	// DeleteAssignment answers ErrNotFound where the user has no such assignment.
	DeleteAssignment(ctx context.Context, userID, id string) error
}

// Store is where clients, environments, users and roles are kept. InTx runs f in one serializable
// transaction and may run it again; f must have no effect outside of it.
type Store interface {
	// InTx runs f in one transaction.
	InTx(ctx context.Context, f func(Tx) error) error

	// Client answers ErrNotFound where there is none.
	Client(ctx context.Context, id string) (Client, error)
	// Clients lists the clients that reach touches, by name.
	Clients(ctx context.Context, reach access.Reach) ([]Client, error)
	// Environment answers ErrNotFound where there is none.
	Environment(ctx context.Context, id string) (Environment, error)
	// Environments lists the environments of one client that reach covers, by name; an empty clientID
	// lists those of every client.
	Environments(ctx context.Context, clientID string, reach access.Reach) ([]Environment, error)
	// Places lists the clients that reach touches, and the environments of them that it covers.
	Places(ctx context.Context, reach access.Reach) (Places, error)
	// ClientSummaries reads a page of the clients that the sight's environments lie in, by name, with the
	// number of all that match.
	ClientSummaries(ctx context.Context, q ClientQuery, sight Sight) ([]ClientSummary, int, error)
	// EnvironmentSummaries lists the environments of a client, by name.
	EnvironmentSummaries(ctx context.Context, clientID string, sight Sight) ([]EnvironmentSummary, error)
	// ClientContents counts what stands in a client.
	ClientContents(ctx context.Context, clientID string) (Contents, error)
	// EnvironmentContents counts what stands in an environment; tokens that work at now are live.
	EnvironmentContents(ctx context.Context, e Environment, now time.Time) (Contents, error)
	// Users reads a page of users with their roles, by e-mail address, and counts all that match.
	Users(ctx context.Context, q UserQuery) ([]Member, int, error)
	// User answers ErrNotFound where there is none.
	User(ctx context.Context, id string) (User, error)
	// Roles lists every role, by name.
	Roles(ctx context.Context) ([]Role, error)
	// Role answers ErrNotFound where there is none.
	Role(ctx context.Context, id string) (Role, error)
	// APITokens lists the API tokens of a user, newest first.
	APITokens(ctx context.Context, userID string) ([]access.APIToken, error)
	// Assignments lists the roles of a user, the oldest first.
	Assignments(ctx context.Context, userID string) ([]Assignment, error)
}
