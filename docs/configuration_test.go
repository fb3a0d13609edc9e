// Package docs_test keeps the pages that are made from code equal to the code.
package docs_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/agent/cluster"
	"prxm.uz/proxima/internal/config"
	"prxm.uz/proxima/internal/console"
)

var update = flag.Bool("update", false, "write the pages anew")

const configurationHead = `# Configuration

Every setting is a flag or an environment variable; the flag wins. A variable that is set but empty counts
as unset, and a variable with the prefix ` + "`PROXIMA_`" + ` that a program does not know is reported in its log, with
the nearest known name.

This page is made from the programs' own definitions: ` + "`make generate`" + ` writes it.
`

// TestConfigurationPage compares docs/configuration.md with the programs' definitions: a variable
// cannot be renamed without this page, which is its golden list, saying so.
func TestConfigurationPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(configurationHead)
	for _, p := range []struct {
		program config.Program
		target  any
	}{
		{config.Program{Name: "proxima-console", Description: "Pages, HTTP API, ingest, and whatever is embedded. Without any setting it is a whole console on loopback."}, &console.Config{}},
		{config.Program{Name: "proxima-cluster-agent", Description: "Reads one cluster and sends its inventory to the console."}, &cluster.Config{}},
	} {
		section, err := config.Reference(p.program, p.target)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n" + section)
	}
	if *update {
		if err := os.WriteFile("configuration.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	page, err := os.ReadFile("configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), b.String()); diff != "" {
		t.Errorf("docs/configuration.md is behind the code; run make generate: %s", diff)
	}
}
