package httpapi_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/httpapi"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/tenancy"
	"prxm.uz/proxima/internal/wire"
)

// realAttempts are attempts as console itself records and measures them.
func realAttempts(c *console) httpapi.Onboarding {
	return onboarding.New(onboarding.Config{
		Store: c.store.Onboarding(), Environments: c.store.Enrollment(), Clock: c.clock, Logger: slog.New(slog.DiscardHandler),
		PublicURL: "https://console.example", SyncInterval: 5 * time.Minute,
	})
}

// Recording answers 201 with the token once, and then 200 with null and the reason.
func TestRecordingTwice(t *testing.T) {
	c := newConsoleWith(t, realAttempts)
	root := c.token(c.admin.UserID, 0)
	path, body := "/api/v1/clients/"+c.acme.ID+"/cluster-onboarding", `{"environmentID":"`+c.prod.ID+`","displayName":"Halden Prod"}`

	res, first := c.call(root, http.MethodPost, path, body)
	if res.StatusCode != http.StatusCreated || first["resumed"] != false || !strings.HasPrefix(as[string](first["installToken"]), "pit_") || first["installTokenNote"] != "" {
		t.Errorf("first: %d %v", res.StatusCode, first)
	}
	res, again := c.call(root, http.MethodPost, path, body)
	if value, there := again["installToken"]; res.StatusCode != http.StatusOK || again["resumed"] != true || !there || value != nil || as[string](again["installTokenNote"]) == "" {
		t.Errorf("again: %d %v", res.StatusCode, again)
	}
	_, list := c.call(root, http.MethodGet, path, "")
	if items := as[[]any](list["items"]); len(items) != 1 || as[map[string]any](items[0])["id"] != as[map[string]any](first["onboarding"])["id"] {
		t.Errorf("listed: %v", list)
	}
}

// The status has both tracks from the start: that of live access is not available and has no gates.
func TestStatusHasBothTracks(t *testing.T) {
	c := newConsoleWith(t, realAttempts)
	root := c.token(c.admin.UserID, 0)
	_, recorded := c.call(root, http.MethodPost, "/api/v1/clients/"+c.acme.ID+"/cluster-onboarding", `{"environmentID":"`+c.prod.ID+`","displayName":"Halden Prod"}`)
	attempt := as[string](as[map[string]any](recorded["onboarding"])["id"])

	res, status := c.call(root, http.MethodGet, "/api/v1/cluster-onboarding/"+attempt+"/status", "")
	inventory, live := as[map[string]any](status["inventory"]), as[map[string]any](status["access"])
	if gates := as[[]any](inventory["gates"]); res.StatusCode != http.StatusOK || inventory["available"] != true || len(gates) != 4 {
		t.Errorf("inventory: %d %v", res.StatusCode, inventory)
	}
	if gates, there := live["gates"].([]any); live["available"] != false || live["done"] != false || !there || len(gates) != 0 {
		t.Errorf("access: %v", live)
	}
}

// place is an environment whose every name, and all that it holds, bears its mark.
type place struct {
	scope access.Scope
	mark  string
	ids   map[string]string // of path parameters
}

// furnish puts an attempt, a token, an agent, a cluster and its objects into an environment.
func (c *console) furnish(client tenancy.Client, n int) place {
	c.t.Helper()
	ctx, now := c.t.Context(), c.clock.Now()
	mark := fmt.Sprintf("mark%dx", n)
	env, err := c.tenancy.CreateEnvironment(ctx, c.admin, client.ID, mark)
	must(c.t, err)
	p := place{scope: access.Scope{ClientID: client.ID, EnvironmentID: env.ID}, mark: mark}
	attempts := realAttempts(c).(*onboarding.Service) //nolint:forcetypeassert,errcheck // it is one
	recorded, err := attempts.Record(ctx, c.admin, client.ID, env.ID, "cluster-"+mark)
	must(c.t, err)
	agent := fleet.Agent{
		ID: fmt.Sprint("agt-", n), ClientID: client.ID, EnvironmentID: env.ID, Type: fleet.TypeCollector, ClusterSlug: "cluster-" + mark, Name: "pod-" + mark, PublicKey: "U" + mark,
		EnrolledBy: recorded.Token.ID, EnrolledAt: now, Version: "1", Capability: 1, Template: 1, CredentialIssuedAt: now, CredentialExpiresAt: now.Add(time.Hour),
	}
	must(c.t, c.store.Enrollment().InTx(ctx, func(tx enrollment.Tx) error { return tx.InsertAgent(ctx, agent) }))
	data, err := wire.EncodeInventory(&wire.Inventory{
		Capability: 1, Epoch: 1, Sync: 1, ClusterSlug: agent.ClusterSlug, ClusterUID: "uid-" + mark, CollectedAt: now,
		Kinds: []wire.KindReport{{Kind: wire.KindNamespaces, Kept: 1, Total: 1}}, Namespaces: []wire.Namespace{{Meta: wire.Meta{Name: "ns-" + mark}}},
	})
	must(c.t, err)
	receives := inventory.New(inventory.Config{Store: c.store.Inventory(), Agents: c.store.Fleet(), Clock: c.clock, Logger: slog.New(slog.DiscardHandler), Observer: nobody{}})
	must(c.t, receives.Receive(ctx, agent.ID, data, now))
	cluster, err := c.store.Inventory().ClusterBySlug(ctx, env.ID, agent.ClusterSlug)
	must(c.t, err)
	p.ids = map[string]string{
		"clientID": client.ID, "onboardingID": recorded.Attempt.ID, "tokenID": recorded.Token.ID, "agentID": agent.ID, "clusterID": cluster.ID, "section": "namespaces",
		"userID": c.admin.UserID, "assignmentID": "none", "roleID": "none", "apiTokenID": "none",
	}
	return p
}

