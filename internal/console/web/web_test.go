package web

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/web/internal/fake"
)

// start is where the clock of every test stands.
func start() time.Time { return time.Date(2026, 11, 30, 14, 32, 8, 0, time.UTC) }

// site is a served console over an invented world, and one browser before it.
type site struct {
	t       *testing.T
	world   *fake.World
	server  *httptest.Server
	client  *http.Client
	session *fake.Session
	log     *strings.Builder
}

func configuration(world *fake.World, c clock.Clock, log io.Writer) Config {
	return Config{
		Sessions: fake.Sessions{}, Access: fake.Access{World: world}, Tenancy: fake.Tenancy{World: world}, People: fake.People{World: world}, Onboarding: fake.Onboarding{World: world},
		Inventory: fake.Inventory{World: world}, Fleet: fake.Fleet{World: world}, Enrollment: fake.Enrollment{World: world}, Template: 1, Audit: fake.Audit{World: world}, Health: fake.Health{World: world}, Clock: c, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Version: "0.9.2", PublicURL: "https://console.ostmark.example", SyncInterval: 5 * time.Minute,
	}
}

// serve opens a site as the given user; "" for a stranger. The browser follows no redirect.
func serve(t *testing.T, world *fake.World, c clock.Clock, user string) *site {
	t.Helper()
	s := &site{t: t, world: world, session: &fake.Session{User: user}, log: &strings.Builder{}}
	handler, err := New(configuration(world, c, s.log))
	if err != nil {
		t.Fatal(err)
	}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(fake.WithSession(r.Context(), s.session)))
	}))
	t.Cleanup(s.server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.client = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

// full opens the invented fleet as its administrator.
func full(t *testing.T) *site {
	t.Helper()
	return serve(t, fake.Full(start), clocktest.New(start()), fake.Admin)
}

// answer is a response with its text and, where it is a page, the parsed page.
type answer struct {
	*http.Response
	text string
	page *html.Node
}

func (s *site) do(r *http.Request) answer {
	s.t.Helper()
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	page, err := html.Parse(strings.NewReader(string(b)))
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res, string(b), page}
}

func (s *site) request(method, path string, body io.Reader) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// get asks for a page and expects the status.
func (s *site) get(path string, status int) answer {
	s.t.Helper()
	a := s.do(s.request(http.MethodGet, path, nil))
	if a.StatusCode != status {
		s.t.Fatalf("GET %s: status %d, want %d\n%s", path, a.StatusCode, status, a.text)
	}
	return a
}

// post sends a form and expects the status.
func (s *site) post(path string, form url.Values, status int) answer {
	s.t.Helper()
	r := s.request(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	a := s.do(r)
	if a.StatusCode != status {
		s.t.Fatalf("POST %s: status %d, want %d\n%s", path, a.StatusCode, status, a.text)
	}
	return a
}

// all finds the elements that match.
func all(root *html.Node, match func(*html.Node) bool) []*html.Node {
	var out []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && match(n) {
			out = append(out, n)
		}
	}
	return out
}

func tag(name string) func(*html.Node) bool { return func(n *html.Node) bool { return n.Data == name } }

// attr is the value of an attribute, "" without it.
func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// byID finds the element with an id; the test fails where there is none.
func (a answer) byID(t *testing.T, id string) *html.Node {
	t.Helper()
	found := all(a.page, func(n *html.Node) bool { return attr(n, "id") == id })
	if len(found) != 1 {
		t.Fatalf("%d elements with the id %q\n%s", len(found), id, a.text)
	}
	return found[0]
}

// textOf joins what an element says, white space made single.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func wantText(t *testing.T, n *html.Node, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if text := textOf(n); !strings.Contains(text, p) {
			t.Errorf("%q is not in: %s", p, text)
		}
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	c := configuration(fake.Empty(start), clocktest.New(start()), io.Discard)
	c.Fleet = nil
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "Config.Fleet") {
		t.Errorf("error %v does not name Fleet", err)
	}
}
