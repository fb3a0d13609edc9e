package web

import (
	"net/http"
	"slices"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/tenancy"
)

// rolesData is the list of roles.
type rolesData struct {
	base
	Rows     []tenancy.Role
	MayWrite bool
	// People tells that the caller may see who holds a role.
	People bool
	Done   string
}

func (s *server) roles(v *visit) error {
	roles, err := s.People.Roles(v.ctx(), v.who)
	if err != nil {
		return err
	}
	page := rolesData{
		base: s.base(v, "Roles", "roles"), Rows: roles, MayWrite: v.who.Allows(access.RolesWrite, access.Scope{}),
		People: v.who.Allows(access.UsersRead, access.Scope{}),
	}
	if v.r.URL.Query().Get("did") == "deleted" {
		page.Done = "The role is deleted."
	}
	return v.render(http.StatusOK, rolesView(page))
}

// permissionsInShort is how many permissions of a role the list spells out.
const permissionsInShort = 4

// rolePart is what a role may permit in one part of console.
type rolePart struct {
	Name string
	Rows []rolePermission
}

// rolePermission is one permission of the form.
type rolePermission struct {
	access.Meaning

	Given bool
	// Held tells that the caller may give it.
	Held bool
}

// roleParts lists every permission by part; those of given are in the role.
func roleParts(who access.Principal, given []access.Permission) []rolePart {
	var out []rolePart
	for _, m := range access.Meanings() {
		if len(out) == 0 || out[len(out)-1].Name != m.Part {
			out = append(out, rolePart{Name: m.Part})
		}
		last := &out[len(out)-1]
		last.Rows = append(last.Rows, rolePermission{Meaning: m, Given: slices.Contains(given, m.Permission), Held: who.Allows(m.Permission, access.Scope{})})
	}
	return out
}

// given leaves out the parts, and in them the permissions, that a role does not give.
func given(parts []rolePart) []rolePart {
	var out []rolePart
	for _, part := range parts {
		part.Rows = slices.DeleteFunc(slices.Clone(part.Rows), func(r rolePermission) bool { return !r.Given })
		if len(part.Rows) > 0 {
			out = append(out, part)
		}
	}
	return out
}

// roleForm is what is typed of a role.
type roleForm struct {
	Name    string
	Version string
	Parts   []rolePart
}

func (s *server) typedRole(v *visit) (roleForm, []access.Permission) {
	var chosen []access.Permission
	for _, name := range v.r.PostForm["may"] {
		chosen = append(chosen, access.Permission(name))
	}
	return roleForm{Name: v.form("name"), Version: v.form("version"), Parts: roleParts(v.who, chosen)}, chosen
}

// addRoleData is the page of a new role.
type addRoleData struct {
	base
	Form  roleForm
	From  string // the name of the role that it begins as
	Fault *fault
}

func (s *server) addRolePage(v *visit) error {
	page := addRoleData{}
	var like tenancy.Role
	if from := v.r.URL.Query().Get("from"); from != "" {
		var err error
		if like, err = s.People.Role(v.ctx(), v.who, from); err != nil {
			return err
		}
		page.From = like.Name
	}
	page.Form.Parts = roleParts(v.who, like.Permissions)
	return s.showAddRole(v, http.StatusOK, page)
}

func (s *server) showAddRole(v *visit, status int, page addRoleData) error {
	page.base = s.base(v, "Add a role", "roles")
	page.Narrow = true
	return v.render(status, addRoleView(page))
}

func (s *server) addRole(v *visit) error {
	form, chosen := s.typedRole(v)
	r, err := s.People.CreateRole(v.ctx(), v.who, form.Name, chosen)
	if err != nil {
		told, status, ok := refusalOf(err)
		if !ok {
			return err
		}
		return s.showAddRole(v, status, addRoleData{Form: form, Fault: &told})
	}
	v.goTo("/roles/" + r.ID + "?did=created")
	return nil
}

