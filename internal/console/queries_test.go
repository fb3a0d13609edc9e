package console

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"prxm.uz/proxima/internal/console/httpapi"
	"prxm.uz/proxima/internal/console/store"
	"prxm.uz/proxima/internal/console/web"
	"prxm.uz/proxima/test/harness"
)

// What a page and an operation may ask of the database beside session and permissions.
const (
	statementsOfAList = 3
	statementsOfARow  = 8
)

// engines are an empty database of each.
func engines(tb testing.TB) map[string]store.Config {
	tb.Helper()
	h := harness.New(tb)
	return map[string]store.Config{
		"sqlite":   {Path: filepath.Join(tb.TempDir(), "proxima.db")},
		"postgres": {URL: h.Database(h.Postgres())},
	}
}

// TestStatements counts what each page and each operation that reads sends to the database, on both engines. A page or an
// operation without a row in its address is a list, and so is a section of a cluster.
func TestStatements(t *testing.T) {
	for engine, cfg := range engines(t) {
		t.Run(engine, func(t *testing.T) {
			var heard statements
			cfg.Around = heard.around
			w := newWorldOn(t, "http://console.example", cfg)
			w.ownToken("root@example.com")
			cookies := w.signIn("root@example.com")
			w.bearer = w.ownPlain
			counted := func(path string) []string {
				t.Helper()
				heard.taken()
				if answer := w.ask(cookies, http.MethodGet, example{path: path}); answer.Code != http.StatusOK && answer.Code != http.StatusSeeOther {
					t.Errorf("%s answers %d", path, answer.Code)
				}
				return heard.taken()
			}
			// The barest of each ask for nothing but who is there. The second time nothing is noted of the session.
			least := map[bool]int{}
			for api, path := range map[bool]string{false: "/users/service-account", true: "/api/v1/session"} {
				counted(path)
				least[api] = len(counted(path))
				if least[api] == 0 || least[api] > 3 {
					t.Fatalf("%s takes %d statements", path, least[api])
				}
			}
			lists := 0
			hold := func(path, pattern string) {
				t.Helper()
				sent, most := counted(path), statementsOfARow
				if !strings.Contains(pattern, "{") || strings.HasSuffix(pattern, "/{section}") {
					lists++
					most = statementsOfAList
				}
				if n := len(sent) - least[strings.HasPrefix(path, "/api/")]; n > most {
					t.Errorf("%s sends %d statements, and may %d:\n%s", path, n, most, strings.Join(sent, "\n"))
				}
			}
			examples := w.examples()
			for _, rule := range web.Matrix() {
				if rule.Method == http.MethodGet && rule.Permission != "public" && !strings.HasSuffix(rule.Path, "/events") {
					hold(examples[rule.Method+" "+rule.Path].path, rule.Path)
				}
			}
			operations, err := httpapi.Matrix()
			must(t, err)
			places := strings.NewReplacer("{clientID}", w.acme.ID, "{environmentID}", w.prod.ID, "{clusterID}", "cl1", "{section}", "nodes", "{agentID}", "ag1",
				"{onboardingID}", w.attempt, "{roleID}", w.spare, "{userID}", w.someone)
			for _, rule := range operations {
				if rule.Method == http.MethodGet && rule.Permission != "public" {
					hold(places.Replace(rule.Path), strings.Replace(rule.Path, "/clients/{clientID}/", "/", 1))
				}
			}
			if lists < 20 {
				t.Errorf("only %d lists were asked for", lists)
			}
		})
	}
}
