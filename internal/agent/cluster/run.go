package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"prxm.uz/proxima/internal/agent/collector"
	"prxm.uz/proxima/internal/agent/connection"
	"prxm.uz/proxima/internal/agent/doctor"
	"prxm.uz/proxima/internal/agent/enroll"
	"prxm.uz/proxima/internal/agent/health"
	"prxm.uz/proxima/internal/agent/identity"
	"prxm.uz/proxima/internal/agent/kubeapi"
	"prxm.uz/proxima/internal/agent/network"
	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/version"
	"prxm.uz/proxima/internal/wire"
)

const (
	apiTimeout = 30 * time.Second
	// syncGrace bounds how long a stop waits for the sync in progress (B-92); a pod has 30 s by default.
	syncGrace = 20 * time.Second
)

// agent is one running cluster agent. What is not guarded by a lock is written before the goroutines
// start.
type agent struct {
	cfg     *Config
	log     *slog.Logger
	clock   clock.Clock
	proxy   network.Proxy
	roots   *x509.CertPool
	request enroll.Request
	token   string
	metrics *metrics
	ready   readiness

	kube    *kubeapi.Client
	kubeErr error

	store      *identity.Store
	api        *enroll.Client
	findings   []doctor.Finding
	creds      credentials
	connection *connection.Connection
	renewNow   chan chan error
	refused    chan struct{}

	stopping chan struct{} // closed when no further sync may begin
	syncing  sync.Mutex    // held during a sync

	mu       sync.Mutex // guards what follows
	current  wire.Role
	epoch    int64
	lastSync *wire.SyncInfo
	changed  chan struct{} // closed and replaced when the role changes
}

// readiness is why /readyz says no.
type readiness struct {
	mu    sync.Mutex
	ready bool // of what comes before the connection
	why   string
}

func (r *readiness) set(ready bool, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready, r.why = ready, why
}

func (r *readiness) get() (bool, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready, r.why
}

func newAgent(cfg *Config, c clock.Clock, log *slog.Logger) (*agent, error) {
	a := &agent{
		cfg: cfg, log: log, clock: c, proxy: network.Proxy{HTTPS: cfg.HTTPSProxy, HTTP: cfg.HTTPProxy, None: cfg.NoProxy},
		renewNow: make(chan chan error), refused: make(chan struct{}, 1), stopping: make(chan struct{}),
		current: wire.RoleStandby, changed: make(chan struct{}),
	}
	var err error
	if a.roots, err = network.Roots([]string{cfg.CAFile}, nil); err != nil {
		return nil, fmt.Errorf("PROXIMA_CA_FILE: %w", err)
	}
	if _, err = network.Roots([]string{cfg.NATSCAFile}, nil); err != nil {
		return nil, fmt.Errorf("PROXIMA_NATS_CA_FILE: %w", err)
	}
	a.kube, a.kubeErr = kubernetesClient(cfg, a.proxy)
	return a, nil
}

// Run is the agent's life. It returns nil after ctx ended and everything was stopped in order, and an
// error where a person must act.
func Run(ctx context.Context, cfg *Config, c clock.Clock, log *slog.Logger) error {
	a, err := newAgent(cfg, c, log)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	if a.metrics, err = newMetrics(registry); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	server, err := health.Start(ctx, cfg.MetricsAddr, registry, a.isReady, log)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "cluster agent started", "version", version.String(), "metrics_addr", server.Addr())
	stopServer := sync.OnceFunc(func() {
		if err := server.Stop(context.WithoutCancel(ctx)); err != nil {
			log.WarnContext(ctx, "health endpoints did not stop cleanly", "reason", err.Error())
		}
	})
	defer stopServer()

	if !cfg.BackendURL.IsSet() {
		a.ready.set(false, "waiting for PROXIMA_BACKEND_URL")
		log.WarnContext(ctx, "PROXIMA_BACKEND_URL is empty: waiting, nothing is sent", "cure", "set it as the wizard prints it, for example with kubectl set env")
		<-ctx.Done()
		return nil
	}
	if a.request, err = cfg.request(version.String()); err != nil {
		return err
	}
	if a.store, err = identity.Open(cfg.DataDir); err != nil {
		return err
	}
	defer a.store.Close()
	state, err := a.bind(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	case a.kube == nil:
		return a.kubeErr
	}
	return a.work(ctx, state, stopServer)
}

// work runs the parts of an enrolled agent, and stops them in the order of B-90 to B-93.
func (a *agent) work(ctx context.Context, state identity.State, stopServer func()) error {
	a.creds.set(state)
	var err error
	if a.api, err = a.client(); err != nil {
		return err
	}
	if a.connection, err = a.connect(state); err != nil {
		return err
	}
	a.ready.set(true, "enrolled")

	// The signal must not cut a sync short, so the parts run on a context of their own.
	base := context.WithoutCancel(ctx)
	electing, endElection := context.WithCancel(base)
	defer endElection()
	serving, endService := context.WithCancel(base)
	defer endService()
	connecting, endConnection := context.WithCancel(base)
	defer endConnection()

	var service, connected sync.WaitGroup
	connected.Go(func() { a.connection.Run(connecting) })
	service.Go(func() { a.renewals(serving) })
	service.Go(func() { a.presence(serving) })
	service.Go(func() {
		if state.EnrolledAt.Before(a.clock.Now().Add(-time.Minute)) { // a restart: findings of today
			a.examine(serving)
		}
	})
	elected := make(chan error, 1)
	go func() { elected <- a.elect(electing, a.lead) }()

	var failed error
	select {
	case <-ctx.Done():
		a.log.InfoContext(ctx, "stopping")
	case failed = <-elected:
	}
	stopServer()
	close(a.stopping)
	a.awaitSync()
	endElection()
	if failed == nil {
		failed = <-elected
	}
	endService()
	service.Wait()
	endConnection()
	connected.Wait()
	a.log.InfoContext(ctx, "stopped")
	return failed
}

