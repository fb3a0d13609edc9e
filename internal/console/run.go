package console

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/config"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/access/session"
	"prxm.uz/proxima/internal/console/audit/trail"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/health"
	"prxm.uz/proxima/internal/console/install"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/natsapi"
	"prxm.uz/proxima/internal/console/natsauth"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/console/store"
	"prxm.uz/proxima/internal/console/tenancy"
	"prxm.uz/proxima/internal/version"
)

// How long the parts may take to end: open requests, then NATS.
const (
	requestGrace = 15 * time.Second
	natsGrace    = 10 * time.Second
)

// console is the parts that stand on each other. It is written while they start, and read-only after.
type console struct {
	cfg      *Config
	settings []config.Setting
	clock    clock.Clock
	log      *slog.Logger
	registry *prometheus.Registry

	certificate *tls.Config // nil: plain HTTP
	natsTrust   *tls.Config // nil: the system's roots
	natsCA      string      // PEM, "" if none
	publicURL   string

	db         *store.DB
	embedded   *natsapi.Embedded // nil: a NATS of the operator's own
	nats       *natsapi.Connection
	ingest     *natsapi.Server
	authority  *natsauth.Authority
	access     *access.Service
	sessions   *session.Manager
	tenancy    *tenancy.Service
	enrollment *enrollment.Service
	fleet      *fleet.Service
	inventory  *inventory.Service
	onboarding *onboarding.Service
	health     *health.Service
	trail      *trail.Service
}

// Run starts console and serves until ctx ends; then it stops every part in order and returns nil. An
// error says which part did not start, and what cures it. Output gets the first administrator's
// password, once; it goes to no log. Settings are what cfg was made of, to be shown.
func Run(ctx context.Context, cfg *Config, settings []config.Setting, c clock.Clock, log *slog.Logger, output io.Writer) (err error) {
	s := &console{cfg: cfg, settings: settings, clock: c, log: log, registry: prometheus.NewRegistry()}
	var ends ending
	defer func() { err = errors.Join(err, ends.run()) }()

	if err := s.openData(ctx, &ends); err != nil {
		return err
	}
	listener, err := listen(ctx, "PROXIMA_LISTEN_ADDR", cfg.ListenAddr)
	if err != nil {
		return err
	}
	ends.add(func() error { return ignoreClosed(listener.Close()) })
	s.publicURL = cfg.publicURL(listener.Addr())

	if err := s.startNATS(ctx, &ends); err != nil {
		return err
	}
	if err := s.assemble(); err != nil {
		return err
	}
	if err := s.firstRun(ctx, output); err != nil {
		return err
	}
	handler, err := s.handler()
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "console started", "version", version.String(), "listen_addr", listener.Addr().String(), "public_url", s.publicURL)
	return s.serve(ctx, listener, handler, &ends)
}

// ending runs the ends of what was started, the last one first.
type ending struct{ steps []func() error }

func (e *ending) add(step func() error) { e.steps = append(e.steps, step) }

func (e *ending) run() error {
	var err error
	for i := len(e.steps) - 1; i >= 0; i-- {
		err = errors.Join(err, e.steps[i]())
	}
	e.steps = nil
	return err
}

// openData locks the data directory, reads certificates and keys, and opens the database.
func (s *console) openData(ctx context.Context, ends *ending) error {
	cfg := s.cfg
	if cfg.embeds() {
		if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
			return dataDirError(cfg.DataDir, err)
		}
		unlock, err := lockDirectory(cfg.DataDir)
		if err != nil {
			return err
		}
		ends.add(unlock)
	}
	if err := s.readCertificates(); err != nil {
		return err
	}
	where := store.Config{URL: cfg.DatabaseURL.Reveal(), Logger: s.log, Clock: s.clock}
	if where.URL == "" {
		where.Path = filepath.Join(cfg.DataDir, "console.db")
	}
	var err error
	if s.db, err = store.Open(ctx, where); err != nil {
		if where.URL != "" {
			return fmt.Errorf("PROXIMA_DATABASE_URL: open the database: %w", err)
		}
		return fmt.Errorf("PROXIMA_DATA_DIR %s: open the database: %w", cfg.DataDir, err)
	}
	ends.add(s.db.Close)

	load := natsauth.LoadOrCreate
	if len(cfg.NATSURL) > 0 {
		load = natsauth.Load // keys that the servers do not know would lock everybody out
	}
	keys, err := load(cfg.keysDir())
	if err != nil {
		return fmt.Errorf("keys of NATS in %s: %w%s", cfg.keysDir(), err, cureOfKeys(err, len(cfg.NATSURL) > 0))
	}
	s.authority, err = natsauth.New(keys, cfg.CredentialTTL)
	return err
}

func dataDirError(dir string, err error) error {
	return fmt.Errorf("PROXIMA_DATA_DIR %s: %w; give a directory that console's user may write, such as /var/lib/proxima on a volume", dir, err)
}

