// Package access owns the question "may they": permissions, scopes, the principal behind a request,
// and how passwords, sessions and API tokens turn into one. It refuses by default and stores nothing
// itself.
package access

import "slices"

// Permission is one right, such as hosts:read.
type Permission string

// The permissions. There is no clusters:* (A-10).
const (
	HostsRead      Permission = "hosts:read"
	HostsWrite     Permission = "hosts:write"
	KubernetesRead Permission = "kubernetes:read"
	AgentsRead     Permission = "agents:read"
	AgentsWrite    Permission = "agents:write"
	ClientsRead    Permission = "clients:read"
	ClientsWrite   Permission = "clients:write"
	UsersRead      Permission = "users:read"
	UsersWrite     Permission = "users:write"
	RolesRead      Permission = "roles:read"
	RolesWrite     Permission = "roles:write"
	AuditRead      Permission = "audit:read"
	SettingsRead   Permission = "settings:read"
	SettingsWrite  Permission = "settings:write"
)

// Permissions lists every permission in the order in which pages show them.
func Permissions() []Permission {
	return []Permission{
		HostsRead, HostsWrite, KubernetesRead, AgentsRead, AgentsWrite, ClientsRead, ClientsWrite,
		UsersRead, UsersWrite, RolesRead, RolesWrite, AuditRead, SettingsRead, SettingsWrite,
	}
}

// Known tells whether p is a permission of this build.
func (p Permission) Known() bool { return slices.Contains(Permissions(), p) }

// Scope is where a permission is asked for or granted. Empty fields widen it: Scope{} is the whole
// console, Scope{ClientID: c} a client with all its environments.
type Scope struct {
	ClientID      string
	EnvironmentID string
}

// contains tells whether a grant on s covers an act on at.
func (s Scope) contains(at Scope) bool {
	switch {
	case s.ClientID == "":
		return true
	case s.ClientID != at.ClientID:
		return false
	case s.EnvironmentID == "":
		return true
	default:
		return s.EnvironmentID == at.EnvironmentID
	}
}

// Grant is a role's permissions, given to one user on one scope.
type Grant struct {
	Role        string
	Permissions []Permission
	Scope       Scope
}

// Principal is who acts. The zero value is nobody, who may nothing.
type Principal struct {
	UserID string
	Email  string
	Name   string
	Grants []Grant
	// APITokenID is set where an API token, and not a session, proves who acts.
	APITokenID string
	// RemoteAddr is the caller's address, for the audit log.
	RemoteAddr string
}

// Allows tells whether p holds the permission on the scope.
func (p Principal) Allows(perm Permission, at Scope) bool {
	if p.UserID == "" {
		return false
	}
	for _, g := range p.Grants {
		if slices.Contains(g.Permissions, perm) && g.Scope.contains(at) {
			return true
		}
	}
	return false
}

// AllowsSomewhere tells whether p holds the permission on any scope at all.
func (p Principal) AllowsSomewhere(perm Permission) bool {
	reach := p.Reach(perm)
	return reach.All || len(reach.Scopes) > 0
}

// Reach is the set of scopes on which a permission is held: what a list may show.
type Reach struct {
	// All means every client; Scopes is then empty.
	All    bool
	Scopes []Scope
}

// Reach collects the scopes on which p holds the permission.
func (p Principal) Reach(perm Permission) Reach {
	var r Reach
	if p.UserID == "" {
		return r
	}
	for _, g := range p.Grants {
		if !slices.Contains(g.Permissions, perm) {
			continue
		}
		if g.Scope.ClientID == "" {
			return Reach{All: true}
		}
		if !slices.Contains(r.Scopes, g.Scope) {
			r.Scopes = append(r.Scopes, g.Scope)
		}
	}
	return r
}
