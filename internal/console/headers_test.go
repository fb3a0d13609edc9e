package console

import (
	"net/http"
	"testing"
)

// TestEncryptedOnly: browsers are told to come over TLS where the public address says https, and only there.
func TestEncryptedOnly(t *testing.T) {
	for publicURL, want := range map[string]string{"https://console.example": "max-age=31536000", "http://console.example": ""} {
		w := newWorld(t, publicURL)
		for _, path := range []string{"/signin", "/clusters", "/nothing", "/healthz", "/api/v1/session", "/static/0/base.css"} {
			if got := w.ask(nil, http.MethodGet, example{path: path}).Header().Get("Strict-Transport-Security"); got != want {
				t.Errorf("%s of %s: %q, want %q", path, publicURL, got, want)
			}
		}
		for _, cookie := range w.signIn("root@example.com") {
			if cookie.Secure != (want != "") || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode {
				t.Errorf("%s: the cookie is %v", publicURL, cookie)
			}
		}
	}
}
