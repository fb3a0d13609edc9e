package doctor

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"prxm.uz/proxima/internal/agent/enroll"
	"prxm.uz/proxima/internal/agent/network"
)

// The limits of the clock's skew.
const (
	skewWarning = 30 * time.Second
	skewFailure = 5 * time.Minute
)

// backend goes up the layers and stops at the first that fails: what lies above cannot work.
func (Subject) backend(ctx context.Context, s Subject) []Finding {
	u, err := url.Parse(s.Backend)
	switch {
	case s.Backend == "":
		return []Finding{{Check: "backend.url", Status: Failed, Message: "PROXIMA_BACKEND_URL is empty", Cure: "set PROXIMA_BACKEND_URL to the address of console, as the wizard prints it"}}
	case err != nil || u.Hostname() == "" || (u.Scheme != "https" && u.Scheme != "http"):
		return []Finding{{Check: "backend.url", Status: Failed, Message: "PROXIMA_BACKEND_URL is not an http or https address", Cure: "write it as https://host or https://host:port"}}
	}
	findings := []Finding{backendForm(u)}
	proxy, err := s.Proxy.For(u)
	if err != nil {
		return findings // the proxy's own finding says it
	}
	hop := u
	if proxy != nil {
		hop = proxy
	}
	for _, check := range []func(context.Context, *url.URL) Finding{resolve, reach} {
		f := check(ctx, hop)
		if f.Status == Failed && proxy != nil {
			f.Message = "the proxy " + f.Message
			f.Cure = "correct HTTPS_PROXY or HTTP_PROXY; where " + u.Hostname() + " is reached directly, name it in NO_PROXY"
		}
		if findings = append(findings, f); f.Status == Failed {
			return findings
		}
	}
	if u.Scheme == "https" {
		f := handshake(ctx, "backend.tls", u, s.Roots, s.Proxy, "PROXIMA_CA_FILE")
		if findings = append(findings, f); f.Status == Failed {
			return findings
		}
	}
	return append(findings, answer(ctx, s)...)
}

func backendForm(u *url.URL) Finding {
	f := Finding{Check: "backend.url", Status: OK, Message: u.Redacted()}
	ip := net.ParseIP(u.Hostname())
	if u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		f.Status, f.Message = Warning, u.Redacted()+" is the pod itself, not console"
		f.Cure = "set PROXIMA_BACKEND_URL to an address that pods can reach"
	}
	return f
}

