package console

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/access/session"
	"prxm.uz/proxima/internal/console/audit/trail"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/health"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/natsauth"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/store"
	"prxm.uz/proxima/internal/console/tenancy"
	"prxm.uz/proxima/internal/console/web"
	"prxm.uz/proxima/internal/wire"
)

// examples answers, for each pattern of the table of pages, an address that names rows of acme's prod, and the form
// that goes there. A page that is added to the table is added here.
func (w *world) examples() map[string]example {
	attempt, cluster, agent, person, role := "/clusters/add/"+w.attempt, "/clusters/cl1", "/agents/ag1/revoke", "/users/"+w.someone, "/roles/"+w.spare
	client, environment := "/clients/"+w.acme.ID, "/clients/"+w.acme.ID+"/environments/"+w.prod.ID
	return map[string]example{
		"GET /static/{hash}/{path...}":        {path: "/static/0/base.css"},
		"GET /favicon.ico":                    {path: "/favicon.ico"},
		"GET /signin":                         {path: "/signin"},
		"POST /signin":                        {path: "/signin"},
		"POST /signout":                       {path: "/signout"},
		"POST /theme":                         {path: "/theme", form: url.Values{"theme": {"dark"}}},
		"GET /{$}":                            {path: "/"},
		"GET /profile":                        {path: "/profile"},
		"POST /profile/password":              {path: "/profile/password"},
		"GET /start":                          {path: "/start"},
		"POST /start":                         {path: "/start"},
		"GET /clusters":                       {path: "/clusters"},
		"GET /clusters/add":                   {path: "/clusters/add"},
		"POST /clusters/add":                  {path: "/clusters/add", form: url.Values{"client": {w.acme.ID}, "environment": {w.prod.ID}, "name": {"Another"}}},
		"GET /clusters/add/slug":              {path: "/clusters/add/slug?name=Another&client=" + w.acme.ID + "&environment=" + w.prod.ID},
		"GET /clusters/add/{id}":              {path: attempt},
		"GET /clusters/add/{id}/events":       {path: attempt + "/events"},
		"GET /clusters/add/{id}/install":      {path: attempt + "/install"},
		"POST /clusters/add/{id}/token":       {path: attempt + "/token"},
		"GET /clusters/add/{id}/abandon":      {path: attempt + "/abandon"},
		"POST /clusters/add/{id}/abandon":     {path: attempt + "/abandon"},
		"GET /clusters/{id}":                  {path: cluster},
		"GET /clusters/{id}/{section}":        {path: cluster + "/nodes"},
		"GET /clusters/{id}/{section}/object": {path: cluster + "/nodes/object?kind=Node&name=quagga-node"},
		"GET /clusters/{id}/identity/accept":  {path: cluster + "/identity/accept"},
		"POST /clusters/{id}/identity/accept": {path: cluster + "/identity/accept", form: url.Values{"uid": {"other"}, "confirm": {"quagga"}}},
		"GET /clusters/{id}/record/remove":    {path: cluster + "/record/remove"},
		"POST /clusters/{id}/record/remove":   {path: cluster + "/record/remove", form: url.Values{"confirm": {"quagga"}}},
		"GET /hosts":                          {path: "/hosts"},
		"GET /agents":                         {path: "/agents"},
		"GET /clients":                        {path: "/clients"},
		"GET /clients/add":                    {path: "/clients/add"},
		"POST /clients/add":                   {path: "/clients/add", form: url.Values{"name": {"Another client"}}},
		"GET /clients/{id}":                   {path: client},
		"POST /clients/{id}/rename":           {path: client + "/rename", form: url.Values{"name": {"Heron"}}},
		"GET /clients/{id}/delete":            {path: client + "/delete"},
		"POST /clients/{id}/delete":           {path: client + "/delete"},
		"POST /clients/{id}/environments":     {path: client + "/environments", form: url.Values{"name": {"another"}}},

		"GET /clients/{id}/environments/{environment}":         {path: environment},
		"POST /clients/{id}/environments/{environment}":        {path: environment, form: url.Values{"name": {"gecko"}}},
		"GET /clients/{id}/environments/{environment}/delete":  {path: environment + "/delete"},
		"POST /clients/{id}/environments/{environment}/delete": {path: environment + "/delete"},

		"GET /audit":                       {path: "/audit"},
		"GET /agents/{id}":                 {path: "/agents/ag1"},
		"GET /agents/{id}/{act}":           {path: agent},
		"POST /agents/{id}/{act}":          {path: agent},
		"GET /install-tokens":              {path: "/install-tokens"},
		"GET /install-tokens/mint":         {path: "/install-tokens/mint"},
		"POST /install-tokens/mint":        {path: "/install-tokens/mint", form: url.Values{"environment": {w.prod.ID}, "uses": {"one"}, "hours": {"24"}}},
		"GET /install-tokens/{id}/revoke":  {path: "/install-tokens/" + w.token + "/revoke"},
		"POST /install-tokens/{id}/revoke": {path: "/install-tokens/" + w.token + "/revoke"},
		"GET /settings":                    {path: "/settings"},

		"GET /roles":              {path: "/roles"},
		"GET /roles/add":          {path: "/roles/add"},
		"POST /roles/add":         {path: "/roles/add", form: url.Values{"name": {"made"}, "may": {"hosts:read"}}},
		"GET /roles/{id}":         {path: role},
		"POST /roles/{id}":        {path: role, form: url.Values{"name": {"renamed"}, "may": {"hosts:read"}}},
		"GET /roles/{id}/delete":  {path: role + "/delete"},
		"POST /roles/{id}/delete": {path: role + "/delete"},

		"POST /profile/tokens":                 {path: "/profile/tokens", form: url.Values{"token-name": {"made"}, "ends": {"30"}}},
		"GET /profile/tokens/{token}/revoke":   {path: "/profile/tokens/" + w.own + "/revoke"},
		"POST /profile/tokens/{token}/revoke":  {path: "/profile/tokens/" + w.own + "/revoke"},
		"POST /profile/sessions/end-others":    {path: "/profile/sessions/end-others"},
		"POST /profile/sessions/{session}/end": {path: "/profile/sessions/ses_none/end"},

		"GET /users/service-account":                 {path: "/users/service-account"},
		"POST /users/service-account":                {path: "/users/service-account", form: url.Values{"name": {"made"}}},
		"POST /users/{id}/tokens":                    {path: person + "/tokens", form: url.Values{"token-name": {"made"}, "ends": {"30"}}},
		"GET /users":                                 {path: "/users"},
		"GET /users/invite":                          {path: "/users/invite"},
		"POST /users/invite":                         {path: "/users/invite", form: url.Values{"email": {"invited@example.com"}, "name": {"Invited"}}},
		"GET /users/{id}":                            {path: person},
		"POST /users/{id}/name":                      {path: person + "/name", form: url.Values{"name": {"Renamed"}}},
		"POST /users/{id}/roles":                     {path: person + "/roles", form: url.Values{"role": {w.reads.ID}}},
		"POST /users/{id}/roles/{assignment}/remove": {path: person + "/roles/" + w.assigned + "/remove"},
		"GET /users/{id}/tokens/{token}/revoke":      {path: person + "/tokens/" + w.apiToken + "/revoke"},
		"POST /users/{id}/tokens/{token}/revoke":     {path: person + "/tokens/" + w.apiToken + "/revoke"},
		"GET /users/{id}/{act}":                      {path: person + "/deactivate"},
		"POST /users/{id}/{act}":                     {path: person + "/deactivate"},
	}
}

