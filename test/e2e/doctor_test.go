package e2e

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prxm.uz/proxima/test/harness"
)

// doctor runs the self-check of an agent as its pod would, and answers what it prints and its exit code.
func doctor(ctx context.Context, t *testing.T, h *harness.T, env map[string]string) (said string, code int) {
	t.Helper()
	c := exec.CommandContext(ctx, h.Product().ClusterAgent, "doctor")
	for name, value := range env {
		c.Env = append(c.Env, name+"="+value)
	}
	out, err := c.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// TestDoctor: with what this version ships, the self-check finds nothing; where a right is taken away, it names
// it and the rule that is missing.
func TestDoctor(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	plane := h.LightControlPlane()
	manifests, err := filepath.Abs("../../infra/k8s/cluster-agent")
	if err != nil {
		t.Fatal(err)
	}
	role, binding := filepath.Join(manifests, "role.yaml"), filepath.Join(manifests, "rolebinding.yaml")
	kubectl := func(args ...string) {
		t.Helper()
		if out, err := plane.Kubectl(t.Context(), "", args...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	kubectl("apply", "-k", manifests)
	kubectl("apply", "-f", role, "-f", binding)
	kubeconfig, err := plane.ServiceAccountKubeconfig(t.Context(), "proxima-system", "proxima-cluster-agent")
	if err != nil {
		t.Fatal(err)
	}
	c := h.Console(harness.ConsoleOptions{Env: settings()})
	_, recorded := startAttempt(t, c, "Halden Energy", "Checked")
	env := map[string]string{
		"PROXIMA_BACKEND_URL": c.URL, "PROXIMA_INSTALL_TOKEN": *recorded.InstallToken, "PROXIMA_CLUSTER_SLUG": recorded.Onboarding.Slug, "PROXIMA_CLUSTER_NAME": "Checked",
		"PROXIMA_KUBECONFIG": kubeconfig, "POD_NAME": "collector-0", "POD_NAMESPACE": "proxima-system", "PROXIMA_AGENT_DATA_DIR": t.TempDir(), "HOME": t.TempDir(),
	}
	expect := func(when string, code int, parts ...string) {
		t.Helper()
		said, got := doctor(t.Context(), t, h, env)
		if got != code {
			t.Errorf("%s: exit code %d, want %d", when, got, code)
		}
		for _, part := range parts {
			if !strings.Contains(said, part) {
				t.Errorf("%s: it does not say %q", when, part)
			}
		}
		if code == 0 && strings.Contains(said, "failed") || strings.Contains(said, *recorded.InstallToken) {
			t.Errorf("%s: it reports a fault, or shows the token", when)
		}
		if t.Failed() {
			t.Fatal(said)
		}
	}
	expect("as shipped", 0, "kubernetes.permissions")

	kubectl("delete", "-f", binding)
	expect("without the Role", 1, "kubernetes.get.leases", `resourceNames: ["proxima-cluster-agent"], verbs: ["update"]`, "apply the Role in proxima-system")

	kubectl("delete", "clusterrolebinding", "proxima-cluster-agent")
	expect("without the ClusterRole", 1, "kubernetes.list.pods", "the agent may not list pods", `resources: ["pods"], verbs: ["list"]`, "apply the ClusterRole")

	env["PROXIMA_INSTALL_TOKEN"] = "not a token"
	expect("with something else for a token", 1, "token")
	env["PROXIMA_BACKEND_URL"] = "http://127.0.0.1:1"
	expect("with an address where nobody listens", 1, "127.0.0.1:1", "refused")
}