// cureOfKeys is for keys that cannot be reached. Those that are there and damaged bring their own cure: made anew,
// they would lock every agent out.
func cureOfKeys(err error, external bool) string {
	if _, unreachable := errors.AsType[*fs.PathError](err); !unreachable {
		return ""
	}
	if external {
		return "; run proxima-console nats-setup and give its keys directory as PROXIMA_NATS_KEYS_DIR"
	}
	return "; give a directory that console's user may write as PROXIMA_NATS_KEYS_DIR"
}

func (s *console) readCertificates() error {
	cfg := s.cfg
	if cfg.tls() {
		pair, err := tls.LoadX509KeyPair(cfg.TLSCertFile, cfg.TLSKeyFile)
		if err != nil {
			return fmt.Errorf("PROXIMA_TLS_CERT_FILE %s and PROXIMA_TLS_KEY_FILE %s: %w; give a PEM file of the certificate with its chain and one of the key that belongs to it, readable for console's user", cfg.TLSCertFile, cfg.TLSKeyFile, err)
		}
		s.certificate = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	if cfg.NATSCAFile == "" {
		return nil
	}
	pem, err := os.ReadFile(cfg.NATSCAFile)
	if err != nil {
		return fmt.Errorf("PROXIMA_NATS_CA_FILE %s: %w; give a PEM file that console's user may read", cfg.NATSCAFile, err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("PROXIMA_NATS_CA_FILE %s holds no PEM certificate; give a file that contains -----BEGIN CERTIFICATE-----", cfg.NATSCAFile)
	}
	s.natsCA, s.natsTrust = string(pem), &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return nil
}

// startNATS starts the embedded server, if it is wanted, and connects.
func (s *console) startNATS(ctx context.Context, ends *ending) error {
	cfg := s.cfg
	if len(cfg.NATSURL) == 0 {
		revoked, err := s.db.Fleet().Revoked(ctx, s.clock.Now().Add(-s.authority.TTL()))
		if err != nil {
			return fmt.Errorf("list revoked keys: %w", err)
		}
		host := "127.0.0.1"
		if cfg.tls() {
			host = ""
			if h, _, err := net.SplitHostPort(cfg.ListenAddr); err == nil {
				host = h
			}
		}
		s.embedded, err = natsapi.StartEmbedded(ctx, natsapi.EmbeddedConfig{
			Dir: filepath.Join(cfg.DataDir, "nats"), Listen: net.JoinHostPort(host, strconv.Itoa(cfg.NATSPort)), TLS: s.certificate,
			MaxConnections: maxConnections(natsShare), Authority: s.authority, Revocations: revoked, Now: s.clock.Now(), Logger: s.log,
		})
		if err != nil {
			return fmt.Errorf("start NATS (PROXIMA_NATS_PORT): %w", err)
		}
		ends.add(func() error {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), natsGrace)
			defer cancel()
			return s.embedded.Shutdown(stop)
		})
	}
	var err error
	s.nats, err = natsapi.Connect(ctx, natsapi.ConnectConfig{
		Embedded: s.embedded, URLs: cfg.NATSURL, TLS: s.natsTrust, Authority: s.authority, Revocations: s.db.Fleet(),
		Clock: s.clock, Logger: s.log,
	})
	if err != nil {
		return err
	}
	ends.add(func() error { s.nats.Close(); return nil })
	return nil
}

