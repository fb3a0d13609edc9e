package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/web/internal/fake"
)

func TestSignIn(t *testing.T) {
	s := serve(t, fake.Full(start), clocktest.New(start()), "")
	email := "mira.okafor@ostmark.example"

	page := s.get("/signin?next=%2Fclusters%2Fck_halden", http.StatusOK)
	if !strings.Contains(page.text, `value="/clusters/ck_halden"`) {
		t.Error("the way back is lost")
	}
	a := s.post("/signin", url.Values{"email": {email}, "password": {"wrong"}}, http.StatusUnauthorized)
	wantText(t, a.byID(t, "error-summary"), "Email and password do not match")
	if attr(a.byID(t, "email"), "value") != email || attr(a.byID(t, "password"), "value") != "" {
		t.Error("the e-mail address is lost, or the password came back")
	}
	s.post("/signin", url.Values{"email": {"locked@ostmark.example"}, "password": {"x"}}, http.StatusTooManyRequests)
	a = s.post("/signin", url.Values{"email": {email}, "password": {fake.Password}, "next": {"/clusters/ck_halden"}}, http.StatusSeeOther)
	if a.Header.Get("Location") != "/clusters/ck_halden" || s.session.User != fake.Admin {
		t.Errorf("sent to %q as %q", a.Header.Get("Location"), s.session.User)
	}
	if a := s.get("/signin", http.StatusSeeOther); a.Header.Get("Location") != "/" {
		t.Errorf("who is signed in is sent to %q", a.Header.Get("Location"))
	}
	s.post("/signout", nil, http.StatusSeeOther)
	if s.session.User != "" {
		t.Error("still signed in")
	}
}

func TestTheWayBackStaysWithinConsole(t *testing.T) {
	for next, want := range map[string]string{
		"/clusters?q=a%20b": "/clusters?q=a%20b", "": "/", "//evil.example": "/", `/\evil.example`: "/", "https://evil.example/": "/",
		"/\t/evil.example": "/", "javascript:alert(1)": "/", "clusters": "/", "/signin?next=/x": "/", "/a\r\nSet-Cookie: x": "/", "/%zz": "/",
	} {
		if got := localPath(next); got != want {
			t.Errorf("localPath(%q) = %q, want %q", next, got, want)
		}
	}
}

func TestAccountThatIsGone(t *testing.T) {
	s := serve(t, fake.Full(start), clocktest.New(start()), "us_deleted")
	s.get("/clusters", http.StatusSeeOther)
	if s.session.User != "" {
		t.Error("the session lives on")
	}
}

func TestFirstRun(t *testing.T) {
	s := serve(t, fake.Empty(start), clocktest.New(start()), fake.Admin)
	if a := s.get("/clusters", http.StatusSeeOther); a.Header.Get("Location") != "/start" {
		t.Fatalf("sent to %q", a.Header.Get("Location"))
	}
	checkMarkup(t, s.get("/start", http.StatusOK))
	a := s.post("/start", url.Values{"client": {""}, "environment": {"prod"}}, http.StatusUnprocessableEntity)
	wantText(t, a.byID(t, "client-error"), "needs a name")
	// The client is made, its environment is not: a second try completes it.
	a = s.post("/start", url.Values{"client": {"Halden"}, "environment": {""}}, http.StatusUnprocessableEntity)
	wantText(t, a.byID(t, "environment-error"), "needs a name")
	a = s.post("/start", url.Values{"client": {"halden"}, "environment": {"prod"}}, http.StatusSeeOther)
	if a.Header.Get("Location") != "/clusters/add" || len(s.world.Clients) != 1 || len(s.world.Environments) != 1 {
		t.Errorf("to %q with %v, %v", a.Header.Get("Location"), s.world.Clients, s.world.Environments)
	}
	wantText(t, s.get("/clusters", http.StatusOK).page, "No clusters yet", "Add cluster")
	if a := s.get("/start", http.StatusSeeOther); a.Header.Get("Location") != "/clusters" {
		t.Error("the first run is offered twice")
	}
}

