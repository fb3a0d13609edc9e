package web

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/console/tenancy"
)

// usersPageSize is how many users a page shows.
const usersPageSize = 100

// usersData is the list of users.
type usersData struct {
	base
	Rows     []tenancy.Member
	Role     string // the name of the role that the list is narrowed to
	List     list
	Pager    pager
	Filtered bool
	MayWrite bool
}

func (s *server) users(v *visit) error {
	l := readList(v.r, usersPageSize, nil)
	query := tenancy.UserQuery{
		Text: l.get("q"), Kind: tenancy.UserKind(l.get("kind")), RoleID: l.get("role"), Limit: l.Size, Offset: l.offset(),
	}
	switch l.get("state") {
	case "active":
		query.Active = new(true)
	case "deactivated":
		query.Active = new(false)
	}
	users, total, err := s.People.Users(v.ctx(), v.who, query)
	if err != nil {
		return err
	}
	page := usersData{
		base: s.base(v, "People", "users"), Rows: users, List: l, Pager: l.pager(len(users), total),
		Filtered: l.filtered("q", "state", "kind", "role"), MayWrite: v.who.Allows(access.UsersWrite, access.Scope{}),
	}
	if query.RoleID != "" && len(users) > 0 {
		page.Role = heldRole(users[0], query.RoleID)
	}
	if page.Pager.beyond() {
		v.goTo(l.page(page.Pager.Pages))
		return nil
	}
	page.announce(v, l, plural(total, "account", "accounts"))
	return v.render(http.StatusOK, usersView(page))
}

func userStateOptions() []option {
	return []option{{"active", "Active"}, {"deactivated", "Deactivated"}}
}

func userKindOptions() []option {
	return []option{{string(tenancy.KindPerson), "People"}, {string(tenancy.KindServiceAccount), "Service accounts"}}
}

// heldRole is the name of a role that the member holds.
func heldRole(m tenancy.Member, roleID string) string {
	i := slices.IndexFunc(m.Assignments, func(a tenancy.Assignment) bool { return a.RoleID == roleID })
	if i < 0 {
		return ""
	}
	return m.Assignments[i].RoleName
}

// rolesInShort is how many roles of a user the list spells out.
const rolesInShort = 3

// whereOf says where an assignment holds.
func whereOf(a tenancy.Assignment) string {
	switch {
	case a.Scope.ClientID == "":
		return "the whole console"
	case a.Scope.EnvironmentID == "":
		return a.ClientName
	default:
		return a.ClientName + " / " + a.EnvironmentName
	}
}

// calledUser is the name of a user, or the e-mail address of one without.
func calledUser(u tenancy.User) string { return called(access.Principal{Name: u.Name, Email: u.Email}) }

// grantForm is what a form about a role needs: the roles, and where they may hold.
type grantForm struct {
	Roles  []option
	Places []option
	RoleID string
	Place  string
}

// grantForm offers what the caller may give; without a role to offer there is no such form.
func (s *server) grantForm(v *visit) (grantForm, error) {
	form := grantForm{RoleID: v.form("role"), Place: v.form("place")}
	if !v.who.Allows(access.RolesWrite, access.Scope{}) || !v.who.Allows(access.RolesRead, access.Scope{}) {
		return form, nil
	}
	roles, err := s.People.Roles(v.ctx(), v.who)
	if err != nil {
		return form, err
	}
	for _, r := range roles {
		form.Roles = append(form.Roles, option{r.ID, r.Name})
	}
	names, err := s.names(v, access.ClientsRead)
	if err != nil {
		return form, err
	}
	form.Places = []option{{"", "The whole console"}}
	for _, c := range names.Clients {
		form.Places = append(form.Places, option{c.ID, c.Name})
		for _, e := range names.of(c.ID) {
			form.Places = append(form.Places, option{c.ID + "/" + e.ID, c.Name + " / " + e.Name})
		}
	}
	return form, nil
}

// placeOf reads the scope that a form chose.
func placeOf(v *visit) access.Scope {
	client, environment, _ := strings.Cut(v.form("place"), "/")
	return access.Scope{ClientID: client, EnvironmentID: environment}
}