type nobody struct{}

func (nobody) InventoryApplied(int, time.Duration) {}
func (nobody) InventoryDropped(string)             {}

// reaches tells whether a grant on the scope covers the place.
func (p place) reaches(granted access.Scope) bool {
	return granted.ClientID == "" || granted.ClientID == p.scope.ClientID && (granted.EnvironmentID == "" || granted.EnvironmentID == p.scope.EnvironmentID)
}

// TestTenantsNeverSeeEachOther gives people random roles in random places and lets each ask for everything in
// every place, in every way. No answer bears the mark of a place that none of their roles reaches, and nothing
// there changes.
func TestTenantsNeverSeeEachOther(t *testing.T) {
	c := newConsoleWith(t, realAttempts)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	matrix, err := httpapi.Matrix()
	must(t, err)
	_, bodies := c.fixtures()
	var places []place
	for n := range 6 {
		client := c.acme
		if n%2 == 1 {
			client = c.zeta
		}
		places = append(places, c.furnish(client, n))
	}
	var roles []tenancy.Role
	for n := range 5 {
		var held []access.Permission
		for _, p := range access.Permissions() {
			if n == 0 || draw.IntN(2) == 0 {
				held = append(held, p)
			}
		}
		role, err := c.tenancy.CreateRole(t.Context(), c.admin, fmt.Sprint("drawn ", n), append(held, access.HostsRead))
		must(t, err)
		roles = append(roles, role)
	}
	asked, seen := 0, 0
	for n := range 24 {
		user, err := c.tenancy.CreateUser(t.Context(), c.admin, fmt.Sprintf("user%d@example.com", n), "User", password)
		must(t, err)
		var granted []access.Scope
		for range 1 + draw.IntN(2) {
			scope := places[draw.IntN(len(places))].scope
			if draw.IntN(3) == 0 {
				scope.EnvironmentID = ""
			}
			if _, err := c.tenancy.Assign(t.Context(), c.admin, user.ID, roles[draw.IntN(len(roles))].ID, scope); err == nil {
				granted = append(granted, scope)
			}
		}
		token := c.token(user.ID, 0)
		reached := func(p place) bool {
			for _, scope := range granted {
				if p.reaches(scope) {
					return true
				}
			}
			return false
		}
		for _, rule := range matrix {
			if !strings.Contains(rule.Permission, ":") {
				continue
			}
			for _, p := range places {
				if rule.Method != http.MethodGet && reached(p) {
					continue // they may change what is theirs
				}
				if rule.Scope == "client" && rule.Method != http.MethodGet {
					continue // a client is not one place: TestMatrix has these
				}
				query := []string{"", "limit=1000", "client=" + p.scope.ClientID, "environment=" + p.scope.EnvironmentID, "q=mark", "slug=cluster-" + p.mark}[draw.IntN(6)]
				r := httptest.NewRequestWithContext(t.Context(), rule.Method, fill(rule.Path, p.ids)+"?"+query, strings.NewReader(bodies[rule.OperationID]))
				r.Header.Set("Authorization", "Bearer "+token)
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				c.handler.ServeHTTP(w, r)
				asked++
				for _, other := range places {
					switch there := strings.Contains(w.Body.String(), other.mark); {
					case there && !reached(other):
						t.Errorf("user %d with %v: %s %s shows %s:\n%s", n, granted, rule.Method, r.URL, other.mark, w.Body)
					case there:
						seen++
					}
				}
				if rule.Scope == "row" && !reached(p) && w.Code < 400 {
					t.Errorf("user %d with %v: %s %s answers %d", n, granted, rule.Method, r.URL, w.Code)
				}
			}
		}
	}
	t.Logf("%d requests, %d marks seen by those who may", asked, seen)
	if seen < 100 {
		t.Error("the test sees next to nothing")
	}
	for _, p := range places {
		if got, err := c.store.Inventory().Cluster(t.Context(), p.ids["clusterID"]); err != nil || got.Slug != "cluster-"+p.mark {
			t.Errorf("the cluster of %s: %+v, %v", p.mark, got, err)
		}
	}
}