type example struct {
	path string
	form url.Values
}

// foreign are texts of acme's prod, none of which anybody without access to it may read.
func foreign() []string { return []string{"Quagga", "quagga-node", "okapi", "Heron", "gecko"} }

// world is the whole handler of console on a real SQLite store: the clients acme (environments prod and test) and
// zeta, and in acme's prod a cluster with a node, an agent and an attempt.
type world struct {
	t          testing.TB
	clock      *clocktest.Manual
	console    *console
	handler    http.Handler
	admin      access.Principal
	acme, zeta tenancy.Client
	prod, test tenancy.Environment
	attempt    string
	token      string // of the attempt
	// someone holds assigned, and apiToken.
	someone, assigned, apiToken string
	own, ownPlain               string // an API token of the caller
	bearer                      string // sent with requests of the API
	spare                       string // a role that nobody holds
	reads, writes               tenancy.Role
}

const worldPassword = "correct horse battery"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newWorld(t *testing.T, publicURL string) *world {
	t.Helper()
	return newWorldOn(t, publicURL, store.Config{Path: filepath.Join(t.TempDir(), "proxima.db")})
}

func newWorldOn(t testing.TB, publicURL string, cfg store.Config) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{t: t, clock: clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	log := slog.New(slog.DiscardHandler)
	cfg.Clock = w.clock
	db, err := store.Open(ctx, cfg)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	hasher, err := access.NewHasher(access.Cost{MemoryKiB: 64, Iterations: 1, Parallelism: 1})
	must(t, err)
	keys, err := natsauth.LoadOrCreate(t.TempDir())
	must(t, err)
	authority, err := natsauth.New(keys, 0)
	must(t, err)
	w.console = &console{
		cfg: &Config{SyncInterval: 5 * time.Minute}, clock: w.clock, log: log, publicURL: publicURL, db: db,
		access:     access.New(db.Access(), hasher, w.clock, log),
		sessions:   session.New(db.Access(), session.Options{Secure: strings.HasPrefix(publicURL, "https:"), Clock: w.clock, Logger: log}),
		tenancy:    tenancy.New(db.Tenancy(), hasher, w.clock),
		trail:      trail.New(trail.Config{Store: db.Audit(), Clock: w.clock, Logger: log, Retention: 365 * 24 * time.Hour}),
		fleet:      fleet.New(fleet.Config{Store: db.Fleet(), Revoker: noRevoker{}, Commander: noRevoker{}, Clock: w.clock, Logger: log}),
		enrollment: enrollment.New(enrollment.Config{Store: db.Enrollment(), Authority: authority, Fleet: db.Fleet(), Clock: w.clock, Logger: log}),
		inventory:  inventory.New(inventory.Config{Store: db.Inventory(), Agents: db.Fleet(), Clock: w.clock, Logger: log}),
		onboarding: onboarding.New(onboarding.Config{
			Store: db.Onboarding(), Environments: db.Enrollment(), Clock: w.clock, Logger: log, PublicURL: publicURL, SyncInterval: 5 * time.Minute,
		}),
	}
	w.console.health = health.New(health.Config{Database: db, NATS: noNATS{}, SyncInterval: 5 * time.Minute, Clock: w.clock, Logger: log})
	w.handler, err = w.console.handler()
	must(t, err)
	w.fill(ctx)
	return w
}

