package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/test/harness"
)

// TestRotation renews the credential of an agent that runs, in place, and says what stands against it once the agent
// is gone.
func TestRotation(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	plane := h.LightControlPlane()
	c := h.Console(harness.ConsoleOptions{Env: settings()})
	_, recorded := startAttempt(t, c, "Halden Energy", "Ost")
	agent := h.Agent(plane.DirectAgent(c, recorded, map[string]string{"PROXIMA_K8S_SYNC_INTERVAL": "5s"}))
	awaitInventory(t, c, recorded)

	var list console.AgentList
	if _, err := c.Do(t.Context(), http.MethodGet, "/api/v1/fleet/agents?type=collector", nil, &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d agents, %v", len(list.Items), err)
	}
	before := list.Items[0]
	path := "/api/v1/fleet/agents/" + before.ID + "/rotate-credentials"
	var after console.Agent
	if status, err := c.Do(t.Context(), http.MethodPost, path, nil, &after); err != nil || status != http.StatusOK {
		t.Fatalf("rotation: %d, %v", status, err)
	}
	if after.ID != before.ID || after.CredentialExpiresAt.Before(*before.CredentialExpiresAt) || !after.EnrolledAt.Equal(before.EnrolledAt) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	var log struct {
		Items []struct{ Action, ResourceID string }
	}
	if _, err := c.Do(t.Context(), http.MethodGet, "/api/v1/audit?action=agent_credentials_rotated", nil, &log); err != nil || len(log.Items) != 1 || log.Items[0].ResourceID != before.ID {
		t.Errorf("the audit log has %+v, %v", log.Items, err)
	}
	awaitGate(t, c, recorded, 3, console.GateStatePassed)

	if err := agent.Kill(); err != nil {
		t.Fatal(err)
	}
	// Until the server has noticed that the connection is gone, the command is taken by nobody.
	err := harness.Await(t.Context(), "agent_offline", func(ctx context.Context) error {
		status, err := c.Do(ctx, http.MethodPost, path, nil, nil)
		switch {
		case status == http.StatusServiceUnavailable && err != nil && strings.Contains(err.Error(), "agent_offline"):
			return nil
		case status != http.StatusServiceUnavailable || err == nil || !strings.Contains(err.Error(), "agent_no_reply"):
			t.Errorf("an agent that is gone: %d, %v", status, err)
			return nil
		}
		return fmt.Errorf("%d, %w", status, err)
	})
	if err != nil {
		t.Error(err)
	}
}
