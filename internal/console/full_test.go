package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/tenancy"
	"prxm.uz/proxima/internal/console/web"
)

// A full console: 250 clients of two environments, in each two clusters of five agents and 50 pods.
const (
	fullClients        = 250
	fullClusters       = 1000
	fullAgentsEach     = 5
	fullPodsEach       = 50
	mostOfAListPage    = 400_000 // bytes of HTML
	fullAuditEvents    = 20_000
	fullAccounts       = 1000
	fullInstallTokens  = 1000
	fullRoles          = 450
	fullPodsOfTheFirst = 5000 // of one cluster more
)

// fillUp stores a full console.
func (w *world) fillUp() {
	w.t.Helper()
	ctx, now, db := w.t.Context(), w.clock.Now(), w.console.db
	var environments []tenancy.Environment
	must(w.t, db.Tenancy().InTx(ctx, func(tx tenancy.Tx) error {
		environments = nil
		for i := range fullClients {
			c := tenancy.Client{ID: fmt.Sprintf("cli_%04d", i), Name: fmt.Sprintf("Client of the number %04d", i), CreatedAt: now}
			if err := tx.InsertClient(ctx, c); err != nil {
				return err
			}
			for _, name := range []string{"production", "staging"} {
				e := tenancy.Environment{ID: fmt.Sprintf("env_%04d_%s", i, name), ClientID: c.ID, Name: name, CreatedAt: now}
				if err := tx.InsertEnvironment(ctx, e); err != nil {
					return err
				}
				environments = append(environments, e)
			}
		}
		return w.fillPeople(ctx, tx)
	}))
	must(w.t, db.Enrollment().InTx(ctx, func(tx enrollment.Tx) error {
		for i := range fullInstallTokens {
			e := environments[i%len(environments)]
			token, plain := enrollment.NewToken(access.Scope{ClientID: e.ClientID, EnvironmentID: e.ID}, "", w.admin.UserID, now)
			if err := token.Store(ctx, tx, plain, w.admin); err != nil {
				return err
			}
		}
		for i := range fullClusters * fullAgentsEach {
			if err := tx.InsertAgent(ctx, fullAgent(environments, i, now)); err != nil {
				return err
			}
		}
		return nil
	}))
	for i := range fullClusters {
		pods := fullPodsEach
		if i == 0 {
			pods = fullPodsOfTheFirst
		}
		must(w.t, db.Inventory().InTx(ctx, func(tx inventory.Tx) error { return fullCluster(ctx, tx, environments, i, pods, now) }))
	}
}