// refusalOf is faultOf for forms whose page the caller may see: it shows there too that they may not give
// what they do not hold.
func refusalOf(err error) (fault, int, bool) {
	if told, status, ok := faultOf(err); ok {
		switch told.Field { // the names of the contract's fields
		case "roleID":
			told.Field = "role"
		case "clientID", "environmentID":
			told.Field = "place"
		case "currentPassword":
			told.Field = "current"
		case "newPassword":
			told.Field = "next"
		}
		return told, status, true
	}
	if p, ok := errors.AsType[*problem.Error](err); ok && p.Code == "grant_exceeds_own" {
		return fault{Message: p.Message, Cure: p.Cure}, p.Kind.Status(), true
	}
	return fault{}, 0, false
}

// inviteData is the page that lets a colleague in.
type inviteData struct {
	base
	Email, Name string
	Grant       grantForm
	Fault       *fault
}

func (s *server) invitePage(v *visit) error { return s.showInvite(v, http.StatusOK, nil) }

func (s *server) showInvite(v *visit, status int, told *fault) error {
	page := inviteData{base: s.base(v, "Invite a colleague", "users"), Email: v.form("email"), Name: v.form("name"), Fault: told}
	page.Narrow = true
	var err error
	if page.Grant, err = s.grantForm(v); err != nil {
		return err
	}
	return v.render(status, inviteView(page))
}

func (s *server) invite(v *visit) error {
	i := tenancy.Invitation{Email: v.form("email"), Name: v.form("name"), RoleID: v.form("role"), Scope: placeOf(v)}
	u, password, err := s.People.Invite(v.ctx(), v.who, i)
	if err != nil {
		told, status, ok := refusalOf(err)
		if !ok {
			return err
		}
		return s.showInvite(v, status, &told)
	}
	return s.showPassword(v, u, password, "Invited: "+calledUser(u))
}

func (s *server) addServiceAccountPage(v *visit) error {
	return s.showAddServiceAccount(v, http.StatusOK, nil)
}

func (s *server) showAddServiceAccount(v *visit, status int, told *fault) error {
	page := nameData{
		base: s.base(v, "Add a service account", "users"), Crumbs: []link{{"People", "/users"}}, Head: "Add a service account", Failed: "Not created",
		Sub:   "An account for a program. It has no password and acts by API tokens; the roles and the first token come next.",
		Label: "Name", Hint: "Such as deploy pipeline. No other service account may have it.", Longest: 100,
		Name: v.form("name"), Action: "/users/service-account", Button: "Create service account", Back: "/users", Fault: told,
	}
	page.Narrow = true
	return v.render(status, nameView(page))
}

func (s *server) addServiceAccount(v *visit) error {
	u, err := s.People.CreateServiceAccount(v.ctx(), v.who, v.form("name"))
	if err != nil {
		told, status, ok := faultOf(err)
		if !ok {
			return err
		}
		return s.showAddServiceAccount(v, status, &told)
	}
	v.goTo("/users/" + u.ID + "?did=created")
	return nil
}

// passwordData is the page that shows once a password that console made.
type passwordData struct {
	base
	Head     string
	User     tenancy.User
	Password string
	Message  string
}

func (s *server) showPassword(v *visit, u tenancy.User, password, head string) error {
	page := passwordData{base: s.base(v, head, "users"), Head: head, User: u, Password: password}
	page.Narrow, page.Location = true, "/users/"+u.ID
	page.Message = fmt.Sprintf("Proxima Console: %s\nEmail: %s\nPassword: %s\nSign in, and change the password under Profile.",
		s.PublicURL, u.Email, password)
	return v.render(http.StatusOK, passwordView(page))
}

// userData is the page of one user.
type userData struct {
	base
	tenancy.Member
	Tokens    []access.APIToken
	Mint      tokenForm
	Grant     grantForm
	Program   bool // a service account
	MayWrite  bool
	MayAssign bool
	Self      bool
	Done      string
	Fault     *fault
	FaultHead string
	TypedName string
}

func (s *server) user(v *visit) error { return s.showUser(v, http.StatusOK, "", nil) }