// TestWizard walks the three steps without script.
func TestWizard(t *testing.T) {
	s := full(t)
	a := s.get("/clusters/add?name=Halden+West", http.StatusOK)
	wantText(t, a.byID(t, "slug"), "halden-west")

	form := url.Values{"client": {"cl_halden"}, "environment": {"en_halden_prod"}, "name": {"東京"}}
	a = s.post("/clusters/add", form, http.StatusUnprocessableEntity)
	wantText(t, a.byID(t, "name-error"), "no letter a to z")
	if n := a.byID(t, "name"); attr(n, "value") != "東京" || attr(n, "aria-invalid") != "true" {
		t.Error("the input does not say that it is at fault")
	}
	form.Set("name", "x")
	form.Set("environment", "en_kivu_prod")
	a = s.post("/clusters/add", form, http.StatusUnprocessableEntity)
	a.byID(t, "environment-error")

	form.Set("name", "Halden West")
	form.Set("environment", "en_halden_prod")
	a = s.post("/clusters/add", form, http.StatusOK)
	token := textOf(a.byID(t, "token"))
	if !strings.HasPrefix(token, "pit_") || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("token %q, Cache-Control %q", token, a.Header.Get("Cache-Control"))
	}
	wantText(t, a.byID(t, "command"), "token='"+token+"'", "PROXIMA_CLUSTER_SLUG='halden-west'")
	wantText(t, a.page, "0 of 25 uses", "Shown once")
	install := attr(all(a.page, tag("body"))[0], "data-location")

	// A second submit resumes, and shows no token.
	a = s.post("/clusters/add", form, http.StatusOK)
	wantText(t, a.page, "is resumed", "a live token is never replaced", "<install-token>")

	// Whoever comes back sees the placeholder with the reason, and may add a token.
	a = s.get(install, http.StatusOK)
	if strings.Contains(a.text, token) {
		t.Error("the token is shown a second time")
	}
	wantText(t, a.byID(t, "command"), "'<install-token>'")
	wantText(t, a.byID(t, "token-why"), "shown once")
	a = s.post(strings.TrimSuffix(install, "/install")+"/token", nil, http.StatusOK)
	wantText(t, a.byID(t, "token"), "pit_N0thing")
	if rows := all(a.byID(t, "tokens"), tag("tr")); len(rows) != 2 {
		t.Errorf("%d rows of tokens, want the head and the first token", len(rows))
	}

	status := strings.TrimSuffix(install, "/install")
	a = s.get(status, http.StatusOK)
	if got := attr(a.byID(t, "inventory-2"), "class"); got != "gate waiting" {
		t.Errorf("gate 2 has the class %q", got)
	}
	if !strings.Contains(a.text, `<noscript><meta http-equiv="refresh" content="15"`) {
		t.Error("without script the page never changes")
	}

	s.get(status+"/abandon", http.StatusOK)
	a = s.post(status+"/abandon", nil, http.StatusSeeOther)
	wantText(t, s.get(a.Header.Get("Location"), http.StatusOK).page, "The attempt is abandoned")
	wantText(t, s.get(status, http.StatusOK).page, "This attempt was abandoned")
}

// An archived attempt says so and when, and offers nothing that would be refused.
func TestAnArchivedAttempt(t *testing.T) {
	a := full(t).get("/clusters/add/ob_archived", http.StatusOK)
	wantText(t, a.byID(t, "archived"), "The cluster was removed in Console", "archived with it", "5 min ago")
	for _, gone := range []string{"Show command", "Abandon attempt", "Mint a new token"} {
		if strings.Contains(a.text, gone) {
			t.Errorf("the page offers %q", gone)
		}
	}
	if strings.Contains(a.text, "ob_archived/install") {
		t.Error("the page leads to a command that it has not")
	}
}

func TestSlugWhileTyping(t *testing.T) {
	s := full(t)
	a := s.get("/clusters/add/slug?name="+url.QueryEscape(" Halden  Prod/EU "), http.StatusOK)
	wantText(t, a.byID(t, "slug"), "halden-prod-eu")
	wantText(t, a.page, "14 of 63 characters")
	wantText(t, s.get("/clusters/add/slug?name=%E6%9D%B1", http.StatusOK).page, "no slug can be made")
}

