package enroll

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"prxm.uz/proxima/api/console/client"
	"prxm.uz/proxima/internal/agent/network"
)

// Refusal is console's decision against a request, with its stable code and cure.
type Refusal struct {
	Status int
	Code   string
	Detail string
	Cure   string
	// RetryAfter is what console asked for; zero where it did not.
	RetryAfter time.Duration
}

// Error implements error.
func (r *Refusal) Error() string {
	text := fmt.Sprintf("console refused (%d %s)", r.Status, r.Code)
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	if r.Cure != "" {
		text += " Cure: " + r.Cure
	}
	return text
}

// Permanent reports whether asking again cannot help: what is wrong must first be put right by a
// person. A proof that was refused may have been too late for its challenge, so it is tried again.
func (r *Refusal) Permanent() bool {
	switch r.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return r.Status/100 == 4 && r.Code != "proof_invalid"
}

// AsRefusal returns the refusal in err's chain.
func AsRefusal(err error) (*Refusal, bool) { return errors.AsType[*Refusal](err) }

// Unreachable is a fault on the way to console, or an answer that console would not give.
type Unreachable struct {
	Dependency string // dns, tcp, tls, proxy, http or console: what is at fault
	Err        error
}

// Error implements error.
func (u *Unreachable) Error() string { return u.Dependency + ": " + u.Err.Error() }

// Unwrap returns the cause.
func (u *Unreachable) Unwrap() error { return u.Err }

// unreachable names which dependency failed.
func unreachable(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the method and URL, which every line would repeat
	}
	return &Unreachable{Dependency: Dependency(err), Err: err}
}

// Dependency names what a transport error is about.
func Dependency(err error) string {
	var (
		dns       *net.DNSError
		op        *net.OpError
		record    tls.RecordHeaderError
		verify    *tls.CertificateVerificationError
		alert     tls.AlertError
		malformed *json.SyntaxError
		proxied   *network.ProxyRefusal
	)
	switch {
	case errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert):
		return "tls"
	case errors.As(err, &op) && op.Op == "proxyconnect", errors.As(err, &proxied):
		return "proxy"
	case errors.As(err, &dns):
		return "dns"
	case errors.As(err, &malformed):
		return "console"
	case errors.As(err, &op):
		return "tcp"
	case errors.Is(err, context.DeadlineExceeded):
		return "tcp"
	default:
		return "http"
	}
}

// refusal reads console's problem; an answer of any other form did not come from console.
func refusal(resp *http.Response, p *client.Problem) error {
	if p == nil || p.Code == "" {
		if resp.StatusCode/100 == 5 {
			return &Unreachable{Dependency: "console", Err: fmt.Errorf("it is not available now (%s)", resp.Status)}
		}
		where := ""
		if location := resp.Header.Get("Location"); location != "" {
			where = ", it points to " + stripped(location)
		}
		tls := ""
		if resp.StatusCode == http.StatusBadRequest && resp.Request != nil && resp.Request.URL.Scheme == "http" {
			tls = "; if it speaks TLS, begin the address with https://"
		}
		return &Unreachable{Dependency: "console", Err: fmt.Errorf("the answer (%s, %q%s) is not one of Proxima Console: another server, a login page or a proxy answers at PROXIMA_BACKEND_URL%s",
			resp.Status, resp.Header.Get("Content-Type"), where, tls)}
	}
	r := &Refusal{Status: resp.StatusCode, Code: p.Code, RetryAfter: retryAfter(resp.Header.Get("Retry-After"))}
	if p.Detail != nil {
		r.Detail = *p.Detail
	}
	if p.Cure != nil {
		r.Cure = *p.Cure
	}
	return r
}

// stripped leaves scheme, host and path of an address.
func stripped(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "another address"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// retryAfter reads the header's seconds, at most an hour.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, int(time.Hour/time.Second))) * time.Second
}