func (w *world) fill(ctx context.Context) {
	t, people := w.t, w.console.tenancy
	_, err := people.EnsureAdministrator(ctx, "root@example.com", worldPassword)
	must(t, err)
	w.admin, err = w.console.access.SignIn(ctx, "root@example.com", worldPassword, "192.0.2.1:1")
	must(t, err)
	w.acme, err = people.CreateClient(ctx, w.admin, "Heron")
	must(t, err)
	w.zeta, err = people.CreateClient(ctx, w.admin, "Zeta")
	must(t, err)
	w.prod, err = people.CreateEnvironment(ctx, w.admin, w.acme.ID, "gecko")
	must(t, err)
	w.test, err = people.CreateEnvironment(ctx, w.admin, w.acme.ID, "test")
	must(t, err)
	_, err = people.CreateEnvironment(ctx, w.admin, w.zeta.ID, "prod")
	must(t, err)
	var reading []access.Permission
	for _, p := range access.Permissions() {
		if strings.HasSuffix(string(p), ":read") {
			reading = append(reading, p)
		}
	}
	w.reads, err = people.CreateRole(ctx, w.admin, "reads", reading)
	must(t, err)
	w.writes, err = people.CreateRole(ctx, w.admin, "writes", access.Permissions())
	must(t, err)
	spare, err := people.CreateRole(ctx, w.admin, "spare", []access.Permission{access.HostsRead})
	must(t, err)
	w.spare = spare.ID
	recorded, err := w.console.onboarding.Record(ctx, w.admin, w.acme.ID, w.prod.ID, "okapi")
	must(t, err)
	w.attempt, w.token = recorded.Attempt.ID, recorded.Token.ID
	someone, err := people.CreateUser(ctx, w.admin, "someone@example.com", "Someone", worldPassword)
	must(t, err)
	assigned, err := people.Assign(ctx, w.admin, someone.ID, w.reads.ID, access.Scope{ClientID: w.acme.ID})
	must(t, err)
	holder, err := w.console.access.Principal(ctx, someone.ID)
	must(t, err)
	apiToken, _, err := w.console.access.MintAPIToken(ctx, holder, "pipeline", 0)
	must(t, err)
	w.someone, w.assigned, w.apiToken = someone.ID, assigned.ID, apiToken.ID

	now := w.clock.Now()
	must(t, w.console.db.Enrollment().InTx(ctx, func(tx enrollment.Tx) error {
		return tx.InsertAgent(ctx, fleet.Agent{
			ID: "ag1", ClientID: w.acme.ID, EnvironmentID: w.prod.ID, Type: fleet.TypeCollector, ClusterSlug: "quagga", Name: "Quagga agent", PublicKey: "UA",
			EnrolledAt: now, Version: "1", Capability: 1, Template: 1, CredentialIssuedAt: now, CredentialExpiresAt: now.Add(time.Hour),
		})
	}))
	must(t, w.console.db.Inventory().InTx(ctx, func(tx inventory.Tx) error {
		c := inventory.Cluster{
			ID: "cl1", ClientID: w.acme.ID, EnvironmentID: w.prod.ID, Slug: "quagga", Name: "Quagga", UID: "uid", AgentID: "ag1", Epoch: 1, Sync: 1,
			FirstSyncAt: now, LastSyncAt: now, CollectedAt: now, Conflict: inventory.Conflict{UID: "other", AgentID: "ag1", FirstSeenAt: now, SeenAt: now},
		}
		if err := tx.InsertCluster(ctx, c); err != nil {
			return err
		}
		return tx.ApplyObjects(ctx, inventory.Change{ClusterID: "cl1", Upsert: []inventory.Object{
			{Key: inventory.Key{Section: "nodes", Kind: "Node", Name: "quagga-node"}, UID: "n", State: "Ready", At: now, Body: []byte(`{"name":"quagga-node"}`)},
		}})
	}))
}