// TestGatesAreVerbatim: the page prints what was judged and adds no verdict.
func TestGatesAreVerbatim(t *testing.T) {
	s := full(t)
	for _, id := range []string{"ob_waiting", "ob_failed", "ob_new", "ob_done"} {
		a := s.get("/clusters/add/"+id, http.StatusOK)
		track := s.world.Attempts[id].Inventory
		for _, g := range track.Gates {
			n := a.byID(t, gateID(g))
			wantText(t, n, g.Title, stateWord(g.State), g.Sentence)
			if attr(n, "class") != "gate "+string(g.State) {
				t.Errorf("%s: gate %d has the class %q", id, g.Number, attr(n, "class"))
			}
			if g.Action != nil {
				wantText(t, n, g.Action.Text, g.Action.Command)
			}
			for _, e := range g.Evidence {
				wantText(t, n, e.Label, e.Value)
			}
		}
		if done := len(all(a.page, func(n *html.Node) bool { return attr(n, "id") == "done" })) == 1; done != track.Done {
			t.Errorf("%s: the page says done=%v, the track %v", id, done, track.Done)
		}
		wantText(t, a.byID(t, "inventory-foot"), track.Owner)
		if strings.Contains(a.text, "Live access") {
			t.Errorf("%s shows the access track before it exists (X-53)", id)
		}
	}
}

func TestOffersOfGates(t *testing.T) {
	s := full(t)
	a := s.get("/clusters/add/ob_new", http.StatusOK)
	forms := all(a.byID(t, "inventory-1"), tag("form"))
	if len(forms) != 1 || attr(forms[0], "action") != "/clusters/add/ob_new/token" || attr(forms[0], "method") != "post" {
		t.Error("gate 1 does not offer a token")
	}
	links := all(a.byID(t, "inventory-4"), tag("a"))
	if len(links) != 1 || attr(links[0], "href") != "/clusters/ck_hostile/identity/accept" {
		t.Error("gate 4 does not lead to the identity")
	}
	// Who may only read is offered nothing that would fail.
	s = serve(t, fake.Full(start), clocktest.New(start()), fake.Reader)
	a = s.get("/clusters/add/ob_new", http.StatusOK)
	if forms := all(a.byID(t, "inventory"), tag("form")); len(forms) != 0 {
		t.Error("a reader is offered a form")
	}
	for _, n := range all(a.page, tag("a")) {
		if strings.Contains(attr(n, "href"), "abandon") || strings.Contains(attr(n, "href"), "accept") {
			t.Errorf("a reader is offered %q", attr(n, "href"))
		}
	}
}

func TestHostileNamesStayText(t *testing.T) {
	s := full(t)
	for _, path := range []string{"/clusters", "/clusters/add/ob_new", "/clusters/add/ob_new/install", "/clusters/ck_hostile", "/clusters/add/ob_new/abandon", "/clusters?q=" + url.QueryEscape(fake.Hostile)} {
		a := s.get(path, http.StatusOK)
		if imgs := all(a.page, tag("img")); len(imgs) != 0 || !strings.Contains(a.text, "&lt;img src=x") {
			t.Errorf("%s: %d images", path, len(imgs))
		}
	}
}

func TestClusterFactsStandApart(t *testing.T) {
	s := full(t)
	a := s.get("/clusters", http.StatusOK)
	wantText(t, a.byID(t, "cluster-ck_kivu_core"), "3 collectors", "92 d ago", "Silent", "38 min ago", "Old", "41 min ago")
	wantText(t, a.byID(t, "cluster-ck_ostra_web"), "Fresh", "7 s ago", "1 kind unread", "55 s ago")
	wantText(t, a.byID(t, "cluster-ck_young"), "Fresh", "None yet")
	// An inventory-only cluster is complete: nothing of it has a warning's tone.
	row := a.byID(t, "cluster-ck_halden")
	wantText(t, row, "1 collector", "Fresh", "Complete")
	for _, n := range all(row, tag("b")) {
		if attr(n, "class") != "passed" {
			t.Errorf("a complete cluster says %q as %q", textOf(n), attr(n, "class"))
		}
	}
	wantText(t, a.byID(t, "attempt-ob_failed"), "2 of 4 passed; Heartbeat fresh: failed", "47 min ago", "Resume")
	for _, n := range all(a.page, func(n *html.Node) bool {
		return attr(n, "id") == "attempt-ob_done" || attr(n, "id") == "attempt-ob_abandoned"
	}) {
		t.Errorf("%s is shown as in progress", attr(n, "id"))
	}
}

