package web

import (
	"net/http"
	"strings"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/tenancy"
)

// names knows the clients and environments that the caller may see, to offer them in forms and to
// write their names where rows hold ids.
type names struct{ tenancy.Places }

func (s *server) names(v *visit, perm access.Permission) (names, error) {
	if !v.may(perm) { // somebody without a role has a profile too
		return names{}, nil
	}
	places, err := s.Tenancy.PlacesFor(v.ctx(), v.who, perm)
	return names{places}, err
}

// client is the name of a client, or its id where the caller may not see it.
func (n names) client(id string) string {
	for _, c := range n.Clients {
		if c.ID == id {
			return c.Name
		}
	}
	return id
}

func (n names) environment(id string) string {
	for _, e := range n.Environments {
		if e.ID == id {
			return e.Name
		}
	}
	return id
}

// of lists the environments of one client.
func (n names) of(clientID string) []tenancy.Environment {
	var out []tenancy.Environment
	for _, e := range n.Environments {
		if e.ClientID == clientID {
			out = append(out, e)
		}
	}
	return out
}

// scope says where a grant holds.
func (n names) scope(s access.Scope) string {
	switch {
	case s.ClientID == "":
		return "the whole console"
	case s.EnvironmentID == "":
		return n.client(s.ClientID)
	default:
		return n.client(s.ClientID) + " / " + n.environment(s.EnvironmentID)
	}
}

// startData is the page of the first run: a client and an environment have to exist before a cluster
// can be recorded.
type startData struct {
	base
	Client      string
	Environment string
	Fault       *fault
}

// startNeeded tells whether the caller is the one who has to make the first client: nothing can be
// recorded yet, and they may change that.
func (s *server) startNeeded(v *visit) (bool, error) {
	if !v.who.Allows(access.ClientsWrite, access.Scope{}) {
		return false, nil
	}
	places, err := s.Tenancy.PlacesFor(v.ctx(), v.who, access.ClientsWrite)
	return len(places.Environments) == 0, err
}

func (s *server) startPage(v *visit) error {
	needed, err := s.startNeeded(v)
	if err != nil {
		return err
	}
	if !needed {
		v.goTo("/clusters")
		return nil
	}
	page := startData{base: s.base(v, "First client", "clusters"), Environment: "prod"}
	page.Narrow = true
	places, err := s.Tenancy.PlacesFor(v.ctx(), v.who, access.ClientsWrite)
	if err != nil {
		return err
	}
	if len(places.Clients) > 0 { // the last try ended between the two
		page.Client = places.Clients[0].Name
	}
	return v.render(http.StatusOK, startView(page))
}

// start makes the client and its environment. A client of that name that is there already is taken,
// so that a second try completes the first.
func (s *server) start(v *visit) error {
	page := startData{base: s.base(v, "First client", "clusters"), Client: v.form("client"), Environment: v.form("environment")}
	page.Narrow = true
	client, err := s.clientNamed(v, page.Client)
	field := "client"
	if err == nil {
		field = "environment"
		_, err = s.Tenancy.CreateEnvironment(v.ctx(), v.who, client.ID, page.Environment)
	}
	if err == nil {
		v.goTo("/clusters/add")
		return nil
	}
	told, status, ok := faultOf(err)
	if !ok {
		return err
	}
	told.Field = field
	page.Fault = &told
	return v.render(status, startView(page))
}

func (s *server) clientNamed(v *visit, name string) (tenancy.Client, error) {
	places, err := s.Tenancy.PlacesFor(v.ctx(), v.who, access.ClientsWrite)
	if err != nil {
		return tenancy.Client{}, err
	}
	for _, c := range places.Clients {
		if strings.EqualFold(c.Name, name) {
			return c, nil
		}
	}
	return s.Tenancy.CreateClient(v.ctx(), v.who, name)
}

// clientOptions and environmentOptions offer what the caller may see. An environment is written with
// its client, where there are several.
func (n names) clientOptions() []option {
	out := make([]option, len(n.Clients))
	for i, c := range n.Clients {
		out[i] = option{c.ID, c.Name}
	}
	return out
}

func (n names) environmentOptions(clientID string) []option {
	var out []option
	for _, e := range n.Environments {
		if clientID != "" && e.ClientID != clientID {
			continue
		}
		label := e.Name
		if clientID == "" && len(n.Clients) > 1 {
			label = n.client(e.ClientID) + " / " + e.Name
		}
		out = append(out, option{e.ID, label})
	}
	return out
}
