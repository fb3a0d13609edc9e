package kubeapi

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestExplain asks servers that hang before the answer and within it, and one that is not there.
func TestExplain(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/version") {
			_, _ = io.WriteString(w, `{"gitVersion":`)
			_ = http.NewResponseController(w).Flush() // the caller may have gone
		}
		<-hang
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hang) })
	ask := func(host, path string) error {
		c, err := New(&rest.Config{Host: host, Timeout: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return Explain(c.Core.RESTClient().Get().AbsPath(path).Do(t.Context()).Error())
	}
	if got, want := ask(server.URL, "/api").Error(), "the API server did not answer GET "+server.URL+"/api in full within 30s: it hangs, is overloaded, or something between drops its packets"; got != want {
		t.Errorf("before the answer: %s", got)
	}
	within := ask(server.URL, "/version")
	if got, want := within.Error(), "the API server did not answer in full within 30s: it hangs, is overloaded, or something between drops its packets"; got != want {
		t.Errorf("within the answer: %s", got)
	}
	if cause, ok := errors.AsType[net.Error](within); !ok || !cause.Timeout() {
		t.Errorf("the cause is lost: %v", within)
	}
	if got := ask("http://127.0.0.1:1", "/api"); !strings.Contains(got.Error(), "connection refused") {
		t.Errorf("nobody there: %v", got)
	}
	if handshake := Explain(&url.Error{Op: "Get", URL: "https://127.0.0.1", Err: handshakeTimeout{}}); !strings.Contains(handshake.Error(), "TLS handshake timeout") {
		t.Errorf("a handshake that takes too long: %v", handshake)
	}
	if Explain(nil) != nil {
		t.Error("nothing is no error")
	}
}

// handshakeTimeout is as net/http's own, which no other package can make.
type handshakeTimeout struct{}

func (handshakeTimeout) Error() string   { return "net/http: TLS handshake timeout" }
func (handshakeTimeout) Timeout() bool   { return true }
func (handshakeTimeout) Temporary() bool { return true }
