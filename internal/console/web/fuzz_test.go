package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/console/web/internal/fake"
)

// FuzzPages sends any value of a path parameter, query, form and cookie to any page. No answer is a fault of
// console's own, none leads elsewhere, and none takes what was sent for markup.
func FuzzPages(f *testing.F) {
	routes := slices.DeleteFunc((&server{}).routes(), func(rt route) bool { return strings.HasSuffix(rt.pattern, "/events") }) // they go on
	const mark = `"'><fuzz onfuzz=1>`
	for i := range routes {
		f.Add(uint8(i), "", "page=2&sort=-name&q=a", "name=a&next=/clusters&client=cl_ostmark", "light", false)
		f.Add(uint8(i), mark, "q="+url.QueryEscape(mark)+"&page=999999&sort=x&namespace=%00&next=//evil.example", "displayName="+url.QueryEscape(mark)+"&email="+url.QueryEscape(mark)+"&next=%5C%5Cevil.example", mark, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, index uint8, value, query, form, theme string, partial bool) {
		rt := routes[int(index)%len(routes)]
		method, path := example(rt.pattern)
		if value != "" {
			_, path, _ = strings.Cut(rt.pattern, " ")
			for name := range strings.FieldsSeq("{id} {act} {section} {hash} {path...}") {
				path = strings.Replace(path, name, url.PathEscape(value), 1)
			}
			path = strings.Replace(path, "{$}", "", 1)
		}
		log := &strings.Builder{}
		handler, err := New(configuration(fake.Full(start), clocktest.New(start()), log))
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(fake.WithSession(t.Context(), &fake.Session{User: fake.Admin}), method, path, strings.NewReader(form))
		r.URL.RawQuery = query
		r.Header["Cookie"] = []string{themeCookie + "=" + theme}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if partial {
			r.Header.Set("Hx-Request", "true")
			r.Header["Hx-Current-Url"] = []string{value}
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError || log.Len() > 0 {
			t.Errorf("%s %s: status %d, the log says %s", method, r.URL, w.Code, log)
		}
		for _, name := range []string{"Location", "Hx-Redirect"} {
			if to := w.Header().Get(name); to != "" && !staysHere(to) {
				t.Errorf("%s %s leads to %q", method, r.URL, to)
			}
		}
		if w.Code/100 == 3 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			return
		}
		page, err := html.Parse(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(r.URL.Path, "/slug") { // it is a part of a page
			checkMarkup(t, answer{page: page})
		}
		for _, n := range all(page, func(n *html.Node) bool { return n.Data == "fuzz" || has(n, "onfuzz") }) {
			t.Errorf("%s %s: what was sent became <%s>", method, r.URL, n.Data)
		}
		for _, n := range all(page, func(n *html.Node) bool { return has(n, "href") || has(n, "hx-get") || has(n, "action") }) {
			for _, name := range []string{"href", "hx-get", "action"} {
				if to := attr(n, name); to != "" && to[0] != '#' && to[0] != '?' && !staysHere(to) {
					t.Errorf("%s %s: <%s %s=%q>", method, r.URL, n.Data, name, to)
				}
			}
		}
	})
}

// staysHere reads an address as a browser does: it drops control characters and takes backslashes for slashes.
func staysHere(address string) bool {
	address = strings.TrimLeftFunc(strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(address), func(r rune) bool { return r <= ' ' })
	return strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "//")
}

// FuzzLocalPath: the way back stays within console however a browser reads it, and is the same when it is asked
// for again.
func FuzzLocalPath(f *testing.F) {
	for _, seed := range []string{"", "/clusters?q=a%20b", "//evil.example", `/\evil.example`, "https://evil.example/", "/\t/evil.example", "/.//evil.example", "/%2f/evil.example", "/signin", "/a\r\nSet-Cookie: x", "/?next=//x", "/#//x", "/é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, next string) {
		got := localPath(next)
		if !staysHere(got) || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r == 0x7f }) || got != "/" && got != next {
			t.Errorf("localPath(%q) = %q", next, got)
		}
		if again := localPath(got); again != got {
			t.Errorf("localPath(%q) = %q", got, again)
		}
		w := httptest.NewRecorder()
		http.Redirect(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/signin", http.NoBody), got, http.StatusSeeOther)
		if to := w.Header().Get("Location"); !staysHere(to) {
			t.Errorf("%q redirects to %q", got, to)
		}
	})
}

// FuzzBaseline: what a browser says that it saw becomes states that exist, one for each gate, and never changes
// the track itself.
func FuzzBaseline(f *testing.F) {
	for _, seed := range []string{"", "passed,waiting", "failed,unknown", "x,passed", "<b>,\x00", "passed,passed,passed", ",", "passed"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seen string) {
		track := gate.Track{Gates: []gate.Gate{{State: gate.Passed}, {State: gate.Waiting}}}
		before := baseline(track, seen)
		if len(before.Gates) != 2 || track.Gates[0].State != gate.Passed || track.Gates[1].State != gate.Waiting {
			t.Fatalf("%q: %v before, now %v", seen, before, track)
		}
		for i, g := range before.Gates {
			said := strings.Split(seen, ",")
			if g.State != track.Gates[i].State && (len(said) != 2 || said[i] != string(g.State) || !slices.Contains(gate.States(), g.State)) {
				t.Errorf("%q makes gate %d %q", seen, i+1, g.State)
			}
		}
	})
}
