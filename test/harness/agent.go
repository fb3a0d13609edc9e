package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
)

// AgentOptions say how [StartAgent] starts an agent.
type AgentOptions struct {
	// Program is the agent; empty means the cluster agent that [BuildProduct]
	// makes with a test clock.
	Program string
	// DataDir holds the agent's identity; empty means a new directory that ends
	// with the agent.
	DataDir string
	// Env is what the agent is configured by. PROXIMA_AGENT_DATA_DIR and
	// PROXIMA_METRICS_ADDR are given by the harness unless they stand here.
	Env map[string]string
	// Log receives the progress of a build, Output a copy of the agent's log;
	// nil means nobody.
	Log, Output io.Writer
}

// Agent is a running cluster agent.
type Agent struct {
	service

	metrics string // host:port
}

// StartAgent starts a cluster agent and returns when it lives; it need not have
// enrolled: see [Agent.AwaitReady]. End it by Stop.
func StartAgent(ctx context.Context, o AgentOptions) (*Agent, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Program == "" {
		product, err := BuildProduct(ctx, o.Log, TestClock)
		if err != nil {
			return nil, err
		}
		o.Program = product.ClusterAgent
	}
	a := &Agent{}
	if err := a.start(ctx, o); err != nil {
		return nil, fmt.Errorf("start an agent: %w", errors.Join(err, a.Stop()))
	}
	return a, nil
}

func (a *Agent) start(ctx context.Context, o AgentOptions) error {
	if err := a.prepare("agent", 1); err != nil {
		return err
	}
	if o.DataDir == "" {
		o.DataDir = filepath.Join(a.dir.Path, "data")
	}
	env := map[string]string{
		"PROXIMA_AGENT_DATA_DIR": o.DataDir,
		"PROXIMA_METRICS_ADDR":   a.ports[0].Addr(),
		"HOME":                   a.dir.Path, // no kubeconfig of the user's
	}
	maps.Copy(env, o.Env)
	a.metrics = env["PROXIMA_METRICS_ADDR"]
	a.command = Command{
		Name: "proxima-cluster-agent", Path: o.Program, Env: env, Output: o.Output,
		LogPath: filepath.Join(a.dir.Path, "agent.log"),
	}
	a.ready = a.URL() + "/healthz"
	return a.Start(ctx)
}

// URL is where the agent answers /healthz, /readyz and /metrics.
func (a *Agent) URL() string { return "http://" + a.metrics }

// AwaitReady returns when the agent is enrolled and connected.
func (a *Agent) AwaitReady(ctx context.Context) error {
	return a.Process().AwaitReady(ctx, a.URL()+"/readyz")
}

// Metrics reads the agent's metrics: each sample by its name and labels.
func (a *Agent) Metrics(ctx context.Context) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL()+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return parseMetrics(string(text))
}

// AwaitLog returns when the agent's log holds the substring.
func (a *Agent) AwaitLog(ctx context.Context, substring string) error {
	return a.Process().AwaitLog(ctx, substring)
}
