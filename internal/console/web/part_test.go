package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"prxm.uz/proxima/internal/console/inventory"
)

const (
	firstPart = "The first inventory is stored in part, and the lists show that part. The rest follows, or the next inventory replaces it."
	laterPart = "An inventory is stored in part. The rest follows, or the next inventory replaces it; until then what is shown is a mixture of the last two."
)

// Until a sync is stored whole nobody counted anything, so that no page says zero.
func TestAFirstInventoryThatIsStoredInPart(t *testing.T) {
	s := full(t)
	row := s.get("/clusters?q=halden-prod-us", http.StatusOK).byID(t, "cluster-ck_storing")
	wantText(t, row, "Stored in part", "–")
	if strings.Contains(textOf(row), " 0") {
		t.Errorf("the row says %q", textOf(row))
	}
	const at = "/clusters/ck_storing"
	pods := s.world.Objects["ck_ostra_web"]
	for name, stored := range map[string][]inventory.Object{"nothing yet": nil, "a part": pods} {
		s.world.Objects["ck_storing"] = stored
		for _, path := range []string{at, at + "/pods", at + "/events"} {
			a := s.get(path, http.StatusOK)
			wantText(t, a.byID(t, "partly-stored"), firstPart)
			for _, tab := range all(a.page, func(n *html.Node) bool { return attr(n, "class") == "tabs__n" }) {
				if textOf(tab) != "–" {
					t.Errorf("%s: %s: a tab counts %s", name, path, textOf(tab))
				}
			}
			if stored == nil && (path != at && !strings.Contains(textOf(a.page), " yet") || strings.Contains(textOf(a.page), " 0 ")) {
				t.Errorf("%s: %s counts what nobody counted", name, path)
			}
			for _, not := range []string{"No inventory yet", "hold no warning", "holds none"} {
				if strings.Contains(textOf(a.page), not) {
					t.Errorf("%s: %s says %q", name, path, not)
				}
			}
		}
		if stored != nil {
			wantText(t, s.get(at+"/pods", http.StatusOK).page, "260 pods so far")
		}
		filtered := textOf(s.get(at+"/pods?q=nowhere", http.StatusOK).page)
		if !strings.Contains(filtered, "No row that is stored so far passes the filter.") || strings.Contains(filtered, "of 0") || strings.Contains(filtered, "0 rows") {
			t.Errorf("%s: filtered: %s", name, filtered)
		}
	}
	s.world.Objects["ck_storing"] = nil
	wantText(t, s.get(at, http.StatusOK).page, "The first inventory is stored in part", "What it holds stands here once one is stored whole.", "whether there are warnings is not known")
	removing := s.get(at+"/record/remove", http.StatusOK)
	wantText(t, removing.page, "What is stored of its inventory is deleted here. Nothing is deleted in the cluster.")
	if strings.Contains(textOf(removing.page), "0 nodes") {
		t.Error("the page counts what nobody counted")
	}
}

func TestAClusterWithoutInventory(t *testing.T) {
	s := full(t)
	a := s.get("/clusters/ck_young", http.StatusOK)
	wantText(t, a.page, "No inventory yet", "The first one arrives within twice the sync interval", "whether there are warnings is not known")
	if strings.Contains(textOf(a.page), "stored in part") {
		t.Error("nothing is stored in part")
	}
	wantText(t, s.get("/clusters?q=halden-prod-eu", http.StatusOK).byID(t, "cluster-ck_young"), "None yet", "–")
	wantText(t, s.get("/clusters/ck_young/record/remove", http.StatusOK).page, "What is stored of its inventory is deleted here.")
}

func TestALaterInventoryThatIsStoredInPart(t *testing.T) {
	s := full(t)
	const at = "/clusters/ck_halden"
	if strings.Contains(textOf(s.get(at, http.StatusOK).page), "stored in part") {
		t.Error("what is stored is whole")
	}
	s.world.Clusters[slices.IndexFunc(s.world.Clusters, func(c inventory.Cluster) bool { return c.ID == "ck_halden" })].PartlyApplied = true
	for _, path := range []string{at, at + "/nodes"} {
		a := s.get(path, http.StatusOK)
		banner := a.byID(t, "partly-stored")
		wantText(t, banner, laterPart)
		if attr(banner, "class") != "banner" {
			t.Errorf("its tone is %q", attr(banner, "class"))
		}
		wantText(t, a.page, "1,146")
	}
	wantText(t, s.get(at+"/record/remove", http.StatusOK).page, "The stored rows of 31 nodes", "are deleted here. Nothing is deleted in the cluster.")
}
