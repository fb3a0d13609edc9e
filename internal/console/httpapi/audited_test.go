package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit/trail"
	"prxm.uz/proxima/internal/console/httpapi"
)

// notAudited are the operations that change something and leave no row here, with the reason of each.
func notAudited() map[string]string {
	return map[string]string{
		"createChallenge":   "a challenge is given to whoever asks, and stored nowhere",
		"postFindings":      "what an agent finds about itself is a report and no change",
		"renewCredential":   "agents renew at half of the lifetime: a row for each would hide those of people",
		"enrollAgent":       "needs a signed challenge; its row is counted by the tests of package enrollment",
		"recordOnboarding":  "onboarding is a stand-in here; its row is counted by the tests of package onboarding",
		"abandonOnboarding": "onboarding is a stand-in here; its row is counted by the tests of package onboarding",
		"acceptIdentity":    "needs a cluster in conflict; its row is counted by the tests of package inventory",
	}
}

// Every other operation that changes something succeeds once, and leaves a row with who, what, when and from where,
// and without the password and the token that were sent and answered.
func TestEveryChangeLeavesARow(t *testing.T) {
	matrix, err := httpapi.Matrix()
	must(t, err)
	left := notAudited()
	driven := 0
	for _, rule := range matrix {
		if rule.Method == http.MethodGet {
			continue
		}
		if left[rule.OperationID] != "" {
			delete(left, rule.OperationID)
			continue
		}
		driven++
		t.Run(rule.OperationID, func(t *testing.T) { leavesARow(t, rule) })
	}
	if len(left) > 0 || driven < 20 {
		t.Errorf("%d operations were driven; exceptions without an operation: %v", driven, left)
	}
}

func (c *console) otherSession() access.Session {
	now := c.clock.Now()
	return access.Session{ID: "ses_old", TokenHash: "old", UserID: c.admin.UserID, Data: []byte("{}"), CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(48 * time.Hour)}
}

func leavesARow(t *testing.T, rule httpapi.Rule) {
	c := newConsole(t)
	params, bodies := c.fixtures()
	bodies["changePassword"] = `{"currentPassword":"` + password + `","newPassword":"another quite long one"}`
	bodies["updateClient"], bodies["updateEnvironment"] = `{"name":"acme anew"}`, `{"name":"prod-anew"}`
	mine := c.admin
	if rule.OperationID == "revokeUserAPIToken" {
		someone, err := c.access.Principal(t.Context(), params["userID"])
		must(t, err)
		mine = someone
	}
	minted, _, err := c.access.MintAPIToken(t.Context(), mine, "old", 0)
	must(t, err)
	params["apiTokenID"] = minted.ID
	root := c.token(c.admin.UserID, 0)
	if rule.OperationID == "deleteRole" { // which nobody may hold
		must(t, c.tenancy.Unassign(t.Context(), c.admin, params["userID"], params["assignmentID"]))
	}
	switch rule.OperationID { // what is empty alone can be deleted
	case "deleteClient":
		empty, err := c.tenancy.CreateClient(t.Context(), c.admin, "empty")
		must(t, err)
		params["clientID"] = empty.ID
	case "endSession": // another one of the caller's own
		must(t, c.store.Access().InsertSession(t.Context(), c.otherSession()))
		params["sessionID"] = "ses_old"
	case "createUserAPIToken":
		params["userID"] = c.program
	case "endOtherSessions":
		must(t, c.store.Access().InsertSession(t.Context(), c.otherSession()))
	case "deleteEnvironment":
		params["environmentID"] = c.test.ID
	}
	c.clock.Advance(time.Hour) // also past the presence of the agent

	res, answer := c.call(root, rule.Method, fill(rule.Path, params), bodies[rule.OperationID])
	if res.StatusCode >= 300 {
		t.Fatalf("answers %d %v; send it a body with which it succeeds", res.StatusCode, answer)
	}
	rows, err := c.store.Audit().Events(t.Context(), trail.Filter{From: c.clock.Now()}, access.Reach{All: true}, trail.Position{}, 10)
	must(t, err)
	if len(rows) != 1 {
		t.Fatalf("%d rows were left: %+v", len(rows), rows)
	}
	e := rows[0]
	if e.ActorID != c.admin.UserID || e.ActorName != c.admin.Email || !e.At.Equal(c.clock.Now()) || e.RemoteAddr == "" || e.ResourceID == "" || e.Detail["api_token"] == "" {
		t.Errorf("the row lacks something: %+v", e)
	}
	secrets := []string{password, "another quite long one"}
	for _, value := range answer {
		if plain := as[string](value); len(plain) > 20 && (strings.HasPrefix(plain, "pat_") || strings.HasPrefix(plain, "pit_")) {
			secrets = append(secrets, plain)
		}
	}
	if mints := strings.HasPrefix(rule.OperationID, "create") && strings.HasSuffix(rule.OperationID, "Token"); mints != (len(secrets) == 3) {
		t.Errorf("the secrets of the answer are not known: %v", answer)
	}
	told := e.Sentence() + e.ResourceName
	for name, value := range e.Detail {
		told += " " + name + " " + value
	}
	for _, s := range secrets {
		if strings.Contains(told, s) {
			t.Errorf("the row holds a secret: %s", told)
		}
	}
}