type noRevoker struct{}

func (noRevoker) Revoke(context.Context, string) error { return nil }

func (noRevoker) Command(context.Context, string, wire.Command) (wire.CommandReply, error) {
	return wire.CommandReply{}, fleet.ErrNoResponder
}

// person makes a user with a role on a scope (none where roleID is "").
func (w *world) person(name, roleID string, scope access.Scope) string {
	w.t.Helper()
	email := strings.ReplaceAll(name, " ", "") + "@example.com"
	u, err := w.console.tenancy.CreateUser(w.t.Context(), w.admin, email, "A person", worldPassword)
	must(w.t, err)
	if roleID != "" {
		_, err = w.console.tenancy.Assign(w.t.Context(), w.admin, u.ID, roleID, scope)
		must(w.t, err)
	}
	return email
}

// signIn answers the cookies of a new session; none where email is "".
func (w *world) signIn(email string) []*http.Cookie {
	w.t.Helper()
	if email == "" {
		return nil
	}
	answer := w.ask(nil, http.MethodPost, example{path: "/signin", form: url.Values{"email": {email}, "password": {worldPassword}}})
	if answer.Code != http.StatusSeeOther {
		w.t.Fatalf("%s is not signed in: %d", email, answer.Code)
	}
	return answer.Result().Cookies()
}

// ask sends one request. A stream is left at its first bytes.
func (w *world) ask(cookies []*http.Cookie, method string, e example) *httptest.ResponseRecorder {
	w.t.Helper()
	ctx, leave := context.WithCancel(w.t.Context())
	defer leave()
	var body io.Reader = http.NoBody
	if method == http.MethodPost {
		body = strings.NewReader(e.form.Encode())
	}
	r := httptest.NewRequestWithContext(ctx, method, e.path, body)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if strings.HasPrefix(w.console.publicURL, "https:") {
		r.TLS = &tls.ConnectionState{}
	}
	if strings.HasPrefix(e.path, "/api/") && w.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+w.bearer)
		cookies = nil
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	answer := &glance{ResponseRecorder: httptest.NewRecorder(), leave: func() {}}
	if strings.HasSuffix(r.URL.Path, "/events") {
		answer.leave = leave
	}
	w.handler.ServeHTTP(answer, r)
	return answer.ResponseRecorder
}

// glance takes the first bytes of an answer and then leaves.
type glance struct {
	*httptest.ResponseRecorder

	leave func()
}

func (g *glance) Write(b []byte) (int, error) {
	defer g.leave()
	return g.ResponseRecorder.Write(b)
}

// SetWriteDeadline is asked for by streams.
func (*glance) SetWriteDeadline(time.Time) error { return nil }

// The callers, from the least to the most.
const (
	anonymous   = "anonymous"
	ended       = "ended session"
	noRole      = "no role"
	otherClient = "other client"
	otherEnv    = "other environment"
	reader      = "read"
	writer      = "write on the client"
	root        = "administrator"
)

// admitted stands for any answer that is neither a refusal nor a fault; of a page, it was found.
const admitted = 0

