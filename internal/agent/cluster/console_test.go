package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/api/console/client"
	"prxm.uz/proxima/internal/wire"
)

// console is what an agent sees of console: the HTTP contract, and a NATS server in operator mode with
// the stream of inventories. It decides as little as the tests need.
type console struct {
	t       *testing.T
	http    *httptest.Server
	nats    *server.Server
	account nkeys.KeyPair
	nc      *nats.Conn
	js      jetstream.JetStream

	mu         sync.Mutex
	agents     map[string]string // public key → id
	names      map[string]string // name → public key
	loseAnswer int               // how many answers to an enrolment get lost
	refuse     *client.Problem
	status     int
	ttl        time.Duration
	enrols     int
	renewals   int
	findings   []client.Finding
	epoch      int64
	messages   map[string][][]byte // by subject
	changed    chan struct{}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func startConsole(t *testing.T, change ...func(*server.Options)) *console {
	t.Helper()
	c := &console{t: t, agents: map[string]string{}, names: map[string]string{}, ttl: time.Hour, messages: map[string][][]byte{}, changed: make(chan struct{})}
	c.startNATS(change)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/enroll/challenge", func(w http.ResponseWriter, _ *http.Request) {
		c.answer(w, 200, client.Challenge{Challenge: "challenge", ExpiresAt: time.Now().Add(time.Minute)})
	})
	mux.HandleFunc("POST /api/v1/enroll", c.enroll)
	mux.HandleFunc("POST /api/v1/enroll/findings", func(w http.ResponseWriter, r *http.Request) {
		var body client.FindingsRequest
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		c.locked(func() { c.findings = body.Findings })
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /api/v1/enroll/agents/{id}/credential", func(w http.ResponseWriter, r *http.Request) {
		var body client.RenewRequest
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if !verifies(body.PublicKey, body.Signature, wire.RenewProof(body.Challenge, r.PathValue("id"))) {
			t.Error("the proof of a renewal does not hold")
		}
		c.locked(func() { c.renewals++ })
		c.answer(w, 200, c.credential(body.PublicKey, r.PathValue("id")))
	})
	c.http = httptest.NewServer(mux)
	t.Cleanup(c.http.Close)
	return c
}

func (c *console) startNATS(change []func(*server.Options)) {
	operator, account, system := must(nkeys.CreateOperator()), must(nkeys.CreateAccount()), must(nkeys.CreateAccount())
	c.account = account
	oc := jwt.NewOperatorClaims(must(operator.PublicKey()))
	oc.SystemAccount = must(system.PublicKey())
	ac := jwt.NewAccountClaims(must(account.PublicKey()))
	ac.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	resolver := &server.MemAccResolver{}
	for claims, key := range map[*jwt.AccountClaims]nkeys.KeyPair{ac: account, jwt.NewAccountClaims(must(system.PublicKey())): system} {
		if err := resolver.Store(must(key.PublicKey()), must(claims.Encode(operator))); err != nil {
			c.t.Fatal(err)
		}
	}
	decoded := must(jwt.DecodeOperatorClaims(must(oc.Encode(operator))))
	options := &server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: c.t.TempDir(), TrustedOperators: []*jwt.OperatorClaims{decoded}, AccountResolver: resolver,
		SystemAccount: oc.SystemAccount, MaxPayload: 8 << 20, NoSigs: true,
	}
	for _, f := range change {
		f(options)
	}
	ns, err := server.NewServer(options)
	if err != nil {
		c.t.Fatal(err)
	}
	ns.Start()
	c.t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(10 * time.Second) {
		c.t.Fatal("nats did not start")
	}
	c.nats = ns
	user := must(nkeys.CreateUser())
	token := must(jwt.NewUserClaims(must(user.PublicKey())).Encode(account))
	c.nc = must(nats.Connect(ns.ClientURL(), nats.UserJWT(func() (string, error) { return token, nil }, user.Sign)))
	c.t.Cleanup(c.nc.Close)
	c.js = must(jetstream.New(c.nc))
	must(c.js.CreateStream(context.Background(), jetstream.StreamConfig{
		Name: wire.StreamInventory, Subjects: []string{"inventory.*"}, MaxMsgsPerSubject: 1, AllowDirect: true, NoAck: true,
		RePublish: &jetstream.RePublish{Source: "inventory.*", Destination: wire.StoredSubject("{{wildcard(1)}}"), HeadersOnly: true},
	}))
	must(c.nc.Subscribe("config.*", func(m *nats.Msg) {
		c.locked(func() { c.epoch++ })
		body := must(json.Marshal(wire.ConfigReply{Epoch: c.epoch}))
		if err := m.Respond(body); err != nil {
			c.t.Error(err)
		}
	}))
	for _, subject := range []string{"inventory.*", "heartbeat.*", "status.*"} {
		must(c.nc.Subscribe(subject, func(m *nats.Msg) { c.locked(func() { c.messages[m.Subject] = append(c.messages[m.Subject], m.Data) }) }))
	}
	if err := c.nc.Flush(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *console) locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// await waits until f, called under the lock, is satisfied.
