package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/test/harness"
)

const (
	nodes = 20
	// running is how many pods of workloads.yaml run once all of them do.
	running = 289

	// An inventory every 30 s and a heartbeat every 10 s show life while somebody watches; the defaults
	// are made for clusters that are left alone.
	syncInterval      = "30s"
	heartbeatInterval = "10s"

	clusterName     = "Demo Cluster"
	clientName      = "Halden Energy"
	environmentName = "production"

	// stepLimit bounds each step after the builds. Two busy cores need a tenth of it.
	stepLimit = 3 * time.Minute
)

//go:embed workloads.yaml
var workloads string

// demo is what runs, in the order in which it was started.
type demo struct {
	out   io.Writer
	dir   string // for the record, and for logs
	began time.Time

	plane   *harness.ControlPlane
	console *harness.Console
	agent   *harness.Agent
	gates   gates

	up   bool   // the gates have passed
	kept string // where the logs of a failed demo are
}

// run starts everything, shows how the gates pass, and stays until ctx ends, unless it shall leave then.
// Whatever happens, it ends every process that it started.
func (d *demo) run(ctx context.Context, leave bool) (err error) {
	interruption := ctx
	defer func() {
		if err != nil && interruption.Err() == nil {
			err = errors.Join(err, d.keepLogs())
		}
		err = errors.Join(err, d.stop())
	}()
	if err := d.clear(); err != nil {
		return err
	}
	product, err := d.build(ctx)
	if err != nil {
		return err
	}
	// From here on, a component that ends by itself ends the demo.
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := d.startCluster(ctx, fail); err != nil {
		return d.why(ctx, err)
	}
	if err := d.startConsole(ctx, product, fail); err != nil {
		return d.why(ctx, err)
	}
	r, err := d.onboard(ctx, product)
	if err != nil {
		return d.why(ctx, err)
	}
	d.up = true
	if err := r.write(d.dir); err != nil {
		return err
	}
	d.explain(r)
	if leave {
		return nil
	}
	d.say("Ctrl-C ends all of it.")
	d.gates.follow(ctx, d.console)
	if interruption.Err() != nil {
		d.say("\nEnding.")
		return nil
	}
	return context.Cause(ctx)
}

// clear makes the directory and removes what the demo before left there, so that whoever waits for the record
// reads this demo's.
func (d *demo) clear() error {
	return errors.Join(os.MkdirAll(d.dir, 0o700), os.RemoveAll(filepath.Join(d.dir, recordName)), os.RemoveAll(filepath.Join(d.dir, logsName)))
}

// why prefers the reason for which a context was ended to what followed from that.
func (d *demo) why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// step says what is done next, and after how long it was.
func (d *demo) step(ctx context.Context, what string, do func(context.Context) error) error {
	began := time.Now()
	d.say("== %s", what)
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	d.say("   done in %.1f s", time.Since(began).Seconds())
	return nil
}

// limited is step with a limit.
func (d *demo) limited(ctx context.Context, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	return d.step(ctx, what, do)
}

// build makes the programs, which takes about ten minutes the first time and a second later on.
func (d *demo) build(ctx context.Context) (product harness.Product, err error) {
	err = d.step(ctx, "Programs (the first time takes about ten minutes)", func(ctx context.Context) error {
		if _, err := harness.Binaries(ctx, d.out); err != nil {
			return err
		}
		product, err = harness.BuildProduct(ctx, d.out)
		return err
	})
	return product, err
}

func (d *demo) startCluster(ctx context.Context, fail context.CancelCauseFunc) error {
	err := d.limited(ctx, "Kubernetes: etcd, API server, controller-manager, scheduler, kwok", func(ctx context.Context) (err error) {
		d.plane, err = harness.StartControlPlane(ctx, harness.ControlPlaneOptions{Log: d.out})
		return err
	})
	if err != nil {
		return err
	}
	watch(ctx, fail, d.plane.Processes())
	return d.limited(ctx, fmt.Sprintf("%d nodes, %d pods", nodes, running), func(ctx context.Context) error {
		if err := d.plane.AddNodes(ctx, nodes); err != nil {
			return err
		}
		if _, err := d.plane.Kubectl(ctx, workloads, "apply", "-f", "-"); err != nil {
			return err
		}
		return d.plane.AwaitPodsRunning(ctx, running)
	})
}

func (d *demo) startConsole(ctx context.Context, product harness.Product, fail context.CancelCauseFunc) error {
	err := d.limited(ctx, "Console, with SQLite and NATS inside", func(ctx context.Context) (err error) {
		d.console, err = harness.StartConsole(ctx, harness.ConsoleOptions{
			Program: product.Console, Log: d.out,
			Env: map[string]string{
				"PROXIMA_ADMIN_PASSWORD": rand.Text(), "PROXIMA_K8S_SYNC_INTERVAL": syncInterval,
			},
		})
		return err
	})
	if err != nil {
		return err
	}
	watch(ctx, fail, d.console.Processes())
	return nil
}

// watch ends the demo when one of the processes ends by itself.
func watch(ctx context.Context, fail context.CancelCauseFunc, processes []*harness.Process) {
	for _, p := range processes {
		go func() {
			select {
			case <-ctx.Done():
			case <-p.Done():
				fail(fmt.Errorf("%s has ended by itself; the end of its log:\n%s", p.Name(), p.LogTail()))
			}
		}()
	}
}

