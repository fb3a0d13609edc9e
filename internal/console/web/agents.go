package web

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
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
	Where      string
	Role       string
	Heard      fact
	Credential fact
	// Notices say what stands against the agent, such as that it is kept out and until when.
	Notices []string
}

// agentAct is something that is done to an agent's identity.
type agentAct struct {
	Name   string // its last part of the address
	Label  string
	Title  string // with the agent's name for %s
	Button string
	Done   string
	// Gentle acts end nothing.
	Gentle bool
	// Brief says in one sentence what it is for.
	Brief string
	// Comes says what it comes to.
	Comes []string
	run   func(*server, *visit, string) error
}

func agentActs() []agentAct {
	return []agentAct{
		{
			Name: "rotate", Label: "Rotate credentials…", Title: "Rotate the credentials of %s?", Button: "Rotate the credentials", Gentle: true,
			Done:  "The agent fetched a fresh credential just now.",
			Brief: "For an agent that is online: it fetches a fresh credential under the current permission template, in place.",
			Comes: []string{
				"Console asks the agent, and waits up to 5 seconds for its answer.",
				"It goes on under the same identity; nothing has to be done in the cluster. The credential that it had runs out by itself.",
				"An agent that is offline cannot be asked. It gets the current template by itself once it is back and less than half of its credential’s life remains.",
				"It does not recover an agent that lost its state: that is what releasing the identity is for.",
			},
			run: func(s *server, v *visit, id string) error {
				_, err := s.Fleet.RotateCredentials(v.ctx(), v.who, id)
				return err
			},
		},
		{
			Name: "release", Label: "Release identity…", Title: "Release the identity of %s?", Button: "Release the identity",
			Brief: "For an agent that lost its state: the next enrolment under its name takes this record over. Refused while it was seen in the last 5 minutes.",
			Done:  "The identity is released. The next agent that enrolls under the name takes it over.",
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
			Name: "revoke", Label: "Revoke…", Brief: "Cuts the agent off at once and for good, and keeps its record.", Title: "Revoke %s?", Button: "Revoke the agent",
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
			Name: "delete", Label: "Delete record…", Brief: "Removes the record, so that its name is free. The cluster and its inventory stay.", Title: "Delete the record of %s?", Button: "Delete the record",
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
		ClientID: l.get("client"), EnvironmentID: l.get("environment"), ClusterSlug: l.get("slug"), Text: l.get("q"), Limit: l.Size, Offset: l.offset(),
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
		Filtered: l.filtered("type", "client", "environment", "slug", "q"),
	}
	if page.Pager.beyond() {
		v.goTo(l.page(page.Pager.Pages))
		return nil
	}
	if page.Names, err = s.names(v, access.AgentsRead); err != nil {
		return err
	}
	for _, a := range agents {
		page.Rows = append(page.Rows, s.agentRow(a, page.Names, v.now))
	}
	page.Done = doneBy(v.r)
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

func (s *server) agentRow(a fleet.Agent, n names, now time.Time) agentRow {
	return agentRow{
		Agent: a, Role: roleOf(a, now), Heard: heardFact(a, now), Credential: s.credentialFact(a, now), Notices: notices(a, now),
		Where: n.client(a.ClientID) + " / " + n.environment(a.EnvironmentID),
	}
}

// doneBy is what the form said that led here.
func doneBy(r *http.Request) string {
	for _, act := range agentActs() {
		if r.URL.Query().Get("did") == act.Name {
			return act.Done
		}
	}
	return ""
}

// credentialFact says when an agent's credential ends, and whether it is of the current template.
func (s *server) credentialFact(a fleet.Agent, now time.Time) fact {
	f := fact{Label: "Credential", Class: "passed", Word: "Ends", At: a.CredentialExpiresAt}
	switch {
	case !a.RevokedAt.IsZero():
		f.Class, f.Word, f.At = "failed", "Revoked", a.RevokedAt
	case a.PublicKey == "":
		f.Class, f.Word, f.At = "waiting", "Released", a.ReleasedAt
	case !now.Before(a.CredentialExpiresAt):
		f.Class, f.Word = "failed", "Ended"
	case a.Template < s.Template:
		f.Class, f.Word = "warning", fmt.Sprintf("Template %d of %d, ends", a.Template, s.Template)
	}
	return f
}

// notices says what stands against an agent.
func notices(a fleet.Agent, now time.Time) []string {
	var out []string
	if !a.RevokedAt.IsZero() {
		return nil
	}
	if now.Before(a.SuspendedUntil()) {
		minutes := int((a.SuspendedUntil().Sub(now) + time.Minute - 1) / time.Minute)
		out = append(out, "Kept out for "+plural(minutes, "more minute", "more minutes")+": "+whySuspended(a)+". It comes back by itself; revoke it if this goes on.")
	}
	if removed := a.ClusterRemovedAt; !removed.IsZero() {
		if a.LastSeen().After(removed) {
			out = append(out, "Its cluster was removed from Console "+age(now, removed)+", and it still reports: nothing of it is stored. Uninstall it, or revoke it. To take the cluster back, add it again, delete this record, and let the agent enroll without its old state.")
		} else {
			out = append(out, "Its cluster was removed from Console "+age(now, removed)+"; it was not heard since.")
		}
	}
	if a.PublishedSlug != "" {
		out = append(out, "It published under the slug "+a.PublishedSlug+" "+age(now, a.PublishedSlugAt)+", which is not its own; that was dropped. Set PROXIMA_CLUSTER_SLUG back to "+a.ClusterSlug+", or let it enroll anew for the other one.")
	}
	return out
}

func whySuspended(a fleet.Agent) string {
	if a.SuspendedWhy == "" {
		return "it sent far more than an agent does, or opened far more connections"
	}
	return a.SuspendedWhy
}

// agentData is the page of one agent.
type agentData struct {
	base
	agentRow
	Facts []fact
	// Acts is empty where the caller may change nothing.
	Acts     []agentAct
	Findings *enrollment.Findings
	Done     string
}

func (s *server) agent(v *visit) error {
	a, err := s.Fleet.Agent(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	page := agentData{base: s.base(v, a.Name, "agents"), Done: doneBy(v.r)}
	names, err := s.names(v, access.AgentsRead)
	if err != nil {
		return err
	}
	if page.Findings, err = s.Enrollment.FindingsOf(v.ctx(), v.who, a); err != nil {
		return err
	}
	page.agentRow = s.agentRow(a, names, v.now)
	page.Facts = []fact{page.Heard, page.Credential, syncFact(a)}
	if a.Type != fleet.TypeCollector {
		page.Facts = page.Facts[:2]
	}
	if v.who.Allows(access.AgentsWrite, a.Scope()) {
		page.Acts = agentActs()
	}
	return v.render(http.StatusOK, agentView(page))
}

// syncFact is what a collector last said of its own syncs: evidence, and no verdict.
func syncFact(a fleet.Agent) fact {
	f := fact{Label: "Sync, as it reports", Word: "None reported"}
	if r := a.ReportedSync; r != nil {
		f.Word, f.At = "Done", r.FinishedAt
		if r.Error != "" {
			f.Class, f.Word = "warning", "Failed"
		}
	}
	return f
}

// findingClass is the state of one line of a self-check.
func findingClass(status string) string {
	switch status {
	case "ok":
		return "passed"
	case "warning", "failed":
		return status
	}
	return "waiting"
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
	where := names.client(a.ClientID) + " / " + names.environment(a.EnvironmentID)
	facts := []confirmFact{{"Type", plain(hostTypeName(a.Type))}, {"Where", plain(where)}}
	if a.ClusterSlug != "" {
		facts = append(facts, confirmFact{"Cluster", monospaced(a.ClusterSlug)})
	}
	back := "/agents/" + a.ID
	return v.confirm(status, confirmData{
		base: s.base(v, act.Button, "agents"), Crumbs: []link{{"Agents", "/agents"}, {a.Name, back}}, Last: act.Button, Head: fmt.Sprintf(act.Title, a.Name),
		Facts: append(facts, confirmFact{"Last heard", factValue(heardFact(a, v.now), v.now)}), Comes: act.Comes, Failed: notChanged,
		Action: back + "/" + act.Name, Button: act.Button, Back: back, Keep: "Cancel", Danger: !act.Gentle, Fault: told,
	})
}

func (s *server) agentAct(v *visit) error {
	act, err := actOf(v.r)
	if err != nil {
		return err
	}
	id := v.r.PathValue("id")
	if err := act.run(s, v, id); err != nil {
		told, status, ok := faultOf(err)
		if p, unavailable := errors.AsType[*problem.Error](err); !ok && unavailable && p.Kind == problem.Unavailable {
			told, status, ok = fault{Message: p.Message, Cure: p.Cure}, p.Kind.Status(), true // an agent that does not answer is no fault of console's
		}
		if !ok {
			return err
		}
		return s.showAgentAct(v, status, &told)
	}
	target := "/agents/" + id
	if act.Name == "delete" {
		target = "/agents"
	}
	v.goTo(target + "?did=" + act.Name)
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
