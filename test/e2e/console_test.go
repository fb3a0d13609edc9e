package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/test/harness"
)

// printed finds the password that console prints at its first start.
var printed = regexp.MustCompile(`(?m)^ +password +(\S+)$`)

// get asks for an address as somebody with that token, or none, and returns status and body.
func get(t *testing.T, address, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func consoleLog(t *testing.T, c *harness.Console) string {
	t.Helper()
	text, err := os.ReadFile(c.Process().LogPath())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFirstRun starts a console without a password: it makes one, prints it once, and it works.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Console(harness.ConsoleOptions{Env: map[string]string{"PROXIMA_ADMIN_PASSWORD": "", "PROXIMA_LOG_LEVEL": "debug"}})
	found := printed.FindAllStringSubmatch(consoleLog(t, c), -1)
	if len(found) != 1 {
		t.Fatalf("the password was printed %d times:\n%s", len(found), consoleLog(t, c))
	}
	c.Password = found[0][1]
	token, err := c.APIToken(h.Context())
	if err != nil {
		t.Fatal(err)
	}
	place, err := c.NewPlace(h.Context(), "Halden Energy", "prod")
	if err != nil {
		t.Fatal(err)
	}
	recorded := record(t, c, place, "Ost")
	if err := c.Restart(h.Context()); err != nil {
		t.Fatal(err)
	}
	if text := consoleLog(t, c); strings.Count(text, c.Password) != 1 || strings.Contains(text, token) || strings.Contains(text, *recorded.InstallToken) {
		t.Errorf("after a restart the log holds the password %d times, or a token:\n%s", strings.Count(text, c.Password), text)
	}
	if _, err := c.Login(h.Context(), c.Email, c.Password); err != nil {
		t.Error(err)
	}
	for what, secret := range map[string]string{"password": c.Password, "API token": token, "install token": *recorded.InstallToken} {
		if path := holds(t, c.DataDir, secret); path != "" {
			t.Errorf("%s holds the %s in clear", path, what)
		}
	}
}

// holds returns a file below dir that holds the text, or "".
func holds(t *testing.T, dir, text string) string {
	t.Helper()
	var where string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			where = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return where
}

// TestGivenPassword: a password that was given is printed nowhere, and changing the variable changes
// nothing for an administrator that is there.
func TestGivenPassword(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	data := t.TempDir()
	c := h.Console(harness.ConsoleOptions{DataDir: data, Env: map[string]string{"PROXIMA_LOG_LEVEL": "debug"}})
	if _, err := c.Login(h.Context(), c.Email, c.Password); err != nil {
		t.Fatal(err)
	}
	if text := consoleLog(t, c); strings.Contains(text, c.Password) || printed.MatchString(text) {
		t.Errorf("the password is in the log:\n%s", text)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	again := h.Console(harness.ConsoleOptions{DataDir: data, Env: map[string]string{"PROXIMA_ADMIN_PASSWORD": "another password altogether"}})
	if _, err := again.Login(h.Context(), again.Email, harness.AdminPassword); err != nil {
		t.Error(err)
	}
	if _, err := again.Login(h.Context(), again.Email, again.Password); err == nil {
		t.Error("a variable has changed the password of somebody")
	}
}

// TestDataDirectoryIsHeld is X-48: one process at a time, however the one before ended.
func TestDataDirectoryIsHeld(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	data := t.TempDir()
	first := h.Console(harness.ConsoleOptions{DataDir: data})
	_, err := harness.StartConsole(h.Context(), harness.ConsoleOptions{Program: h.Product().Console, DataDir: data})
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), filepath.Join(data, "lock")) || !strings.Contains(err.Error(), "PROXIMA_DATABASE_URL") {
		t.Errorf("a second console on the same directory: %v", err)
	}
	if _, err := first.NewPlace(h.Context(), "Halden Energy", "prod"); err != nil {
		t.Errorf("the first console suffers from the second: %v", err)
	}
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	second := h.Console(harness.ConsoleOptions{DataDir: data})
	var clients console.ClientList
	if _, err := second.Do(h.Context(), http.MethodGet, "/api/v1/clients", nil, &clients); err != nil || len(clients.Items) != 1 {
		t.Errorf("after a crash: %v %v", clients, err)
	}
}

// TestOrderlyStop ends console by SIGTERM while somebody watches gates: it exits with 0, soon, and the
// stream ends with it.
func TestOrderlyStop(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Console(harness.ConsoleOptions{})
	_, recorded := startAttempt(t, c, "Halden Energy", "Ost")
	session, err := c.Login(h.Context(), c.Email, c.Password)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := session.Stream(t.Context(), "/clusters/add/"+recorded.Onboarding.ID+"/events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	lines := bufio.NewReader(stream)
	if first, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("the stream begins with %q: %v", first, err)
	}
	began := time.Now()
	if err := c.Process().Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := c.Process().Wait(ctx); err != nil {
		t.Errorf("it ended with %v", err)
	}
	t.Logf("ended after %.1f s", time.Since(began).Seconds())
	if _, err := io.Copy(io.Discard, lines); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ended with %v", err)
	}
	if text := consoleLog(t, c); strings.Contains(text, "level=ERROR") || !strings.Contains(text, "console stops") {
		t.Errorf("the log of an orderly stop:\n%s", text)
	}
}

