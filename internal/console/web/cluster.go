package web

import (
	"net/http"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/problem"
)

// clusterHead is what every page of one cluster shows on top.
type clusterHead struct {
	Cluster inventory.Cluster
	Facts   []fact
	Tabs    []tab
	// MayWrite: the caller may accept a new identity.
	MayWrite bool
	// ConflictEnds is how quiet another cluster must be before its conflict ends.
	ConflictEnds time.Duration
}

// tab is one of the sibling pages of a cluster.
type tab struct {
	Label   string
	Count   string
	Address string
	Current bool
}

// head reads the cluster; current is its section, "" for the overview.
func (s *server) head(v *visit, current inventory.Section) (clusterHead, error) {
	c, err := s.Inventory.Cluster(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return clusterHead{}, err
	}
	return s.headOf(v, c, current), nil
}

// headOf is head of a cluster that was read.
func (s *server) headOf(v *visit, c inventory.Cluster, current inventory.Section) clusterHead {
	head := clusterHead{
		Cluster:  c,
		Facts:    []fact{enrolledFact(c), heartbeatFact(c, v.now), inventoryFact(c, v.now, s.SyncInterval)},
		Tabs:     []tab{{Label: "Overview", Address: "/clusters/" + c.ID, Current: current == ""}},
		MayWrite: v.who.Allows(access.HostsWrite, access.Scope{ClientID: c.ClientID, EnvironmentID: c.EnvironmentID}), ConflictEnds: 2 * s.SyncInterval,
	}
	for _, section := range inventory.Sections() {
		head.Tabs = append(head.Tabs, tab{
			Label: sectionTitle(section), Count: countOf(c, section),
			Address: sectionPath(c.ID, section), Current: section == current,
		})
	}
	return head
}

func sectionPath(clusterID string, s inventory.Section) string {
	return "/clusters/" + clusterID + "/" + string(s)
}

// overviewData is a cluster's first page.
type overviewData struct {
	base
	clusterHead
	Kinds []kindRow
	// Warnings are the newest warning events of the last inventory.
	Warnings []eventRow
	Done     string
	// Gates is the address of the attempt that onboarded the cluster, "" if there is none.
	Gates string
	// Dropping is set while an inventory that was not applied matters: none came after it, or it was just now.
	Dropping bool
}

// dropMatters is how long an inventory that was not applied is told of although others came after it: two
// collectors that take turns are worth a look, an old takeover is not.
const dropMatters = time.Hour

// dropping tells whether the last inventory that was not applied still matters.
func dropping(c inventory.Cluster, now time.Time) bool {
	return !c.DroppedAt.IsZero() && (c.DroppedAt.After(c.LastSyncAt) || now.Sub(c.DroppedAt) < dropMatters)
}

// kindRow says of one kind whether it was read, and from when its rows are.
type kindRow struct {
	inventory.KindState
	Fact fact
}

// eventRow is a warning on the overview.
type eventRow struct {
	Reason, Object, Message, Address string
	Count                            int64
	At                               time.Time
}

// warningsShown is how many warning events the overview lists.
const warningsShown = 5

func (s *server) cluster(v *visit) error {
	events, err := s.Inventory.Objects(v.ctx(), v.who, inventory.Query{
		ClusterID: v.r.PathValue("id"), Section: inventory.SectionEvents, State: "Warning", Sort: "age", Limit: warningsShown,
	})
	if err != nil {
		return err
	}
	head := s.headOf(v, events.Cluster, "")
	page := overviewData{base: s.base(v, head.Cluster.Name, "clusters"), clusterHead: head, Dropping: dropping(head.Cluster, v.now)}
	for _, k := range head.Cluster.Kinds {
		page.Kinds = append(page.Kinds, kindRow{KindState: k, Fact: kindFact(k)})
	}
	for _, o := range events.Objects {
		page.Warnings = append(page.Warnings, warningOf(head.Cluster.ID, o))
	}
	if page.Gates, err = s.gatesOf(v, head.Cluster); err != nil {
		return err
	}
	if v.r.URL.Query().Get("did") == "accepted" {
		page.Done = "The new identity is accepted. Its next inventory replaces what is stored."
	}
	return v.render(http.StatusOK, overviewView(page))
}

// gatesOf is the address of the attempt on the cluster's slug, or "".
func (s *server) gatesOf(v *visit, c inventory.Cluster) (string, error) {
	attempts, err := s.Onboarding.List(v.ctx(), v.who, c.ClientID, false)
	if err != nil {
		return "", err
	}
	for _, a := range attempts {
		if a.EnvironmentID == c.EnvironmentID && a.Slug == c.Slug && a.ArchivedAt.IsZero() {
			return "/clusters/add/" + a.ID, nil
		}
	}
	return "", nil
}

// kindFact says how the last reading of a kind went.
func kindFact(k inventory.KindState) fact {
	switch {
	case k.Unread != "":
		return fact{Class: "warning", Word: "Unread", At: k.ReadAt}
	case k.Kept < k.Total:
		return fact{Class: "warning", Word: "Cut", At: k.ReadAt}
	default:
		return fact{Class: "passed", Word: "Read", At: k.ReadAt}
	}
}

// acceptData is the page that asks before a cluster's identity is replaced.
type acceptData struct {
	base
	clusterHead
	Fault *fault
}

func (s *server) acceptPage(v *visit) error { return s.showAccept(v, http.StatusOK, nil) }

func (s *server) showAccept(v *visit, status int, told *fault) error {
	head, err := s.head(v, "")
	if err != nil {
		return err
	}
	if head.Cluster.Conflict.SeenAt.IsZero() {
		v.goTo("/clusters/" + head.Cluster.ID)
		return nil
	}
	page := acceptData{base: s.base(v, "Accept a new identity", "clusters"), clusterHead: head, Fault: told}
	page.Narrow = true
	return v.render(status, acceptView(page))
}

// accept replaces the identity by the one that the form showed, so that a third one that came up in
// the meantime is not accepted unseen.
func (s *server) accept(v *visit) error {
	c, err := s.Inventory.Cluster(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if v.form("confirm") != c.Slug {
		return s.showAccept(v, http.StatusUnprocessableEntity, wrongSlug(c))
	}
	if _, err = s.Inventory.AcceptIdentity(v.ctx(), v.who, c.ID, v.form("uid")); err != nil {
		told, status, ok := faultOf(err)
		if !ok {
			return err
		}
		return s.showAccept(v, status, &told)
	}
	v.goTo("/clusters/" + c.ID + "?did=accepted")
	return nil
}

// sectionOf reads the section from the address.
func sectionOf(r *http.Request) (inventory.Section, error) {
	for _, s := range inventory.Sections() {
		if r.PathValue("section") == string(s) {
			return s, nil
		}
	}
	return "", problem.New(problem.NotFound, "no_such_section", "A cluster has no page of this name.").
		WithCure("Open the cluster and choose one of its tabs.")
}
