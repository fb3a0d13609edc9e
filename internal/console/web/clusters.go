package web

import (
	"net/http"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
)

// clustersPageSize is how many clusters a page shows.
const clustersPageSize = 50

// clustersData is the page of clusters, with the attempts that are not finished above them.
type clustersData struct {
	base
	Attempts []onboarding.Attempt
	Rows     []clusterRow
	List     list
	Pager    pager
	Names    names
	// Filtered tells an empty filter result from an empty console.
	Filtered bool
	MayAdd   bool
	Done     string
}

// clusterRow is one cluster with its facts apart.
type clusterRow struct {
	inventory.Cluster
	Enrolled, Heartbeat, Inventory fact
}

func (s *server) clusters(v *visit) error {
	l := readList(v.r, clustersPageSize, inventory.ClusterSortKeys())
	clusters, total, err := s.Inventory.Clusters(v.ctx(), v.who, inventory.ClusterQuery{
		ClientID: l.get("client"), EnvironmentID: l.get("environment"), Text: l.get("q"),
		Sort: l.Sort, Desc: l.Desc, Limit: l.Size, Offset: l.offset(),
	})
	if err != nil {
		return err
	}
	if total == 0 && !l.filtered("q", "client", "environment") {
		if first, err := s.startNeeded(v); err != nil {
			return err
		} else if first {
			v.goTo("/start")
			return nil
		}
	}
	page := clustersData{
		base: s.base(v, "Clusters", "clusters"), List: l, Pager: l.pager(len(clusters), total),
		Filtered: l.filtered("q", "client", "environment"), MayAdd: v.may(access.HostsWrite),
	}
	if page.Pager.beyond() {
		v.goTo(l.page(page.Pager.Pages))
		return nil
	}
	if page.Attempts, err = s.Onboarding.List(v.ctx(), v.who, "", true); err != nil {
		return err
	}
	if page.Names, err = s.names(v, access.HostsRead); err != nil {
		return err
	}
	for _, c := range clusters {
		page.Rows = append(page.Rows, clusterRow{
			Cluster: c, Enrolled: enrolledFact(c), Heartbeat: heartbeatFact(c, v.now),
			Inventory: inventoryFact(c, v.now, s.SyncInterval),
		})
	}
	switch v.r.URL.Query().Get("did") {
	case "abandoned":
		page.Done = "The attempt is abandoned. Its cluster, inventory and agents stay as they are."
	case "removed":
		page.Done = "The cluster is removed with its inventory. Its slug is free again; the records of its agents stay under Agents."
	}
	page.announce(v, l, plural(total, "cluster", "clusters"))
	return v.render(http.StatusOK, clustersView(page))
}

// announce tells screen readers the new count, and the browser the address of what it shows, where
// script asked for a part of the page.
func (b *base) announce(v *visit, l list, count string) {
	if !v.partial() {
		return
	}
	b.Said = count
	v.w.Header().Set("Hx-Push-Url", l.page(l.Page))
}
