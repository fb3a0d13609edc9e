package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/access/session"
	"prxm.uz/proxima/internal/console/httpapi"
	"prxm.uz/proxima/internal/console/install"
	"prxm.uz/proxima/internal/console/natsauth"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/console/tenancy"
	"prxm.uz/proxima/internal/console/web"
	"prxm.uz/proxima/internal/version"
)

const (
	headerTimeout = 10 * time.Second
	// answerTimeout is how long a caller may take to accept an answer. Streams set their own for each write.
	answerTimeout = 2 * time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	// streamGrace is how long open streams go on once a stop began.
	streamGrace = 2 * time.Second
	readyWithin = 3 * time.Second
	// metricsConnections is how many may be open on the address of the metrics alone.
	metricsConnections = 64
)

func listen(ctx context.Context, variable, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; end the process that holds the address, or choose another, such as 127.0.0.1:8080", variable, err)
	}
	return l, nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// server is an HTTP server whose streams end before it does.
type server struct {
	server  *http.Server
	streams context.CancelFunc
}

func newServer(ctx context.Context, handler http.Handler, log *slog.Logger, most int) *server {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	open := newConnections(most)
	return &server{streams: cancel, server: &http.Server{
		Handler: open.bounded(handler), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ConnState: open.observe, ConnContext: open.remember, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return base },
	}}
}

// stop lets requests finish. Streams would outlast it, so they are ended after a moment.
func (s *server) stop(ctx context.Context) error {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestGrace)
	defer cancel()
	soon, cancelSoon := context.WithTimeout(grace, streamGrace)
	defer cancelSoon()
	defer context.AfterFunc(soon, s.streams)()
	if err := s.server.Shutdown(grace); err != nil {
		return errors.Join(fmt.Errorf("requests did not end within %s", requestGrace), s.server.Close())
	}
	return nil
}

// handler is everything that console answers on its one address.
func (s *console) handler() (http.Handler, error) {
	api, err := httpapi.New(httpapi.Config{
		Access: s.access, Sessions: s.sessions, Tenancy: s.tenancy, Enrollment: s.enrollment, Onboarding: s.onboarding,
		Inventory: s.inventory, Fleet: s.fleet, Health: s.health, Audit: s.trail, Clock: s.clock, Logger: s.log,
	})
	if err != nil {
		return nil, fmt.Errorf("assemble the API: %w", err)
	}
	pages, err := web.New(web.Config{
		Sessions: s.sessions, Access: pageAccess{s.access, s.tenancy}, Tenancy: s.tenancy, People: s.tenancy, Onboarding: s.onboarding, Inventory: s.inventory, Fleet: s.fleet, Health: s.health, Audit: s.trail,
		Enrollment: s.enrollment, Template: natsauth.Template, Clock: s.clock, Logger: s.log, Version: version.String(), PublicURL: s.publicURL, SyncInterval: s.cfg.SyncInterval,
	})
	if err != nil {
		return nil, fmt.Errorf("assemble the pages: %w", err)
	}
	if api, err = s.people(api, httpapi.Refuse(s.log), httpapi.ForeignOrigin()); err != nil {
		return nil, err
	}
	signedIn, err := s.people(pages, pages.Refuse, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusForbidden, "A page of another site asked for a change here. Open Console's own page and do it there. If it was Console's own, PROXIMA_PUBLIC_URL has to name its address.")
	}))
	if err != nil {
		return nil, err
	}

	mux := http.NewServeMux()
	mux.Handle("/", signedIn)
	mux.Handle("GET /static/", pages) // for everybody: the page that says that the database is away needs its looks
	read(mux, "/install/cluster-agent/{file}", http.HandlerFunc(s.serveManifest))
	read(mux, "/healthz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") }))
	read(mux, "/readyz", http.HandlerFunc(s.serveReadiness))
	if socket := s.websocket(); socket != nil {
		read(mux, "/nats", socket)
	}
	if s.cfg.MetricsAddr == "" {
		read(mux, "/metrics", http.HandlerFunc(s.servePrivateMetrics))
	}
	proxies, err := s.cfg.trusted()
	if err != nil {
		return nil, err
	}
	everything := apart(api, mux)
	if s.certificate != nil || strings.HasPrefix(s.publicURL, "https:") {
		everything = encryptedOnly(everything)
	}
	return recovered(s.log, forwarded(proxies, everything)), nil
}

// encryptedOnly tells browsers to come over TLS for a year, whatever a link says.
func encryptedOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		next.ServeHTTP(w, r)
	})
}

// read mounts what is read only: beside "/", which takes every method, the mux would pass the others on there.
func read(mux *http.ServeMux, path string, h http.Handler) {
	mux.Handle("GET "+path, h)
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", "GET, HEAD")
		plain(w, http.StatusMethodNotAllowed, "This address does not take "+r.Method+". It takes GET and HEAD.")
	})
}

// people puts the sessions in front of a handler, and refuses what a page of another site asks for.
func (s *console) people(h http.Handler, failed session.Refuse, stranger http.Handler) (http.Handler, error) {
	foreign := http.NewCrossOriginProtection()
	if err := foreign.AddTrustedOrigin(origin(s.publicURL)); err != nil {
		return nil, fmt.Errorf("PROXIMA_PUBLIC_URL: %w", err)
	}
	foreign.SetDenyHandler(stranger)
	return foreign.Handler(s.sessions.Middleware(h, failed)), nil
}

