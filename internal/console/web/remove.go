package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/a-h/templ"

	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
)

// removeData is the page that asks before a cluster is removed.
type removeData struct {
	base
	clusterHead
	// Goes says what is deleted.
	Goes    string
	Removal inventory.Removal
	Fault   *fault
}

func (s *server) removePage(v *visit) error { return s.showRemove(v, http.StatusOK, nil) }

func (s *server) showRemove(v *visit, status int, told *fault) error {
	head, err := s.head(v, "")
	if err != nil {
		return err
	}
	removal, err := s.Inventory.Removal(v.ctx(), v.who, head.Cluster.ID)
	if err != nil {
		return err
	}
	page := removeData{base: s.base(v, "Remove a cluster", "clusters"), clusterHead: head, Removal: removal, Fault: told}
	page.Narrow = true
	page.Goes = goes(head.Cluster)
	return v.render(status, removeView(page))
}

// goes says which rows are deleted with a cluster.
func goes(c inventory.Cluster) string {
	if !c.Counted() {
		return "What is stored of its inventory is deleted here."
	}
	n := c.Counts
	return "The stored rows of " + plural(n.Nodes, "node", "nodes") + ", " + plural(n.Namespaces, "namespace", "namespaces") + ", " +
		plural(n.Workloads, "workload", "workloads") + ", " + plural(n.Pods, "pod", "pods") + ", " + plural(n.Services, "service", "services") + " and " + plural(n.Events, "event", "events") + " are deleted here."
}

// agentNames lists the first of the agents.
func agentNames(agents []fleet.Agent) string {
	const most = 5
	names := make([]string, 0, most)
	for _, a := range agents[:min(most, len(agents))] {
		names = append(names, a.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(agents) - most; more > 0 {
		text += " and " + grouped(more) + " more"
	}
	return text
}

func (s *server) remove(v *visit) error {
	c, err := s.Inventory.Cluster(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if v.form("confirm") != c.Slug {
		return s.showRemove(v, http.StatusUnprocessableEntity, wrongSlug(c))
	}
	if err := s.Inventory.Remove(v.ctx(), v.who, c.ID); err != nil {
		told, status, ok := faultOf(err)
		if !ok {
			return err
		}
		return s.showRemove(v, status, &told)
	}
	v.goTo("/clusters?" + url.Values{"did": {"removed"}}.Encode())
	return nil
}

// wrongSlug is the fault of a confirmation that does not name the cluster.
func wrongSlug(c inventory.Cluster) *fault {
	return &fault{Field: "confirm", Message: "This is not the cluster's slug.", Cure: "Type " + c.Slug + " to confirm."}
}

// agentsOf is the address of the agents of a cluster.
func agentsOf(slug string) templ.SafeURL {
	return templ.URL("/agents?" + url.Values{"slug": {slug}}.Encode())
}