// due is the status that a caller has to get.
func due(rule web.Rule, caller string) int {
	stranger := caller == anonymous || caller == ended
	switch {
	case rule.Permission == "public":
		return admitted
	case stranger:
		return http.StatusSeeOther
	case rule.Permission == "session":
		return admitted
	case caller == noRole,
		caller == reader && strings.HasSuffix(rule.Permission, ":write"),
		rule.Scope == "console" && (caller == otherClient || caller == otherEnv || caller == writer):
		return http.StatusForbidden
	case rule.Scope == "client" && caller == otherEnv && strings.HasSuffix(rule.Permission, ":write"):
		return http.StatusForbidden
	case rule.Scope == "client" && caller == otherClient, rule.Scope == "row" && (caller == otherClient || caller == otherEnv):
		return http.StatusNotFound
	}
	return admitted
}

// TestPageMatrix walks the table of pages with eight callers. A page without an example or without a scope fails.
func TestPageMatrix(t *testing.T) {
	for _, caller := range []string{anonymous, ended, noRole, otherClient, otherEnv, reader, writer, root} {
		t.Run(caller, func(t *testing.T) {
			w := newWorld(t, "http://console.example")
			email := ""
			switch caller {
			case ended, root:
				email = "root@example.com"
			case noRole:
				email = w.person(caller, "", access.Scope{})
			case otherClient:
				email = w.person(caller, w.writes.ID, access.Scope{ClientID: w.zeta.ID})
			case otherEnv:
				email = w.person(caller, w.writes.ID, access.Scope{ClientID: w.acme.ID, EnvironmentID: w.test.ID})
			case reader:
				email = w.person(caller, w.reads.ID, access.Scope{})
			case writer:
				email = w.person(caller, w.writes.ID, access.Scope{ClientID: w.acme.ID})
			}
			w.walk(caller, email)
		})
	}
}

// walk asks for every page first, and sends every form after.
func (w *world) walk(caller, email string) {
	w.ownToken(email)
	rules, examples := web.Matrix(), w.examples()
	slices.SortStableFunc(rules, func(a, b web.Rule) int { return strings.Compare(a.Method, b.Method) })
	for _, rule := range rules {
		name := rule.Method + " " + rule.Path
		e, there := examples[name]
		if !there {
			w.t.Errorf("%s has no example: add one to examples", name)
			continue
		}
		if _, known := map[string]bool{"console": true, "client": true, "row": true, "list": true}[rule.Scope]; known != access.Permission(rule.Permission).Known() {
			w.t.Errorf("%s: scope %q does not go with %q", name, rule.Scope, rule.Permission)
		}
		cookies := w.signIn(email) // anew, for one of the routes signs out
		if caller == ended {
			w.clock.Advance(session.Lifetime + time.Minute)
		}
		answer := w.ask(cookies, rule.Method, e)
		w.judge(rule, caller, e, answer)
	}
}

// ownToken mints an API token of the caller.
func (w *world) ownToken(email string) {
	w.own = "apt_none"
	if email == "" {
		return
	}
	p, err := w.console.access.SignIn(w.t.Context(), email, worldPassword, "192.0.2.1:1")
	must(w.t, err)
	token, plain, err := w.console.access.MintAPIToken(w.t.Context(), p, "own", 0)
	must(w.t, err)
	w.own, w.ownPlain = token.ID, plain
}

func (w *world) judge(rule web.Rule, caller string, e example, answer *httptest.ResponseRecorder) {
	w.t.Helper()
	name, want, got := rule.Method+" "+rule.Path, due(rule, caller), answer.Code
	location := answer.Header().Get("Location")
	toSignIn := got == http.StatusSeeOther && strings.HasPrefix(location, "/signin")
	ok := got == want
	if want == admitted {
		refused := got == http.StatusForbidden || got == http.StatusUnauthorized && rule.Permission != "public" || toSignIn && rule.Path != "/signout"
		ok = !refused && got < 500 && (rule.Method != http.MethodGet || got != http.StatusNotFound)
	}
	if want == http.StatusSeeOther {
		ok = toSignIn
	}
	if !ok {
		w.t.Errorf("%s (%s on %q) answers %d to %q, want %d", name, rule.Permission, rule.Scope, got, location, want)
	}
	if caller == reader || caller == writer || caller == root {
		return
	}
	said := answer.Body.String() + location
	for _, text := range foreign() {
		if caller == otherEnv && text == "Heron" || strings.Contains(e.path, text) { // their own client; what they wrote themselves
			continue
		}
		if strings.Contains(said, text) {
			w.t.Errorf("%s shows %q", name, text)
		}
	}
}
