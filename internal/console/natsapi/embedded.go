package natsapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"prxm.uz/proxima/internal/console/natsauth"
	"prxm.uz/proxima/internal/wire"
)

const (
	// maxPending is above the budget of the relay's windows, so that a slow client is not cut off.
	maxPending    = 128 << 20
	writeDeadline = 30 * time.Second
	startTimeout  = 30 * time.Second
	// DefaultStoreLimit bounds JetStream's files, in bytes: 1,000 agents with 1 MB took 1.4 GB.
	DefaultStoreLimit = 10 << 30
)

// EmbeddedConfig is what the NATS server inside console needs.
type EmbeddedConfig struct {
	// Dir holds JetStream and the accounts, mode 0700.
	Dir string
	// Listen is host:port for agents; port 0 takes a free one. Without TLS the host must be a loopback
	// address.
	Listen string
	TLS    *tls.Config
	// StoreLimit bounds JetStream's files, in bytes; zero means DefaultStoreLimit.
	StoreLimit int64
	// MaxConnections is how many clients may be connected; zero means as many as the server itself allows. One
	// that comes by WebSocket takes three descriptors of the process, and without one left neither pages are
	// served nor inventories stored.
	MaxConnections int
	Authority      *natsauth.Authority
	// Revocations are the revoked keys that are known at start.
	Revocations map[string]time.Time
	// Now is console's time at start.
	Now    time.Time
	Logger *slog.Logger
}

// Embedded is a NATS server inside this process. Its methods may be called from several goroutines.
type Embedded struct {
	server    *server.Server
	websocket string // host:port
	logger    *slog.Logger
}

// StartEmbedded starts the server in operator mode with JetStream, and returns when it accepts
// connections. A second process on the same directory is kept out by console's lock, not here.
func StartEmbedded(ctx context.Context, c EmbeddedConfig) (*Embedded, error) {
	opts, err := c.options()
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("make the embedded NATS server: %w", err)
	}
	s.SetLoggerV2(serverLog{c.Logger}, false, false, false)
	if err := c.preload(opts.AccountResolver); err != nil {
		return nil, err
	}
	s.Start()
	stopEarly := context.AfterFunc(ctx, s.Shutdown)
	ready := s.ReadyForConnections(startTimeout)
	stopEarly()
	if !ready || !s.JetStreamEnabled() {
		s.Shutdown()
		return nil, fmt.Errorf("embedded NATS did not start on %s: see its log lines; is the port taken, or the directory %s in use?", c.Listen, c.Dir)
	}
	ports := s.PortsInfo(startTimeout)
	if ports == nil || len(ports.WebSocket) == 0 {
		s.Shutdown()
		return nil, errors.New("embedded NATS has no WebSocket port: see its log lines")
	}
	u, err := url.Parse(ports.WebSocket[0])
	if err != nil {
		s.Shutdown()
		return nil, fmt.Errorf("read the WebSocket address %q: %w", ports.WebSocket[0], err)
	}
	return &Embedded{server: s, websocket: u.Host, logger: c.Logger}, nil
}

func (c EmbeddedConfig) options() (*server.Options, error) {
	host, portText, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("NATS address %q: write it as host:port", c.Listen)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("NATS address %q: the port is a number from 0 to 65535", c.Listen)
	}
	if ip := net.ParseIP(host); c.TLS == nil && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("NATS address %q without a certificate: set PROXIMA_TLS_CERT_FILE and PROXIMA_TLS_KEY_FILE, or listen on 127.0.0.1", c.Listen)
	}
	token, err := c.Authority.OperatorJWT()
	if err != nil {
		return nil, err
	}
	operator, err := jwt.DecodeOperatorClaims(token)
	if err != nil {
		return nil, fmt.Errorf("decode the operator's claims: %w", err)
	}
	accounts := filepath.Join(c.Dir, "accounts")
	for _, dir := range []string{c.Dir, accounts} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the directory of NATS: %w", err)
		}
	}
	resolver, err := server.NewDirAccResolver(accounts, 0, 30*time.Second, server.NoDelete)
	if err != nil {
		return nil, fmt.Errorf("open the accounts in %s: %w", accounts, err)
	}
	o := &server.Options{
		ServerName: "proxima-console", Host: host, Port: int(port), NoSigs: true,
		MaxPayload: wire.MaxPayload, MaxPending: maxPending, WriteDeadline: writeDeadline,
		MaxConn: c.MaxConnections, PingInterval: 20 * time.Second, MaxPingsOut: 3,
		JetStream: true, StoreDir: c.Dir, JetStreamMaxStore: c.StoreLimit,
		TrustedOperators: []*jwt.OperatorClaims{operator}, SystemAccount: c.Authority.SystemAccount(), AccountResolver: resolver,
		// No TLS here: console's own listener ends it and passes /nats on.
		Websocket: server.WebsocketOpts{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoTLS: true, HandshakeTimeout: 10 * time.Second},
	}
	if port == 0 {
		o.Port = server.RANDOM_PORT
	}
	if o.JetStreamMaxStore == 0 {
		o.JetStreamMaxStore = DefaultStoreLimit
	}
	if c.TLS != nil {
		o.TLSConfig, o.TLS, o.TLSTimeout = c.TLS.Clone(), true, 10
	}
	return o, nil
}

