package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/httpapi"
	"prxm.uz/proxima/internal/console/inventory"
)

// fixtures puts a cluster, an agent, an install token and a role into acme's prod, and answers the values of
// path parameters and the bodies of operations.
func (c *console) fixtures() (params, bodies map[string]string) {
	c.t.Helper()
	ctx, now := c.t.Context(), c.clock.Now()
	must(c.t, c.store.Inventory().InTx(ctx, func(tx inventory.Tx) error {
		return tx.InsertCluster(ctx, inventory.Cluster{
			ID: "cl1", ClientID: c.acme.ID, EnvironmentID: c.prod.ID, Slug: "one", Name: "One", UID: "uid", AgentID: "ag1", Epoch: 1, Sync: 1,
			FirstSyncAt: now, LastSyncAt: now, CollectedAt: now,
		})
	}))
	token, plain := enrollment.NewToken(access.Scope{ClientID: c.acme.ID, EnvironmentID: c.prod.ID}, "", c.admin.UserID, now)
	must(c.t, c.store.Enrollment().InTx(ctx, func(tx enrollment.Tx) error {
		if err := token.Store(ctx, tx, plain, c.admin); err != nil {
			return err
		}
		return tx.InsertAgent(ctx, fleet.Agent{
			ID: "ag1", ClientID: c.acme.ID, EnvironmentID: c.prod.ID, Type: fleet.TypeCollector, ClusterSlug: "one", Name: "a", PublicKey: "UA",
			EnrolledBy: token.ID, EnrolledAt: now, Version: "1", Capability: 1, Template: 1, CredentialIssuedAt: now, CredentialExpiresAt: now.Add(time.Hour),
		})
	}))
	role, err := c.tenancy.CreateRole(ctx, c.admin, "spare", []access.Permission{access.HostsRead})
	must(c.t, err)
	someone, err := c.tenancy.CreateUser(ctx, c.admin, "someone@example.com", "Someone", password)
	must(c.t, err)
	assigned, err := c.tenancy.Assign(ctx, c.admin, someone.ID, role.ID, access.Scope{ClientID: c.zeta.ID})
	must(c.t, err)
	program, err := c.tenancy.CreateServiceAccount(ctx, c.admin, "nightly")
	must(c.t, err)
	c.program = program.ID
	params = map[string]string{
		"clientID": c.acme.ID, "environmentID": c.prod.ID, "userID": someone.ID, "assignmentID": assigned.ID, "roleID": role.ID, "apiTokenID": "apt_none", "sessionID": "ses_none",
		"tokenID": token.ID, "onboardingID": "onb", "clusterID": "cl1", "agentID": "ag1", "section": "nodes",
	}
	key := "U" + strings.Repeat("A", 55)
	bodies = map[string]string{
		"enrollAgent":          `{"agentType":"collector","name":"a","version":"1","capability":1,"publicKey":"` + key + `","challenge":"c","signature":"s","clusterSlug":"one"}`,
		"postFindings":         `{"agentType":"collector","name":"a","version":"1","findings":[]}`,
		"renewCredential":      `{"publicKey":"` + key + `","challenge":"c","signature":"s","version":"1"}`,
		"createAPIToken":       `{"name":"x"}`,
		"changePassword":       `{"currentPassword":"not the right one","newPassword":"another long one"}`,
		"createClient":         `{"name":"new client"}`,
		"updateClient":         `{"name":"acme"}`,
		"createEnvironment":    `{"name":"more"}`,
		"updateEnvironment":    `{"name":"prod"}`,
		"createUser":           `{"email":"new@example.com","name":"New","password":"` + password + `"}`,
		"updateUser":           `{"name":"Renamed"}`,
		"createServiceAccount": `{"name":"hourly"}`,
		"createUserAPIToken":   `{"name":"x"}`,
		"assignRole":           `{"roleID":"` + role.ID + `"}`,
		"createRole":           `{"name":"made","permissions":["hosts:read"]}`,
		"updateRole":           `{"name":"spare","permissions":["hosts:read","clients:read"]}`,
		"createInstallToken":   `{"environmentID":"` + c.prod.ID + `"}`,
		"recordOnboarding":     `{"environmentID":"` + c.prod.ID + `","displayName":"One"}`,
		"acceptIdentity":       `{"uid":"other"}`,
	}
	return params, bodies
}