// onboard records an attempt, runs the printed command, starts the agent that the cluster's Deployment then
// describes, and returns when the gates have passed.
func (d *demo) onboard(ctx context.Context, product harness.Product) (*record, error) {
	var (
		place    harness.Place
		recorded console.OnboardingRecorded
	)
	err := d.limited(ctx, fmt.Sprintf("An attempt over the API: %s / %s / %s", clientName, environmentName, clusterName), func(ctx context.Context) (err error) {
		if place, err = d.console.NewPlace(ctx, clientName, environmentName); err != nil {
			return err
		}
		recorded, err = d.console.Record(ctx, place, clusterName)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.gates = gates{out: d.out, attempt: recorded.Onboarding.ID, states: map[int]console.GateState{}}
	if err := d.gates.look(ctx, d.console); err != nil && !errors.Is(err, errWaiting) {
		return nil, err
	}
	err = d.limited(ctx, "The printed command, by sh and kubectl as cluster-admin", func(ctx context.Context) error {
		return d.install(ctx, recorded)
	})
	if err != nil {
		return nil, err
	}
	err = d.limited(ctx, "The agent, with the Deployment's environment and the service account's token", func(ctx context.Context) error {
		options, err := d.plane.InstalledAgentOptions(ctx)
		if err != nil {
			return err
		}
		options.Program, options.Log = product.ClusterAgent, d.out
		if d.agent, err = harness.StartAgent(ctx, options); err != nil {
			return err
		}
		return d.gates.pass(ctx, d.console, d.agent)
	})
	if err != nil {
		return nil, err
	}
	token, err := d.console.APIToken(ctx)
	if err != nil {
		return nil, err
	}
	return &record{
		URL: d.console.URL, Username: d.console.Email, Password: d.console.Password, APIToken: token,
		ClientID: place.ClientID, EnvironmentID: place.EnvironmentID,
		OnboardingID: recorded.Onboarding.ID, ClusterSlug: recorded.Onboarding.Slug,
		Kubeconfig: d.plane.Kubeconfig(), AgentPID: d.agent.Process().PID(),
	}, nil
}

// install runs the command that console printed, and then sets the one value in which the demo differs from
// an install: how often the agent reads the cluster.
func (d *demo) install(ctx context.Context, recorded console.OnboardingRecorded) error {
	text := recorded.Command.Text
	shown := text
	if recorded.InstallToken != nil {
		shown = strings.ReplaceAll(text, *recorded.InstallToken, "<install-token>")
	}
	d.say("%s", indent("   $ ", "     ", shown))
	said, err := d.plane.Shell(ctx, text)
	d.say("%s", indent("   ", "   ", said))
	if err != nil {
		return err
	}
	_, err = d.plane.Shell(ctx, fmt.Sprintf("kubectl -n %s set env deployment/%s PROXIMA_K8S_SYNC_INTERVAL=%s PROXIMA_HEARTBEAT_INTERVAL=%s",
		harness.AgentNamespace, harness.AgentDeployment, syncInterval, heartbeatInterval))
	return err
}

// indent puts first before the first line of text, and rest before the others.
func indent(first, rest, text string) string {
	return first + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+rest)
}

func (d *demo) explain(r *record) {
	d.say(`
Everything is up, after %.0f s. The four gates have passed.

  Console     %s
  Sign in     %s
  Password    %s

  Attempt     %s/clusters/add/%s
  kubectl     KUBECONFIG=%s
  Agent       process %d: end it (kill %d), and gate 3 notices within five minutes
  Logs        %s
              %s

The same for programs, with an API token: %s
`, time.Since(d.began).Seconds(), r.URL, r.Username, r.Password, r.URL, r.OnboardingID, r.Kubeconfig, r.AgentPID, r.AgentPID,
		d.console.Process().LogPath(), d.agent.Process().LogPath(), filepath.Join(d.dir, recordName))
}

// keepLogs copies the logs of everything that was started to a place that outlives it.
func (d *demo) keepLogs() error {
	dir := filepath.Join(d.dir, logsName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var err error
	for _, p := range d.processes() {
		text, readErr := os.ReadFile(p.LogPath())
		err = errors.Join(err, readErr)
		if readErr == nil {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, p.Name()+".log"), text, 0o600))
			d.kept = dir
		}
	}
	return err
}

func (d *demo) processes() []*harness.Process {
	var all []*harness.Process
	if d.agent != nil {
		all = append(all, d.agent.Processes()...)
	}
	if d.console != nil {
		all = append(all, d.console.Processes()...)
	}
	if d.plane != nil {
		all = append(all, d.plane.Processes()...)
	}
	return all
}

// stop ends everything, the last that was started first.
func (d *demo) stop() error {
	var err error
	if d.agent != nil {
		err = errors.Join(err, d.agent.Stop())
	}
	if d.console != nil {
		err = errors.Join(err, d.console.Stop())
	}
	if d.plane != nil {
		err = errors.Join(err, d.plane.Stop())
	}
	return err
}