func (w *world) fillPeople(ctx context.Context, tx tenancy.Tx) error {
	now := w.clock.Now()
	for i := range fullAccounts {
		u := tenancy.User{ID: fmt.Sprintf("usr_%04d", i), Kind: tenancy.KindPerson, Email: fmt.Sprintf("person-%04d@example.com", i), Name: fmt.Sprintf("Person %04d", i), Active: true, CreatedAt: now, UpdatedAt: now}
		if err := tx.InsertUser(ctx, u); err != nil {
			return err
		}
		for n := range 3 {
			a := tenancy.Assignment{
				ID: fmt.Sprintf("asg_%04d_%d", i, n), UserID: u.ID, RoleID: w.reads.ID, CreatedAt: now,
				Scope: access.Scope{ClientID: fmt.Sprintf("cli_%04d", (i+n)%fullClients)},
			}
			if err := tx.InsertAssignment(ctx, a); err != nil {
				return err
			}
		}
	}
	for i := range fullRoles {
		r := tenancy.Role{ID: fmt.Sprintf("rol_%04d", i), Name: fmt.Sprintf("Role of the number %04d", i), Permissions: access.Permissions(), CreatedAt: now}
		if err := tx.InsertRole(ctx, r); err != nil {
			return err
		}
	}
	for i := range fullAuditEvents {
		e := w.admin.Did(w.clock.Now().Add(-time.Duration(i)*time.Second), audit.UserUpdated).On("user", fmt.Sprintf("usr_%04d", i%fullAccounts), fmt.Sprintf("person-%04d@example.com", i%fullAccounts)).
			With("name_before", strings.Repeat("before ", 10)).With("name_after", strings.Repeat("after ", 10))
		if err := tx.AppendAudit(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func fullSlug(cluster int) string { return fmt.Sprintf("cluster-of-the-number-%04d", cluster) }

func fullAgent(environments []tenancy.Environment, i int, now time.Time) fleet.Agent {
	cluster := i / fullAgentsEach
	e := environments[cluster%len(environments)]
	a := fleet.Agent{
		ID: fmt.Sprintf("agt_%05d", i), ClientID: e.ClientID, EnvironmentID: e.ID, Type: fleet.TypeCollector, ClusterSlug: fullSlug(cluster),
		Name: fmt.Sprintf("%s-%d", fullSlug(cluster), i%fullAgentsEach), PublicKey: fmt.Sprintf("U%d", i), EnrolledAt: now, Version: "1.2.3", Capability: 1, Template: 1,
		CredentialIssuedAt: now, CredentialExpiresAt: now.Add(time.Hour), HeartbeatAt: now, PresenceAt: now,
	}
	if i%fullAgentsEach > 0 {
		a.Type, a.ClusterSlug = fleet.TypeNodeMonitor, ""
	}
	return a
}

func fullCluster(ctx context.Context, tx inventory.Tx, environments []tenancy.Environment, i, pods int, now time.Time) error {
	e := environments[i%len(environments)]
	id := fmt.Sprintf("clu_%04d", i)
	c := inventory.Cluster{
		ID: id, ClientID: e.ClientID, EnvironmentID: e.ID, Slug: fullSlug(i), Name: fmt.Sprintf("Cluster of the number %04d", i), UID: id, AgentID: fmt.Sprintf("agt_%05d", i*fullAgentsEach),
		Epoch: 1, Sync: 1, FirstSyncAt: now, LastSyncAt: now, CollectedAt: now, Version: "v1.36.3", Counts: inventory.Counts{Pods: pods},
	}
	if err := tx.InsertCluster(ctx, c); err != nil {
		return err
	}
	objects := make([]inventory.Object, pods)
	for n := range objects {
		name := fmt.Sprintf("deployment-of-the-number-%02d-7d4b9c6f58-%05d", n%20, n)
		namespace := fmt.Sprintf("namespace-%03d", n%200)
		objects[n] = inventory.Object{
			Key: inventory.Key{Section: inventory.SectionPods, Kind: "Pod", Namespace: namespace, Name: name}, UID: name, State: "Running", Node: fmt.Sprintf("node-%03d", n%100), Owner: "ReplicaSet/x",
			At: now, Body: fmt.Appendf(nil, `{"name":%q,"namespace":%q}`, name, namespace),
		}
	}
	return tx.ApplyObjects(ctx, inventory.Change{ClusterID: id, Upsert: objects})
}

// fullLists are the addresses of the lists of a full console.
func fullLists(w *world) []string {
	var out []string
	examples := w.examples()
	for _, rule := range web.Matrix() {
		if rule.Method == http.MethodGet && rule.Permission != "public" && rule.Permission != "session" && !strings.Contains(rule.Path, "{") {
			out = append(out, examples["GET "+rule.Path].path)
		}
	}
	return append(out, "/clusters/clu_0000", "/clusters/clu_0000/pods", "/clusters/clu_0000/pods?q=number-07&sort=-age&page=2", "/clusters?q=number&sort=-heartbeat&page=4", "/agents?page=20", "/audit?action=user_updated", "/users?q=person&page=5")
}

func (w *world) page(cookies []*http.Cookie, path string) int {
	answer := w.ask(cookies, http.MethodGet, example{path: path})
	if answer.Code != http.StatusOK && answer.Code != http.StatusSeeOther {
		w.t.Errorf("%s answers %d", path, answer.Code)
	}
	return answer.Body.Len()
}

// TestPagesOfAFullConsole holds each list to its size, however much is stored.
func TestPagesOfAFullConsole(t *testing.T) {
	w := newWorld(t, "http://console.example")
	w.fillUp()
	cookies := w.signIn("root@example.com")
	for _, path := range fullLists(w) {
		if n := w.page(cookies, path); n > mostOfAListPage {
			t.Errorf("%s has %d bytes, and may have %d", path, n, mostOfAListPage)
		} else {
			t.Logf("%s: %d bytes", path, n)
		}
	}
}

// BenchmarkPagesOfAFullConsole asks for each list in turn; p95 is of all requests for one of them.
func BenchmarkPagesOfAFullConsole(b *testing.B) {
	for engine, cfg := range engines(b) {
		w := newWorldOn(b, "http://console.example", cfg)
		w.fillUp()
		cookies := w.signIn("root@example.com")
		for _, path := range fullLists(w) {
			b.Run(engine+path, func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					w.page(cookies, path)
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
			})
		}
	}
}
