// Package network owns how an agent reaches out of its cluster: which certificates it trusts and which
// proxy it passes through. Enrolment, NATS and the self-check all use the same, so that a proxy or a CA
// is honoured everywhere or nowhere. It knows no protocol above TLS and HTTP.
package network

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Proxy is the proxy as the usual variables state it.
type Proxy struct {
	HTTPS string // HTTPS_PROXY
	HTTP  string // HTTP_PROXY
	None  string // NO_PROXY
}

// For returns the proxy for a URL of any scheme, nil where the address is reached directly. wss and
// tls count as https, ws and nats as http.
func (p Proxy) For(u *url.URL) (*url.URL, error) {
	asked := *u
	switch u.Scheme {
	case "wss", "tls":
		asked.Scheme = "https"
	case "ws", "nats":
		asked.Scheme = "http"
	}
	cfg := httpproxy.Config{HTTPSProxy: p.HTTPS, HTTPProxy: p.HTTP, NoProxy: p.None}
	proxy, err := cfg.ProxyFunc()(&asked)
	if err != nil {
		// The text of this error may quote the variable, and with it a password.
		return nil, errors.New("HTTPS_PROXY or HTTP_PROXY is not a URL: write it as http://host:port")
	}
	return proxy, nil
}

// Roots returns the system's certificates with those of the PEM files and texts added. Empty entries
// are skipped; an entry without a certificate is an error.
func Roots(files, pems []string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // an image without certificates: what follows is all we trust
	}
	for _, file := range files {
		if file == "" {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("CA file cannot be read: %w: give a PEM file that the agent's user may read", err)
		}
		if !pool.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("CA file %s holds no PEM certificate: it must contain -----BEGIN CERTIFICATE-----", file)
		}
	}
	for _, text := range pems {
		if text != "" && !pool.AppendCertsFromPEM([]byte(text)) {
			return nil, errors.New("the CA that console handed over holds no PEM certificate")
		}
	}
	return pool, nil
}

// TLS is the client's TLS configuration over the given roots.
func TLS(roots *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// maxAnswer bounds an HTTP answer, in bytes; console's answers to agents are a few KiB.
const maxAnswer = 1 << 20

// HTTPClient makes the client for console's API: no redirects, which would carry a token elsewhere,
// bounded answers, and a limit for the whole exchange.
func HTTPClient(roots *x509.CertPool, proxy Proxy, timeout time.Duration) *http.Client {
	transport := &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) { return proxy.For(r.URL) },
		OnProxyConnectResponse: func(_ context.Context, proxyURL *url.URL, connect *http.Request, resp *http.Response) error {
			if resp.StatusCode != http.StatusOK { // net/http would say "Forbidden", as if console did
				return &ProxyRefusal{Proxy: proxyURL.Host, Target: connect.Host, Status: resp.StatusCode}
			}
			return nil
		},
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:       TLS(roots),
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: timeout,
		IdleConnTimeout:       30 * time.Second,
		MaxIdleConns:          2,
		ForceAttemptHTTP2:     true,
	}
	return &http.Client{
		Transport:     bounded{transport, proxy},
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type bounded struct {
	next  http.RoundTripper
	proxy Proxy
}

// RoundTrip implements [http.RoundTripper]; it cuts the answer's body.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusProxyAuthRequired { // no server beyond a proxy says this
		return nil, errors.Join(b.refusal(r), resp.Body.Close())
	}
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

func (b bounded) refusal(r *http.Request) error {
	refusal := &ProxyRefusal{Proxy: "in between", Target: r.URL.Host, Status: http.StatusProxyAuthRequired}
	if u, err := b.proxy.For(r.URL); err == nil && u != nil {
		refusal.Proxy = u.Host
	}
	return refusal
}

// CloseIdleConnections lets http.Client pass the call on.
func (b bounded) CloseIdleConnections() {
	if c, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
