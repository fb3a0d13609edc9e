package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/audit/trail"
)

// auditPageSize is how many rows a page of the audit log shows.
const auditPageSize = 50

// auditData is one page of the audit log.
type auditData struct {
	base
	Rows     []auditRow
	List     list
	Names    names
	Filtered bool
	Fault    *fault
	// About says what the log is narrowed to beyond the filters of the form; "" if to nothing.
	About  string
	Kept   string
	Export string
	Older  string // address of the next page, "" on the last
	Later  bool   // this is not the first page
}

// auditRow is one event with its words.
type auditRow struct {
	audit.Event
	Words   string
	Where   string
	Details []auditDetail
	// ByActor and OnResource narrow the log to whoever did it, and to what it was done to; "" where they are not named.
	ByActor, OnResource string
}

// auditDetail is one detail, or both sides of a change.
type auditDetail struct {
	Name, Before, After string
	Changed             bool
}

func (s *server) audit(v *visit) error {
	l := readList(v.r, auditPageSize, nil)
	l.Values.Del("page")
	page := auditData{
		base: s.base(v, "Audit", "audit"), List: l, Kept: keptFor(s.Audit.Kept()), Later: l.get("cursor") != "",
		Filtered: l.filtered("actor", "action", "client", "environment", "from", "to", "type", "resource", "slug"),
	}
	filter, asked, told := auditFilter(l)
	status := http.StatusUnprocessableEntity
	var found trail.Page
	if told == nil {
		var err error
		found, err = s.Audit.Events(v.ctx(), v.who, trail.Query{Filter: filter, Limit: l.Size, Cursor: l.get("cursor")})
		status = http.StatusOK
		switch fault, refused, ok := faultOf(err); {
		case ok:
			told, status = &fault, refused
		case err != nil:
			return err
		}
		page.Export = "/api/v1/audit/export"
		if len(asked) > 0 {
			page.Export += "?" + asked.Encode()
		}
	}
	if found.Next != "" {
		page.Older = l.with("cursor", found.Next)
	}
	if err := s.auditRows(v, &page, found.Events); err != nil {
		return err
	}
	page.Fault = told
	switch {
	case l.get("slug") != "":
		page.About = "Only what was done to the cluster " + l.get("slug") + ", to its attempts and to its agents."
	case l.get("resource") != "":
		page.About = "Only what was done to " + strings.ReplaceAll(l.get("type"), "_", " ") + " " + l.get("resource") + "."
	case l.get("type") != "":
		page.About = "Only what was done to things of the type " + strings.ReplaceAll(l.get("type"), "_", " ") + "."
	}
	page.announce(v, l, plural(len(page.Rows), "row", "rows")+" shown")
	return v.render(status, auditView(page))
}

func (s *server) auditRows(v *visit, page *auditData, events []audit.Event) (err error) {
	if page.Names, err = s.names(v, access.AuditRead); err != nil {
		return err
	}
	for _, e := range events {
		row := auditRow{Event: e, Words: e.Sentence(), Details: detailsOf(e)}
		if e.ClientID != "" {
			row.Where = page.Names.client(e.ClientID)
		}
		if e.EnvironmentID != "" {
			row.Where += " / " + page.Names.environment(e.EnvironmentID)
		}
		if actor := cmp.Or(e.ActorID, e.ActorName); actor != "" {
			row.ByActor = page.List.with("actor", actor)
		}
		if e.ResourceID != "" {
			row.OnResource = page.List.Path + "?" + url.Values{"type": {e.ResourceType}, "resource": {e.ResourceID}}.Encode()
		}
		page.Rows = append(page.Rows, row)
	}
	return nil
}

// auditFilter reads the address. asked is the same for the API, whose names and times are its own.
func auditFilter(l list) (f trail.Filter, asked url.Values, told *fault) {
	f = trail.Filter{
		Actor: l.get("actor"), Action: audit.Action(l.get("action")), ResourceType: l.get("type"), ResourceID: l.get("resource"),
		ClientID: l.get("client"), EnvironmentID: l.get("environment"), ClusterSlug: l.get("slug"),
	}
	asked = url.Values{}
	for name, value := range map[string]string{
		"actor": f.Actor, "action": string(f.Action), "resourceType": f.ResourceType, "resourceID": f.ResourceID,
		"client": f.ClientID, "environment": f.EnvironmentID, "clusterSlug": f.ClusterSlug,
	} {
		if value != "" {
			asked.Set(name, value)
		}
	}
	for name, into := range map[string]*time.Time{"from": &f.From, "to": &f.To} {
		if l.get(name) == "" {
			continue
		}
		day, err := time.Parse(time.DateOnly, l.get(name))
		if err != nil {
			return f, asked, &fault{Field: "f-" + name, Message: "“" + l.get(name) + "” is no day.", Cure: "Write it as 2026-11-30."}
		}
		if name == "to" { // the day itself is in
			day = day.AddDate(0, 0, 1)
		}
		*into = day
		asked.Set(name, day.Format(time.RFC3339))
	}
	return f, asked, nil
}

// detailsOf pairs what was before with what is after.
func detailsOf(e audit.Event) []auditDetail {
	var out []auditDetail
	for name, value := range e.Detail {
		stem, isBefore := strings.CutSuffix(name, "before")
		if _, both := e.Detail[stem+"after"]; isBefore && both {
			continue // told with its other side
		}
		d := auditDetail{Name: strings.ReplaceAll(name, "_", " "), After: value}
		if stem, isAfter := strings.CutSuffix(name, "after"); isAfter {
			if before, both := e.Detail[stem+"before"]; both {
				d.Name, d.Before, d.Changed = strings.ReplaceAll(strings.TrimSuffix(stem, "_"), "_", " "), before, true
				d.Name = cmp.Or(d.Name, "name")
			}
		}
		if d.After != "" || d.Changed {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b auditDetail) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// keptFor says for how long rows are kept.
func keptFor(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return plural(int(d/(24*time.Hour)), "day", "days")
	}
	return plural(int(d/time.Hour), "hour", "hours")
}

func actionOptions() []option {
	var out []option
	for _, a := range audit.Actions() {
		out = append(out, option{string(a), a.Label()})
	}
	slices.SortFunc(out, func(a, b option) int { return cmp.Compare(a.Label, b.Label) })
	return out
}

// touchedBy is the address of who touched a cluster.
func touchedBy(environmentID, slug string) string {
	return "/audit?" + url.Values{"environment": {environmentID}, "slug": {slug}}.Encode()
}