func TestListsKeepTheirStateInTheAddress(t *testing.T) {
	s := full(t)
	a := s.get("/clusters?q=kivu&sort=-name&nonsense=", http.StatusOK)
	wantText(t, a.page, "2 clusters")
	head := all(a.byID(t, "clusters"), func(n *html.Node) bool { return has(n, "aria-sort") })
	if len(head) != 1 || attr(head[0], "aria-sort") != "descending" {
		t.Fatal("the sorted column does not say so")
	}
	if href := attr(a.byID(t, "sort-name"), "href"); href != "/clusters?q=kivu&sort=name" {
		t.Errorf("turning the order around leads to %q", href)
	}
	pods := "/clusters/ck_ostra_web/pods"
	a = s.get(pods+"?namespace=shop&page=2", http.StatusOK)
	wantText(t, a.page, "101 to 200 of 260 pods")
	if href := attr(a.byID(t, "page-next"), "href"); href != pods+"?namespace=shop&page=3" {
		t.Errorf("the next page is %q", href)
	}
	if href := attr(a.byID(t, "sort-restarts"), "href"); href != pods+"?namespace=shop&sort=restarts" {
		t.Errorf("sorting leads to %q, and not to the first page of it", href)
	}
	if a := s.get(pods+"?page=99", http.StatusSeeOther); a.Header.Get("Location") != pods+"?page=3" {
		t.Errorf("beyond the last page: sent to %q", a.Header.Get("Location"))
	}
	for _, broken := range []string{"?page=-3", "?page=x", "?sort=password", "?page=1"} {
		s.get(pods+broken, http.StatusOK)
	}
	r := s.request(http.MethodGet, pods+"?q=00001&namespace=&state=", nil)
	r.Header.Set("Hx-Request", "true")
	a = s.do(r)
	wantText(t, a.byID(t, "live"), "1 of 1,146 pods")
	if a.Header.Get("Hx-Push-Url") != pods+"?q=00001" {
		t.Errorf("the address becomes %q", a.Header.Get("Hx-Push-Url"))
	}
}

// TestSortKeysExist: every column that offers to sort is one that the inventory sorts by.
func TestSortKeysExist(t *testing.T) {
	for _, section := range inventory.Sections() {
		for _, c := range columnsOf(section) {
			if c.Key != "" && !strings.Contains(" "+strings.Join(inventory.SortKeys(section), " ")+" ", " "+c.Key+" ") {
				t.Errorf("%s: the column %q sorts by %q", section, c.Label, c.Key)
			}
		}
	}
}

func TestClusterOverview(t *testing.T) {
	s := full(t)
	a := s.get("/clusters/ck_ostra_web", http.StatusOK)
	wantText(t, a.page, "The last sync could not read services.", "403", "services is forbidden", "1 d ago")
	wantText(t, a.byID(t, "kinds"), "1,000 of 4,312")
	wantText(t, a.byID(t, "dropped"), "2 inventories were not applied", "older than what is stored")
	s.get("/clusters/ck_ostra_web/identity/accept", http.StatusSeeOther) // nothing to accept

	a = s.get("/clusters/ck_kivu_goma", http.StatusOK)
	wantText(t, a.byID(t, "conflict"), "9b4c7e52-0d1f-4a55-8a7c-6c1f0e5d2b11", "2f0a9c1d-44be-4c0e-9a3e-0b7d8f6612aa", "delete its record under Agents", "for 10 min")
	path := "/clusters/ck_kivu_goma/identity/accept"
	a = s.get(path, http.StatusOK)
	wantText(t, a.page, "9b4c7e52-0d1f-4a55-8a7c-6c1f0e5d2b11", "2f0a9c1d-44be-4c0e-9a3e-0b7d8f6612aa")
	uid := url.Values{"uid": {"9b4c7e52-0d1f-4a55-8a7c-6c1f0e5d2b11"}, "confirm": {"kivu"}}
	a = s.post(path, uid, http.StatusUnprocessableEntity)
	wantText(t, a.byID(t, "confirm-error"), "not the cluster's slug")
	uid.Set("confirm", "kivu-edge-goma")
	stale := url.Values{"uid": {"another"}, "confirm": {"kivu-edge-goma"}}
	wantText(t, s.post(path, stale, http.StatusConflict).page, "Another identity reports by now")
	a = s.post(path, uid, http.StatusSeeOther)
	wantText(t, s.get(a.Header.Get("Location"), http.StatusOK).page, "The new identity is accepted")
}

