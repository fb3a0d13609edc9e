package console

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
)

// Of three connections where two may be, the one that was quiet longest is closed, and never one whose
// request is served.
func TestConnectionsAreBounded(t *testing.T) {
	serving, done := make(chan struct{}), make(chan struct{})
	s := newServer(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(serving)
			<-done
		}
		w.WriteHeader(http.StatusNoContent)
	}), slog.New(slog.DiscardHandler), 2)
	l, err := listen(t.Context(), "PROXIMA_LISTEN_ADDR", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(s.server.Close(), ignoreServerClosed(<-ended)); err != nil {
			t.Error(err)
		}
	})

	dial := func(path string) (net.Conn, *bufio.Reader) {
		t.Helper()
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: console\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return conn, bufio.NewReader(conn)
	}
	answered := func(r *bufio.Reader) {
		t.Helper()
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusNoContent {
			t.Errorf("status %d, %v", res.StatusCode, err)
		}
	}
	_, slow := dial("/slow")
	<-serving
	_, idle := dial("/")
	answered(idle)
	_, third := dial("/")
	answered(third)
	if _, err := idle.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection: %v", err)
	}
	close(done)
	answered(slow)
}

func ignoreServerClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