// preload writes the claims before the server reads them, so that a revoked key never gets in.
func (c EmbeddedConfig) preload(resolver server.AccountResolver) error {
	known := map[string]time.Time{}
	if token, err := resolver.Fetch(c.Authority.AgentsAccount()); err == nil {
		if known, err = c.Authority.Revocations(token); err != nil {
			return fmt.Errorf("accounts in %s: %w", c.Dir, err)
		}
	}
	agents, err := c.Authority.AccountJWT(union(known, c.Revocations), c.Now)
	if err != nil {
		return err
	}
	system, err := c.Authority.SystemAccountJWT()
	if err != nil {
		return err
	}
	for account, token := range map[string]string{c.Authority.AgentsAccount(): agents, c.Authority.SystemAccount(): system} {
		if err := resolver.Store(account, token); err != nil {
			return fmt.Errorf("store the claims of account %s: %w", account, err)
		}
	}
	return nil
}

// Addr is where agents connect by TCP.
func (e *Embedded) Addr() net.Addr { return e.server.Addr() }

// WebSocketHandler passes WebSocket connections on to the embedded server; see [WebSocketProxy].
func (e *Embedded) WebSocketHandler() http.Handler {
	return WebSocketProxy(&url.URL{Scheme: "http", Host: e.websocket}, nil, e.logger)
}

// WebSocketProxy passes WebSocket connections on to the NATS server whose WebSocket port has the given
// http or https address, so that agents need no other port than console's own. A nil trust takes
// the system's roots.
func WebSocketProxy(address *url.URL, trust *tls.Config, logger *slog.Logger) http.Handler {
	target := &url.URL{Scheme: address.Scheme, Host: address.Host, Path: "/"}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			out := *target
			r.Out.URL = &out // other paths would reach leafnodes and MQTT
			r.SetXForwarded()
		},
		Transport: &http.Transport{
			DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, TLSClientConfig: trust,
		},
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			logger.WarnContext(r.Context(), "websocket could not be passed to NATS", "error", err)
			http.Error(w, "NATS does not answer", http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			w.Header().Set("Upgrade", "websocket")
			http.Error(w, "this address speaks NATS over WebSocket", http.StatusUpgradeRequired)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// Shutdown stops the server, clients are dropped; it returns when files are closed, or when ctx ends.
func (e *Embedded) Shutdown(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		e.server.Shutdown()
		e.server.WaitForShutdown()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("embedded NATS still stops: %w", ctx.Err())
	}
}

// serverLog passes the server's lines on; what it calls fatal does not end console.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats server", "text", fmt.Sprintf(format, v...))
}

func (l serverLog) Warnf(format string, v ...any) {
	if strings.HasPrefix(format, "Websocket not configured with TLS") {
		return // it listens on loopback, for console's own listener
	}
	l.log.Warn("nats server", "text", fmt.Sprintf(format, v...))
}

func (l serverLog) Errorf(format string, v ...any) {
	text, level := fmt.Sprintf(format, v...), slog.LevelError
	if strings.HasSuffix(text, "authentication error") {
		level = slog.LevelInfo // the client's fault: one that is kept out tries again and again
	}
	l.log.Log(context.Background(), level, "nats server", "text", text)
}

func (l serverLog) Fatalf(format string, v ...any) {
	l.log.Error("nats server cannot go on", "text", fmt.Sprintf(format, v...))
}

func (l serverLog) Debugf(format string, v ...any) {
	l.log.Debug("nats server", "text", fmt.Sprintf(format, v...))
}
func (l serverLog) Tracef(string, ...any) {}
