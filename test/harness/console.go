package harness

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"

	"prxm.uz/proxima/api/console"
)

// The administrator of every console that the harness starts.
const (
	AdminEmail    = "admin@proxima.test"
	AdminPassword = "correct horse battery staple"
)

// gateEvery is the pause between two looks at a gate: each look measures.
const gateEvery = 250 * time.Millisecond

// requestLimit bounds one request to a console.
const requestLimit = 30 * time.Second

// ConsoleOptions say how [StartConsole] starts a console. The zero value is a
// console without configuration: SQLite and an embedded NATS in a new directory.
type ConsoleOptions struct {
	// Program is the console; empty means the one that [BuildProduct] makes with
	// a test clock.
	Program string
	// DataDir holds what the console keeps; empty means a new directory that ends
	// with it.
	DataDir string
	// Env is added to what the harness gives: data directory, addresses, and the
	// administrator.
	Env map[string]string
	// Authority issues the certificate with which the console speaks TLS; nil
	// means plain HTTP.
	Authority *Authority
	// Log receives the progress of a build, Output a copy of the console's log;
	// nil means nobody.
	Log, Output io.Writer
}

// Console is a running console.
type Console struct {
	service

	// URL is the public URL, without a slash at its end.
	URL string
	// Email and Password are the administrator's.
	Email, Password string
	// DataDir is where the console keeps its state.
	DataDir string

	adminMu sync.Mutex
	admin   *API
}

// StartConsole starts a console on a free loopback port and returns when it is
// ready. End it by Stop.
func StartConsole(ctx context.Context, o ConsoleOptions) (*Console, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Program == "" {
		product, err := BuildProduct(ctx, o.Log, TestClock)
		if err != nil {
			return nil, err
		}
		o.Program = product.Console
	}
	c := &Console{}
	if err := c.start(ctx, o); err != nil {
		return nil, fmt.Errorf("start a console: %w", errors.Join(err, c.Stop()))
	}
	return c, nil
}

func (c *Console) start(ctx context.Context, o ConsoleOptions) error {
	if err := c.prepare("console", 2); err != nil {
		return err
	}
	if o.DataDir == "" {
		o.DataDir = filepath.Join(c.dir.Path, "data")
	}
	env := map[string]string{
		"PROXIMA_DATA_DIR":       o.DataDir,
		"PROXIMA_LISTEN_ADDR":    c.ports[0].Addr(),
		"PROXIMA_PUBLIC_URL":     "http://" + c.ports[0].Addr(),
		"PROXIMA_NATS_PORT":      fmt.Sprint(c.ports[1].Number),
		"PROXIMA_ADMIN_EMAIL":    AdminEmail,
		"PROXIMA_ADMIN_PASSWORD": AdminPassword,
	}
	if o.Authority != nil {
		if err := c.speakTLS(o.Authority, env); err != nil {
			return err
		}
	}
	maps.Copy(env, o.Env)
	c.URL = strings.TrimSuffix(env["PROXIMA_PUBLIC_URL"], "/")
	c.Email, c.Password, c.DataDir = env["PROXIMA_ADMIN_EMAIL"], env["PROXIMA_ADMIN_PASSWORD"], env["PROXIMA_DATA_DIR"]
	c.command = Command{
		Name: "proxima-console", Path: o.Program, Env: env, Output: o.Output,
		LogPath: filepath.Join(c.dir.Path, "console.log"),
	}
	c.ready = c.URL + "/readyz"
	return c.Start(ctx)
}

// speakTLS gives the console a certificate for loopback, and the harness trust in
// it.
func (c *Console) speakTLS(by *Authority, env map[string]string) error {
	cert, key, err := by.Server("console", "127.0.0.1", "localhost")
	if err != nil {
		return err
	}
	env["PROXIMA_TLS_CERT_FILE"], env["PROXIMA_TLS_KEY_FILE"] = cert, key
	env["PROXIMA_PUBLIC_URL"] = "https://" + c.ports[0].Addr()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}}
	transport.TLSClientConfig.RootCAs.AddCert(by.cert)
	c.client = &http.Client{Transport: transport}
	return nil
}

// From is a transport that names the address as a reverse proxy would, to a console that trusts loopback: agents
// call from one each, as in the field, and not all within the rate of one.
type From string

// RoundTrip implements [http.RoundTripper].
func (f From) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", string(f))
	return http.DefaultTransport.RoundTrip(r)
}