func (c *console) await(what string, limit time.Duration, f func() bool) {
	c.t.Helper()
	deadline := time.After(limit)
	for {
		c.mu.Lock()
		ok, changed := f(), c.changed
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			c.t.Fatalf("waited %v for %s", limit, what)
		}
	}
}

func (c *console) answer(w http.ResponseWriter, status int, body any) {
	kind := "application/json"
	if status >= 400 {
		kind = "application/problem+json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		c.t.Error(err)
	}
}

func verifies(public, signature string, text []byte) bool {
	key, err := nkeys.FromPublicKey(public)
	if err != nil {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	return err == nil && key.Verify(text, raw) == nil
}

func (c *console) credential(public, id string) client.Credential {
	now := time.Now().Truncate(time.Second)
	claims := jwt.NewUserClaims(public)
	claims.Expires = now.Add(c.ttl).Unix()
	claims.Pub.Allow.Add(wire.InventorySubject(id), wire.HeartbeatSubject(id), wire.StatusSubject(id), wire.ConfigSubject(id), wire.ReplySubject(id))
	claims.Sub.Allow.Add(wire.InboxPrefix(id)+".>", wire.CommandSubject(id))
	return client.Credential{Jwt: must(claims.Encode(c.account)), Template: 1, IssuedAt: now, ExpiresAt: now.Add(c.ttl)}
}

func (c *console) enroll(w http.ResponseWriter, r *http.Request) {
	var body client.EnrollRequest
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		c.t.Error(err)
	}
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer pit_") || !verifies(body.PublicKey, body.Signature, wire.EnrollProof(body.Challenge, string(body.AgentType), *body.ClusterSlug, body.Name)) {
		c.t.Error("enrolment without token or proof")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enrols++
	if c.refuse != nil {
		c.answer(w, c.status, c.refuse)
		return
	}
	if held, ok := c.names[body.Name]; ok && held != body.PublicKey {
		c.answer(w, 409, client.Problem{Code: "already_enrolled", Detail: new("The name " + body.Name + " is taken."), Cure: new("Release the identity, or delete the record.")})
		return
	}
	id, resumed := c.agents[body.PublicKey]
	if !resumed {
		id = "agt" + strings.ReplaceAll(body.Name, "-", "")
		c.agents[body.PublicKey], c.names[body.Name] = id, body.PublicKey
	}
	if c.loseAnswer > 0 {
		c.loseAnswer--
		panic(http.ErrAbortHandler)
	}
	c.answer(w, 200, client.EnrollResponse{
		AgentID: id, ClientID: "cl", EnvironmentID: "env", EnvironmentName: "Production", Name: body.Name, ClusterSlug: *body.ClusterSlug,
		Resumed: resumed, Credential: c.credential(body.PublicKey, id), NatsURLs: []string{c.nats.ClientURL()},
	})
}

// last decodes the last message on a subject; the lock is held.
func last[T any](c *console, subject string) (v T, n int) {
	list := c.messages[subject]
	if len(list) > 0 {
		if err := json.Unmarshal(list[len(list)-1], &v); err != nil {
			c.t.Error(err)
		}
	}
	return v, len(list)
}
