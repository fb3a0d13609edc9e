package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"prxm.uz/proxima/api/console/client"
	"prxm.uz/proxima/internal/agent/enroll"
	"prxm.uz/proxima/internal/agent/identity"
	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/config"
	"prxm.uz/proxima/internal/wire"
	"prxm.uz/proxima/test/harness"
)

const token = "pit_EXAMPLE0000000000001"

// logs is a log that tests may read while it is written.
type logs struct {
	t  *testing.T
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func configure(t *testing.T, c *console, kubeconfig, name string) *Config {
	t.Helper()
	return &Config{
		ClusterName: "Prod", BackendURL: config.BaseURL(c.http.URL), InstallToken: config.NewSecret(" " + token + "\n"), DataDir: t.TempDir(),
		SyncInterval: time.Second, PodLimit: 5000, Kubeconfig: kubeconfig, HeartbeatInterval: time.Second, MetricsAddr: freePort(t), LogLevel: "debug",
		PodName: name,
	}
}

// running is one agent in this process.
type running struct {
	cfg    *Config
	cancel context.CancelFunc
	done   chan error
	log    *logs
}

func start(t *testing.T, cfg *Config) *running {
	t.Helper()
	return startAt(t, cfg, clock.System())
}

func startAt(t *testing.T, cfg *Config, at clock.Clock) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{cfg: cfg, cancel: cancel, done: make(chan error, 1), log: &logs{t: t}}
	go func() {
		r.done <- Run(ctx, cfg, at, slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		close(r.done)
	}()
	t.Cleanup(func() {
		cancel()
		for range r.done { // until it has ended, whoever took its error
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", cfg.PodName, r.log)
		}
		if strings.Contains(r.log.String(), token) {
			t.Error("the token is in the log")
		}
	})
	return r
}

// stop ends the agent as a signal would.
func (r *running) stop(t *testing.T) error {
	t.Helper()
	r.cancel()
	select {
	case err := <-r.done:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("the agent did not stop")
		return nil
	}
}

func get(t *testing.T, address, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// A cluster arrives: an answer gets lost, the agent enrolls all the same, syncs, renews on command,
// stops in order and comes back as the same agent.
func TestLifeOfAnAgent(t *testing.T) {
	plane := harness.New(t).LightControlPlane()
	c := startConsole(t)
	c.loseAnswer = 1
	cfg := configure(t, c, plane.Kubeconfig(), "")
	r := start(t, cfg)

	c.await("three inventories", time.Minute, func() bool { return len(c.messages["inventory.agtprod"]) >= 3 })
	c.mu.Lock()
	var inventories []*wire.Inventory
	for _, data := range c.messages["inventory.agtprod"][:3] {
		inv, err := wire.DecodeInventory(data)
		if err != nil {
			t.Fatal(err)
		}
		inventories = append(inventories, inv)
	}
	beat, beats := last[wire.Heartbeat](c, "heartbeat.agtprod")
	status, _ := last[wire.Status](c, "status.agtprod")
	c.mu.Unlock()
	inv := inventories[2]
	if inv.Epoch != 1 || inv.Sync != 3 || inv.ClusterSlug != "prod" || inv.ClusterUID == "" || !strings.HasPrefix(inv.Cluster.Version, "v1.") || len(inv.Kinds) != 8 {
		t.Errorf("inventory: %+v", inv)
	}
	for _, k := range inv.Kinds {
		if k.Unread != "" {
			t.Errorf("%+v", k)
		}
	}
	if len(inv.Namespaces) < 3 || len(inv.Services) != 1 {
		t.Errorf("%d namespaces, %d services", len(inv.Namespaces), len(inv.Services))
	}
	if beats == 0 || beat.Epoch != 1 || beat.LastSync == nil || beat.LastSync.Error != "" || status.Role != wire.RoleLeader || status.SyncIntervalSeconds != 1 {
		t.Errorf("heartbeat %+v, status %+v", beat, status)
	}
	if c.enrols != 2 || len(c.agents) != 1 || len(c.findings) == 0 {
		t.Errorf("%d enrolments, %d agents, %d findings", c.enrols, len(c.agents), len(c.findings))
	}
	if code, why := get(t, cfg.MetricsAddr, "/readyz"); code != 200 {
		t.Errorf("readyz: %d %s", code, why)
	}
	_, text := get(t, cfg.MetricsAddr, "/metrics")
	for _, name := range []string{"proxima_collector_syncs_total", "proxima_collector_sync_errors_total 0", "proxima_collector_last_sync_duration_seconds", `proxima_collector_resources_collected{resource="namespaces"}`, "proxima_collector_inventory_payload_bytes"} {
		if !strings.Contains(text, name) {
			t.Errorf("metrics lack %s", name)
		}
	}

	// Console's requests are answered under reply.<id> alone.
	for command, want := range map[string]string{"dance": "unknown_command", "renew_credentials": `"ok":true`} {
		subject := "reply.agtprod." + command
		sub := must(c.nc.SubscribeSync(subject))
		if err := c.nc.PublishRequest(wire.CommandSubject("agtprod"), subject, []byte(`{"name":"`+command+`"}`)); err != nil {
			t.Fatal(err)
		}
		if msg, err := sub.NextMsg(10 * time.Second); err != nil || !strings.Contains(string(msg.Data), want) {
			t.Errorf("%s: %+v, %v", command, msg, err)
		}
		if command == "renew_credentials" {
			c.await("a renewal", 10*time.Second, func() bool { return c.renewals == 1 })
		}
		c.mu.Lock()
		n := len(c.messages["inventory.agtprod"])
		c.mu.Unlock()
		c.await("inventories after the command", 20*time.Second, func() bool { return len(c.messages["inventory.agtprod"]) > n+1 })
	}

	if err := r.stop(t); err != nil {
		t.Fatal(err)
	}
	second := *cfg
	second.InstallToken = config.Secret{} // B-117: not needed any more
	second.MetricsAddr = freePort(t)
	start(t, &second)
	c.await("an inventory of the second epoch", 30*time.Second, func() bool {
		list := c.messages["inventory.agtprod"]
		inv, err := wire.DecodeInventory(list[len(list)-1])
		return err == nil && inv.Epoch == 2
	})
	if c.enrols != 2 {
		t.Errorf("%d enrolments after a restart", c.enrols)
	}
}

// Three replicas: one leads, the others stand by; when the leader goes another one takes over.
func TestElection(t *testing.T) {
	plane := harness.New(t).LightControlPlane()
	c := startConsole(t)
	replicas := map[string]*running{}
	for _, name := range []string{"agent-0", "agent-1", "agent-2"} {
		cfg := configure(t, c, plane.Kubeconfig(), name)
		cfg.PodNamespace = "default"
		replicas[name] = start(t, cfg)
	}
	leader := func() string {
		found := ""
		for name := range replicas {
			s, n := last[wire.Status](c, "status.agt"+strings.ReplaceAll(name, "-", ""))
			if n == 0 {
				return ""
			}
			if s.Role == wire.RoleLeader {
				if found != "" {
					return ""
				}
				found = name
			}
		}
		return found
	}
	first := ""
	c.await("one leader", time.Minute, func() bool {
		first = leader()
		return first != "" && len(c.messages["inventory.agt"+strings.ReplaceAll(first, "-", "")]) > 0
	})
	for name, r := range replicas {
		id := "agt" + strings.ReplaceAll(name, "-", "")
		if name == first {
			continue
		}
		c.mu.Lock()
		if len(c.messages["heartbeat."+id])+len(c.messages["inventory."+id]) > 0 {
			t.Errorf("%s reports without leading", name)
		}
		c.mu.Unlock()
		c.await(name+" to say that it stands by", 20*time.Second, func() bool {
			return strings.Contains(r.log.String(), "standing by; another collector holds leadership")
		})
	}

	// Another holder takes the lease for longer than the leader may go without renewing it: it stands by.
	lease, err := plane.Client().CoordinationV1().Leases("default").Get(t.Context(), leaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("thief"), new(int32(15))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if _, err := plane.Client().CoordinationV1().Leases("default").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.await("the leader to stand by", 20*time.Second, func() bool {
		s, _ := last[wire.Status](c, "status.agt"+strings.ReplaceAll(first, "-", ""))
		return s.Role == wire.RoleStandby
	})
	c.await("a leader anew", 40*time.Second, func() bool { first = leader(); return first != "" })

	begun := time.Now()
	if err := replicas[first].stop(t); err != nil {
		t.Fatal(err)
	}
	gone := first
	delete(replicas, gone)
	next := ""
	c.await("a successor", 30*time.Second, func() bool { next = leader(); return next != "" && next != gone })
	t.Logf("released after a clean stop, succeeded in %v", time.Since(begun))
}

// The expired credential of an agent that slept is renewed, and the connection comes back.
func TestShortCredentials(t *testing.T) {
	plane := harness.New(t).LightControlPlane()
	c := startConsole(t)
	c.ttl = 4 * time.Second
	r := start(t, configure(t, c, plane.Kubeconfig(), ""))
	c.await("renewals under half of the lifetime", 40*time.Second, func() bool { return c.renewals >= 3 && len(c.messages["inventory.agtprod"]) >= 4 })
	if err := r.stop(t); err != nil {
		t.Fatal(err)
	}
	state, err := identity.Read(r.cfg.DataDir, AgentType)
	if err != nil {
		t.Fatal(err)
	}
	for !state.Credential.Expired(time.Now()) {
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the server reads the real clock
	}
	var before int
	c.locked(func() { c.ttl, before = time.Hour, len(c.messages["inventory.agtprod"]) })
	again := *r.cfg
	again.MetricsAddr = freePort(t)
	start(t, &again)
	c.await("an inventory with the renewed credential", 20*time.Second, func() bool { return len(c.messages["inventory.agtprod"]) > before })
}

// A directory that cannot be written costs the agent neither its credential nor its connection.
func TestARenewalThatCannotBeStoredIsUsed(t *testing.T) {
	plane := harness.New(t).LightControlPlane()
	c := startConsole(t)
	c.ttl = 4 * time.Second
	r := start(t, configure(t, c, plane.Kubeconfig(), ""))
	c.await("the first inventory", 20*time.Second, func() bool { return len(c.messages["inventory.agtprod"]) >= 1 })
	before, err := identity.Read(r.cfg.DataDir, AgentType)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.cfg.DataDir, "state.json.new"), 0o700); err != nil { // where the new file would be
		t.Fatal(err)
	}
	var renewals int
	c.locked(func() { renewals = c.renewals })
	c.await("renewals past the end of what is stored", 40*time.Second, func() bool { return c.renewals >= renewals+3 })
	for !before.Credential.Expired(time.Now()) {
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the server reads the real clock
	}
	var inventories int
	c.locked(func() { inventories = len(c.messages["inventory.agtprod"]) })
	c.await("inventories past it", 20*time.Second, func() bool { return len(c.messages["inventory.agtprod"]) >= inventories+2 })
	if text := r.log.String(); !strings.Contains(text, "in use, but could not be stored") || !strings.Contains(text, "state.json") || strings.Contains(text, "was not renewed") {
		t.Errorf("the log:\n%s", text)
	}
	stored, err := identity.Read(r.cfg.DataDir, AgentType)
	if err != nil || stored.Credential.JWT != before.Credential.JWT {
		t.Errorf("the stored state changed: %v", err)
	}
	if err := os.Remove(filepath.Join(r.cfg.DataDir, "state.json.new")); err != nil {
		t.Fatal(err)
	}
	c.locked(func() { renewals = c.renewals })
	c.await("a renewal", 20*time.Second, func() bool { return c.renewals > renewals+1 })
	if stored, err = identity.Read(r.cfg.DataDir, AgentType); err != nil || stored.Credential.JWT == before.Credential.JWT {
		t.Errorf("nothing was stored once it could be: %v", err)
	}
}

func TestRefusalsEndTheProcess(t *testing.T) {
	plane := harness.New(t).LightControlPlane()
	c := startConsole(t)
	for code, status := range map[string]int{"already_enrolled": 409, "token_unknown": 401, "token_expired": 403, "agent_too_old": 426} {
		c.locked(func() {
			c.refuse, c.status = &client.Problem{Code: code, Detail: new("No."), Cure: new("Do it.")}, status
		})
		r := start(t, configure(t, c, plane.Kubeconfig(), ""))
		err := <-r.done
		if refused, ok := enroll.AsRefusal(err); !ok || refused.Code != code || refused.Cure != "Do it." {
			t.Errorf("%s: %v", code, err)
		}
		if s, err := identity.Read(r.cfg.DataDir, AgentType); err != nil || s.Enrolled() {
			t.Errorf("the pending key is not kept: %+v %v", s.Enrolled(), err)
		}
	}
}

func TestWhatStopsBeforeAnyRequest(t *testing.T) {
	c := startConsole(t)
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"blank token": {func(cfg *Config) { cfg.InstallToken = config.NewSecret("\n") }, "install token is empty"},
		"no token":    {func(cfg *Config) { cfg.InstallToken = config.Secret{} }, "PROXIMA_INSTALL_TOKEN is not set"},
		"no name":     {func(cfg *Config) { cfg.ClusterName = "" }, "PROXIMA_CLUSTER_NAME is not set"},
		"no slug":     {func(cfg *Config) { cfg.ClusterName = "東京" }, "set PROXIMA_CLUSTER_SLUG"},
		"other type": {func(cfg *Config) {
			s, err := identity.NewPending("host", "a", "")
			if err == nil {
				store := must(identity.Open(cfg.DataDir))
				err = errors.Join(store.Save(s), store.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "another type of agent"},
		"cut short": {func(cfg *Config) {
			if err := os.WriteFile(filepath.Join(cfg.DataDir, "state.json"), []byte(`{"version":1,`), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "state file cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configure(t, c, "/nowhere", "")
			tc.change(cfg)
			r := start(t, cfg)
			if err := <-r.done; err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	if c.enrols != 0 {
		t.Errorf("%d requests were sent", c.enrols)
	}
}

// without an address the agent waits, lives, is not ready and sends nothing.
func TestWaitsForItsAddress(t *testing.T) {
	c := startConsole(t)
	cfg := configure(t, c, "/nowhere", "")
	cfg.BackendURL, cfg.ClusterName = "", ""
	r := start(t, cfg)
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(r.log.String(), "PROXIMA_BACKEND_URL is empty") {
		if time.Now().After(deadline) {
			t.Fatal("no word about the missing address")
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // polls a log
	}
	if code, _ := get(t, cfg.MetricsAddr, "/healthz"); code != 200 {
		t.Errorf("healthz %d", code)
	}
	if code, why := get(t, cfg.MetricsAddr, "/readyz"); code != 503 || !strings.Contains(why, "PROXIMA_BACKEND_URL") {
		t.Errorf("readyz %d %s", code, why)
	}
	if err := r.stop(t); err != nil || c.enrols != 0 {
		t.Errorf("%v, %d enrolments", err, c.enrols)
	}
}
