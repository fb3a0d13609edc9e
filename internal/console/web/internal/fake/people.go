package fake

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/console/tenancy"
)

// Team is who may sign in, and what they hold.
type Team struct {
	Members  []tenancy.Member
	Roles    []tenancy.Role
	Tokens   map[string][]access.APIToken // by user id
	Sessions map[string][]access.Session  // by user id
}

// Here is the id of the session that a visit comes with.
const Here = "se_here"

// Program is the id of a service account.
const Program = "us_program"

// Made is the password that console makes in a world.
const Made = "q7xfa-2mzkd-wt5ne-hb3vr"

func (w *World) team(before func(time.Duration) time.Time, more int) {
	w.Team = Team{
		Roles: []tenancy.Role{
			{ID: "rl_admin", Name: "Administrator", BuiltIn: true, Permissions: access.Permissions(), CreatedAt: before(90 * 24 * time.Hour)},
			{ID: "rl_viewer", Name: "Viewer", BuiltIn: true, Permissions: []access.Permission{access.HostsRead}, CreatedAt: before(90 * 24 * time.Hour)},
			{ID: "rl_call", Name: "On call", Permissions: []access.Permission{access.HostsRead, access.HostsWrite, access.AgentsRead, access.AgentsWrite, access.AuditRead}, CreatedAt: before(70 * 24 * time.Hour)},
			{ID: "rl_spare", Name: Hostile, Permissions: []access.Permission{access.ClientsRead}, CreatedAt: before(5 * time.Hour)},
		},
		Tokens: map[string][]access.APIToken{Admin: {
			{ID: "at_ci", Name: "deploy pipeline", Prefix: "pat_k3x9q2", CreatedAt: before(40 * 24 * time.Hour), ExpiresAt: before(-50 * 24 * time.Hour), LastUsedAt: before(3 * time.Minute)},
			{ID: "at_old", Name: "old laptop", Prefix: "pat_b7m2wz", CreatedAt: before(300 * 24 * time.Hour), RevokedAt: before(20 * 24 * time.Hour)},
		}, Reader: {
			{ID: "at_jonas", Name: Hostile, Prefix: "pat_zz18aa", CreatedAt: before(9 * 24 * time.Hour)},
		}},
		Sessions: map[string][]access.Session{Admin: {
			{ID: Here, CreatedAt: before(2 * time.Hour), SeenAt: before(time.Minute), RemoteAddr: "203.0.113.7", UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0"},
			{ID: "se_phone", CreatedAt: before(4 * 24 * time.Hour), SeenAt: before(7 * time.Hour), RemoteAddr: "2001:db8::17", UserAgent: "Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1"},
		}},
	}
	add := func(id, email, name string, active bool, assignments ...tenancy.Assignment) {
		u := tenancy.User{ID: id, Kind: tenancy.KindPerson, Email: email, Name: name, Active: active, CreatedAt: before(90 * 24 * time.Hour)}
		w.Team.Members = append(w.Team.Members, tenancy.Member{User: u, Assignments: assignments})
	}
	add(Admin, "mira.okafor@ostmark.example", "Mira Okafor", true, tenancy.Assignment{ID: "as_admin", RoleID: "rl_admin", RoleName: "Administrator"})
	add(Reader, "jonas.lind@ostmark.example", "Jonas Lind", true, tenancy.Assignment{
		ID: "as_jonas", RoleID: "rl_viewer", RoleName: "Viewer", Scope: access.Scope{ClientID: "cl_halden"}, ClientName: "Halden Energy",
	})
	add(Nobody, "new@ostmark.example", "", true)
	w.Team.Members = append(w.Team.Members, tenancy.Member{
		User:        tenancy.User{ID: Program, Kind: tenancy.KindServiceAccount, Email: "service account deploy pipeline", Name: "deploy pipeline", Active: true, CreatedAt: before(30 * 24 * time.Hour)},
		Assignments: []tenancy.Assignment{{ID: "as_call", RoleID: "rl_call", RoleName: "On call", Scope: access.Scope{ClientID: "cl_halden"}, ClientName: "Halden Energy"}},
	})
	add("us_left", "ida.berg@ostmark.example", "Ida Berg", false)
	for i := range more {
		add(fmt.Sprintf("us_%03d", i), fmt.Sprintf("person-%03d@ostmark.example", i), fmt.Sprintf("Person %03d", i), true)
	}
}

// People implements web.People.
type People struct{ *World }

// Users implements web.People.
func (p People) Users(_ context.Context, _ access.Principal, q tenancy.UserQuery) ([]tenancy.Member, int, error) {
	p.Lock()
	defer p.Unlock()
	var out []tenancy.Member
	for _, m := range p.Team.Members {
		holds := func(a tenancy.Assignment) bool { return a.RoleID == q.RoleID }
		if strings.Contains(strings.ToLower(m.Name+" "+m.Email), strings.ToLower(q.Text)) && (q.Active == nil || *q.Active == m.Active) &&
			(q.Kind == "" || q.Kind == m.Kind) && (q.RoleID == "" || slices.ContainsFunc(m.Assignments, holds)) {
			out = append(out, m)
		}
	}
	from := min(q.Offset, len(out))
	return out[from:min(from+q.Limit, len(out))], len(out), p.Broken
}

func (p People) member(id string) (*tenancy.Member, error) {
	i := slices.IndexFunc(p.Team.Members, func(m tenancy.Member) bool { return m.ID == id })
	if i < 0 {
		return nil, notFound("user")
	}
	return &p.Team.Members[i], nil
}

// User implements web.People.
func (p People) User(_ context.Context, _ access.Principal, id string) (tenancy.User, []tenancy.Assignment, error) {
	p.Lock()
	defer p.Unlock()
	m, err := p.member(id)
	if err != nil {
		return tenancy.User{}, nil, err
	}
	return m.User, m.Assignments, p.Broken
}

// Invite implements web.People.
func (p People) Invite(_ context.Context, _ access.Principal, i tenancy.Invitation) (tenancy.User, string, error) {
	p.Lock()
	defer p.Unlock()
	switch {
	case !strings.Contains(i.Email, "@"):
		return tenancy.User{}, "", problem.New(problem.Invalid, "email_invalid", fmt.Sprintf("%q is not an e-mail address.", i.Email)).WithCure("Give an address such as ann@example.com.").InField("email")
	case i.Scope.ClientID == "cl_none":
		return tenancy.User{}, "", problem.New(problem.Unprocessable, "reference_unknown", "There is no client cl_none.").WithCure("Check the id.").InField("clientID")
	}
	u := tenancy.User{ID: fmt.Sprintf("us_new%d", len(p.Team.Members)), Kind: tenancy.KindPerson, Email: i.Email, Name: i.Name, Active: true, CreatedAt: p.Now()}
	m := tenancy.Member{User: u}
	if i.RoleID != "" {
		m.Assignments = []tenancy.Assignment{p.assignment(i.RoleID, i.Scope)}
	}
	p.Team.Members = append(p.Team.Members, m)
	return u, Made, nil
}

func (p People) assignment(roleID string, scope access.Scope) tenancy.Assignment {
	a := tenancy.Assignment{ID: "as_" + roleID + scope.ClientID, RoleID: roleID, Scope: scope, ClientName: p.clientName(scope.ClientID)}
	for _, r := range p.Team.Roles {
		if r.ID == roleID {
			a.RoleName = r.Name
		}
	}
	for _, e := range p.Environments {
		if e.ID == scope.EnvironmentID {
			a.EnvironmentName = e.Name
		}
	}
	return a
}

// UpdateUser implements web.People.
func (p People) UpdateUser(_ context.Context, _ access.Principal, id string, patch tenancy.UserPatch) (tenancy.User, error) {
	p.Lock()
	defer p.Unlock()
	m, err := p.member(id)
	switch {
	case err != nil:
		return tenancy.User{}, err
	case patch.Active != nil && !*patch.Active && id == Admin:
		return tenancy.User{}, problem.New(problem.Conflict, "last_administrator", "This would leave nobody who may manage users on the whole console.").WithCure("Make another active user an administrator first.")
	case patch.Name != nil && *patch.Name == "":
		return tenancy.User{}, problem.New(problem.Invalid, "name_invalid", "The name has 0 characters.").WithCure("Give 1 to 100 characters.").InField("name")
	}
	if patch.Active != nil {
		m.Active = *patch.Active
	}
	if patch.Name != nil {
		m.Name = *patch.Name
	}
	return m.User, nil
}

// ResetPassword implements web.People.
func (p People) ResetPassword(_ context.Context, _ access.Principal, id string) (tenancy.User, string, error) {
	p.Lock()
	defer p.Unlock()
	m, err := p.member(id)
	if err != nil {
		return tenancy.User{}, "", err
	}
	return m.User, Made, nil
}

// Roles implements web.People.
func (p People) Roles(context.Context, access.Principal) ([]tenancy.Role, error) {
	p.Lock()
	defer p.Unlock()
	out := slices.Clone(p.Team.Roles)
	for i := range out {
		out[i].Holders = p.holders(out[i].ID)
	}
	return out, p.Broken
}

func (p People) holders(roleID string) (n int) {
	for _, m := range p.Team.Members {
		if slices.ContainsFunc(m.Assignments, func(a tenancy.Assignment) bool { return a.RoleID == roleID }) {
			n++
		}
	}
	return n
}

// Role implements web.People.
func (p People) Role(ctx context.Context, who access.Principal, id string) (tenancy.Role, error) {
	roles, err := p.Roles(ctx, who)
	i := slices.IndexFunc(roles, func(r tenancy.Role) bool { return r.ID == id })
	if i < 0 {
		return tenancy.Role{}, notFound("role")
	}
	return roles[i], err
}

func checkRole(name string, permissions []access.Permission) error {
	switch {
	case name == "":
		return problem.New(problem.Invalid, "name_invalid", "The name has 0 characters.").WithCure("Give 1 to 63 characters.").InField("name")
	case len(permissions) == 0:
		return problem.New(problem.Invalid, "permissions_missing", "The role has no permission.").WithCure("Give at least one.").InField("permissions")
	case slices.Contains(permissions, access.SettingsWrite):
		return problem.New(problem.Forbidden, "grant_exceeds_own", "This takes the permission settings:write, which you do not hold there yourself.").WithCure("Ask somebody who holds it.")
	}
	return nil
}

// CreateRole implements web.People.
func (p People) CreateRole(_ context.Context, _ access.Principal, name string, permissions []access.Permission) (tenancy.Role, error) {
	p.Lock()
	defer p.Unlock()
	if err := checkRole(name, permissions); err != nil {
		return tenancy.Role{}, err
	}
	r := tenancy.Role{ID: fmt.Sprintf("rl_new%d", len(p.Team.Roles)), Name: name, Permissions: permissions, CreatedAt: p.Now()}
	p.Team.Roles = append(p.Team.Roles, r)
	return r, nil
}

// UpdateRole implements web.People.
func (p People) UpdateRole(_ context.Context, _ access.Principal, id, version, name string, permissions []access.Permission) (tenancy.Role, error) {
	p.Lock()
	defer p.Unlock()
	if err := checkRole(name, permissions); err != nil {
		return tenancy.Role{}, err
	}
	for i, r := range p.Team.Roles {
		if r.ID == id {
			if version != r.Version() {
				return r, problem.New(problem.Conflict, "role_changed_meanwhile", "Somebody changed the role since this page was loaded.").WithCure("Open the role again.")
			}
			p.Team.Roles[i].Name, p.Team.Roles[i].Permissions = name, permissions
			return p.Team.Roles[i], nil
		}
	}
	return tenancy.Role{}, notFound("role")
}

// DeleteRole implements web.People.
func (p People) DeleteRole(_ context.Context, _ access.Principal, id string) error {
	p.Lock()
	defer p.Unlock()
	i := slices.IndexFunc(p.Team.Roles, func(r tenancy.Role) bool { return r.ID == id })
	if i < 0 {
		return notFound("role")
	}
	r := p.Team.Roles[i]
	if r.Holders = p.holders(id); r.Undeletable() != nil {
		return r.Undeletable()
	}
	p.Team.Roles = slices.Delete(slices.Clone(p.Team.Roles), i, i+1)
	return nil
}

// CreateServiceAccount implements web.People.
func (p People) CreateServiceAccount(_ context.Context, _ access.Principal, name string) (tenancy.User, error) {
	p.Lock()
	defer p.Unlock()
	if name == "" {
		return tenancy.User{}, problem.New(problem.Invalid, "name_invalid", "The name has 0 characters.").WithCure("Give 1 to 100 characters.").InField("name")
	}
	u := tenancy.User{ID: fmt.Sprintf("us_new%d", len(p.Team.Members)), Kind: tenancy.KindServiceAccount, Email: "service account " + name, Name: name, Active: true, CreatedAt: p.Now()}
	p.Team.Members = append(p.Team.Members, tenancy.Member{User: u})
	return u, nil
}

// MadeToken is the API token that console makes in a world.
const MadeToken = "pat_0123456789abcdefghijklmnopqrstuv"

func (w *World) mintToken(userID, name string, expiresIn time.Duration) (access.APIToken, string, error) {
	if name == "" {
		return access.APIToken{}, "", problem.New(problem.Invalid, "name_invalid", "The name has 0 characters.").WithCure("Give 1 to 100 characters.").InField("name")
	}
	t := access.APIToken{ID: fmt.Sprintf("at_new%d", len(w.Team.Tokens[userID])), UserID: userID, Name: name, Prefix: MadeToken[:10], CreatedAt: w.Now()}
	if expiresIn > 0 {
		t.ExpiresAt = w.Now().Add(expiresIn)
	}
	w.Team.Tokens[userID] = append([]access.APIToken{t}, w.Team.Tokens[userID]...)
	return t, MadeToken, nil
}

// MintAPIToken implements web.People.
func (p People) MintAPIToken(_ context.Context, _ access.Principal, userID, name string, expiresIn time.Duration) (access.APIToken, string, error) {
	p.Lock()
	defer p.Unlock()
	return p.mintToken(userID, name, expiresIn)
}

// Assign implements web.People.
func (p People) Assign(_ context.Context, _ access.Principal, id, roleID string, scope access.Scope) (tenancy.Assignment, error) {
	p.Lock()
	defer p.Unlock()
	m, err := p.member(id)
	if err != nil {
		return tenancy.Assignment{}, err
	}
	if roleID == "rl_admin" && scope.ClientID != "" {
		return tenancy.Assignment{}, problem.New(problem.Forbidden, "grant_exceeds_own", "This takes the permission users:write, which you do not hold there yourself.").WithCure("Ask somebody who holds it.")
	}
	a := p.assignment(roleID, scope)
	m.Assignments = append(m.Assignments, a)
	return a, nil
}

// Unassign implements web.People.
func (p People) Unassign(_ context.Context, _ access.Principal, id, assignmentID string) error {
	p.Lock()
	defer p.Unlock()
	m, err := p.member(id)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(m.Assignments, func(a tenancy.Assignment) bool { return a.ID == assignmentID })
	if i < 0 {
		return notFound("assignment")
	}
	m.Assignments = slices.Delete(m.Assignments, i, i+1)
	return nil
}

// APITokens implements web.People.
func (p People) APITokens(_ context.Context, _ access.Principal, id string) ([]access.APIToken, error) {
	p.Lock()
	defer p.Unlock()
	return slices.Clone(p.Team.Tokens[id]), p.Broken
}

// RevokeAPIToken implements web.People.
func (p People) RevokeAPIToken(_ context.Context, _ access.Principal, id, tokenID string) error {
	p.Lock()
	defer p.Unlock()
	for i, t := range p.Team.Tokens[id] {
		if t.ID == tokenID {
			p.Team.Tokens[id][i].RevokedAt = p.Now()
			return nil
		}
	}
	return notFound("API token")
}