func (s *server) showUser(v *visit, status int, faultHead string, told *fault) error {
	u, assignments, err := s.People.User(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	page := userData{
		Program: u.Kind == tenancy.KindServiceAccount,
		base:    s.base(v, calledUser(u), "users"), Member: tenancy.Member{User: u, Assignments: assignments},
		MayWrite: v.who.Allows(access.UsersWrite, access.Scope{}), MayAssign: v.who.Allows(access.RolesWrite, access.Scope{}),
		Mint: readTokenForm(v, "/users/"+u.ID+"/tokens"), Self: u.ID == v.who.UserID, Fault: told, FaultHead: faultHead, TypedName: u.Name, Done: userDone(v.r.URL.Query().Get("did")),
	}
	if told != nil && told.Field == "name" {
		page.TypedName = v.form("name")
	}
	if page.Tokens, err = s.People.APITokens(v.ctx(), v.who, u.ID); err != nil {
		return err
	}
	if page.Grant, err = s.grantForm(v); err != nil {
		return err
	}
	return v.render(status, userView(page))
}

// userDone says what the form before led to.
func userDone(did string) string {
	return map[string]string{
		"created": "The service account is created. Next: give it a role, and mint its first API token.",
		"name":    "The name was changed.", "assign": "The role was assigned. It holds from the next request on.",
		"unassign": "The role was taken away. The next request goes without it.", "revoke": "The API token is revoked.",
		"deactivate": "The account is deactivated: signed out everywhere, and every API token is revoked.",
		"activate":   "The account is active again. API tokens stay revoked.",
	}[did]
}

// changed answers a form of the user's page: back to the page, or the page with what is wrong.
func (s *server) changed(v *visit, did, faultHead string, err error) error {
	if err == nil {
		v.goTo("/users/" + v.r.PathValue("id") + "?did=" + did)
		return nil
	}
	told, status, ok := refusalOf(err)
	if !ok {
		return err
	}
	return s.showUser(v, status, faultHead, &told)
}

func (s *server) renameUser(v *visit) error {
	_, err := s.People.UpdateUser(v.ctx(), v.who, v.r.PathValue("id"), tenancy.UserPatch{Name: new(v.form("name"))})
	return s.changed(v, "name", "Name not changed", err)
}

func (s *server) assignRole(v *visit) error {
	if v.form("role") == "" {
		return s.showUser(v, http.StatusUnprocessableEntity, "Role not assigned", &fault{Field: "role", Message: "No role is chosen.", Cure: "Choose one."})
	}
	_, err := s.People.Assign(v.ctx(), v.who, v.r.PathValue("id"), v.form("role"), placeOf(v))
	return s.changed(v, "assign", "Role not assigned", err)
}

func (s *server) unassignRole(v *visit) error {
	err := s.People.Unassign(v.ctx(), v.who, v.r.PathValue("id"), v.r.PathValue("assignment"))
	return s.changed(v, "unassign", "Role not taken away", err)
}

// userAct is something that is asked for twice.
type userAct struct {
	Name   string // its last part of the address
	Title  string // with the user's name for %s
	Button string
	Danger bool
	Comes  []string
	// ComesProgram is Comes of a service account.
	ComesProgram []string
}

func userActs() []userAct {
	return []userAct{
		{
			Name: "deactivate", Title: "Deactivate %s?", Button: "Deactivate the account", Danger: true,
			Comes: []string{
				"Signed out everywhere at once: the next request of every browser is refused, and open pages stop being brought up to date.",
				"Every API token of the account is revoked at once and for good.",
				"The account and its roles stay, and it can be activated again.",
			},
			ComesProgram: []string{
				"Every API token of the account is revoked at once and for good: whatever program uses one is refused.",
				"The account and its roles stay, and it can be activated again.",
			},
		},
		{
			Name: "activate", Title: "Activate %s?", Button: "Activate the account",
			Comes: []string{
				"The password and the roles of before hold again at once.",
				"API tokens stay revoked; new ones have to be made.",
			},
			ComesProgram: []string{"The roles of before hold again at once.", "API tokens stay revoked; new ones have to be made."},
		},
		{
			Name: "password", Title: "Set a new password for %s?", Button: "Set a new password", Danger: true,
			Comes: []string{
				"Console makes the password and shows it once, for you to hand over.",
				"Signed out everywhere at once, and the password of before no longer lets anybody in.",
				"Every API token of the account is revoked at once and for good.",
			},
		},
	}
}

func userActOf(r *http.Request) (userAct, error) {
	for _, act := range userActs() {
		if act.Name == r.PathValue("act") {
			return act, nil
		}
	}
	return userAct{}, problem.New(problem.NotFound, "no_such_act", "A person has no page of this name.").
		WithCure("Open People, and choose what is to be done there.")
}

func (s *server) userActPage(v *visit) error { return s.showUserAct(v, http.StatusOK, nil) }

func (s *server) showUserAct(v *visit, status int, told *fault) error {
	act, err := userActOf(v.r)
	if err != nil {
		return err
	}
	u, assignments, err := s.People.User(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	here, comes := "/users/"+u.ID, act.Comes
	if u.Kind == tenancy.KindServiceAccount && act.ComesProgram != nil {
		comes = act.ComesProgram
	}
	return v.confirm(status, confirmData{
		base: s.base(v, act.Button, "users"), Crumbs: []link{{"People", "/users"}, {calledUser(u), here}}, Last: act.Button, Head: fmt.Sprintf(act.Title, calledUser(u)),
		Facts: []confirmFact{{"Account", plain(u.Email)}, {"Roles", plain(plural(len(assignments), "role", "roles"))}}, Comes: comes, Failed: notChanged,
		Action: here + "/" + act.Name, Button: act.Button, Back: here, Keep: "Cancel", Danger: act.Danger, Fault: told,
	})
}

func (s *server) userAct(v *visit) error {
	act, err := userActOf(v.r)
	if err != nil {
		return err
	}
	id, u, password := v.r.PathValue("id"), tenancy.User{}, ""
	if act.Name == "password" {
		u, password, err = s.People.ResetPassword(v.ctx(), v.who, id)
	} else {
		_, err = s.People.UpdateUser(v.ctx(), v.who, id, tenancy.UserPatch{Active: new(act.Name == "activate")})
	}
	if err != nil {
		told, status, ok := refusalOf(err)
		if !ok {
			return err
		}
		return s.showUserAct(v, status, &told)
	}
	if act.Name == "password" {
		return s.showPassword(v, u, password, "New password for "+calledUser(u))
	}
	v.goTo("/users/" + id + "?did=" + act.Name)
	return nil
}

// mintUserToken mints a token of a service account.
func (s *server) mintUserToken(v *visit) error {
	id := v.r.PathValue("id")
	form := readTokenForm(v, "")
	t, plain, err := form.mint(func(lifetime time.Duration) (access.APIToken, string, error) {
		return s.People.MintAPIToken(v.ctx(), v.who, id, form.Name, lifetime)
	})
	if err != nil {
		told, status, ok := tokenFault(err)
		if !ok {
			return err
		}
		return s.showUser(v, status, noTokenMinted, &told)
	}
	u, _, err := s.People.User(v.ctx(), v.who, id)
	if err != nil {
		return err
	}
	return s.showToken(v, "users", []link{{"People", "/users"}, {calledUser(u), "/users/" + id}}, t, plain)
}

func (s *server) userTokenPage(v *visit) error {
	u, _, err := s.People.User(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	tokens, err := s.People.APITokens(v.ctx(), v.who, u.ID)
	if err != nil {
		return err
	}
	return s.tokenPage(v, "users", []link{{"People", "/users"}, {calledUser(u), "/users/" + u.ID}}, tokens)
}

func (s *server) revokeUserToken(v *visit) error {
	err := s.People.RevokeAPIToken(v.ctx(), v.who, v.r.PathValue("id"), v.r.PathValue("token"))
	return s.changed(v, "revoke", "API token not revoked", err)
}

// revokeBase is the address below which the tokens of a user are revoked, "" where they may not be.
func revokeBase(d userData) string {
	if !d.MayWrite {
		return ""
	}
	return "/users/" + d.ID
}
