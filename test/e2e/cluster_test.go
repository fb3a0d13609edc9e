package e2e

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"

	"prxm.uz/proxima/test/harness"
)

// populate gives a cluster nodes, a namespace and pods that run.
func populate(t *testing.T, plane *harness.ControlPlane) {
	t.Helper()
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return plane.AddNodes(ctx, 3) },
		func(ctx context.Context) error { return plane.AddNamespace(ctx, "shop") },
		func(ctx context.Context) error { return plane.AddDeployment(ctx, "shop", "web", 6) },
		func(ctx context.Context) error { return plane.AwaitPodsRunning(ctx, 6) },
	} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// startInstalled starts the agent that the cluster's Deployment describes.
func startInstalled(t *testing.T, h *harness.T, plane *harness.ControlPlane) *harness.Agent {
	t.Helper()
	options, err := plane.InstalledAgentOptions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	options.Env["PROXIMA_K8S_SYNC_INTERVAL"] = "5s" // console's too
	return h.Agent(options)
}

// location is where the browser is.
func (b *browser) location() string {
	b.t.Helper()
	where, err := chromedp.Run(b.ctx, chromedp.Location())
	if err != nil {
		b.fail("read the location", err)
	}
	return where
}
