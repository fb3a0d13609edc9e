package connection_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"prxm.uz/proxima/internal/agent/connection"
	"prxm.uz/proxima/internal/agent/doctor"
	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/test/harness"
)

// Whatever is wrong with the certificate of NATS, the agent's log and its self-check name the same cure, each its own.
func TestEachFaultOfACertificateHasItsCure(t *testing.T) {
	t.Parallel()
	authority, err := harness.NewAuthority(t.TempDir(), "ca", "test authority")
	if err != nil {
		t.Fatal(err)
	}
	known := x509.NewCertPool()
	if pem, err := os.ReadFile(authority.File()); err != nil || !known.AppendCertsFromPEM(pem) {
		t.Fatal("no authority", err)
	}
	good := pair(t)(authority.Server("good", "127.0.0.1"))
	for name, c := range map[string]struct {
		certificate tls.Certificate
		roots       *x509.CertPool
		cure        string
	}{
		"unknown authority": {good, x509.NewCertPool(), "put the PEM of the issuing CA into a file and name it in PROXIMA_NATS_CA_FILE or PROXIMA_CA_FILE"},
		"another name":      {pair(t)(authority.Server("other", "nats.example", "nats2.example")), known, "use a name that the certificate is made out for (nats.example, nats2.example)"},
		"no name":           {pair(t)(authority.Server("nameless")), known, "use a name that the certificate is made out for (none)"},
		"expired": {
			pair(t)(authority.ServerUntil(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "expired", "127.0.0.1")), known,
			`to 2026-01-02T03:04:05Z: renew it, or correct this machine's clock`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overTCP, overWeb := serve(t, c.certificate)
			for _, address := range []string{overTCP, overWeb} {
				if got := logged(t, c.roots, address); !strings.Contains(got, c.cure) {
					t.Errorf("%s: the log says %q, want %q", address, got, c.cure)
				}
			}
			findings := doctor.Run(t.Context(), doctor.Subject{Backend: "https" + strings.TrimPrefix(overWeb, "wss"), NATSURLs: []string{overWeb}, Roots: c.roots, NATS: c.roots, Clock: clock.System()})
			checked := 0
			for _, f := range findings {
				switch f.Check {
				case "nats.1":
					checked++
					if f.Status != doctor.Failed || !strings.Contains(f.Cure, c.cure) || !strings.Contains(f.Message, "SHA-256") {
						t.Errorf("the self-check finds %+v, want %q", f, c.cure)
					}
				case "backend.tls":
					checked++
					if own := strings.Replace(c.cure, "PROXIMA_NATS_CA_FILE or ", "", 1); f.Status != doctor.Failed || !strings.Contains(f.Cure, own) {
						t.Errorf("the self-check finds %+v, want %q", f, own)
					}
				}
			}
			if checked != 2 {
				t.Errorf("the self-check finds %+v", findings)
			}
		})
	}
}

// A port without TLS is not a matter of certificates.
func TestAPortThatSpeaksNoTLS(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	if got := logged(t, nil, "wss://"+listener.Addr().String()+"/nats"); got != "check that this port speaks TLS" {
		t.Errorf("the log says %q", got)
	}
}

func pair(t *testing.T) func(certFile, keyFile string, err error) tls.Certificate {
	return func(certFile, keyFile string, err error) tls.Certificate {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// serve starts a NATS server with the certificate, and returns its addresses.
func serve(t *testing.T, certificate tls.Certificate) (overTCP, overWeb string) {
	t.Helper()
	secured := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	options := &server.Options{
		Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, TLSConfig: secured, TLSTimeout: 5,
		Websocket: server.WebsocketOpts{Host: "127.0.0.1", Port: -1, TLSConfig: secured},
	}
	ns, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	return "tls://" + ns.Addr().String(), ns.WebsocketURL()
}

// logged runs a connection until it said why it cannot be made, and returns the cure.
func logged(t *testing.T, roots *x509.CertPool, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	said := &firstCure{done: cancel}
	c, err := connection.New(connection.Options{
		AgentID: "agt_test", URLs: []string{address}, Roots: roots, JWT: func() string { return "" },
		Sign:      func([]byte) ([]byte, error) { return nil, nil },
		Subscribe: func(*nats.Conn) error { return nil }, Refused: func(error) {},
		Clock: clock.System(), Log: slog.New(slog.NewJSONHandler(said, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Run(ctx)
	return said.cure
}

// firstCure takes log lines, each in one write, from the goroutine of Run.
type firstCure struct {
	cure string
	done func()
}

// Write implements io.Writer.
func (f *firstCure) Write(line []byte) (int, error) {
	var said struct{ Cure string }
	if err := json.NewDecoder(bytes.NewReader(line)).Decode(&said); err == nil && said.Cure != "" && f.cure == "" {
		f.cure = said.Cure
		f.done()
	}
	return len(line), nil
}