// TestImageRegistry: the manifest that console serves names the image of the registry that it was told of.
func TestImageRegistry(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Console(harness.ConsoleOptions{Env: map[string]string{"PROXIMA_IMAGE_REGISTRY": "registry.example:5000/mirror/proxima"}})
	status, manifest := get(t, c.URL+"/install/cluster-agent/deployment.yaml", "")
	if status != http.StatusOK || !strings.Contains(manifest, "image: registry.example:5000/mirror/proxima/proxima-cluster-agent:") || strings.Contains(manifest, "registry.prxm.uz") {
		t.Errorf("status %d:\n%s", status, manifest)
	}
}

// TestUnknownVariable: a mistyped variable is named, with the one that was meant.
func TestUnknownVariable(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Console(harness.ConsoleOptions{Env: map[string]string{"PROXIMA_PUBLIC_ULR": "https://console.example"}})
	if text := consoleLog(t, c); !strings.Contains(text, "PROXIMA_PUBLIC_ULR") || !strings.Contains(text, "PROXIMA_PUBLIC_URL") {
		t.Errorf("the log names neither:\n%s", text)
	}
}

// TestMetricsArePrivate: who may read settings may read metrics, and a listener of their own asks nobody.
func TestMetricsArePrivate(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Console(harness.ConsoleOptions{})
	token, err := c.APIToken(h.Context())
	if err != nil {
		t.Fatal(err)
	}
	lesser := newUser(t, c, "lesser@proxima.test", []string{"hosts:read", "settings:read"}, firstPlace(t, c))
	for _, row := range []struct {
		token  string
		status int
	}{{"", 401}, {"pat_nobody", 401}, {lesser.Token, 403}, {token, 200}} {
		if status, body := get(t, c.URL+"/metrics", row.token); status != row.status || status == 200 != strings.Contains(body, "\ngo_goroutines ") {
			t.Errorf("status %d, want %d: %.200s", status, row.status, body)
		}
	}

	address := h.Port().Addr()
	apart := h.Console(harness.ConsoleOptions{Env: map[string]string{"PROXIMA_METRICS_ADDR": address}})
	if status, body := get(t, "http://"+address+"/metrics", ""); status != 200 || !strings.Contains(body, "\ngo_goroutines ") {
		t.Errorf("metrics apart: %d %.200s", status, body)
	}
	for _, path := range []string{"/metrics", "/"} {
		at := "http://" + address
		if path == "/metrics" {
			at = apart.URL
		}
		if status, body := get(t, at+path, ""); status == 200 && strings.Contains(body, "go_goroutines") || path == "/" && status != 404 {
			t.Errorf("%s%s: %d %.200s", at, path, status, body)
		}
	}
}

