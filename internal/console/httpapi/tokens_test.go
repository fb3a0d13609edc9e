package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"prxm.uz/proxima/internal/console/access"
)

// TestWhatEndsAnAPIToken: a new password that an administrator sets, and a deactivation, end every token of
// the person for good; a password change of their own leaves them, and an administrator sees and revokes
// each.
func TestWhatEndsAnAPIToken(t *testing.T) {
	c := newConsole(t)
	viewer, err := c.tenancy.CreateRole(t.Context(), c.admin, "viewer of clients", []access.Permission{access.ClientsRead})
	must(t, err)
	root := c.token(c.admin.UserID, 0)
	person := func(name string) (plain, path string) {
		plain = c.user(name, viewer.ID, access.Scope{})
		p, err := c.access.PrincipalOfToken(t.Context(), plain, "")
		must(t, err)
		return plain, "/api/v1/users/" + p.UserID
	}
	works := func(plain string) bool {
		t.Helper()
		res, _ := c.call(plain, http.MethodGet, "/api/v1/clients", "")
		return res.StatusCode == http.StatusOK
	}
	do := func(method, path, body string, status int) map[string]any {
		t.Helper()
		res, answer := c.call(root, method, path, body)
		if res.StatusCode != status {
			t.Fatalf("%s %s: %d %v", method, path, res.StatusCode, answer)
		}
		return answer
	}

	own, _ := person("own")
	if res, answer := c.call(own, http.MethodPut, "/api/v1/session/password", `{"currentPassword":"`+password+`","newPassword":"entirely new words"}`); res.StatusCode != http.StatusNoContent {
		t.Fatalf("own password: %d %v", res.StatusCode, answer)
	}
	if !works(own) {
		t.Error("a token ended with a password change of its owner's own")
	}

	reset, path := person("reset")
	do(http.MethodPatch, path, `{"name":"Renamed"}`, http.StatusOK)
	if !works(reset) {
		t.Error("a token ended with a name")
	}
	do(http.MethodPatch, path, `{"password":"set by an administrator"}`, http.StatusOK)
	if res, answer := c.call(reset, http.MethodGet, "/api/v1/clients", ""); res.StatusCode != http.StatusUnauthorized || answer["code"] != "api_token_revoked" {
		t.Errorf("after a reset: %d %v", res.StatusCode, answer)
	}

	gone, path := person("gone")
	do(http.MethodPatch, path, `{"active":false}`, http.StatusOK)
	do(http.MethodPatch, path, `{"active":true}`, http.StatusOK)
	if works(gone) {
		t.Error("a token came back with its owner")
	}

	leaked, path := person("leaked")
	items := as[[]any](do(http.MethodGet, path+"/api-tokens", "", http.StatusOK)["items"])
	if len(items) != 1 || !strings.HasPrefix(leaked, as[string](as[map[string]any](items[0])["prefix"])) {
		t.Fatalf("tokens: %v", items)
	}
	token := path + "/api-tokens/" + as[string](as[map[string]any](items[0])["id"])
	if res, _ := c.call(leaked, http.MethodDelete, token, ""); res.StatusCode != http.StatusForbidden {
		t.Errorf("somebody without users:write: %d", res.StatusCode)
	}
	for range 2 {
		do(http.MethodDelete, token, "", http.StatusNoContent)
	}
	if works(leaked) {
		t.Error("the token works after it was revoked")
	}
	do(http.MethodDelete, path+"/api-tokens/apt_none", "", http.StatusNotFound)
	do(http.MethodGet, "/api/v1/users/usr_none/api-tokens", "", http.StatusNotFound)
}