func fill(path string, params map[string]string) string {
	for name, value := range params {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	return path
}

// The callers, from the least to the most.
const (
	anonymous   = "anonymous"
	expired     = "expired token"
	noRole      = "no role"
	otherClient = "other client"
	otherEnv    = "other environment"
	reader      = "read"
	writer      = "write on the client"
	root        = "administrator"
)

// expected answers the statuses that a caller may get; 0 stands for anything that is neither a refusal
// nor a fault.
func expected(rule httpapi.Rule, caller string) []int {
	mutates := rule.Method != http.MethodGet
	switch rule.Permission {
	case "public":
		return []int{200}
	case "agent":
		return []int{401, 403, 404}
	case "install-token":
		return []int{401}
	}
	if caller == anonymous || caller == expired {
		return []int{401}
	}
	if rule.Permission == "session" {
		return []int{0}
	}
	write := strings.HasSuffix(rule.Permission, ":write")
	switch caller {
	case noRole:
		return []int{403, 404}
	case otherClient:
		switch rule.Scope {
		case "console":
			return []int{403}
		case "client", "row":
			return []int{404}
		}
		return []int{200, 404}
	case otherEnv:
		switch rule.Scope {
		case "console", "client":
			return []int{403}
		case "row":
			return []int{404, 403}
		}
		return []int{200}
	case reader:
		if write || mutates {
			return []int{403}
		}
		return []int{200}
	case writer:
		if rule.Scope == "console" {
			return []int{403}
		}
		return []int{0}
	}
	return []int{0}
}

func TestMatrix(t *testing.T) {
	c := newConsole(t)
	params, bodies := c.fixtures()
	ctx := t.Context()
	reading, err := c.tenancy.CreateRole(ctx, c.admin, "reads", []access.Permission{
		access.HostsRead, access.KubernetesRead, access.AgentsRead, access.ClientsRead, access.UsersRead, access.RolesRead, access.AuditRead, access.SettingsRead,
	})
	must(t, err)
	writing, err := c.tenancy.CreateRole(ctx, c.admin, "writes", access.Permissions())
	must(t, err)
	tokens := map[string]string{
		noRole:      c.user("norole", "", access.Scope{}),
		otherClient: c.user("otherclient", writing.ID, access.Scope{ClientID: c.zeta.ID}),
		otherEnv:    c.user("otherenv", writing.ID, access.Scope{ClientID: c.acme.ID, EnvironmentID: c.test.ID}),
		reader:      c.user("reader", reading.ID, access.Scope{}),
		writer:      c.user("writer", writing.ID, access.Scope{ClientID: c.acme.ID}),
		expired:     c.token(c.admin.UserID, time.Hour),
		root:        c.token(c.admin.UserID, 0),
	}
	c.clock.Advance(2 * time.Hour)
	matrix, err := httpapi.Matrix()
	must(t, err)
	if len(matrix) < 40 {
		t.Fatalf("the matrix has %d rows only", len(matrix))
	}
	for _, caller := range []string{anonymous, expired, noRole, otherClient, otherEnv, reader, writer, root} {
		for _, rule := range matrix {
			res, answer := c.call(tokens[caller], rule.Method, fill(rule.Path, params), bodies[rule.OperationID])
			allowed := expected(rule, caller)
			ok := false
			for _, status := range allowed {
				ok = ok || status == res.StatusCode || status == 0 && res.StatusCode != 401 && res.StatusCode != 403 && res.StatusCode < 500
			}
			if !ok {
				t.Errorf("%s: %s (%s on %s) answers %d %v, want one of %v", caller, rule.OperationID, rule.Permission, rule.Scope, res.StatusCode, answer, allowed)
			}
			if items, list := answer["items"].([]any); list && (caller == otherClient || caller == otherEnv) && rule.OperationID != "listAPITokens" {
				for _, item := range items {
					row, _ := item.(map[string]any)
					if row["id"] == c.prod.ID || row["environmentID"] == c.prod.ID || caller == otherClient && row["id"] == c.acme.ID {
						t.Errorf("%s: %s shows %v", caller, rule.OperationID, row)
					}
				}
			}
		}
	}
	if t.Failed() {
		t.Log(c.logs.String())
	}
}

// A stranger gets the same refusal whether the request is well formed or not.
func TestRefusedBeforeValidated(t *testing.T) {
	c := newConsole(t)
	params, bodies := c.fixtures()
	none := c.user("norole", "", access.Scope{})
	matrix, err := httpapi.Matrix()
	must(t, err)
	for _, rule := range matrix {
		if !strings.Contains(rule.Permission, ":") {
			continue
		}
		path := fill(rule.Path, params) + "?nonsense=1"
		body := ""
		if bodies[rule.OperationID] != "" {
			body = `{"a":1,"a":2}`
		}
		if res, _ := c.call("", rule.Method, path, body); res.StatusCode != 401 {
			t.Errorf("%s without a credential answers %d to nonsense, want 401", rule.OperationID, res.StatusCode)
		}
		if res, _ := c.call(none, rule.Method, path, body); res.StatusCode != 403 && res.StatusCode != 404 {
			t.Errorf("%s without a role answers %d to nonsense, want 403 or 404", rule.OperationID, res.StatusCode)
		}
	}
}