// holdersShown is how many of those who hold a role its page shows.
const holdersShown = 20

// roleData is the page of one role.
type roleData struct {
	base
	tenancy.Role

	Form roleForm
	// Changeable tells that the form is offered.
	Changeable, MayWrite bool
	// Members are the first of those who hold it; People that the caller may see them.
	Members []tenancy.Member
	People  bool
	Done    string
	Fault   *fault
}

func (s *server) role(v *visit) error { return s.showRole(v, http.StatusOK, roleForm{}, nil) }

func (s *server) showRole(v *visit, status int, typed roleForm, told *fault) error {
	r, err := s.People.Role(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	page := roleData{
		base: s.base(v, r.Name, "roles"), Role: r, Form: typed, MayWrite: v.who.Allows(access.RolesWrite, access.Scope{}),
		People: v.who.Allows(access.UsersRead, access.Scope{}), Fault: told,
	}
	page.Changeable = page.MayWrite && !r.BuiltIn
	if told == nil {
		page.Form = roleForm{Name: r.Name, Version: r.Version(), Parts: roleParts(v.who, r.Permissions)}
	}
	if page.People && r.Holders > 0 {
		if page.Members, _, err = s.People.Users(v.ctx(), v.who, tenancy.UserQuery{RoleID: r.ID, Limit: holdersShown}); err != nil {
			return err
		}
	}
	page.Done = map[string]string{
		"created": "The role is created. Next: give it to people, each on the whole console, a client or an environment.",
		"changed": "The role is changed. It holds from the next request of everybody who has it.",
	}[v.r.URL.Query().Get("did")]
	return v.render(status, roleView(page))
}

// heldWhere says where somebody holds the role.
func heldWhere(m tenancy.Member, roleID string) []string {
	var out []string
	for _, a := range m.Assignments {
		if a.RoleID == roleID {
			out = append(out, whereOf(a))
		}
	}
	return out
}

func (s *server) changeRole(v *visit) error {
	form, chosen := s.typedRole(v)
	id := v.r.PathValue("id")
	if _, err := s.People.UpdateRole(v.ctx(), v.who, id, form.Version, form.Name, chosen); err != nil {
		told, status, ok := refusalOf(err)
		if !ok {
			return err
		}
		return s.showRole(v, status, form, &told)
	}
	v.goTo("/roles/" + id + "?did=changed")
	return nil
}

func (s *server) deleteRolePage(v *visit) error { return s.showDeleteRole(v, http.StatusOK, nil) }

func (s *server) showDeleteRole(v *visit, status int, told *fault) error {
	r, err := s.People.Role(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	back := "/roles/" + r.ID
	page := confirmData{
		base: s.base(v, "Delete "+r.Name, "roles"), Crumbs: []link{{"Roles", "/roles"}, {r.Name, back}}, Last: "Delete", Head: "Delete the role " + r.Name + "?",
		Failed: "Not deleted", Facts: []confirmFact{{"Permits", plain(plural(len(r.Permissions), "permission", "permissions"))}, {"Held by", plain(plural(r.Holders, "account", "accounts"))}},
		Comes:  []string{"Nobody holds it, so nobody loses anything.", "What was done with it stays in the audit log."},
		Action: back + "/delete", Button: "Delete the role", Back: back, Keep: "Keep the role", Danger: true, Fault: told,
	}
	if why := r.Undeletable(); why != nil && told == nil {
		page.Blocks, page.Cure = why.Message, why.Cure
	}
	return v.confirm(status, page)
}

func (s *server) deleteRole(v *visit) error {
	if err := s.People.DeleteRole(v.ctx(), v.who, v.r.PathValue("id")); err != nil {
		told, status, ok := refusalOf(err)
		if !ok {
			return err
		}
		return s.showDeleteRole(v, status, &told)
	}
	v.goTo("/roles?did=deleted")
	return nil
}