func TestObjects(t *testing.T) {
	s := full(t)
	a := s.get("/clusters/ck_ostra_web/pods/object?kind=Pod&namespace=shop&name=checkout-api-7d9f8c6b5d-00000", http.StatusOK)
	wantText(t, a.page, "CrashLoopBackOff", "Deployment checkout-api", "sidecar", "registry.ostra.example/mesh:1.9", "384Mi memory")
	s.get("/clusters/ck_ostra_web/pods/object?kind=Pod&name=nothing", http.StatusNotFound)
	wantText(t, s.get("/clusters/ck_ostra_web/nodes?state=Not+ready", http.StatusOK).page, "ostra-w-04")
	wantText(t, s.get("/clusters/ck_ostra_web/pods?node=ostra-w-07", http.StatusOK).page, "node ostra-w-07", "remove filter")
}

func TestCollectorsAreNoHosts(t *testing.T) {
	s := full(t)
	a := s.get("/hosts", http.StatusOK)
	wantText(t, a.page, "A collector creates no host record")
	wantText(t, a.byID(t, "hosts"), "ostra-w-01", "bastion-1.kivu.example", "Silent")
	for _, n := range all(a.byID(t, "hosts"), tag("td")) {
		if textOf(n) == "Collector" {
			t.Error("a collector is listed")
		}
	}
}

// What the cures ask for can be done on a page: each act says first what it comes to, and why it is refused.
func TestAgentsAndTheirActs(t *testing.T) {
	s := full(t)
	a := s.get("/agents?slug=ostra-web&type=collector", http.StatusOK)
	wantText(t, a.byID(t, "agents"), "ostra-web", "Collector", "Leader", "Ends", "in 5 d", "issued 1 d ago")
	s.world.Agents[slices.IndexFunc(s.world.Agents, func(a fleet.Agent) bool { return a.ID == "ag_c" })].SuspendedAt = start().Add(-time.Minute)
	wantText(t, s.get("/agents?slug=ostra-web", http.StatusOK).page, "Kept out for 9 more minutes: it sent far more than an agent does", "comes back by itself")
	wantText(t, s.get("/agents?q=dr&type=collector", http.StatusOK).byID(t, "agents"), "cluster-agent-0", "removed from Console 3 min ago, and it still reports: nothing of it is stored", "pods is forbidden")

	a = s.get("/agents/ag_c", http.StatusOK)
	wantText(t, a.byID(t, "acts"), "Rotate credentials…", "Release identity…", "Revoke…", "Delete record…", "online")
	wantText(t, a.byID(t, "findings"), "rbac", "The service account cannot list services.", "Apply the ClusterRole")
	wantText(t, s.get("/agents/ag_h", http.StatusOK).page, "No self-check is stored")
	s.get("/agents/none", http.StatusNotFound)

	wantText(t, s.get("/agents/ag_c/rotate", http.StatusOK).page, "Rotate the credentials of ostra-web?", "waits up to 5 seconds", "runs out by itself")
	if got := s.post("/agents/ag_c/rotate", nil, http.StatusSeeOther).Header.Get("Location"); got != "/agents/ag_c?did=rotate" {
		t.Errorf("sent to %s", got)
	}
	wantText(t, s.get("/agents/ag_c?did=rotate", http.StatusOK).page, "fetched a fresh credential")
	wantText(t, s.post("/agents/ag_h/rotate", nil, http.StatusServiceUnavailable).page, "Nothing was changed", "Nobody listens for commands", "Rotate once it is online")
	wantText(t, s.get("/agents/ag_c/release", http.StatusOK).page, "Release the identity of ostra-web?", "cut off at once", "audit log")
	wantText(t, s.post("/agents/ag_c/release", nil, http.StatusConflict).page, "Nothing was changed", "still holds its identity", "quiet for five minutes")
	if got := s.post("/agents/ag_c/revoke", nil, http.StatusSeeOther).Header.Get("Location"); got != "/agents/ag_c?did=revoke" {
		t.Errorf("sent to %s", got)
	}
	wantText(t, s.get("/agents/ag_c?did=revoke", http.StatusOK).page, "The agent is revoked", "Revoked")
	if got := s.post("/agents/ag_c/delete", nil, http.StatusSeeOther).Header.Get("Location"); got != "/agents?did=delete" {
		t.Errorf("sent to %s", got)
	}
	wantText(t, s.get("/agents?type=collector&slug=ostra-web", http.StatusOK).page, "No agent matches")
	s.get("/agents/ag_c/delete", http.StatusNotFound)
	s.get("/agents/ag_h/promote", http.StatusNotFound)
}

