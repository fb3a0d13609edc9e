package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

// What still holds something is not deleted, and the answer names what that is.
func TestDeletingPlaces(t *testing.T) {
	c := newConsole(t)
	c.fixtures()
	root := c.token(c.admin.UserID, 0)
	for path, says := range map[string]string{
		"/api/v1/environments/" + c.prod.ID: "1 cluster, 1 agent and 1 live install token",
		"/api/v1/clients/" + c.acme.ID:      "2 environments (",
	} {
		res, answer := c.call(root, http.MethodDelete, path, "")
		if res.StatusCode != http.StatusConflict || answer["code"] != "in_use" || !strings.Contains(as[string](answer["detail"]), says) {
			t.Errorf("%s: %d %v, want %q", path, res.StatusCode, answer, says)
		}
	}
	for _, want := range []int{http.StatusNoContent, http.StatusNotFound} {
		if res, answer := c.call(root, http.MethodDelete, "/api/v1/environments/"+c.test.ID, ""); res.StatusCode != want {
			t.Errorf("empty: %d %v, want %d", res.StatusCode, answer, want)
		}
	}
}
