package web

import (
	"net/http"
	"net/url"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/tenancy"
)

// clientsPageSize is how many clients a page shows.
const clientsPageSize = 100

// clientsData is the page of clients.
type clientsData struct {
	base
	Rows     []tenancy.ClientSummary
	List     list
	Pager    pager
	Filtered bool
	MayAdd   bool
	// Counts tells that the caller may see clusters somewhere, so that their number means something.
	Counts bool
	Done   string
}

func (s *server) clients(v *visit) error {
	l := readList(v.r, clientsPageSize, nil)
	found, total, err := s.Tenancy.ClientSummaries(v.ctx(), v.who, tenancy.ClientQuery{Text: l.get("q"), Limit: l.Size, Offset: l.offset()})
	if err != nil {
		return err
	}
	page := clientsData{
		base: s.base(v, "Clients", "clients"), Rows: found, List: l, Pager: l.pager(len(found), total), Filtered: l.filtered("q"),
		MayAdd: v.who.Allows(access.ClientsWrite, access.Scope{}), Counts: v.may(access.HostsRead),
	}
	if page.Pager.beyond() {
		v.goTo(l.page(page.Pager.Pages))
		return nil
	}
	if v.r.URL.Query().Get("did") == "deleted" {
		page.Done = "The client is deleted."
	}
	page.announce(v, l, plural(total, "client", "clients"))
	return v.render(http.StatusOK, clientsView(page))
}

// nameData is a page that asks for the name of one thing.
type nameData struct {
	base
	Crumbs []link
	Head   string
	Sub    string
	// Failed heads the summary of a refusal.
	Failed  string
	Label   string
	Hint    string
	Longest int
	Name    string
	Action  string
	Button  string
	Back    string
	Fault   *fault
}

func (s *server) addClientPage(v *visit) error { return s.showAddClient(v, http.StatusOK, "", nil) }

func (s *server) showAddClient(v *visit, status int, name string, told *fault) error {
	page := nameData{
		base: s.base(v, "Add client", "clients"), Crumbs: []link{{"Clients", "/clients"}}, Head: "Add client", Failed: "Not created",
		Sub:   "A client is an organisation whose clusters are looked after. Its environments, and who may see them, come next.",
		Label: "Name", Hint: "Such as Halden Energy. No other client may have it.", Longest: 100,
		Name: name, Action: "/clients/add", Button: "Create client", Back: "/clients", Fault: told,
	}
	page.Narrow = true
	return v.render(status, nameView(page))
}

func (s *server) addClient(v *visit) error {
	c, err := s.Tenancy.CreateClient(v.ctx(), v.who, v.form("name"))
	if err != nil {
		told, status, ok := faultOf(err)
		if !ok {
			return err
		}
		return s.showAddClient(v, status, v.form("name"), &told)
	}
	v.goTo("/clients/" + c.ID + "?did=created")
	return nil
}

// clientData is the page of one client.
type clientData struct {
	base
	Client       tenancy.Client
	Environments []environmentRow
	// Rename and Add are what stands in the two forms.
	Rename, Add string
	RenameFault *fault
	AddFault    *fault
	Done        string
	Links       []link
	// MayWrite is held on the whole client, MayDelete on the whole console.
	MayWrite, MayDelete bool
	Counts              bool
}

// environmentRow is one environment of a client.
type environmentRow struct {
	tenancy.EnvironmentSummary

	MayRename bool
}

func (s *server) client(v *visit) error {
	page, err := s.clientPage(v)
	if err != nil {
		return err
	}
	switch v.r.URL.Query().Get("did") {
	case "created":
		page.Done = "The client is created. Next: add its first environment."
	case "renamed":
		page.Done = "The client is renamed."
	case "added":
		page.Done = "The environment is added."
	case "environment-renamed":
		page.Done = "The environment is renamed."
	case "environment-deleted":
		page.Done = "The environment is deleted."
	}
	return v.render(http.StatusOK, clientView(page))
}

