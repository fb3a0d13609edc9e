package harness

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// startLimit bounds each start in a test. It is far above what one takes, since
// tests share their machine.
const startLimit = 3 * time.Minute

// T starts things for one test: each verb ends the test where it fails, what was
// started ends with the test, and a failed test shows the end of every log.
type T struct {
	tb testing.TB
}

// New returns the verbs for a test.
func New(tb testing.TB) *T { return &T{tb: tb} }

// Context ends with the test or after three minutes, whichever comes first.
func (t *T) Context() context.Context {
	ctx, cancel := context.WithTimeout(t.tb.Context(), startLimit)
	t.tb.Cleanup(cancel)
	return ctx
}

// Write makes the test's log the place for progress.
func (t *T) Write(line []byte) (int, error) {
	t.tb.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

// must ends the test on an error.
func (t *T) must(err error) {
	t.tb.Helper()
	if err != nil {
		t.tb.Fatal(err)
	}
}

// endWith stops a thing at the end of the test, after the logs of a failed test
// were shown.
func (t *T) endWith(stop func() error, processes func() []*Process) {
	t.tb.Cleanup(func() {
		if t.tb.Failed() {
			for _, p := range processes() {
				t.tb.Logf("end of the log of %s:\n%s", p.Name(), p.LogTail())
			}
		}
		if err := stop(); err != nil {
			t.tb.Error(err)
		}
	})
}

// ControlPlane starts a whole control plane.
func (t *T) ControlPlane() *ControlPlane {
	t.tb.Helper()
	return t.controlPlane(ControlPlaneOptions{Log: t})
}

// LightControlPlane starts only etcd and the API server.
func (t *T) LightControlPlane() *ControlPlane {
	t.tb.Helper()
	return t.controlPlane(ControlPlaneOptions{Log: t, Light: true})
}

func (t *T) controlPlane(o ControlPlaneOptions) *ControlPlane {
	t.tb.Helper()
	c, err := StartControlPlane(t.Context(), o)
	t.must(err)
	t.endWith(c.Stop, c.Processes)
	return c
}

// Postgres starts a PostgreSQL server. A package with many tests starts one in
// TestMain by [StartPostgres] and takes databases from it.
func (t *T) Postgres() *Postgres {
	t.tb.Helper()
	p, err := StartPostgres(t.Context())
	t.must(err)
	t.endWith(p.Stop, p.Processes)
	return p
}

// Database makes an empty database on p and returns its URL.
func (t *T) Database(p *Postgres) string {
	t.tb.Helper()
	url, drop, err := p.NewDatabase(t.Context())
	t.must(err)
	t.dropAtEnd(drop)
	return url
}

// Copy makes a copy of the template and returns its URL.
func (t *T) Copy(template *PostgresTemplate) string {
	t.tb.Helper()
	url, drop, err := template.NewDatabase(t.Context())
	t.must(err)
	t.dropAtEnd(drop)
	return url
}

func (t *T) dropAtEnd(drop func(context.Context) error) {
	t.tb.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.tb.Context()), startLimit)
		defer cancel()
		if err := drop(ctx); err != nil {
			t.tb.Error(err)
		}
	})
}

// Authority makes a certificate authority for the length of the test.
func (t *T) Authority() *Authority {
	t.tb.Helper()
	a, err := NewAuthority(t.tb.TempDir(), "ca", "test authority")
	t.must(err)
	return a
}

// NATS starts a NATS server with the given configuration file.
func (t *T) NATS(configFile string) *NATS {
	t.tb.Helper()
	n, err := StartNATS(t.Context(), t, configFile)
	t.must(err)
	t.endWith(n.Stop, n.Processes)
	return n
}

// OwnNATS starts a NATS server that nats-setup configured, and returns the settings by which a console is told
// of it. It speaks no TLS.
func (t *T) OwnNATS() (*NATS, map[string]string) {
	t.tb.Helper()
	return t.ownNATS("--no-tls")
}

// OwnTLSNATS is [T.OwnNATS] with TLS, as nats-setup writes it where nothing else is asked for. The settings say
// nothing of the authority.
func (t *T) OwnTLSNATS(by *Authority) (*NATS, map[string]string) {
	t.tb.Helper()
	cert, key, err := by.Server("nats", "127.0.0.1", "localhost")
	t.must(err)
	return t.ownNATS("--cert-file="+cert, "--key-file="+key)
}

func (t *T) ownNATS(tls ...string) (*NATS, map[string]string) {
	t.tb.Helper()
	dir := filepath.Join(t.tb.TempDir(), "nats")
	client, socket := t.Port(), t.Port()
	args := append([]string{
		"nats-setup", dir, "--nats-data-dir", filepath.Join(dir, "data"),
		fmt.Sprintf("--port=%d", client.Number), fmt.Sprintf("--websocket-port=%d", socket.Number),
	}, tls...)
	out, err := exec.CommandContext(t.Context(), t.Product().Console, args...).CombinedOutput()
	if err != nil {
		t.tb.Fatalf("nats-setup: %v: %s", err, out)
	}
	n := t.NATS(filepath.Join(dir, "nats-server.conf"))
	return n, map[string]string{
		"PROXIMA_NATS_URL": n.URL(), "PROXIMA_NATS_WEBSOCKET_URL": strings.Replace(n.WebSocketURL(), "http", "ws", 1),
		"PROXIMA_NATS_KEYS_DIR": filepath.Join(dir, "keys"),
	}
}

// Port reserves a port for the length of the test.
func (t *T) Port() *Port {
	t.tb.Helper()
	p, err := ReservePort()
	t.must(err)
	t.tb.Cleanup(func() {
		if err := p.Release(); err != nil {
			t.tb.Error(err)
		}
	})
	return p
}

// Browser returns a context for chromedp in which a headless Chromium starts.
func (t *T) Browser() context.Context {
	t.tb.Helper()
	options, err := Chromium(t.tb.TempDir())
	t.must(err)
	ctx, endAllocator := chromedp.NewExecAllocator(t.Context(), options...)
	t.tb.Cleanup(endAllocator)
	ctx, endBrowser := chromedp.NewContext(ctx)
	t.tb.Cleanup(endBrowser)
	t.must(chromedp.Do(ctx)) // starts it
	return ctx
}

// Product builds the product's programs, with a test clock. A first build may take
// minutes: it has all the time of the test.
func (t *T) Product() Product {
	t.tb.Helper()
	p, err := BuildProduct(t.tb.Context(), t, TestClock)
	t.must(err)
	return p
}

// Console starts a console; the zero options are a console without configuration.
func (t *T) Console(o ConsoleOptions) *Console {
	t.tb.Helper()
	if o.Program == "" {
		o.Program = t.Product().Console
	}
	c, err := StartConsole(t.Context(), o)
	t.must(err)
	t.endWith(c.Stop, c.Processes)
	return c
}

// Agent starts a cluster agent.
func (t *T) Agent(o AgentOptions) *Agent {
	t.tb.Helper()
	if o.Program == "" {
		o.Program = t.Product().ClusterAgent
	}
	a, err := StartAgent(t.Context(), o)
	t.must(err)
	t.endWith(a.Stop, a.Processes)
	return a
}
