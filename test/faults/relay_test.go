package faults

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// relay is a wire with a fault in it: it passes bytes on to one address, later than they came, or not.
type relay struct {
	addr   string // where it listens
	target string
	delay  time.Duration // of each piece towards the client

	mu      sync.Mutex
	holding chan struct{} // closed at release; nil while bytes pass
	stuck   chan struct{} // closed when the first bytes are held
}

// relay starts one; with a certificate it ends TLS and passes on what was inside.
func (s *scene) relay(target string, delay time.Duration, certificate *tls.Config) *relay {
	s.Helper()
	r := &relay{target: target, delay: delay}
	r.addr = s.serve(certificate, func(client net.Conn) { r.pass(client) })
	return r
}

// serve answers connections until the row ends, and returns where.
func (s *scene) serve(certificate *tls.Config, answer func(net.Conn)) string {
	s.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	address := listener.Addr().String()
	if certificate != nil {
		listener = tls.NewListener(listener, certificate)
	}
	var (
		open  sync.Map
		group sync.WaitGroup
	)
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Store(conn, nil)
			group.Go(func() {
				defer conn.Close()
				answer(conn)
			})
		}
	})
	s.Cleanup(func() {
		if err := listener.Close(); err != nil {
			s.Error(err)
		}
		open.Range(func(conn, _ any) bool {
			if c, ok := conn.(net.Conn); ok {
				_ = c.Close() // its answerer may have closed it
			}
			return true
		})
		group.Wait()
	})
	return address
}

func (r *relay) pass(client net.Conn) {
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	splice(held{client, r}, server, r.delay)
}

// splice copies both ways until one of them ends; what comes from the server waits for delay.
func splice(client, server net.Conn, delay time.Duration) {
	defer server.Close()
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	_, _ = io.Copy(client, late{server, delay})
	_ = client.Close()
	up.Wait()
}

// late delivers what it reads after a delay.
type late struct {
	io.Reader
	delay time.Duration
}

func (l late) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.delay > 0 {
		timer := time.NewTimer(l.delay)
		<-timer.C
	}
	return n, err
}

// held keeps what the client sends while its relay holds.
type held struct {
	net.Conn
	relay *relay
}

func (h held) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	h.relay.mu.Lock()
	holding := h.relay.holding
	if holding != nil && n > 0 {
		select {
		case <-h.relay.stuck:
		default:
			close(h.relay.stuck)
		}
	}
	h.relay.mu.Unlock()
	if holding != nil {
		<-holding
	}
	return n, err
}

// hold lets no more bytes through, and returns what is closed once some are stuck.
func (r *relay) hold() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holding, r.stuck = make(chan struct{}), make(chan struct{})
	return r.stuck
}

func (r *relay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.holding)
	r.holding = nil
}

// proxy is a forward proxy as companies have them. It alone resolves the names that it knows.
type proxy struct {
	names    map[string]string // host to address, without ports
	password string            // user:password that it asks for
	refuse   bool
	passed   atomic.Int32 // requests that it let through
}

// proxyAt starts the proxy, and returns its address.
func (s *scene) proxyAt(p *proxy) string {
	s.Helper()
	address := s.serve(nil, p.answer)
	s.proxies = append(s.proxies, address)
	return address
}

func (p *proxy) answer(client net.Conn) {
	reader := bufio.NewReader(client)
	request, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	refuse := func(status, header string) {
		_, _ = io.WriteString(client, "HTTP/1.1 "+status+"\r\n"+header+"Content-Type: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	}
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(p.password))
	switch {
	case p.refuse:
		refuse("403 Forbidden", "")
		return
	case p.password != "" && request.Header.Get("Proxy-Authorization") != want:
		refuse("407 Proxy Authentication Required", "Proxy-Authenticate: Basic realm=\"proxy\"\r\n")
		return
	}
	host, port, err := net.SplitHostPort(request.Host)
	if address, ok := p.names[host]; ok && err == nil {
		host = address
	}
	server, err := net.Dial("tcp", net.JoinHostPort(host, port))
	if err != nil {
		refuse("502 Bad Gateway", "")
		return
	}
	p.passed.Add(1)
	if request.Method == http.MethodConnect {
		_, err = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	} else {
		request.Header.Del("Proxy-Authorization")
		request.Header.Set("Connection", "close")
		err = request.Write(server)
	}
	if err != nil {
		_ = server.Close()
		return
	}
	splice(buffered{client, reader}, server, 0)
}

// buffered reads first what was read ahead.
type buffered struct {
	net.Conn
	reader *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.reader.Read(p) }

// port is the port of a URL or an address.
func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// certificateOf loads a pair of files.
func (s *scene) certificateOf(certFile, keyFile string, err error) *tls.Config {
	s.Helper()
	pair, loading := tls.LoadX509KeyPair(certFile, keyFile)
	if err := errors.Join(err, loading); err != nil {
		s.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}
