// Command proxima-console is Proxima Console: pages, HTTP API, ingest, and whatever is embedded.
//
// Exit codes: 0 after a signal and an orderly stop, 1 where it could not start or go on, 2 for a wrong
// flag or variable.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/config"
	"prxm.uz/proxima/internal/console"
	"prxm.uz/proxima/internal/console/natsauth"
	"prxm.uz/proxima/internal/version"
)

// commands is what the command line offers.
type commands struct {
	Serve     serve     `cmd:"" default:"withargs" help:"Serve until a signal comes."`
	NatsSetup natsSetup `cmd:"" help:"Write keys and configuration for a NATS of your own."`
}

type serve struct{ console.Config }

// Validate checks the values; kong calls it.
func (s *serve) Validate() error { return s.Config.Validate() }

type natsSetup struct {
	Dir           string `arg:"" default:"nats" help:"Directory to write to."`
	DataDir       string `name:"nats-data-dir" default:"/var/lib/nats" help:"Where the servers keep JetStream and accounts."`
	Port          int    `name:"port" default:"4222" help:"Port for agents and console; -1 takes a free one."`
	WebSocketPort int    `name:"websocket-port" default:"8443" help:"Port for NATS over WebSocket; -1 takes a free one."`
	CertFile      string `name:"cert-file" default:"/etc/nats/tls/tls.crt" help:"The servers' certificate."`
	KeyFile       string `name:"key-file" default:"/etc/nats/tls/tls.key" help:"The certificate's key."`
	NoTLS         bool   `name:"no-tls" help:"Leave TLS out: for servers on loopback, or behind a proxy that ends TLS."`
}

// gcPercent is Go's own default: console's peaks come from backlogs, which the limit tames.
const gcPercent = 100

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	program := config.Program{
		Name: "proxima-console", Description: "Shows what runs in your Kubernetes clusters, without a way into them.",
		Version: version.String(), KnownVariables: []string{"PROXIMA_TEST_CLOCK_FILE"},
	}
	var cmd commands
	result, err := config.Parse(program, &cmd, args, environ, stdout, stderr)
	if err != nil {
		return config.Report(program, err, stderr)
	}
	c := clock.Process(os.Getenv)
	if result.Command == "nats-setup" {
		return cmd.NatsSetup.run(c, stdout, stderr)
	}
	cfg := &cmd.Serve.Config
	log, err := logger(cfg, stderr)
	if err != nil {
		return config.Report(program, err, stderr)
	}
	for _, warning := range result.Warnings {
		log.WarnContext(ctx, "configuration", "warning", warning)
	}
	if limit := config.LimitMemory("/sys/fs/cgroup", gcPercent); limit > 0 {
		log.InfoContext(ctx, "memory limit set", "bytes", limit)
	}
	if err := console.Run(ctx, cfg, result.Settings, c, log, stdout); err != nil {
		log.ErrorContext(ctx, "console cannot go on", "error", err.Error())
		return 1
	}
	return 0
}

func logger(cfg *console.Config, stderr io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return nil, err
	}
	options := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(stderr, options)), nil
	}
	return slog.New(slog.NewTextHandler(stderr, options)), nil
}

func (n *natsSetup) run(c clock.Clock, stdout, stderr io.Writer) int {
	paths, err := natsauth.Setup(n.Dir, natsauth.Options{
		DataDir: n.DataDir, CertFile: n.CertFile, KeyFile: n.KeyFile, NoTLS: n.NoTLS, Port: n.Port, WebSocketPort: n.WebSocketPort, Now: c.Now(),
	})
	if err != nil {
		fmt.Fprintf(stderr, "proxima-console nats-setup: %v\n", err)
		return 1
	}
	fmt.Fprintln(stdout, "Written:")
	for _, path := range paths {
		fmt.Fprintln(stdout, "  "+path)
	}
	fmt.Fprintln(stdout, "Give the keys to console as PROXIMA_NATS_KEYS_DIR, the .conf files to the servers.")
	return 0
}
