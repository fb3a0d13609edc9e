package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/internal/wire"
)

// enrol asks for an identity as an agent of that version does, with a proof over a fresh challenge.
func (c *console) enrol(token, name, version string) (reply, map[string]any) {
	c.t.Helper()
	pair, err := nkeys.CreateUser()
	must(c.t, err)
	public, err := pair.PublicKey()
	must(c.t, err)
	_, answer := c.call("", http.MethodPost, "/api/v1/enroll/challenge", "")
	challenge := as[string](answer["challenge"])
	signature, err := pair.Sign(wire.EnrollProof(challenge, "collector", "one", name))
	must(c.t, err)
	body, err := json.Marshal(map[string]any{
		"agentType": "collector", "name": name, "clusterSlug": "one", "clusterName": "One", "version": version, "capability": 1,
		"publicKey": public, "challenge": challenge, "signature": base64.RawURLEncoding.EncodeToString(signature),
	})
	must(c.t, err)
	return c.call(token, http.MethodPost, "/api/v1/enroll", string(body))
}

// An agent that is too old is answered 426 and what to do; one of the oldest version that is let in comes in
// with the same token.
func TestAnAgentThatIsTooOld(t *testing.T) {
	c := newConsole(t)
	_, minted := c.call(c.token(c.admin.UserID, 0), http.MethodPost, "/api/v1/clients/"+c.acme.ID+"/install-tokens", `{"environmentID":"`+c.prod.ID+`"}`)
	token := as[string](minted["token"])
	res, answer := c.enrol(token, "agent-0", "0.8.9")
	if res.StatusCode != http.StatusUpgradeRequired || answer["code"] != "agent_too_old" || !strings.Contains(as[string](answer["detail"]), "0.8.9") || !strings.Contains(as[string](answer["detail"]), "0.9.0") {
		t.Errorf("too old: %d %v", res.StatusCode, answer)
	}
	if res, answer := c.enrol(token, "agent-0", "0.9.0"); res.StatusCode != http.StatusOK || as[map[string]any](answer["credential"])["jwt"] == "" {
		t.Errorf("old enough: %d %v", res.StatusCode, answer)
	}
}

// What is well formed and refused for its meaning is answered 422, with the field.
func TestRefusedForItsMeaning(t *testing.T) {
	c := newConsoleWith(t, realAttempts)
	root := c.token(c.admin.UserID, 0)
	for name, row := range map[string]struct{ path, body, code, field string }{
		"a name without a slug": {"/api/v1/clients/" + c.acme.ID + "/cluster-onboarding", `{"environmentID":"` + c.prod.ID + `","displayName":"東京"}`, "name_invalid", "displayName"},
		"a role that is none":   {"/api/v1/users/" + c.admin.UserID + "/assignments", `{"roleID":"rol_none"}`, "reference_unknown", "roleID"},
	} {
		res, answer := c.call(root, http.MethodPost, row.path, row.body)
		faults := as[[]any](answer["errors"])
		if res.StatusCode != http.StatusUnprocessableEntity || answer["code"] != row.code || len(faults) != 1 || as[map[string]any](faults[0])["pointer"] != row.field {
			t.Errorf("%s: %d %v", name, res.StatusCode, answer)
		}
	}
}
