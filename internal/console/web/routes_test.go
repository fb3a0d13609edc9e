package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/web/internal/fake"
)

// example is an address that a pattern takes.
func example(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	id := "ck_ostra_web"
	switch {
	case strings.Contains(path, "/add/"):
		id = "ob_waiting"
	case strings.HasPrefix(path, "/clients/"):
		id = "cl_halden"
	case strings.HasPrefix(path, "/agents/"):
		id = "ag_c"
	case strings.HasPrefix(path, "/install-tokens/"):
		id = "tk_live"
	case strings.HasPrefix(path, "/users/"):
		id = fake.Reader
		path = strings.Replace(path, "{act}", "deactivate", 1)
	}
	return method, strings.NewReplacer("{id}", id, "{environment}", "en_halden_prod", "{assignment}", "as_jonas", "{token}", "at_ci", "{session}", "se_phone", "{act}", "revoke", "{section}", "pods", "{hash}", "0", "{path...}", "base.css", "{$}", "").Replace(path)
}

// table is the table of pages.
func table(t *testing.T) []route {
	t.Helper()
	return (&server{}).routes()
}

func TestStrangersAreSentToSignIn(t *testing.T) {
	s := serve(t, fake.Full(start), clocktest.New(start()), "")
	for _, rt := range table(t) {
		method, path := example(rt.pattern)
		a := s.do(s.request(method, path, nil))
		location := a.Header.Get("Location")
		toSignIn := a.StatusCode == http.StatusSeeOther && strings.HasPrefix(location, "/signin")
		if want := rt.need != needNothing; want != toSignIn && path != "/signout" {
			t.Errorf("%s needs %s: status %d to %q", rt.pattern, rt.need, a.StatusCode, location)
		}
		if rt.need == needNothing || method != http.MethodGet || path == "/" || strings.HasSuffix(path, "/events") {
			continue
		}
		if want := "/signin?next=" + url.QueryEscape(path); location != want {
			t.Errorf("%s: sent to %q, want %q", rt.pattern, location, want)
		}
	}
}

func TestNobodyWithoutThePermissionGetsIn(t *testing.T) {
	for _, rt := range table(t) {
		s := serve(t, fake.Full(start), clocktest.New(start()), fake.Nobody) // one of the routes signs out
		method, path := example(rt.pattern)
		a := s.do(s.request(method, path, nil))
		if refused := a.StatusCode == http.StatusForbidden; refused != access.Permission(rt.need).Known() {
			t.Errorf("%s needs %s: status %d", rt.pattern, rt.need, a.StatusCode)
		}
		if a.StatusCode == http.StatusForbidden && !strings.Contains(a.text, string(rt.need)) {
			t.Errorf("%s: the page does not name %s", rt.pattern, rt.need)
		}
	}
}

func TestHomeIsAPageThatOneMaySee(t *testing.T) {
	for who, want := range map[string]string{fake.Reader: "/clusters", fake.Nobody: "/profile"} {
		s := serve(t, fake.Full(start), clocktest.New(start()), who)
		if got := s.get("/", http.StatusSeeOther).Header.Get("Location"); got != want {
			t.Errorf("%s is sent to %s, want %s", who, got, want)
		}
		s.get(want, http.StatusOK)
	}
}

func TestEveryRouteNeedsSomethingThatExists(t *testing.T) {
	for _, rt := range table(t) {
		if rt.need != needNothing && rt.need != needSession && !access.Permission(rt.need).Known() {
			t.Errorf("%s needs %q, which is no permission", rt.pattern, rt.need)
		}
		if strings.HasPrefix(rt.pattern, "POST") && rt.need == need(access.HostsRead) {
			t.Errorf("%s changes something for a permission to read", rt.pattern)
		}
	}
}

func TestForeignRowsAreNotFound(t *testing.T) {
	s := serve(t, fake.Full(start), clocktest.New(start()), fake.Reader)
	s.get("/clusters/ck_halden", http.StatusOK)
	a := s.get("/clusters/ck_ostra_web", http.StatusNotFound)
	wantText(t, a.page, "Not found")
	if strings.Contains(a.text, "Ostra") {
		t.Error("the page names what is not theirs")
	}
}

func TestAddressesWithoutAPage(t *testing.T) {
	s := full(t)
	wantText(t, s.get("/nothing/here", http.StatusNotFound).page, "No page has this address.")
	wantText(t, s.get("/clusters/ck_ostra_web/secrets", http.StatusNotFound).page, "no page of this name")
	a := s.do(s.request(http.MethodDelete, "/clusters", nil))
	if a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("status %d, Allow %q", a.StatusCode, a.Header.Get("Allow"))
	}
	wantText(t, a.page, "does not take DELETE")
}

