// Package doctor owns the self-check: it tries each thing that an agent depends on and says in one
// line what is wrong and what cures it. It changes nothing, and it shows neither token nor password.
package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/url"
	"slices"
	"sync"
	"time"

	"prxm.uz/proxima/internal/agent/enroll"
	"prxm.uz/proxima/internal/agent/kubeapi"
	"prxm.uz/proxima/internal/agent/network"
	"prxm.uz/proxima/internal/clock"
)

// Status sorts findings; the values are those of the API.
type Status string

// The statuses of a finding.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Finding is one line of the self-check.
type Finding struct {
	Check   string // such as backend.tls
	Status  Status
	Message string
	Cure    string // empty where nothing is wrong
	At      time.Time
}

// Subject is what is checked.
type Subject struct {
	Backend string // PROXIMA_BACKEND_URL, may be empty
	Token   string // as it was configured
	// Enrolled agents need no token.
	Enrolled bool
	NATSURLs []string // empty before the enrolment without an override
	Roots    *x509.CertPool
	NATS     *x509.CertPool // roots for NATS
	Proxy    network.Proxy
	// Kubernetes is nil where no client could be made; KubernetesError says why.
	Kubernetes      *kubeapi.Client
	KubernetesError error
	// LeaseNamespace and LeaseName are the Lease by which replicas elect a leader; empty without election.
	LeaseNamespace, LeaseName string
	Clock                     clock.Clock
}

// limit bounds one check, so that a black hole does not hold up the rest.
const limit = 8 * time.Second

// Run makes all checks, several at once, and returns the findings in a fixed order.
func Run(ctx context.Context, s Subject) []Finding {
	groups := []func(context.Context, Subject) []Finding{s.proxy, s.backend, s.token, s.kubernetes, s.nats}
	found := make([][]Finding, len(groups))
	var wg sync.WaitGroup
	for i, check := range groups {
		wg.Go(func() { found[i] = check(ctx, s) })
	}
	wg.Wait()
	now := s.Clock.Now().UTC()
	all := slices.Concat(found...)
	for i := range all {
		all[i].At = now
	}
	return all
}

// AnyFailed reports whether a finding is a failure.
func AnyFailed(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Status == Failed })
}

// Same reports whether two runs found the same, whatever the time.
func Same(a, b []Finding) bool {
	return slices.EqualFunc(a, b, func(x, y Finding) bool {
		return x.Check == y.Check && x.Status == y.Status && x.Cure == y.Cure
	})
}

// Print writes one line for each finding, and one more for its cure.
func Print(w io.Writer, findings []Finding) {
	for _, f := range findings {
		fmt.Fprintf(w, "%-8s %-24s %s\n", f.Status, f.Check, f.Message)
		if f.Cure != "" {
			fmt.Fprintf(w, "%-8s %-24s cure: %s\n", "", "", f.Cure)
		}
	}
}

func (Subject) proxy(_ context.Context, s Subject) []Finding {
	u, err := url.Parse(s.Backend)
	if s.Backend == "" || err != nil {
		return nil
	}
	proxy, err := s.Proxy.For(u)
	switch {
	case err != nil:
		return []Finding{{Check: "proxy", Status: Failed, Message: err.Error(), Cure: "correct HTTPS_PROXY, for example http://proxy.example:3128"}}
	case proxy == nil:
		return []Finding{{Check: "proxy", Status: OK, Message: "no proxy is in effect for " + u.Hostname()}}
	}
	return []Finding{{Check: "proxy", Status: OK, Message: fmt.Sprintf("%s is reached through the proxy %s", u.Hostname(), proxy.Host)}}
}

func (Subject) token(_ context.Context, s Subject) []Finding {
	if s.Enrolled && s.Token == "" {
		return []Finding{{Check: "token", Status: Skipped, Message: "the agent is enrolled and needs no install token"}}
	}
	token, err := enroll.CheckToken(s.Token)
	if err != nil {
		status := Failed
		if s.Enrolled {
			status = Warning
		}
		return []Finding{{Check: "token", Status: status, Message: err.Error(), Cure: "put a token of the wizard into the Secret proxima-install-token and restart the pod"}}
	}
	return []Finding{{Check: "token", Status: OK, Message: fmt.Sprintf("has the shape of an install token: begins with %s, %d characters", enroll.TokenPrefix, len(token))}}
}