// API is the HTTP API as one principal sees it.
type API struct {
	// URL is the console's.
	URL string
	// Token is sent as bearer; empty sends none.
	Token string

	client *http.Client
}

// ProblemError is an answer of 400 or above.
type ProblemError struct {
	Request string
	Status  int
	// Problem is zero where the body is none.
	Problem console.Problem
	Body    string
}

// Error tells the request, the status and what the console said.
func (e *ProblemError) Error() string {
	return fmt.Sprintf("%s: status %d: %s", e.Request, e.Status, strings.TrimSpace(e.Body))
}

// API returns the API for the bearer of a token, or for nobody where it is empty.
func (c *Console) API(token string) *API {
	return &API{URL: c.URL, Token: token, client: &http.Client{Transport: c.client.Transport, Timeout: requestLimit, CheckRedirect: noRedirect}}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Do sends body as JSON, unless it is nil, and decodes the answer into out, unless
// that is nil. Path begins with a slash. An answer of 400 or above is a
// [*ProblemError].
func (a *API) Do(ctx context.Context, method, path string, body, out any) (status int, err error) {
	var content io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, fmt.Errorf("%s %s: %w", method, path, err)
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.URL+path, content)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.Token != "" {
		req.Header.Set("Authorization", "Bearer "+a.Token)
	}
	res, err := a.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if res.StatusCode >= http.StatusBadRequest {
		problem := &ProblemError{Request: method + " " + path, Status: res.StatusCode, Body: string(text)}
		if json.Unmarshal(text, &problem.Problem) != nil {
			problem.Problem = console.Problem{}
		}
		return res.StatusCode, problem
	}
	if out == nil || len(text) == 0 {
		return res.StatusCode, nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return res.StatusCode, fmt.Errorf("%s %s: decode the answer: %w: %s", method, path, err, text)
	}
	return res.StatusCode, nil
}

// Send sends a request as it is given and returns the answer's status and body,
// whatever they are.
func (a *API) Send(ctx context.Context, method, path string, header http.Header, body io.Reader) (status int, answer string, err error) {
	res, err := a.send(ctx, a.client, method, path, header, body)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// Stream opens a stream of events. The caller closes it; ctx ends it too.
func (a *API) Stream(ctx context.Context, path string) (io.ReadCloser, error) {
	endless := *a.client
	endless.Timeout = 0
	res, err := a.send(ctx, &endless, http.MethodGet, path, http.Header{"Accept": {"text/event-stream"}}, http.NoBody)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("GET %s: %s", path, res.Status), res.Body.Close())
	}
	return res.Body, nil
}

func (a *API) send(ctx context.Context, client *http.Client, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.URL+path, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	if a.Token != "" {
		req.Header.Set("Authorization", "Bearer "+a.Token)
	}
	return client.Do(req)
}

// Do is [API.Do] as the administrator, by an API token that is minted at the first
// call.
func (c *Console) Do(ctx context.Context, method, path string, body, out any) (status int, err error) {
	admin, err := c.adminAPI(ctx)
	if err != nil {
		return 0, err
	}
	return admin.Do(ctx, method, path, body, out)
}

// APIToken returns the administrator's API token, minted at the first call.
func (c *Console) APIToken(ctx context.Context) (string, error) {
	admin, err := c.adminAPI(ctx)
	if err != nil {
		return "", err
	}
	return admin.Token, nil
}

func (c *Console) adminAPI(ctx context.Context) (*API, error) {
	c.adminMu.Lock()
	defer c.adminMu.Unlock()
	if c.admin != nil {
		return c.admin, nil
	}
	session, err := c.Login(ctx, c.Email, c.Password)
	if err != nil {
		return nil, err
	}
	var minted console.APITokenMinted
	if _, err := session.Do(ctx, http.MethodPost, "/api/v1/api-tokens", console.APITokenInput{Name: "test harness"}, &minted); err != nil {
		return nil, fmt.Errorf("mint an API token: %w", err)
	}
	c.admin = c.API(minted.Token)
	return c.admin, nil
}

// Metrics reads what the console says of itself, as the administrator: by name, with the labels as they are
// written.
func (c *Console) Metrics(ctx context.Context) (map[string]float64, error) {
	token, err := c.APIToken(ctx)
	if err != nil {
		return nil, err
	}
	status, text, err := c.API(token).Send(ctx, http.MethodGet, "/metrics", nil, http.NoBody)
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("metrics: status %d, %w", status, err)
	}
	return parseMetrics(text)
}

