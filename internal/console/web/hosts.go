package web

import (
	"net/http"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/fleet"
)

// hostsPageSize is how many hosts a page shows.
const hostsPageSize = 100

// hostsData is the page of machines: agents other than collectors.
type hostsData struct {
	base
	Rows     []hostRow
	List     list
	Pager    pager
	Names    names
	Filtered bool
}

// hostRow is one machine.
type hostRow struct {
	fleet.Agent
	Where string
	Heard fact
}

// hostTypes are the types of agents that stand for a machine.
func hostTypes() []fleet.Type { return []fleet.Type{fleet.TypeNodeMonitor, fleet.TypeHost} }

func (s *server) hosts(v *visit) error {
	l := readList(v.r, hostsPageSize, nil)
	filter := fleet.Filter{
		ClientID: l.get("client"), EnvironmentID: l.get("environment"), ExcludeCollectors: true,
		Limit: l.Size, Offset: l.offset(), Reach: v.who.Reach(access.AgentsRead),
	}
	for _, t := range hostTypes() {
		if l.get("type") == string(t) {
			filter.Type = t
		}
	}
	agents, total, err := s.Fleet.Agents(v.ctx(), v.who, filter)
	if err != nil {
		return err
	}
	page := hostsData{
		base: s.base(v, "Hosts", "hosts"), List: l, Pager: l.pager(len(agents), total),
		Filtered: l.filtered("type", "client", "environment"),
	}
	if page.Pager.beyond() {
		v.goTo(l.page(page.Pager.Pages))
		return nil
	}
	if page.Names, err = s.names(v, access.AgentsRead); err != nil {
		return err
	}
	for _, a := range agents {
		page.Rows = append(page.Rows, hostRow{
			Agent: a, Heard: heardFact(a, v.now),
			Where: page.Names.client(a.ClientID) + " / " + page.Names.environment(a.EnvironmentID),
		})
	}
	page.announce(v, l, plural(total, "host", "hosts"))
	return v.render(http.StatusOK, hostsView(page))
}

// heardFact compares when an agent was last heard with the fleet's window.
func heardFact(a fleet.Agent, now time.Time) fact {
	at := a.HeartbeatAt
	if a.PresenceAt.After(at) {
		at = a.PresenceAt
	}
	switch {
	case !a.RevokedAt.IsZero():
		return fact{Label: "Last heard", Class: "failed", Word: "Revoked", At: a.RevokedAt}
	case at.IsZero():
		return fact{Label: "Last heard", Class: "waiting", Word: "Not yet"}
	case now.Sub(at) > fleet.StaleAfter:
		return fact{Label: "Last heard", Class: "failed", Word: "Silent", At: at, Stale: true}
	default:
		return fact{Label: "Last heard", Class: "passed", Word: "Fresh", At: at}
	}
}

// hostTypeName is the name of a type of agent for people.
func hostTypeName(t fleet.Type) string {
	switch t {
	case fleet.TypeCollector:
		return "Collector"
	case fleet.TypeNodeMonitor:
		return "Node agent"
	case fleet.TypeHost:
		return "Host agent"
	}
	return string(t)
}

func hostTypeOptions() []option {
	var out []option
	for _, t := range hostTypes() {
		out = append(out, option{string(t), hostTypeName(t)})
	}
	return out
}