// assemble makes the services out of each other.
func (s *console) assemble() error {
	hasher, err := access.NewHasher(access.DefaultCost())
	if err != nil {
		return err
	}
	observer, err := newInventoryMetrics(s.registry)
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	if err := errors.Join(s.registry.Register(collectors.NewGoCollector()),
		s.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	natsPort := s.cfg.NATSPort
	if s.embedded != nil {
		if address, ok := s.embedded.Addr().(*net.TCPAddr); ok {
			natsPort = address.Port
		}
	}
	db := s.db
	s.access = access.New(db.Access(), hasher, s.clock, s.log)
	s.sessions = session.New(db.Access(), session.Options{Secure: strings.HasPrefix(s.publicURL, "https:"), Clock: s.clock, Logger: s.log})
	s.tenancy = tenancy.New(db.Tenancy(), hasher, s.clock)
	s.fleet = fleet.New(fleet.Config{Store: db.Fleet(), Revoker: s.nats, Commander: s.nats, Clock: s.clock, Logger: s.log})
	s.enrollment = enrollment.New(enrollment.Config{
		Store: db.Enrollment(), Authority: s.authority, Fleet: db.Fleet(), Clock: s.clock, Logger: s.log,
		NATSURLs: s.cfg.agentNATSURLs(s.publicURL, natsPort), NATSCA: s.natsCA,
	})
	s.inventory = inventory.New(inventory.Config{Store: db.Inventory(), Agents: db.Fleet(), Clock: s.clock, Logger: s.log, Observer: observer})
	s.onboarding = onboarding.New(onboarding.Config{
		Store: db.Onboarding(), Environments: db.Enrollment(), Clock: s.clock, Logger: s.log,
		PublicURL: s.publicURL, SyncInterval: s.cfg.SyncInterval,
	})
	s.trail = trail.New(trail.Config{Store: db.Audit(), Clock: s.clock, Logger: s.log, Retention: s.cfg.AuditRetention})
	if _, err := install.File("deployment.yaml", s.image()); err != nil {
		return fmt.Errorf("PROXIMA_IMAGE_REGISTRY: %w", err)
	}
	s.ingest, err = natsapi.New(natsapi.Config{
		OwnStream: s.embedded != nil, Control: s.nats,
		Conn: s.nats.Conn, JetStream: s.nats.JetStream, Inventory: s.inventory, Fleet: s.fleet, Clock: s.clock, Logger: s.log, Registry: s.registry,
	})
	s.assembleHealth()
	return err
}

func (s *console) image() install.Image {
	return install.Image{Registry: s.cfg.ImageRegistry, Tag: install.Tag(version.String())}
}

// firstRun makes the built-in roles, and the first administrator where there is no user.
func (s *console) firstRun(ctx context.Context, output io.Writer) error {
	password, made := s.cfg.AdminPassword.Reveal(), false
	if password == "" {
		password, made = rand.Text(), true
	}
	created, err := s.tenancy.EnsureAdministrator(ctx, s.cfg.AdminEmail, password)
	if p, ok := errors.AsType[*problem.Error](err); ok {
		return fmt.Errorf("make the first administrator (PROXIMA_ADMIN_EMAIL, PROXIMA_ADMIN_PASSWORD): %w %s", err, p.Cure)
	}
	if err != nil {
		return fmt.Errorf("make the first administrator (PROXIMA_ADMIN_EMAIL, PROXIMA_ADMIN_PASSWORD): %w", err)
	}
	if !created {
		return nil
	}
	s.log.InfoContext(ctx, "first administrator made", "email", s.cfg.AdminEmail)
	if made {
		_, err = fmt.Fprintf(output, "\nThe first administrator of this console, shown once:\n\n  address   %s\n  e-mail    %s\n  password  %s\n\nChange the password under Profile after signing in.\n\n",
			s.publicURL, s.cfg.AdminEmail, password)
	}
	return err
}

// serve runs everything that runs until ctx ends, and stops it in order: first requests, then workers.
func (s *console) serve(ctx context.Context, listener net.Listener, handler http.Handler, ends *ending) error {
	workers, stopWorkers := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	failed := make(chan error, 3)
	group.Go(func() {
		if err := s.ingest.Run(workers); err != nil {
			failed <- fmt.Errorf("ingest: %w", err)
		}
	})
	group.Go(func() { s.onboarding.Run(workers) })
	group.Go(func() {
		s.every(workers, time.Hour, "sessions that ended and old sign-ins were not forgotten", s.access.Forget)
	})
	group.Go(func() { s.every(workers, time.Hour, "old rows of the audit log were not removed", s.trail.Prune) })
	group.Go(func() {
		s.every(workers, conflictsEvery, "conflicts of identity were not looked through", func(ctx context.Context) error {
			return s.inventory.EndConflicts(ctx, 2*s.cfg.SyncInterval)
		})
	})
	ends.add(func() error { stopWorkers(); group.Wait(); return nil })

	if s.cfg.MetricsAddr != "" {
		if err := s.serveMetrics(ctx, failed, ends); err != nil {
			return err
		}
	}
	web := newServer(ctx, handler, s.log, maxConnections(httpShare))
	group.Go(func() {
		var err error
		if s.certificate != nil {
			web.server.TLSConfig = s.certificate.Clone()
			err = web.server.ServeTLS(listener, "", "")
		} else {
			err = web.server.Serve(listener)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve: %w", err)
		}
	})
	ends.add(func() error { return web.stop(ctx) })
	select {
	case <-ctx.Done():
		s.log.InfoContext(context.WithoutCancel(ctx), "console stops")
		return nil
	case err := <-failed:
		return err
	}
}

// conflictsEvery is how often conflicts of identity are looked through.
const conflictsEvery = 30 * time.Second

// every does a piece of upkeep at once and at each interval, until ctx ends. A failure is logged with what it left
// undone; the next round tries again.
func (s *console) every(ctx context.Context, interval time.Duration, undone string, do func(context.Context) error) {
	ticker := s.clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "upkeep failed, the next round tries again", "undone", undone, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// websocket answers /nats: the embedded server's, or that of the operator's own NATS; nil if neither.
func (s *console) websocket() http.Handler {
	if s.embedded != nil {
		return s.embedded.WebSocketHandler()
	}
	u, err := url.Parse(s.cfg.NATSWebSocketURL)
	if err != nil || u.Host == "" {
		return nil
	}
	target := url.URL{Scheme: "http", Host: u.Host}
	if u.Scheme == "wss" {
		target.Scheme = "https"
	}
	return natsapi.WebSocketProxy(&target, s.natsTrust, s.log)
}
