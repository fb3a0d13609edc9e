package enrollment_test

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/natsauth"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/wire"
	"prxm.uz/proxima/test/storetest"
)

var engines storetest.Engines

func TestMain(m *testing.M) {
	code, err := storetest.Main(m, &engines)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// desk is a Service on a real store and a real authority, with a clock that tests move.
type desk struct {
	*enrollment.Service
	t     testing.TB
	db    *storetest.Database
	clock *clocktest.Manual
}

// atDesks runs a test at a desk of its own on each engine.
func atDesks(t *testing.T, f func(*testing.T, *desk)) {
	t.Helper()
	engines.Each(t, func(t *testing.T, db *storetest.Database) { f(t, newDesk(t, db)) })
}

func newDesk(t testing.TB, db *storetest.Database) *desk {
	t.Helper()
	db.House(t)
	keys, err := natsauth.LoadOrCreate(t.TempDir())
	must(t, err)
	authority, err := natsauth.New(keys, 0)
	must(t, err)
	c := clocktest.New(storetest.Noon())
	return &desk{
		Service: enrollment.New(enrollment.Config{
			Store: db.Enrollment(), Authority: authority, Fleet: db.Fleet(), Clock: c, Logger: slog.New(slog.DiscardHandler),
			NATSURLs: []string{"tls://console.example:4222", "wss://console.example/nats"}, NATSCA: "a certificate",
		}),
		t: t, db: db, clock: c,
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want holds an error to a kind and a code.
func want(t *testing.T, err error, kind problem.Kind, code string) {
	t.Helper()
	if !problem.Is(err, kind) || problem.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func grant(scope access.Scope, permissions ...access.Permission) access.Principal {
	return access.Principal{UserID: "usr_x", Email: "x@example.com", RemoteAddr: "192.0.2.9", Grants: []access.Grant{{Role: "r", Permissions: permissions, Scope: scope}}}
}

// writer may mint in acme; reader may only look there; stranger may everything in zeta.
func writer() access.Principal {
	return grant(access.Scope{ClientID: "acme"}, access.HostsRead, access.HostsWrite)
}

func reader() access.Principal { return grant(access.Scope{ClientID: "acme"}, access.HostsRead) }

func stranger() access.Principal {
	return grant(access.Scope{ClientID: "zeta"}, access.Permissions()...)
}

// mint makes a token in acme-prod; change may be nil.
func (d *desk) mint(change func(*enrollment.MintRequest)) (enrollment.Token, string) {
	d.t.Helper()
	req := enrollment.MintRequest{ClientID: "acme", EnvironmentID: "acme-prod", MaxUses: 25}
	if change != nil {
		change(&req)
	}
	token, plain, err := d.Mint(d.t.Context(), writer(), req)
	must(d.t, err)
	return token, plain
}

func (d *desk) token(id string) enrollment.Token {
	d.t.Helper()
	token, err := d.db.Enrollment().Token(d.t.Context(), id)
	must(d.t, err)
	return token
}

func (d *desk) agents() int {
	d.t.Helper()
	return d.db.Count(d.t, "SELECT COUNT(*) FROM agents")
}

// attempt records an attempt in acme-prod on the store.
func (d *desk) attempt(id, slug string) {
	d.t.Helper()
	must(d.t, d.db.Onboarding().InTx(d.t.Context(), func(tx onboarding.Tx) error {
		return tx.InsertAttempt(d.t.Context(), onboarding.Attempt{
			ID: id, ClientID: "acme", EnvironmentID: "acme-prod", Slug: slug, DisplayName: slug, CreatedAt: d.clock.Now(), CreatedBy: "usr_x",
		})
	}))
}

// pod is the agent's side: a key, and what it says of itself.
type pod struct {
	d      *desk
	pair   nkeys.KeyPair
	public string
	enrollment.Request
}

func (d *desk) pod(name string) *pod {
	d.t.Helper()
	pair, err := nkeys.CreateUser()
	must(d.t, err)
	public, err := pair.PublicKey()
	must(d.t, err)
	return &pod{d: d, pair: pair, public: public, Request: enrollment.Request{
		AgentType: fleet.TypeCollector, Name: name, ClusterSlug: "alpha", ClusterName: "Alpha", Version: "0.9.0", Capability: 1,
	}}
}

// lost is the same pod after it lost its state: the same words, another key.
func (p *pod) lost() *pod {
	other := p.d.pod(p.Name)
	other.Request = p.Request
	return other
}

func (p *pod) sign(text []byte) string {
	p.d.t.Helper()
	signature, err := p.pair.Sign(text)
	must(p.d.t, err)
	return base64.RawURLEncoding.EncodeToString(signature)
}

func (p *pod) challenge() string {
	p.d.t.Helper()
	challenge, expires, err := p.d.Challenge(p.d.t.Context())
	must(p.d.t, err)
	if got := expires.Sub(p.d.clock.Now()); got != 5*time.Minute {
		p.d.t.Errorf("a challenge lasts %v", got)
	}
	return challenge
}

// proof is the pod's request, signed over a fresh challenge.
func (p *pod) proof() enrollment.Request {
	p.d.t.Helper()
	r := p.Request
	r.PublicKey, r.Challenge = p.public, p.challenge()
	r.Signature = p.sign(wire.EnrollProof(r.Challenge, string(r.AgentType), r.ClusterSlug, r.Name))
	return r
}

func (p *pod) enroll(token string) (enrollment.Response, error) {
	p.d.t.Helper()
	return p.d.Enroll(p.d.t.Context(), token, p.proof(), "198.51.100.7")
}

// in enrolls and ends the test where that is refused.
func (p *pod) in(token string) enrollment.Response {
	p.d.t.Helper()
	resp, err := p.enroll(token)
	must(p.d.t, err)
	return resp
}

func (p *pod) renewal(agentID string) enrollment.RenewRequest {
	p.d.t.Helper()
	r := enrollment.RenewRequest{PublicKey: p.public, Challenge: p.challenge(), Version: p.Version}
	r.Signature = p.sign(wire.RenewProof(r.Challenge, agentID))
	return r
}

// act runs one transaction of package fleet, as a person's act does.
func (d *desk) act(f func(fleet.Tx) error) {
	d.t.Helper()
	must(d.t, d.db.Fleet().InTx(d.t.Context(), f))
}