// TestFormsThatCannotBeRead are told so, and are not taken for empty ones.
func TestFormsThatCannotBeRead(t *testing.T) {
	for name, row := range map[string]struct {
		kind, body string
		status     int
		says       string
	}{
		"no boundary":        {"multipart/form-data", "--a", http.StatusBadRequest, "cannot be read"},
		"no part":            {"multipart/form-data; boundary=a", "nothing", http.StatusBadRequest, "cannot be read"},
		"cut off":            {"multipart/form-data; boundary=a", "--a\r\nContent-Disposition: form-data; name=\"email\"\r\n\r\nann", http.StatusBadRequest, "cannot be read"},
		"escape":             {"application/x-www-form-urlencoded", "email=%zz", http.StatusBadRequest, "cannot be read"},
		"too large":          {"application/x-www-form-urlencoded", "email=" + strings.Repeat("a", maxForm), http.StatusRequestEntityTooLarge, "64 KiB"},
		"too large in parts": {"multipart/form-data; boundary=a", "--a\r\nContent-Disposition: form-data; name=\"email\"\r\n\r\n" + strings.Repeat("a", maxForm) + "\r\n--a--", http.StatusRequestEntityTooLarge, "64 KiB"},
	} {
		s := serve(t, fake.Full(start), clocktest.New(start()), "")
		r := s.request(http.MethodPost, "/signin", strings.NewReader(row.body))
		r.Header.Set("Content-Type", row.kind)
		a := s.do(r)
		if a.StatusCode != row.status {
			t.Errorf("%s: status %d", name, a.StatusCode)
		}
		wantText(t, a.page, row.says)
	}
}

func TestHeaders(t *testing.T) {
	s := full(t)
	for _, path := range []string{"/clusters", "/signin", "/nothing", "/clusters/add/ob_waiting/install"} {
		h := s.do(s.request(http.MethodGet, path, nil)).Header
		policy := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: policy %q lacks %q", path, policy, want)
			}
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
}

func TestAssets(t *testing.T) {
	s := full(t)
	page := s.get("/clusters", http.StatusOK).page
	var addresses []string
	for _, n := range all(page, func(n *html.Node) bool { return n.Data == "link" || n.Data == "script" }) {
		addresses = append(addresses, attr(n, "href")+attr(n, "src"))
	}
	if len(addresses) < 5 {
		t.Fatalf("assets: %v", addresses)
	}
	for _, address := range addresses {
		a := s.get(address, http.StatusOK)
		if a.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s: Cache-Control %q", address, a.Header.Get("Cache-Control"))
		}
	}
	if a := s.get("/static/0000000000000000/base.css", http.StatusOK); a.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("another build's address is kept: %q", a.Header.Get("Cache-Control"))
	}
	css := s.get(strings.Replace(addresses[len(addresses)-1], "console.js", "base.css", 1), http.StatusOK).text
	for _, part := range strings.Split(css, `url("`)[1:] {
		file, _, _ := strings.Cut(part, `"`)
		if strings.HasPrefix(file, "data:") {
			t.Errorf("the content policy forbids %q", file)
			continue
		}
		s.get(strings.Replace(addresses[len(addresses)-1], "console.js", file, 1), http.StatusOK)
	}
}

// pagesToWalk are the pages of the full fleet.
func pagesToWalk() []string {
	return []string{
		"/clusters", "/clusters?q=zzz", "/clusters/add", "/clusters/add/ob_waiting", "/clusters/add/ob_failed", "/clusters/add/ob_new",
		"/clusters/add/ob_done", "/clusters/add/ob_abandoned", "/clusters/add/ob_archived", "/clusters/add/ob_waiting/install", "/clusters/add/ob_waiting/abandon",
		"/clusters/ck_ostra_web", "/clusters/ck_kivu_goma", "/clusters/ck_hostile", "/clusters/ck_young", "/clusters/ck_young/pods",
		"/clusters/ck_kivu_goma/identity/accept", "/clusters/ck_ostra_web/nodes", "/clusters/ck_ostra_web/namespaces", "/clusters/ck_ostra_web/workloads",
		"/clusters/ck_ostra_web/pods?page=2", "/clusters/ck_ostra_web/services", "/clusters/ck_ostra_web/events", "/clusters/ck_ostra_web/pods?q=zzz",
		"/clusters/ck_ostra_web/pods/object?kind=Pod&namespace=shop&name=checkout-api-7d9f8c6b5d-00000",
		"/clusters/ck_ostra_web/nodes/object?kind=Node&name=ostra-w-06", "/clusters/ck_ostra_web/workloads/object?kind=Deployment&namespace=shop&name=checkout-api",
		"/clusters/ck_ostra_web/services/object?kind=Service&namespace=shop&name=gateway", "/clusters/ck_ostra_web/events/object?kind=Event&namespace=shop&name=checkout.0",
		"/clusters/ck_ostra_web/namespaces/object?kind=Namespace&name=shop", "/hosts", "/hosts?type=host", "/profile",
		"/audit", "/audit?cursor=aud_49", "/audit?action=role_updated&actor=mira.okafor%40ostmark.example", "/audit?actor=nobody",
		"/audit?environment=en_ostra_prod&slug=ostra-web", "/audit?type=role&resource=rol_1", "/audit?from=2026-11-30&to=2026-11-30",
		"/agents", "/agents/ag_c", "/agents/ag_k", "/agents/ag_c/rotate", "/install-tokens", "/install-tokens?state=live", "/install-tokens?state=revoked", "/install-tokens/mint", "/install-tokens/tk_many/revoke", "/agents?slug=ostra-web&type=collector", "/agents?slug=zzz", "/agents?did=revoke", "/agents/ag_c/release", "/agents/ag_c/revoke", "/agents/ag_c/delete",
		"/clusters/ck_ostra_web/record/remove", "/settings",
		"/users", "/users?q=zzz", "/users?page=2", "/users/invite", "/users/us_admin", "/users/us_reader", "/users/us_nobody", "/users/us_left",
		"/users/us_reader/deactivate", "/users/us_left/activate", "/users/us_reader/password", "/users/us_reader/tokens/at_jonas/revoke",
		"/clients", "/clients?q=zzz", "/clients/add", "/clients/cl_ostra", "/clients/cl_ostra/delete", "/clients/cl_ostra/environments/en_ostra_prod",
		"/clients/cl_ostra/environments/en_ostra_prod/delete", "/clients/cl_halden/environments/en_halden_staging/delete",
	}
}

