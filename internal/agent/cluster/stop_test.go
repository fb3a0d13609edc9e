package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"prxm.uz/proxima/test/harness"
)

// gatekeeper stands before an API server and holds up lists of pods while it is told to.
type gatekeeper struct {
	kubeconfig string
	hold       chan chan struct{} // a list of pods takes one and waits until it is closed
	held       chan struct{}
}

func keepGate(t *testing.T, plane *harness.ControlPlane) *gatekeeper {
	t.Helper()
	config := plane.RESTConfig()
	target := must(url.Parse(config.Host))
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = must(rest.TransportFor(config))
	g := &gatekeeper{hold: make(chan chan struct{}, 1), held: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/pods" {
			select {
			case until := <-g.hold:
				g.held <- struct{}{}
				select {
				case <-until:
				case <-r.Context().Done():
				}
			default:
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	g.kubeconfig = plainKubeconfig(t, server.URL)
	return g
}

// plainKubeconfig names a server that asks for no credential.
func plainKubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":""}}]}`, server)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// answers asks the agent's own server, which may be gone.
func answers(t *testing.T, address, path string) (status int, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := (&http.Client{Timeout: 5 * time.Second}).Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// A stop while a sync is in progress: first the health endpoints end, then the sync is let finish and publishes,
// no further one begins, and only then the connection is closed (B-91 to B-93).
func TestAStopLetsTheSyncFinish(t *testing.T) {
	g := keepGate(t, harness.New(t).LightControlPlane())
	c := startConsole(t)
	cfg := configure(t, c, g.kubeconfig, "")
	r := start(t, cfg)
	c.await("a first inventory", time.Minute, func() bool { return len(c.messages["inventory.agtprod"]) >= 1 })

	until := make(chan struct{})
	g.hold <- until
	<-g.held
	var before int
	c.locked(func() { before = len(c.messages["inventory.agtprod"]) })
	r.cancel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := harness.Await(ctx, "the health endpoints to end", func(context.Context) error {
		if status, err := answers(t, cfg.MetricsAddr, "/healthz"); err == nil {
			return fmt.Errorf("status %d", status)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n := c.nats.NumClients(); n != 2 {
		t.Errorf("%d NATS clients during the sync, of console and agent", n)
	}
	select {
	case err := <-r.done:
		t.Fatalf("it ended during the sync: %v", err)
	default:
	}
	close(until)
	if err := r.stop(t); err != nil {
		t.Fatal(err)
	}
	c.await("the inventory of the sync in progress", 10*time.Second, func() bool { return len(c.messages["inventory.agtprod"]) > before })
	c.locked(func() {
		if n := len(c.messages["inventory.agtprod"]); n != before+1 {
			t.Errorf("%d inventories after the stop", n-before)
		}
	})
	if err := harness.Await(ctx, "the connection to be closed", func(context.Context) error {
		if n := c.nats.NumClients(); n != 1 {
			return fmt.Errorf("%d clients", n)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	_, after, _ := strings.Cut(r.log.String(), "msg=stopping")
	published, stopped := strings.Index(after, "inventory published"), strings.Index(after, "msg=stopped")
	if published < 0 || stopped < published {
		t.Errorf("the log after the signal:\n%s", after)
	}
}

// Ready is who is enrolled and connected: without NATS an enrolled agent lives and says that it is not (B-109).
func TestReadinessFollowsTheConnection(t *testing.T) {
	c := startConsole(t)
	cfg := configure(t, c, plainKubeconfig(t, "http://127.0.0.1:1"), "")
	start(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	await := func(want int) {
		t.Helper()
		if err := harness.Await(ctx, fmt.Sprintf("/readyz to answer %d", want), func(context.Context) error {
			status, err := answers(t, cfg.MetricsAddr, "/readyz")
			if err == nil && status != want {
				err = errors.New(http.StatusText(status))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	await(http.StatusOK)
	c.nats.Shutdown()
	await(http.StatusServiceUnavailable)
	if _, why := get(t, cfg.MetricsAddr, "/readyz"); !strings.Contains(why, "NATS") {
		t.Errorf("readyz: %s", why)
	}
	if status, _ := get(t, cfg.MetricsAddr, "/healthz"); status != http.StatusOK {
		t.Errorf("healthz: %d", status)
	}
}
