package web

import (
	"fmt"
	"net/http"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/wire"
)

// agentsPageSize is how many agents a page shows.
const agentsPageSize = 100

// agentsData is the page of agents of every type: each is an identity, whatever it reads.
type agentsData struct {
	base
	Rows     []agentRow
	List     list
	Pager    pager
	Names    names
	Filtered bool
	Done     string
}

// agentRow is one agent, with the acts that the caller may do to it.
type agentRow struct {
	fleet.Agent
	Where string
	Role  string
	Heard fact
	// Suspended says that the agent is kept out, and until when; "" if it is not.
	Suspended string
	Acts      []agentAct
}

// agentAct is something that ends an agent's identity.
type agentAct struct {
	Name   string // its last part of the address
	Label  string
	Title  string // with the agent's name for %s
	Button string
	Done   string
	// Comes says what it comes to.
	Comes []string
	run   func(*server, *visit, string) error
}

func agentActs() []agentAct {
	return []agentAct{
		{
			Name: "release", Label: "Release…", Title: "Release the identity of %s?", Button: "Release the identity",
			Done: "The identity is released. The next agent that enrolls under the name takes it over.",
			Comes: []string{
				"For an agent that lost its state: whichever enrolls next under this name, with a valid install token, takes its place.",
				"The credential that it had is cut off at once.",
				"The record stays, and so do the cluster and its inventory.",
			},
			run: func(s *server, v *visit, id string) error {
				_, err := s.Fleet.ReleaseIdentity(v.ctx(), v.who, id)
				return err
			},
		},
		{
			Name: "revoke", Label: "Revoke…", Title: "Revoke %s?", Button: "Revoke the agent",
			Done: "The agent is revoked. Nothing it sends is taken any more.",
			Comes: []string{
				"Its credential is cut off at once and for good; what it sends is taken no more.",
				"The record stays, and nothing can enroll under its name until the record is deleted.",
				"The cluster and its inventory stay as they are.",
			},
			run: func(s *server, v *visit, id string) error {
				_, err := s.Fleet.Revoke(v.ctx(), v.who, id)
				return err
			},
		},
		{
			Name: "delete", Label: "Delete…", Title: "Delete the record of %s?", Button: "Delete the record",
			Done: "The record is deleted. The name is free for a new enrolment.",
			Comes: []string{
				"Uninstall the agent first if it still runs, or revoke it: while it was seen in the last five minutes and is not revoked, nothing is deleted.",
				"Its credential is cut off at once and for good.",
				"The name is free: a pod without state then enrolls under it with a new identity.",
				"The cluster and its inventory stay as they are.",
			},
			run: func(s *server, v *visit, id string) error { return s.Fleet.Delete(v.ctx(), v.who, id) },
		},
	}
}

func (s *server) agents(v *visit) error {
	l := readList(v.r, agentsPageSize, nil)
	filter := fleet.Filter{
		ClientID: l.get("client"), EnvironmentID: l.get("environment"), ClusterSlug: l.get("slug"), Limit: l.Size, Offset: l.offset(),
	}
	for _, t := range fleet.Types() {
		if l.get("type") == string(t) {
			filter.Type = t
		}
	}
	agents, total, err := s.Fleet.Agents(v.ctx(), v.who, filter)
	if err != nil {
		return err
	}
	page := agentsData{
		base: s.base(v, "Agents", "agents"), List: l, Pager: l.pager(len(agents), total),
		Filtered: l.filtered("type", "client", "environment", "slug"),
	}
	if page.Pager.beyond() {
		v.goTo(l.page(page.Pager.Pages))
		return nil
	}
	if page.Names, err = s.names(v, access.AgentsRead); err != nil {
		return err
	}
	for _, a := range agents {
		row := agentRow{
			Agent: a, Role: roleOf(a, v.now), Heard: heardFact(a, v.now),
			Where: page.Names.client(a.ClientID) + " / " + page.Names.environment(a.EnvironmentID),
		}
		row.Suspended = suspendedSentence(a, v.now)
		if v.who.Allows(access.AgentsWrite, a.Scope()) {
			row.Acts = agentActs()
		}
		page.Rows = append(page.Rows, row)
	}
	for _, act := range agentActs() {
		if v.r.URL.Query().Get("did") == act.Name {
			page.Done = act.Done
		}
	}
	page.announce(v, l, plural(total, "agent", "agents"))
	return v.render(http.StatusOK, agentsView(page))
}

// roleOf says what a collector does, as far as it says so now.
func roleOf(a fleet.Agent, now time.Time) string {
	switch {
	case a.Type != fleet.TypeCollector || !a.Present(now):
		return ""
	case a.Role == wire.RoleLeader:
		return "Leader"
	case a.Role == wire.RoleStandby:
		return "Standby"
	}
	return ""
}

func suspendedSentence(a fleet.Agent, now time.Time) string {
	if !now.Before(a.SuspendedUntil()) || !a.RevokedAt.IsZero() {
		return ""
	}
	minutes := int((a.SuspendedUntil().Sub(now) + time.Minute - 1) / time.Minute)
	return "Kept out for " + plural(minutes, "more minute", "more minutes") + ": it sent far more than an agent does, or opened far more connections. It comes back by itself; revoke it if this goes on."
}

// agentActData is the page that asks before an agent's identity ends.
type agentActData struct {
	base
	Agent fleet.Agent
	Where string
	Heard fact
	Act   agentAct
	Head  string
	Fault *fault
}

func (s *server) agentActPage(v *visit) error { return s.showAgentAct(v, http.StatusOK, nil) }

func (s *server) showAgentAct(v *visit, status int, told *fault) error {
	act, err := actOf(v.r)
	if err != nil {
		return err
	}
	a, err := s.Fleet.Agent(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if !v.who.Allows(access.AgentsWrite, a.Scope()) {
		return access.Refuse(access.AgentsWrite)
	}
	names, err := s.names(v, access.AgentsRead)
	if err != nil {
		return err
	}
	page := agentActData{
		base: s.base(v, act.Button, "agents"), Agent: a, Act: act, Fault: told, Head: fmt.Sprintf(act.Title, a.Name),
		Heard: heardFact(a, v.now), Where: names.client(a.ClientID) + " / " + names.environment(a.EnvironmentID),
	}
	page.Narrow = true
	return v.render(status, agentActView(page))
}

func (s *server) agentAct(v *visit) error {
	act, err := actOf(v.r)
	if err != nil {
		return err
	}
	if err := act.run(s, v, v.r.PathValue("id")); err != nil {
		told, status, ok := faultOf(err)
		if !ok {
			return err
		}
		return s.showAgentAct(v, status, &told)
	}
	v.goTo("/agents?did=" + act.Name)
	return nil
}

func actOf(r *http.Request) (agentAct, error) {
	for _, act := range agentActs() {
		if act.Name == r.PathValue("act") {
			return act, nil
		}
	}
	return agentAct{}, problem.New(problem.NotFound, "no_such_act", "An agent has no page of this name.").
		WithCure("Open Agents, and choose what is to be done there.")
}

func agentTypeOptions() []option {
	var out []option
	for _, t := range fleet.Types() {
		out = append(out, option{string(t), hostTypeName(t)})
	}
	return out
}
