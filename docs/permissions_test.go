package docs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/console/httpapi"
	"prxm.uz/proxima/internal/console/web"
)

const permissionsHead = `# Permissions

Who may call which operation of the API and open which page. Beside the name of a permission, the second column
holds:

- ` + "`public`" + `: everybody, signed in or not;
- ` + "`session`" + `: whoever is signed in, or sends an API token;
- ` + "`install-token`" + ` and ` + "`agent`" + `: agents, with the install token or the credential that they hold.

The third column says where the permission has to be held:

- ` + "`console`" + `: on the whole console;
- ` + "`client`" + `: on the client that the address names; to open its page, on one of its environments is enough;
- ` + "`row`" + `: on the environment or client in which the row lies; to everybody else that row is not found;
- ` + "`list`" + `: anywhere; the answer holds what lies there and nothing else.

This page is made from the API's contract and the table of pages: ` + "`make generate`" + ` writes it.

| Address | Permission | Held on |
|---|---|---|
`

// TestPermissionsPage compares docs/permissions.md with the contract and the table of pages.
func TestPermissionsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(permissionsHead)
	row := func(method, path, permission, scope string) {
		if scope == "" {
			scope = "–"
		}
		fmt.Fprintf(&b, "| `%s %s` | `%s` | %s |\n", method, path, permission, scope)
	}
	operations, err := httpapi.Matrix()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range operations {
		row(r.Method, r.Path, r.Permission, r.Scope)
	}
	for _, r := range web.Matrix() {
		row(r.Method, strings.TrimSuffix(r.Path, "{$}"), r.Permission, r.Scope)
	}
	if *update {
		if err := os.WriteFile("permissions.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	page, err := os.ReadFile("permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), b.String()); diff != "" {
		t.Errorf("docs/permissions.md is behind the code; run make generate: %s", diff)
	}
}