// Login is [SignIn] at this console.
func (c *Console) Login(ctx context.Context, email, password string) (*API, error) {
	return SignIn(ctx, c.client.Transport, c.URL, email, password)
}

// SignIn signs in as a browser without script does: it opens the first page, fills
// the form with the password field and submits it. The API that it returns acts
// by the session. A nil transport is Go's own.
func SignIn(ctx context.Context, transport http.RoundTripper, consoleURL, email, password string) (*API, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	a := &API{URL: consoleURL, client: &http.Client{Transport: transport, Timeout: requestLimit, Jar: jar}}
	page, at, err := a.page(ctx, consoleURL+"/", nil)
	if err != nil {
		return nil, fmt.Errorf("open the sign-in page: %w", err)
	}
	form, err := findSignIn(page, email, password)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	target, err := at.Parse(form.action)
	if err != nil {
		return nil, fmt.Errorf("%s: the form's action %q: %w", at, form.action, err)
	}
	if _, _, err = a.page(ctx, target.String(), form.fields); err != nil {
		return nil, fmt.Errorf("sign in as %s: %w", email, err)
	}
	if _, err := a.Do(ctx, http.MethodGet, "/api/v1/session", nil, nil); err != nil {
		return nil, fmt.Errorf("sign in as %s: %w", email, err)
	}
	return a, nil
}

// page gets a page, or posts the fields where there are any, and follows
// redirects. It returns where it ended.
func (a *API) page(ctx context.Context, address string, fields url.Values) (*html.Node, *url.URL, error) {
	method, content := http.MethodGet, io.Reader(http.NoBody)
	if fields != nil {
		method, content = http.MethodPost, strings.NewReader(fields.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, nil, err
	}
	if fields != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", a.URL)
	}
	req.Header.Set("Accept", "text/html")
	res, err := a.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(res.Body, 4096))
		return nil, nil, errors.Join(fmt.Errorf("%s %s: %s: %s", method, address, res.Status, text), err)
	}
	page, err := html.Parse(res.Body)
	return page, res.Request.URL, err
}

// signIn is the form that a user fills.
type signIn struct {
	action string
	fields url.Values
}

// findSignIn returns the first form with a password field, filled.
func findSignIn(page *html.Node, email, password string) (signIn, error) {
	for node := range page.Descendants() {
		if node.Type != html.ElementNode || node.Data != "form" {
			continue
		}
		form := signIn{action: attribute(node, "action"), fields: url.Values{}}
		found := false
		for input := range node.Descendants() {
			if input.Type != html.ElementNode || input.Data != "input" || attribute(input, "name") == "" {
				continue
			}
			value := attribute(input, "value")
			switch attribute(input, "type") {
			case "password":
				value, found = password, true
			case "email", "text", "":
				value = email
			case "checkbox", "submit":
				continue
			}
			form.fields.Set(attribute(input, "name"), value)
		}
		if found {
			return form, nil
		}
	}
	return signIn{}, errors.New("no form with a password field on this page")
}

func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// Status measures an attempt, as the administrator.
func (c *Console) Status(ctx context.Context, onboardingID string) (console.OnboardingStatus, error) {
	var status console.OnboardingStatus
	_, err := c.Do(ctx, http.MethodGet, "/api/v1/cluster-onboarding/"+url.PathEscape(onboardingID)+"/status", nil, &status)
	return status, err
}

// AwaitGate polls an attempt until the gate with that number is in that state, and
// returns it. The error of a wait in vain tells what the gate said last.
func (c *Console) AwaitGate(ctx context.Context, onboardingID string, number int, state console.GateState) (console.Gate, error) {
	var gate console.Gate
	what := fmt.Sprintf("gate %d to be %s", number, state)
	err := awaitWith(ctx, gateEvery, what, func(ctx context.Context) error {
		status, err := c.Status(ctx, onboardingID)
		if err != nil {
			return err
		}
		for _, g := range append(status.Inventory.Gates, status.Access.Gates...) {
			if g.Number != number {
				continue
			}
			if gate = g; g.State != state {
				return fmt.Errorf("it is %s: %s", g.State, g.Sentence)
			}
			return nil
		}
		return errors.New("there is no such gate")
	}, c.Process())
	return gate, err
}
