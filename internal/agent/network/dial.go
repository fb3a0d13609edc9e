package network

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Dialer opens the TCP connection below a URL, through the proxy where one applies. Addresses that an
// HTTP proxy usually refuses (tls, nats) are tried directly first.
type Dialer struct {
	Proxy   Proxy
	Roots   *x509.CertPool // for proxies that are reached by https
	Timeout time.Duration  // of each attempt; zero means 10 s
}

// Dial connects to the host of u. The TLS handshake of u's own scheme is left to the caller.
func (d Dialer) Dial(ctx context.Context, u *url.URL) (net.Conn, error) {
	proxy, err := d.Proxy.For(u)
	if err != nil {
		return nil, err
	}
	direct := &net.Dialer{Timeout: d.timeout()}
	if proxy == nil {
		return direct.DialContext(ctx, "tcp", Address(u))
	}
	if u.Scheme == "tls" || u.Scheme == "nats" {
		conn, directErr := direct.DialContext(ctx, "tcp", Address(u))
		if directErr == nil {
			return conn, nil
		}
		conn, err := d.through(ctx, proxy, u)
		if err != nil {
			return nil, fmt.Errorf("directly: %w; through the proxy: %w", directErr, err)
		}
		return conn, nil
	}
	return d.through(ctx, proxy, u)
}

func (d Dialer) timeout() time.Duration {
	if d.Timeout > 0 {
		return d.Timeout
	}
	return 10 * time.Second
}

// through asks an HTTP proxy to connect (CONNECT).
func (d Dialer) through(ctx context.Context, proxy, target *url.URL) (_ net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	if proxy.Scheme != "http" && proxy.Scheme != "https" {
		return nil, fmt.Errorf("proxy %s: only http and https proxies are supported", proxy.Host)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", Address(proxy))
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", proxy.Host, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	if proxy.Scheme == "https" {
		cfg := TLS(d.Roots)
		cfg.ServerName = proxy.Hostname()
		secured := tls.Client(conn, cfg)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("proxy %s: %w", proxy.Host, err)
		}
		conn = secured
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	reader, err := connect(conn, proxy, Address(target))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if _, refused := errors.AsType[*ProxyRefusal](err); refused {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", proxy.Host, err)
	}
	return &readAhead{Conn: conn, reader: reader}, nil
}

func connect(conn net.Conn, proxy *url.URL, address string) (*bufio.Reader, error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, err
	}
	if err := resp.Body.Close(); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &ProxyRefusal{Proxy: proxy.Host, Target: address, Status: resp.StatusCode}
	}
	return reader, nil
}

// ProxyRefusal is a proxy that answered, and did not let the connection through.
type ProxyRefusal struct {
	Proxy  string // host:port
	Target string // host:port
	Status int    // of its answer
}

// Error implements error.
func (r *ProxyRefusal) Error() string {
	return fmt.Sprintf("proxy %s does not let connections to %s through: %d %s", r.Proxy, r.Target, r.Status, http.StatusText(r.Status))
}

// Cure says what to do about it.
func (r *ProxyRefusal) Cure() string {
	host, _, err := net.SplitHostPort(r.Target)
	if err != nil {
		host = r.Target
	}
	if r.Status == http.StatusProxyAuthRequired {
		return "write user and password into the proxy's address, as http://user:password@" + r.Proxy
	}
	return "let the proxy allow " + r.Target + "; where " + host + " is reached directly, name it in NO_PROXY"
}

// readAhead gives out first what the proxy's answer left in the buffer: a NATS server speaks first.
type readAhead struct {
	net.Conn
	reader *bufio.Reader
}

// Read implements [net.Conn].
func (c *readAhead) Read(p []byte) (int, error) { return c.reader.Read(p) }

// Address is host:port of a URL, with the port of its scheme where it states none.
func Address(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	port := "4222"
	switch u.Scheme {
	case "https", "wss":
		port = "443"
	case "http", "ws":
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