// apart gives the API every path that leads below /api, however it is written: a mux would redirect one
// with empty or dot segments, and the API answers with problems alone.
func apart(api, rest http.Handler) http.Handler {
	below := func(p string) bool { return p == "/api" || strings.HasPrefix(p, "/api/") }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if below(r.URL.Path) || below(path.Clean("/"+r.URL.Path)) {
			api.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

// origin is scheme, host and port of a URL.
func origin(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// pageAccess is what the pages ask about the person in front of them.
type pageAccess struct {
	*access.Service
	people *tenancy.Service
}

// ChangePassword implements web.Access.
func (a pageAccess) ChangePassword(ctx context.Context, p access.Principal, current, next string) error {
	return a.people.ChangePassword(ctx, p, current, next)
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // the caller may have gone
}

// serveManifest answers the files that printed commands fetch. They hold no secret.
func (s *console) serveManifest(w http.ResponseWriter, r *http.Request) {
	content, err := install.File(r.PathValue("file"), s.image())
	if err != nil {
		plain(w, http.StatusNotFound, "There is no such manifest. Those that are served: "+strings.Join(install.Files(), ", ")+".")
		return
	}
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(content) // the caller may have gone
}

// serveReadiness says which part console cannot work without now.
func (s *console) serveReadiness(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	if err := s.db.Ready(ctx); err != nil {
		s.log.WarnContext(ctx, "not ready: the database does not answer, or takes no writes", "error", err)
		plain(w, http.StatusServiceUnavailable, "The database does not answer, or takes no writes. Console’s log says why.")
		return
	}
	if err := s.ingest.Ready(); err != nil {
		s.log.WarnContext(ctx, "not ready: NATS", "error", err)
		plain(w, http.StatusServiceUnavailable, "NATS is not connected, or its stream stores nothing, as where its disk is full. Console’s log says which.")
		return
	}
	plain(w, http.StatusOK, "ok")
}

// servePrivateMetrics answers a bearer with settings:read on the whole console.
func (s *console) servePrivateMetrics(w http.ResponseWriter, r *http.Request) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		w.Header().Set("WWW-Authenticate", `Bearer realm="metrics"`)
		plain(w, http.StatusUnauthorized, "Metrics ask for an API token with settings:read. Set PROXIMA_METRICS_ADDR to serve them elsewhere without.")
		return
	}
	p, err := s.access.PrincipalOfToken(r.Context(), strings.TrimSpace(token), r.RemoteAddr)
	switch {
	case problem.Is(err, problem.Unauthenticated):
		plain(w, http.StatusUnauthorized, "This API token is not known, or has ended.")
		return
	case err != nil:
		s.log.ErrorContext(r.Context(), "metrics not served: the caller's API token cannot be looked up", "error", err)
		w.Header().Set("Retry-After", "5")
		plain(w, http.StatusServiceUnavailable, "The API token cannot be looked up now. Try again in some seconds; Console’s log names the reason.")
		return
	}
	if !p.Allows(access.SettingsRead, access.Scope{}) {
		plain(w, http.StatusForbidden, "This needs settings:read on the whole console.")
		return
	}
	s.metricsHandler().ServeHTTP(w, r)
}

func (s *console) metricsHandler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)})
}

// serveMetrics serves /metrics on a listener of its own.
func (s *console) serveMetrics(ctx context.Context, failed chan<- error, ends *ending) error {
	listener, err := listen(ctx, "PROXIMA_METRICS_ADDR", s.cfg.MetricsAddr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metricsHandler())
	m := newServer(ctx, mux, s.log, metricsConnections)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve metrics: %w", err)
		}
	}()
	ends.add(func() error { err := m.stop(ctx); <-done; return err })
	return nil
}

// forwarded writes the caller's own address into the request where a trusted proxy names it: the last
// address of X-Forwarded-For that is not a trusted proxy itself.
func forwarded(proxies []netip.Prefix, next http.Handler) http.Handler {
	trusts := func(a netip.Addr) bool {
		for _, p := range proxies {
			if p.Contains(a.Unmap()) {
				return true
			}
		}
		return false
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !trusts(peer.Addr()) {
			next.ServeHTTP(w, r)
			return
		}
		named := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for i := len(named) - 1; i >= 0; i-- {
			a, err := netip.ParseAddr(strings.TrimSpace(named[i]))
			if err != nil {
				break // what stands before it cannot be believed
			}
			r = r.WithContext(r.Context())
			r.RemoteAddr = netip.AddrPortFrom(a.Unmap().WithZone(""), 0).String() // a zone is any text, and means something on its own machine alone
			if !trusts(a) {
				break
			}
		}
		next.ServeHTTP(w, r)
	})
}

// recovered answers a panic of a handler with 500 and logs it.
func recovered(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { //nolint:contextcheck // the request carries it
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				log.ErrorContext(r.Context(), "a handler panicked", "method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(v))
				plain(w, http.StatusInternalServerError, "Something went wrong in Console; its log has the details.")
			}
		}()
		next.ServeHTTP(w, r)
	})
}