// awaitSync waits for the sync in progress, but not beyond the grace that a pod has.
func (a *agent) awaitSync() {
	idle := make(chan struct{})
	go func() {
		a.syncing.Lock()
		defer a.syncing.Unlock()
		close(idle)
	}()
	timer := a.clock.NewTimer(syncGrace)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C():
		a.log.Warn("the sync in progress took too long and was cut off")
	}
}

func (a *agent) client() (*enroll.Client, error) {
	return enroll.New(string(a.cfg.BackendURL), a.token, network.HTTPClient(a.roots, a.proxy, apiTimeout))
}

func (a *agent) connect(state identity.State) (*connection.Connection, error) {
	roots, err := a.natsRoots(state)
	if err != nil {
		return nil, err
	}
	key, err := state.Key()
	if err != nil {
		return nil, err
	}
	return connection.New(connection.Options{
		AgentID: state.AgentID, URLs: a.natsURLs(state), Roots: roots, Proxy: a.proxy,
		JWT:       func() string { return a.creds.get().Credential.JWT },
		Sign:      key.Sign,
		Subscribe: a.subscribe,
		Refused: func(error) {
			select {
			case a.refused <- struct{}{}:
			default:
			}
		},
		Clock: a.clock, Log: a.log,
	})
}

func (a *agent) natsURLs(state identity.State) []string {
	if len(a.cfg.NATSURL) > 0 {
		return a.cfg.NATSURL
	}
	return state.NATSURLs
}

func (a *agent) natsRoots(state identity.State) (*x509.CertPool, error) {
	return network.Roots([]string{a.cfg.CAFile, a.cfg.NATSCAFile}, []string{state.NATSCA})
}

func (a *agent) isReady() (bool, string) {
	ready, why := a.ready.get()
	if !ready {
		return false, why
	}
	why = "ready"
	_, err := a.connection.Conn()
	if err != nil {
		why = err.Error()
	}
	return err == nil, strings.Join(append([]string{why}, a.creds.troubles()...), "; ")
}

// subject is what the self-check looks at, as things stand.
func (a *agent) subject() doctor.Subject {
	state := a.creds.get()
	s := doctor.Subject{
		Backend: string(a.cfg.BackendURL), Token: a.cfg.InstallToken.Reveal(), Enrolled: state.Enrolled(), NATSURLs: a.natsURLs(state),
		Roots: a.roots, NATS: a.roots, Proxy: a.proxy, Kubernetes: a.kube, KubernetesError: a.kubeErr, Clock: a.clock,
	}
	if roots, err := a.natsRoots(state); err == nil {
		s.NATS = roots
	}
	if a.cfg.elects() {
		s.LeaseNamespace, s.LeaseName = a.cfg.PodNamespace, leaseName
	}
	return s
}

// Doctor makes the self-check once, prints it, and reports whether anything failed. It reads the state
// file where there is one and leaves everything as it is.
func Doctor(ctx context.Context, cfg *Config, c clock.Clock, log *slog.Logger, out io.Writer) (healthy bool, err error) {
	a, err := newAgent(cfg, c, log)
	if err != nil {
		return false, err
	}
	var findings []doctor.Finding
	state, err := identity.Read(cfg.DataDir, AgentType)
	switch {
	case err == nil && state.Enrolled():
		a.creds.set(state)
		findings = append(findings, doctor.Finding{Check: "identity", Status: doctor.OK, Message: fmt.Sprintf("enrolled as %s (agent %s, cluster %s)", state.Name, state.AgentID, state.ClusterSlug)})
	case err == nil || errors.Is(err, identity.ErrNone):
		findings = append(findings, doctor.Finding{Check: "identity", Status: doctor.Skipped, Message: "not enrolled yet"})
	default:
		findings = append(findings, doctor.Finding{Check: "identity", Status: doctor.Failed, Message: err.Error(), Cure: "see the text"})
	}
	findings = append(findings, doctor.Run(ctx, a.subject())...)
	doctor.Print(out, findings)
	return !doctor.AnyFailed(findings), nil
}

func (a *agent) collector() *collector.Collector {
	return collector.New(collector.Options{
		Client: a.kube, PodLimit: a.cfg.PodLimit, Exclude: a.cfg.ExcludeNamespaces,
		ClusterName: a.cfg.ClusterName, ClusterSlug: a.request.ClusterSlug, Clock: a.clock, Log: a.log,
	})
}
