// Package health owns an agent's HTTP endpoints: /healthz says that the process lives (B-108), /readyz
// that it is enrolled and connected to NATS (B-109), /metrics is for Prometheus (B-103). It serves
// nothing else, and nobody can change anything through it.
package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// stopTimeout is how long the server waits for requests in flight (B-91).
const stopTimeout = 5 * time.Second

// Server serves the endpoints until it is stopped.
type Server struct {
	listener net.Listener
	http     *http.Server
	done     chan error
}

// Start listens on address and serves. ready returns whether the agent is ready, and why not.
func Start(ctx context.Context, address string, gatherer prometheus.Gatherer, ready func() (bool, string), log *slog.Logger) (*Server, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("PROXIMA_METRICS_ADDR %s: %w: choose another address", address, err)
	}
	s := &Server{
		listener: listener,
		http: &http.Server{
			Handler:           handler(gatherer, ready),
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       time.Minute,
			MaxHeaderBytes:    16 << 10,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
		done: make(chan error, 1),
	}
	go func() { s.done <- s.http.Serve(listener) }()
	return s, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Stop ends the server; requests in flight have 5 seconds.
func (s *Server) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func handler(gatherer prometheus.Gatherer, ready func() (bool, string)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		ok, why := ready()
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, why)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	return mux
}