// tokens are for one agent unless more is asked for, and are shown once.
func TestInstallTokens(t *testing.T) {
	s := full(t)
	a := s.get("/install-tokens", http.StatusOK)
	wantText(t, a.byID(t, "tokens"), "pit_8Wq2", "attempt Ostra Stores", "Ostra Retail / prod", "1 of 25 uses", "112 uses, unlimited", "Open without limit", "Node agents", "Expired", "Used up", "mira@ostmark.example")
	wantText(t, s.get("/install-tokens?state=used_up", http.StatusOK).byID(t, "tokens"), "pit_Rw9k")
	wantText(t, s.get("/install-tokens?state=revoked", http.StatusOK).page, "No token matches")

	form := s.get("/install-tokens/mint", http.StatusOK)
	for _, n := range all(form.page, func(n *html.Node) bool { return attr(n, "name") == "uses" }) {
		if checked := has(n, "checked"); checked != (attr(n, "value") == "one") {
			t.Errorf("the choice %q is checked: %v", attr(n, "value"), checked)
		}
	}
	ask := func(change url.Values) url.Values {
		v := url.Values{"environment": {"en_ostra_prod"}, "uses": {"one"}, "count": {"10"}, "hours": {"24"}}
		maps.Copy(v, change)
		return v
	}
	for says, change := range map[string]url.Values{
		"no number of agents":     {"uses": {"many"}, "count": {"0"}},
		"Choose one of the three": {"uses": {""}},
		"no number of hours":      {"hours": {"soon"}},
		"not possible":            {"hours": {"48"}},
	} {
		status := http.StatusUnprocessableEntity
		if says == "not possible" { // what the domain finds is no fault of one input's form
			status = http.StatusBadRequest
		}
		wantText(t, s.post("/install-tokens/mint", ask(change), status).page, "No token was minted", says)
	}
	s.post("/install-tokens/mint", ask(url.Values{"environment": {"en_none"}}), http.StatusNotFound)
	minted := s.post("/install-tokens/mint", ask(url.Values{"uses": {"unlimited"}, "name": {"rack 15"}}), http.StatusOK)
	wantText(t, minted.page, "pit_M1ntedHereRkZc6YdHsL1mBfGx9JaP", "Shown once", "0 uses, unlimited", "any number of agents")
	if list := s.get("/install-tokens", http.StatusOK); strings.Contains(list.text, "pit_M1ntedHere") || !strings.Contains(list.text, "rack 15") {
		t.Error("the list shows the plain token, or not the new row")
	}
	wantText(t, s.get("/install-tokens/tk_many/revoke", http.StatusOK).page, "Revoke pit_QQ1x…?", "3 agents that enrolled with it stay")
	s.post("/install-tokens/tk_many/revoke", nil, http.StatusSeeOther)
	wantText(t, s.get("/install-tokens?did=revoked&state=revoked", http.StatusOK).page, "The token is revoked", "pit_QQ1x")
	s.get("/install-tokens/none/revoke", http.StatusNotFound)
}