func (s *server) clientPage(v *visit) (clientData, error) {
	id := v.r.PathValue("id")
	c, err := s.Tenancy.Client(v.ctx(), v.who, id)
	if err != nil {
		return clientData{}, err
	}
	environments, err := s.Tenancy.EnvironmentSummaries(v.ctx(), v.who, id)
	if err != nil {
		return clientData{}, err
	}
	page := clientData{
		base: s.base(v, c.Name, "clients"), Client: c, Rename: c.Name, Links: linksInto(v.who, c.ID), Counts: v.may(access.HostsRead),
		MayWrite: v.who.Allows(access.ClientsWrite, access.Scope{ClientID: c.ID}), MayDelete: v.who.Allows(access.ClientsWrite, access.Scope{}),
	}
	for _, e := range environments {
		page.Environments = append(page.Environments, environmentRow{
			EnvironmentSummary: e, MayRename: v.who.Allows(access.ClientsWrite, access.Scope{ClientID: c.ID, EnvironmentID: e.ID}),
		})
	}
	return page, nil
}

// linksInto leads to the lists of what a client has, as far as the caller may open them.
func linksInto(who access.Principal, clientID string) []link {
	var out []link
	for _, part := range navigationOf(who) {
		for _, e := range part.Entries {
			switch e.Place {
			case "clusters", "agents", "install-tokens", "audit":
				out = append(out, link{e.Name, e.Path + "?" + url.Values{"client": {clientID}}.Encode()})
			}
		}
	}
	return out
}

func (s *server) renameClient(v *visit) error {
	id, name := v.r.PathValue("id"), v.form("name")
	_, err := s.Tenancy.RenameClient(v.ctx(), v.who, id, name)
	return s.changedClient(v, err, "renamed", func(page *clientData, told *fault) { page.Rename, page.RenameFault = name, told })
}

func (s *server) addEnvironment(v *visit) error {
	id, name := v.r.PathValue("id"), v.form("name")
	_, err := s.Tenancy.CreateEnvironment(v.ctx(), v.who, id, name)
	return s.changedClient(v, err, "added", func(page *clientData, told *fault) {
		told.Field = "environment"
		page.Add, page.AddFault = name, told
	})
}

// changedClient goes back to the client, or shows it again with what was refused.
func (s *server) changedClient(v *visit, err error, did string, tell func(*clientData, *fault)) error {
	if err == nil {
		v.goTo("/clients/" + v.r.PathValue("id") + "?did=" + did)
		return nil
	}
	told, status, ok := faultOf(err)
	if !ok {
		return err
	}
	page, err := s.clientPage(v)
	if err != nil {
		return err
	}
	tell(&page, &told)
	return v.render(status, clientView(page))
}

func (s *server) deleteClientPage(v *visit) error { return s.showDeleteClient(v, http.StatusOK, nil) }

func (s *server) showDeleteClient(v *visit, status int, told *fault) error {
	c, contents, err := s.Tenancy.ClientContents(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	back := "/clients/" + c.ID
	return v.confirm(status, confirmData{
		base: s.base(v, "Delete "+c.Name, "clients"), Crumbs: []link{{"Clients", "/clients"}, {c.Name, back}}, Last: "Delete", Head: "Delete " + c.Name + "?",
		Failed: "Not deleted", Blocks: blocks(c.Name, contents), Cure: contents.Cure(), Comes: takenWith(contents, "client"),
		Action: back + "/delete", Button: "Delete the client", Back: back, Keep: "Keep the client", Danger: true, Fault: told,
	})
}

func (s *server) deleteClient(v *visit) error {
	if err := s.Tenancy.DeleteClient(v.ctx(), v.who, v.r.PathValue("id")); err != nil {
		told, status, ok := faultOf(err)
		if !ok {
			return err
		}
		return s.showDeleteClient(v, status, &told)
	}
	v.goTo("/clients?did=deleted")
	return nil
}

// takenWith says what goes with a client or an environment that is deleted.
func takenWith(c tenancy.Contents, place string) []string {
	var out []string
	if c.PastAttempts+c.PastTokens > 0 {
		out = append(out, "The records of "+plural(c.PastAttempts, "past attempt", "past attempts")+" and "+
			plural(c.PastTokens, "dead install token", "dead install tokens")+" are deleted with it.")
	}
	switch c.Assignments {
	case 0:
		out = append(out, "Nobody holds a role on exactly this "+place+".")
	case 1:
		out = append(out, "1 role that somebody holds on exactly this "+place+" is taken away.")
	default:
		out = append(out, plural(c.Assignments, "role", "roles")+" that people hold on exactly this "+place+" are taken away.")
	}
	return append(out, "What was done in it stays in the audit log.")
}

// blocks says what keeps something from being deleted; "" if nothing does.
func blocks(name string, c tenancy.Contents) string {
	if c.Blocks() == "" {
		return ""
	}
	return name + " still holds " + c.Blocks() + "."
}