func resolve(ctx context.Context, u *url.URL) Finding {
	if net.ParseIP(u.Hostname()) != nil {
		return Finding{Check: "backend.dns", Status: Skipped, Message: u.Hostname() + " is an address, nothing to resolve"}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	if err != nil {
		return Finding{
			Check: "backend.dns", Status: Failed, Message: fmt.Sprintf("%s cannot be resolved: %v", u.Hostname(), err),
			Cure: "correct the name, or make the cluster's DNS resolve it",
		}
	}
	return Finding{Check: "backend.dns", Status: OK, Message: u.Hostname() + " is " + strings.Join(addresses[:min(len(addresses), 4)], ", ")}
}

func reach(ctx context.Context, u *url.URL) Finding {
	conn, err := (&net.Dialer{Timeout: limit}).DialContext(ctx, "tcp", network.Address(u))
	if err != nil {
		return Finding{
			Check: "backend.tcp", Status: Failed, Message: fmt.Sprintf("%s does not accept connections: %v", network.Address(u), err),
			Cure: "check address and port, network policies and firewalls, and whether a proxy is needed (HTTPS_PROXY)",
		}
	}
	_ = conn.Close()
	return Finding{Check: "backend.tcp", Status: OK, Message: network.Address(u) + " accepts connections"}
}

// handshake verifies the server's chain, and on failure shows what was presented.
func handshake(ctx context.Context, check string, u *url.URL, roots *x509.CertPool, proxy network.Proxy, variable string) Finding {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := network.Dialer{Proxy: proxy, Roots: roots, Timeout: limit}.Dial(ctx, u)
	if err != nil {
		return unreached(check, u, err, "check the proxy and the firewall")
	}
	cfg := network.TLS(roots)
	cfg.ServerName = u.Hostname()
	secured := tls.Client(conn, cfg)
	defer secured.Close()
	if err := secured.HandshakeContext(ctx); err != nil {
		return certificate(check, u, err, variable)
	}
	return Finding{Check: check, Status: OK, Message: "certificate is trusted: " + describe(secured.ConnectionState().PeerCertificates[0])}
}

// unreached says what refused the way to u; a proxy's refusal has its own cure.
func unreached(check string, u *url.URL, err error, otherwise string) Finding {
	f := Finding{Check: check, Status: Failed, Message: fmt.Sprintf("%s cannot be reached: %v", network.Address(u), err), Cure: otherwise}
	if refused, ok := errors.AsType[*network.ProxyRefusal](err); ok {
		f.Cure = refused.Cure()
	}
	return f
}

func certificate(check string, u *url.URL, err error, variable string) Finding {
	f := Finding{Check: check, Status: Failed, Message: fmt.Sprintf("TLS with %s failed: %v", network.Address(u), err), Cure: "check that this port speaks TLS"}
	if verify, ok := errors.AsType[*tls.CertificateVerificationError](err); ok && len(verify.UnverifiedCertificates) > 0 {
		f.Message = fmt.Sprintf("the certificate of %s is not trusted: %v; presented: %s", network.Address(u), verify.Err, describe(verify.UnverifiedCertificates[0]))
	}
	if cure, ok := network.TLSCure(err, variable); ok {
		f.Cure = cure
	}
	return f
}

func describe(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return fmt.Sprintf("subject %q, issuer %q, SHA-256 %s", c.Subject.String(), c.Issuer.String(), hex.EncodeToString(sum[:]))
}

// answer asks for a challenge: only console gives one. Its date measures the clock.
func answer(ctx context.Context, s Subject) []Finding {
	api, err := enroll.New(s.Backend, "", network.HTTPClient(s.Roots, s.Proxy, limit))
	if err != nil {
		return []Finding{{Check: "backend.http", Status: Failed, Message: err.Error(), Cure: "correct PROXIMA_BACKEND_URL"}}
	}
	before := s.Clock.Now()
	date, err := api.Challenge(ctx)
	after := s.Clock.Now()
	var findings []Finding
	if err != nil {
		f := Finding{Check: "backend.http", Status: Failed, Message: err.Error(), Cure: "set PROXIMA_BACKEND_URL to the address of Proxima Console itself"}
		if refused, ok := enroll.AsRefusal(err); ok {
			f.Status, f.Message, f.Cure = Warning, refused.Error(), refused.Cure
		}
		if refused, ok := errors.AsType[*network.ProxyRefusal](err); ok {
			f.Cure = refused.Cure()
		}
		findings = append(findings, f)
	} else {
		findings = append(findings, Finding{Check: "backend.http", Status: OK, Message: "Proxima Console answers"})
	}
	if !date.IsZero() {
		findings = append(findings, skew(date, before, after))
	}
	return findings
}

// skew compares console's date, which is cut to whole seconds, with the moments around the request.
func skew(date, before, after time.Time) Finding {
	var off time.Duration
	switch {
	case date.Add(time.Second).Before(before):
		off = before.Sub(date.Add(time.Second))
	case date.After(after):
		off = date.Sub(after)
	}
	f := Finding{Check: "backend.clock", Status: OK, Message: "this clock agrees with console's"}
	if off <= skewWarning {
		return f
	}
	direction := "ahead of"
	if date.After(after) {
		direction = "behind"
	}
	f.Status, f.Message = Warning, fmt.Sprintf("this clock is %s %s console's", off.Round(time.Second), direction)
	f.Cure = "synchronize the clock of this node (NTP)"
	if off > skewFailure {
		f.Status = Failed
	}
	return f
}

// nats looks whether each address can be reached at all; credentials are not tried.
func (Subject) nats(ctx context.Context, s Subject) []Finding {
	if len(s.NATSURLs) == 0 {
		return []Finding{{Check: "nats", Status: Skipped, Message: "the addresses arrive with the enrolment"}}
	}
	findings := make([]Finding, 0, len(s.NATSURLs))
	failed := 0
	for i, address := range s.NATSURLs[:min(len(s.NATSURLs), 8)] {
		f := natsAddress(ctx, s, fmt.Sprintf("nats.%d", i+1), address)
		if f.Status == Failed {
			failed++
		}
		findings = append(findings, f)
	}
	if failed < len(findings) { // one is enough to work
		for i := range findings {
			if findings[i].Status == Failed {
				findings[i].Status = Warning
			}
		}
	}
	return findings
}

func natsAddress(ctx context.Context, s Subject, check, address string) Finding {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return Finding{Check: check, Status: Failed, Message: "a NATS address is not a URL", Cure: "write it as tls://host:4222 or wss://host/path"}
	}
	if u.Scheme == "wss" {
		f := handshake(ctx, check, u, s.NATS, s.Proxy, "PROXIMA_NATS_CA_FILE or PROXIMA_CA_FILE")
		if f.Status == OK {
			f.Message = u.Redacted() + " can be reached"
		}
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := network.Dialer{Proxy: s.Proxy, Roots: s.NATS, Timeout: limit}.Dial(ctx, u)
	if err != nil {
		return unreached(check, u, err, "open the port, or let console offer wss on 443 (PROXIMA_NATS_PUBLIC_URLS)")
	}
	defer conn.Close()
	if u.Scheme == "ws" {
		return Finding{Check: check, Status: OK, Message: u.Redacted() + " accepts connections"}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	line, err := bufio.NewReader(conn).ReadString(' ')
	if err != nil || line != "INFO " {
		return Finding{Check: check, Status: Failed, Message: u.Redacted() + " accepts connections and does not speak NATS", Cure: "check the port; a server that begins with TLS is not supported"}
	}
	return Finding{Check: check, Status: OK, Message: u.Redacted() + " speaks NATS"}
}
