package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/test/harness"
)

// hostileNames are display names that somebody may type to get out of the printed command, the three of case
// hlm-09 among them. None of them is refused: each must arrive as it was typed.
func hostileNames(t *testing.T, owned string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/hlm-09.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ DisplayName, AgentSees string }
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	names := []string{
		"O'Brien's", `a\`, `\'a`, "'; touch " + owned + "; '", "$(touch " + owned + ")", "`touch " + owned + "`", "${HOME} a",
		"$$(PROXIMA_INSTALL_TOKEN) a", "$$$( a", "{a,b}", "a=b=c", "--help", "KEY-", "!! a", "#comment", "a;b|c&d>e<f", "%s%n",
		"line\ntouch " + owned, "a'\ntouch " + owned + "\n'b", "a\\\nEOF", "日本語 Åland Заря 🚀 a", "<script>alert(1)</script>",
		"a" + strings.Repeat("'", 99), strings.Repeat("$(", 49) + "a",
	}
	for _, c := range cases {
		if c.DisplayName != c.AgentSees {
			t.Fatalf("the case wants %q of %q", c.AgentSees, c.DisplayName)
		}
		names = append(names, c.DisplayName)
	}
	return names
}

// TestHostileNamesThroughKubectl runs the printed command by a real shell and a real kubectl, then the line that
// carries the name for each name, and reads back what the kubelet would give the agent.
func TestHostileNamesThroughKubectl(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	plane := h.LightControlPlane()
	c := h.Console(harness.ConsoleOptions{})
	place := firstPlace(t, c)
	owned := filepath.Join(t.TempDir(), "owned")
	const setEnv = "kubectl -n " + harness.AgentNamespace + " set env "
	var first, token string
	for number, name := range hostileNames(t, owned) {
		var environment console.Environment // equal slugs meet in one environment only
		path := "/api/v1/clients/" + place.ClientID + "/environments"
		if _, err := c.Do(t.Context(), http.MethodPost, path, console.EnvironmentInput{Name: fmt.Sprintf("names %d", number)}, &environment); err != nil {
			t.Fatal(err)
		}
		recorded := record(t, c, harness.Place{ClientID: place.ClientID, EnvironmentID: environment.ID}, name)
		before, last, found := strings.Cut(recorded.Command.Text, setEnv)
		if before = strings.ReplaceAll(before, *recorded.InstallToken, "TOKEN"); !found || first != "" && before != first {
			t.Fatalf("name %q changes what comes before its own line:\n%s", name, recorded.Command.Text)
		}
		if first == "" { // the same for all; what follows is each name's own
			first, token = before, *recorded.InstallToken
			runCommand(t, plane, recorded.Command.Text)
		} else {
			runCommand(t, plane, setEnv+last)
		}
		env, err := plane.ContainerEnvironment(t.Context(), harness.AgentNamespace, harness.AgentDeployment)
		if err != nil {
			t.Fatal(err)
		}
		for variable, want := range map[string]string{
			"PROXIMA_CLUSTER_NAME": name, "PROXIMA_CLUSTER_SLUG": recorded.Onboarding.Slug,
			"PROXIMA_BACKEND_URL": c.URL, "PROXIMA_INSTALL_TOKEN": token,
		} {
			if env[variable] != want {
				t.Errorf("name %q: %s is %q, want %q", name, variable, env[variable], want)
			}
		}
		if _, err := os.Stat(owned); err == nil {
			t.Fatalf("name %q ran a command of its own:\n%s", name, recorded.Command.Text)
		}
	}
}
