// Command proxima-cluster-agent reads one cluster and publishes what it found to Proxima Console.
//
// Exit codes: 0 after a signal and an orderly stop, 1 where a person must act (a refusal of console, a
// state file that cannot be used, a failed check of doctor), 2 for a wrong flag or variable.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"prxm.uz/proxima/internal/agent/cluster"
	"prxm.uz/proxima/internal/agent/enroll"
	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/config"
	"prxm.uz/proxima/internal/version"
)

// commands is what the command line offers.
type commands struct {
	cluster.Config

	Run    struct{} `cmd:"" default:"1" help:"Collect and publish until a signal comes."`
	Doctor struct{} `cmd:"" help:"Check everything that the agent depends on, print it, and exit with 1 where something failed."`
}

// Validate checks the values; kong calls it.
func (c *commands) Validate() error { return c.Config.Validate() }

// gcPercent trades CPU, half a second a sync at 5,000 pods, for a heap that overshoots less than Go's
// usual 100 does.
const gcPercent = 40

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	program := config.Program{
		Name: "proxima-cluster-agent", Description: "Reads one Kubernetes cluster and publishes its inventory to Proxima Console.",
		Version: version.String(), KnownVariables: []string{"PROXIMA_TEST_CLOCK_FILE"},
	}
	var cmd commands
	result, err := config.Parse(program, &cmd, args, environ, stdout, stderr)
	if err != nil {
		return config.Report(program, err, stderr)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cmd.LogLevel)); err != nil {
		return config.Report(program, err, stderr)
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	for _, warning := range result.Warnings {
		log.WarnContext(ctx, "configuration", "warning", warning)
	}
	c := clock.Process(os.Getenv)
	if result.Command == "doctor" {
		healthy, err := cluster.Doctor(ctx, &cmd.Config, c, log, stdout)
		if err != nil {
			log.ErrorContext(ctx, "self-check cannot run", "reason", err.Error())
		}
		if err != nil || !healthy {
			return 1
		}
		return 0
	}
	if limit := config.LimitMemory("/sys/fs/cgroup", gcPercent); limit > 0 {
		log.InfoContext(ctx, "memory limit taken from the cgroup", "bytes", limit)
	}
	if err := cluster.Run(ctx, &cmd.Config, c, log); err != nil {
		attributes := []any{"reason", err.Error()}
		if refused, ok := errors.AsType[*enroll.Refusal](err); ok {
			attributes = []any{"status", refused.Status, "code", refused.Code, "detail", refused.Detail, "cure", refused.Cure}
		}
		log.ErrorContext(ctx, "cluster agent cannot go on", attributes...)
		return 1
	}
	return 0
}
