package web

import (
	"net/http"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/console/tenancy"
)

// environmentOf reads the environment and the client that the address names, to whoever may write there.
func (s *server) environmentOf(v *visit) (tenancy.Client, tenancy.Environment, error) {
	e, err := s.Tenancy.Environment(v.ctx(), v.who, v.r.PathValue("environment"))
	if err != nil {
		return tenancy.Client{}, e, err
	}
	if e.ClientID != v.r.PathValue("id") {
		return tenancy.Client{}, e, problem.New(problem.NotFound, "not_found", "The client has no such environment.").WithCure("Open the client, and choose one of its environments.")
	}
	if !v.who.Allows(access.ClientsWrite, access.Scope{ClientID: e.ClientID, EnvironmentID: e.ID}) {
		return tenancy.Client{}, e, access.Refuse(access.ClientsWrite)
	}
	c, err := s.Tenancy.Client(v.ctx(), v.who, e.ClientID)
	return c, e, err
}

func (s *server) environmentPage(v *visit) error {
	return s.showEnvironment(v, http.StatusOK, "", nil)
}

func (s *server) showEnvironment(v *visit, status int, name string, told *fault) error {
	c, e, err := s.environmentOf(v)
	if err != nil {
		return err
	}
	if told == nil {
		name = e.Name
	}
	back := "/clients/" + c.ID
	page := nameData{
		base: s.base(v, "Rename "+e.Name, "clients"), Crumbs: []link{{"Clients", "/clients"}, {c.Name, back}}, Head: "Rename " + e.Name, Failed: "Not renamed",
		Sub:   "Only the name changes: clusters, agents, tokens and roles stay where they are.",
		Label: "Name", Hint: "No other environment of " + c.Name + " may have it.", Longest: 63,
		Name: name, Action: back + "/environments/" + e.ID, Button: "Rename environment", Back: back, Fault: told,
	}
	page.Narrow = true
	return v.render(status, nameView(page))
}

func (s *server) renameEnvironment(v *visit) error {
	_, e, err := s.environmentOf(v)
	if err == nil {
		_, err = s.Tenancy.RenameEnvironment(v.ctx(), v.who, e.ID, v.form("name"))
	}
	if err != nil {
		told, status, ok := faultOf(err)
		if !ok {
			return err
		}
		return s.showEnvironment(v, status, v.form("name"), &told)
	}
	v.goTo("/clients/" + e.ClientID + "?did=environment-renamed")
	return nil
}

func (s *server) deleteEnvironmentPage(v *visit) error {
	return s.showDeleteEnvironment(v, http.StatusOK, nil)
}

func (s *server) showDeleteEnvironment(v *visit, status int, told *fault) error {
	c, e, err := s.environmentOf(v)
	if err != nil {
		return err
	}
	_, contents, err := s.Tenancy.EnvironmentContents(v.ctx(), v.who, e.ID)
	if err != nil {
		return err
	}
	back := "/clients/" + c.ID
	return v.confirm(status, confirmData{
		base: s.base(v, "Delete "+e.Name, "clients"), Crumbs: []link{{"Clients", "/clients"}, {c.Name, back}}, Last: "Delete " + e.Name,
		Head: "Delete the environment " + e.Name + " of " + c.Name + "?", Failed: "Not deleted",
		Blocks: blocks(e.Name, contents), Cure: contents.Cure(), Comes: takenWith(contents, "environment"),
		Action: back + "/environments/" + e.ID + "/delete", Button: "Delete the environment", Back: back, Keep: "Keep the environment", Danger: true, Fault: told,
	})
}

func (s *server) deleteEnvironment(v *visit) error {
	_, e, err := s.environmentOf(v)
	if err == nil {
		err = s.Tenancy.DeleteEnvironment(v.ctx(), v.who, e.ID)
	}
	if err != nil {
		told, status, ok := faultOf(err)
		if !ok {
			return err
		}
		return s.showDeleteEnvironment(v, status, &told)
	}
	v.goTo("/clients/" + e.ClientID + "?did=environment-deleted")
	return nil
}