// TestEveryPage holds what is true of all of them: nothing inline, one head, labels, scopes, links
// that lead somewhere, and no markup out of a hostile name.
func TestEveryPage(t *testing.T) {
	s := full(t)
	seen := map[string]bool{}
	for _, path := range pagesToWalk() {
		t.Run(path, func(t *testing.T) {
			s.t = t
			a := s.get(path, http.StatusOK)
			checkMarkup(t, a)
			checkLabels(t, a)
			for _, n := range all(a.page, tag("a")) {
				href := attr(n, "href")
				if strings.HasPrefix(href, "#") {
					a.byID(t, href[1:])
					continue
				}
				if seen[href] || href == "" || strings.HasPrefix(href, "/api/") {
					continue
				}
				seen[href] = true
				if res := s.do(s.request(http.MethodGet, href, nil)); res.StatusCode >= 400 && !strings.Contains(href, "/object?") {
					t.Errorf("the link %q of %s leads to status %d", href, path, res.StatusCode)
				}
			}
		})
	}
}

func checkMarkup(t *testing.T, a answer) {
	t.Helper()
	ids := map[string]bool{}
	for _, n := range all(a.page, func(*html.Node) bool { return true }) {
		for _, at := range n.Attr {
			if strings.HasPrefix(at.Key, "on") || strings.HasPrefix(at.Key, "hx-on") || at.Key == "style" {
				t.Errorf("<%s> has the attribute %s", n.Data, at.Key)
			}
			if at.Key == "id" && ids[at.Val] {
				t.Errorf("two elements have the id %q", at.Val)
			}
			if at.Key == "id" {
				ids[at.Val] = true
			}
		}
		switch {
		case n.Data == "script" && n.FirstChild != nil, n.Data == "style", n.Data == "img":
			t.Errorf("<%s> within the page", n.Data)
		case n.Data == "th" && attr(n, "scope") == "":
			t.Errorf("the head %q has no scope", textOf(n))
		case n.Data == "time" && attr(n, "id") != "" && attr(n, "title") == "", n.Data == "time" && attr(n, "datetime") == "":
			t.Errorf("the time %q lacks its exact value", textOf(n))
		}
	}
	if heads := all(a.page, tag("h1")); len(heads) != 1 {
		t.Errorf("%d main heads", len(heads))
	}
}

func checkLabels(t *testing.T, a answer) {
	t.Helper()
	labelled := map[string]bool{}
	for _, n := range all(a.page, tag("label")) {
		labelled[attr(n, "for")] = true
	}
	for _, n := range all(a.page, func(n *html.Node) bool { return n.Data == "input" || n.Data == "select" || n.Data == "button" }) {
		inLabel := n.Parent != nil && n.Parent.Data == "label"
		switch {
		case attr(n, "type") == "hidden", has(n, "aria-hidden"), has(n, "aria-label"), inLabel:
		case n.Data == "button" && textOf(n) != "":
		case n.Data != "button" && labelled[attr(n, "id")]:
		default:
			t.Errorf("<%s name=%q> has no label", n.Data, attr(n, "name"))
		}
	}
	for _, n := range all(a.page, func(n *html.Node) bool { return has(n, "aria-describedby") || has(n, "aria-labelledby") }) {
		for id := range strings.FieldsSeq(attr(n, "aria-describedby") + " " + attr(n, "aria-labelledby")) {
			a.byID(t, id)
		}
	}
}