func TestRemoveACluster(t *testing.T) {
	s := full(t)
	a := s.get("/clusters/ck_ostra_web", http.StatusOK)
	for id, want := range map[string]string{"to-agents": "/agents?slug=ostra-web", "to-remove": "/clusters/ck_ostra_web/record/remove"} {
		if got := attr(a.byID(t, id), "href"); got != want {
			t.Errorf("%s leads to %s, want %s", id, got, want)
		}
	}
	const path = "/clusters/ck_ostra_web/record/remove"
	wantText(t, s.get(path, http.StatusOK).page, "Remove", "Nothing is deleted in the cluster", "The onboarding attempt Ostra Web is archived, and the slug ostra-web is free again", "still admit agents (1) are revoked", "The records of 8 agents stay", "It would be refused now")
	wantText(t, s.post(path, url.Values{"confirm": {"ostra"}}, http.StatusUnprocessableEntity).page, "This is not the cluster's slug")
	wantText(t, s.post(path, url.Values{"confirm": {"ostra-web"}}, http.StatusConflict).page, "Not removed", "it still reports", "revoke it under Agents")
	s.world.Clusters[slices.IndexFunc(s.world.Clusters, func(c inventory.Cluster) bool { return c.ID == "ck_ostra_web" })].HeartbeatAt = start().Add(-time.Hour)
	s.post(path, url.Values{"confirm": {"ostra-web"}}, http.StatusSeeOther)
	wantText(t, s.get("/clusters?did=removed", http.StatusOK).page, "The cluster is removed")
	s.get("/clusters/ck_ostra_web", http.StatusNotFound)
}

func TestFaultsStayInTheLog(t *testing.T) {
	s := full(t)
	s.world.Broken = fake.ErrBroken
	a := s.get("/clusters", http.StatusInternalServerError)
	if strings.Contains(a.text, "database is locked") {
		t.Error("the inner text left")
	}
	ref := textOf(all(a.page, tag("code"))[0])
	if !strings.Contains(s.log.String(), ref) || !strings.Contains(s.log.String(), "database is locked") {
		t.Errorf("the log does not know %q: %s", ref, s.log)
	}
}

func TestProfile(t *testing.T) {
	s := full(t)
	form := func(current, next, again string) url.Values {
		return url.Values{"current": {current}, "next": {next}, "again": {again}}
	}
	wantText(t, s.post("/profile/password", form(fake.Password, "a long enough one", "another"), 422).byID(t, "again-error"), "differ")
	wantText(t, s.post("/profile/password", form("x", "a long enough one", "a long enough one"), 422).byID(t, "current-error"), "does not match")
	wantText(t, s.post("/profile/password", form(fake.Password, "short", "short"), 422).byID(t, "next-error"), "fewer than 12")
	a := s.post("/profile/password", form(fake.Password, "a long enough one", "a long enough one"), http.StatusSeeOther)
	wantText(t, s.get(a.Header.Get("Location"), http.StatusOK).page, "Your password was changed, and your other sessions ended.")
}

func TestTheme(t *testing.T) {
	s := full(t)
	a := s.post("/theme", url.Values{"theme": {"dark"}, "next": {"/hosts"}}, http.StatusSeeOther)
	c := a.Cookies()[0]
	if a.Header.Get("Location") != "/hosts" || c.Value != "dark" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
		t.Errorf("to %q with %v", a.Header.Get("Location"), c)
	}
	r := s.request(http.MethodGet, "/hosts", nil)
	r.AddCookie(&http.Cookie{Name: themeCookie, Value: "dark"})
	if a := s.do(r); attr(all(a.page, tag("html"))[0], "data-theme") != "dark" {
		t.Error("the page is not dark")
	}
	r = s.request(http.MethodGet, "/hosts", nil)
	r.AddCookie(&http.Cookie{Name: themeCookie, Value: "x"})
	if a := s.do(r); has(all(a.page, tag("html"))[0], "data-theme") {
		t.Error("a made-up theme is taken")
	}
}

func TestScriptOfSomebodyWhoSignedOut(t *testing.T) {
	s := serve(t, fake.Full(start), clocktest.New(start()), "")
	r := s.request(http.MethodGet, "/clusters?sort=-name", nil)
	r.Header.Set("Hx-Request", "true")
	r.Header.Set("Hx-Current-Url", "https://console.ostmark.example/clusters?q=a")
	a := s.do(r)
	if a.StatusCode != http.StatusUnauthorized || a.Header.Get("Hx-Redirect") != "/signin?next=%2Fclusters%3Fq%3Da" {
		t.Errorf("status %d, redirect %q", a.StatusCode, a.Header.Get("Hx-Redirect"))
	}
}
