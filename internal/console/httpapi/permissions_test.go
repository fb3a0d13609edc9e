package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/console/httpapi"
)

// TestWhoMayDoWhat pins what each operation asks for, and no clusters:* (A-10). The
// contract says it too; this is so that a change there is one that was meant.
func TestWhoMayDoWhat(t *testing.T) {
	const want = `
GET    /api/v1/api-tokens                                     session
POST   /api/v1/api-tokens                                     session
DELETE /api/v1/api-tokens/{apiTokenID}                        session
GET    /api/v1/audit                                          audit:read on list
GET    /api/v1/audit/export                                   audit:read on list
GET    /api/v1/clients                                        clients:read on list
POST   /api/v1/clients                                        clients:write on console
DELETE /api/v1/clients/{clientID}                             clients:write on console
GET    /api/v1/clients/{clientID}                             clients:read on client
PATCH  /api/v1/clients/{clientID}                             clients:write on client
GET    /api/v1/clients/{clientID}/cluster-onboarding          hosts:read on list
POST   /api/v1/clients/{clientID}/cluster-onboarding          hosts:write on row
GET    /api/v1/clients/{clientID}/environments                clients:read on list
POST   /api/v1/clients/{clientID}/environments                clients:write on client
GET    /api/v1/clients/{clientID}/install-tokens              hosts:write on list
POST   /api/v1/clients/{clientID}/install-tokens              hosts:write on row
DELETE /api/v1/cluster-onboarding/{onboardingID}              hosts:write on row
GET    /api/v1/cluster-onboarding/{onboardingID}/command      hosts:read on row
GET    /api/v1/cluster-onboarding/{onboardingID}/status       hosts:read on row
GET    /api/v1/clusters                                       hosts:read on list
DELETE /api/v1/clusters/{clusterID}                           hosts:write on row
GET    /api/v1/clusters/{clusterID}                           hosts:read on row
POST   /api/v1/clusters/{clusterID}/accept-identity           hosts:write on row
GET    /api/v1/clusters/{clusterID}/removal                   hosts:write on row
GET    /api/v1/clusters/{clusterID}/{section}                 hosts:read on row
POST   /api/v1/enroll                                         install-token
POST   /api/v1/enroll/agents/{agentID}/credential             agent
POST   /api/v1/enroll/challenge                               public
POST   /api/v1/enroll/findings                                install-token
DELETE /api/v1/environments/{environmentID}                   clients:write on row
PATCH  /api/v1/environments/{environmentID}                   clients:write on row
GET    /api/v1/fleet/agents                                   agents:read on list
DELETE /api/v1/fleet/agents/{agentID}                         agents:write on row
GET    /api/v1/fleet/agents/{agentID}                         agents:read on row
POST   /api/v1/fleet/agents/{agentID}/release-identity        agents:write on row
POST   /api/v1/fleet/agents/{agentID}/revoke                  agents:write on row
POST   /api/v1/fleet/agents/{agentID}/rotate-credentials      agents:write on row
DELETE /api/v1/install-tokens/{tokenID}                       hosts:write on row
GET    /api/v1/roles                                          roles:read on console
POST   /api/v1/roles                                          roles:write on console
DELETE /api/v1/roles/{roleID}                                 roles:write on console
GET    /api/v1/roles/{roleID}                                 roles:read on console
PUT    /api/v1/roles/{roleID}                                 roles:write on console
POST   /api/v1/service-accounts                               users:write on console
GET    /api/v1/session                                        session
PUT    /api/v1/session/password                               session
DELETE /api/v1/sessions                                       session
GET    /api/v1/sessions                                       session
DELETE /api/v1/sessions/{sessionID}                           session
GET    /api/v1/settings                                       settings:read on console
GET    /api/v1/users                                          users:read on console
POST   /api/v1/users                                          users:write on console
GET    /api/v1/users/{userID}                                 users:read on console
PATCH  /api/v1/users/{userID}                                 users:write on console
GET    /api/v1/users/{userID}/api-tokens                      users:read on console
POST   /api/v1/users/{userID}/api-tokens                      users:write on console
DELETE /api/v1/users/{userID}/api-tokens/{apiTokenID}         users:write on console
POST   /api/v1/users/{userID}/assignments                     roles:write on console
DELETE /api/v1/users/{userID}/assignments/{assignmentID}      roles:write on console
`
	matrix, err := httpapi.Matrix()
	must(t, err)
	var b strings.Builder
	b.WriteByte('\n')
	for _, r := range matrix {
		if strings.HasPrefix(r.Permission, "clusters:") {
			t.Errorf("%s asks for %s", r.OperationID, r.Permission)
		}
		what := r.Permission
		if r.Scope != "" {
			what += " on " + r.Scope
		}
		fmt.Fprintf(&b, "%-6s %-54s %s\n", r.Method, r.Path, what)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, b.String())
	}
}

// A token is for one use and a day unless more is asked for.
func TestDefaultsOfAnInstallToken(t *testing.T) {
	c := newConsole(t)
	root := c.token(c.admin.UserID, 0)
	path := "/api/v1/clients/" + c.acme.ID + "/install-tokens"
	for more, uses := range map[string]float64{"": 1, `,"maxUses":7`: 7, `,"unlimited":true`: 0, `,"unlimited":false`: 1} {
		res, answer := c.call(root, http.MethodPost, path, `{"environmentID":"`+c.prod.ID+`"`+more+`}`)
		token := as[map[string]any](answer["installToken"])
		if res.StatusCode != http.StatusCreated || token["maxUses"] != uses || token["expiresAt"] != c.clock.Now().Add(24*time.Hour).Format(time.RFC3339) {
			t.Errorf("%s: %d %v", more, res.StatusCode, answer)
		}
	}
	if res, answer := c.call(root, http.MethodPost, path, `{"environmentID":"`+c.prod.ID+`","maxUses":3,"unlimited":true}`); res.StatusCode != http.StatusBadRequest {
		t.Errorf("both: %d %v", res.StatusCode, answer)
	}
}