// TestReadiness: without NATS console lives and says that it is not ready, until NATS is back.
func TestReadiness(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	nats, env := h.OwnNATS()
	maps.Copy(env, settings())
	c := h.Console(harness.ConsoleOptions{Env: env})
	if err := nats.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitStatus := func(path string, status int, says string) {
		t.Helper()
		err := harness.Await(h.Context(), path+" to answer", func(context.Context) error {
			if got, body := get(t, c.URL+path, ""); got != status || !strings.Contains(body, says) {
				return errors.New(body)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	awaitStatus("/readyz", 503, "NATS")
	awaitStatus("/healthz", 200, "ok")
	if _, err := c.NewPlace(h.Context(), "Halden Energy", "prod"); err != nil {
		t.Errorf("what needs no NATS works on: %v", err)
	}
	if err := nats.Restart(h.Context()); err != nil {
		t.Fatal(err)
	}
	awaitStatus("/readyz", 200, "ok")
}

// TestForeignFormsAreRefused: another site can post nothing with somebody's session.
func TestForeignFormsAreRefused(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Console(harness.ConsoleOptions{})
	session, err := c.Login(h.Context(), c.Email, c.Password)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range []http.Header{
		{"Origin": {"https://evil.example"}},
		{"Origin": {"null"}},
		{"Sec-Fetch-Site": {"cross-site"}},
		{"Sec-Fetch-Site": {"same-site"}, "Origin": {strings.Replace(c.URL, "127.0.0.1", "localhost", 1)}},
	} {
		for path, body := range map[string]string{"/signout": "x=1", "/api/v1/clients": `{"name":"Evil"}`} {
			header.Set("Content-Type", "application/x-www-form-urlencoded")
			if strings.HasPrefix(path, "/api/") {
				header.Set("Content-Type", "application/json")
			}
			status, answer, err := session.Send(t.Context(), http.MethodPost, path, header, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if status != 403 {
				t.Errorf("POST %s with %v: %d %.200s", path, header, status, answer)
			}
			if strings.HasPrefix(path, "/api/") != strings.Contains(answer, `"code":"origin_foreign"`) {
				t.Errorf("POST %s with %v: %.200s", path, header, answer)
			}
		}
	}
	var clients console.ClientList
	if _, err := session.Do(t.Context(), http.MethodGet, "/api/v1/clients", nil, &clients); err != nil || len(clients.Items) != 0 {
		t.Errorf("clients %v, %v: the session is gone or somebody else used it", clients, err)
	}
}

// TestTLS: console, agent and NATS speak TLS by one certificate, of an authority that the agent was given.
func TestTLS(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	plane := h.LightControlPlane()
	authority := h.Authority()
	c := h.Console(harness.ConsoleOptions{Authority: authority, Env: settings()})
	_, recorded := startAttempt(t, c, "Halden Energy", "Ost")
	h.Agent(plane.DirectAgent(c, recorded, map[string]string{"PROXIMA_CA_FILE": authority.File(), "PROXIMA_K8S_SYNC_INTERVAL": "5s"}))
	awaitInventory(t, c, recorded)

	stranger, unknown := startAttempt(t, c, "Stranger", "West")
	_ = stranger
	agent := h.Agent(plane.DirectAgent(c, unknown, nil))
	for _, part := range []string{"certificate", "PROXIMA_CA_FILE"} {
		if err := agent.AwaitLog(h.Context(), part); err != nil {
			t.Error(err)
		}
	}
	if text, err := readLog(agent); err != nil || strings.Contains(text, *unknown.InstallToken) {
		t.Errorf("the agent's log holds the token, or %v", err)
	}
	awaitGate(t, c, unknown, 2, console.GateStateWaiting)
}

// TestSlowAndHugeBodies: what is too large or never ends is refused, and nothing is stored.
func TestSlowAndHugeBodies(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	c := h.Console(harness.ConsoleOptions{})
	token, err := c.APIToken(h.Context())
	if err != nil {
		t.Fatal(err)
	}
	api := c.API(token)
	for name, row := range map[string]struct {
		body   string
		status []int
	}{
		"ten megabytes": {`{"name":"` + strings.Repeat("x", 10<<20) + `"}`, []int{413}},
		"deep":          {`{"name":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, []int{400}},
		"cut short":     {`{"name":"Hald`, []int{400}},
		"twice":         {`{"name":"A","name":"B"}`, []int{400}},
		"NUL":           {`{"name":"A\u0000"}`, []int{400, 422}},
		"half a pair":   {`{"name":"\ud800"}`, []int{400, 422}},
		"not text":      {"{\"name\":\"\xff\xfe\"}", []int{400, 422}},
		"other type":    {`{"name":7}`, []int{400}},
		"unknown field": {`{"name":"A","isAdmin":true}`, []int{400}},
		"two documents": {`{"name":"A"}{"name":"B"}`, []int{400}},
		"array":         {`[{"name":"A"}]`, []int{400}},
		"empty":         {``, []int{400}},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, err := api.Send(t.Context(), http.MethodPost, "/api/v1/clients", http.Header{"Content-Type": {"application/json"}}, strings.NewReader(row.body))
			if err != nil && row.status[0] != 413 { // the connection may be closed on a sender that goes on
				t.Fatal(err)
			}
			if err == nil && (!slices.Contains(row.status, status) || !strings.Contains(body, `"code":`) || len(body) > 4096) {
				t.Errorf("status %d: %.300s", status, body)
			}
		})
	}
	var clients console.ClientList
	if _, err := api.Do(t.Context(), http.MethodGet, "/api/v1/clients", nil, &clients); err != nil || len(clients.Items) != 0 {
		t.Errorf("stored: %v %v", clients, err)
	}
	if text := consoleLog(t, c); strings.Contains(text, "level=ERROR") {
		t.Errorf("the log:\n%s", text)
	}
}

func firstPlace(t *testing.T, c *harness.Console) harness.Place {
	t.Helper()
	place, err := c.NewPlace(t.Context(), "Halden Energy", "prod")
	if err != nil {
		t.Fatal(err)
	}
	return place
}

// newUser makes somebody who holds the permissions in one client, and answers the API by a token of theirs.
func newUser(t *testing.T, c *harness.Console, email string, permissions []string, place harness.Place) *harness.API {
	t.Helper()
	const password = "a password of their own"
	var (
		role console.Role
		user console.User
	)
	do := func(method, path string, body, out any) {
		t.Helper()
		if _, err := c.Do(t.Context(), method, path, body, out); err != nil {
			t.Fatal(err)
		}
	}
	do(http.MethodPost, "/api/v1/roles", console.RoleInput{Name: "of " + email, Permissions: permissions}, &role)
	do(http.MethodPost, "/api/v1/users", console.UserInput{Email: email, Name: email, Password: password}, &user)
	do(http.MethodPost, "/api/v1/users/"+url.PathEscape(user.ID)+"/assignments", console.AssignmentInput{RoleID: role.ID, ClientID: &place.ClientID}, nil)
	session, err := c.Login(t.Context(), email, password)
	if err != nil {
		t.Fatal(err)
	}
	var minted console.APITokenMinted
	if _, err := session.Do(t.Context(), http.MethodPost, "/api/v1/api-tokens", console.APITokenInput{Name: "test"}, &minted); err != nil {
		t.Fatal(err)
	}
	return c.API(minted.Token)
}
