package natsapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/prometheus/client_golang/prometheus"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/natsapi"
	"prxm.uz/proxima/internal/console/natsauth"
	"prxm.uz/proxima/internal/wire"
)

const patience = 20 * time.Second

// world is an embedded server with console's connection, and a list of revoked keys.
type world struct {
	t         *testing.T
	dir       string
	authority *natsauth.Authority
	embedded  *natsapi.Embedded
	address   string // for agents
	console   *natsapi.Connection
	mu        sync.Mutex
	revoked   map[string]time.Time
}

func (w *world) Revoked(context.Context, time.Time) (map[string]time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	copied := map[string]time.Time{}
	for k, v := range w.revoked {
		copied[k] = v
	}
	return copied, nil
}

func newWorld(t *testing.T, ttl time.Duration) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), revoked: map[string]time.Time{}}
	keys, err := natsauth.LoadOrCreate(filepath.Join(w.dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	if w.authority, err = natsauth.New(keys, ttl); err != nil {
		t.Fatal(err)
	}
	w.start()
	t.Cleanup(w.stop)
	return w
}

func (w *world) start() {
	w.t.Helper()
	var err error
	w.embedded, err = natsapi.StartEmbedded(w.t.Context(), natsapi.EmbeddedConfig{
		Dir: filepath.Join(w.dir, "nats"), Listen: "127.0.0.1:0", StoreLimit: 1 << 30, Authority: w.authority, Now: time.Now(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.address = "nats://" + w.embedded.Addr().String()
	w.console, err = natsapi.Connect(w.t.Context(), natsapi.ConnectConfig{
		Embedded: w.embedded, Authority: w.authority, Revocations: w, Clock: clock.System(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stop() {
	w.console.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.embedded.Shutdown(ctx); err != nil {
		w.t.Error(err)
	}
}

type agent struct {
	id, public string
	key        nkeys.KeyPair
	jwt        string
	mu         sync.Mutex
	errs       chan error
}

func (w *world) agent(id string) *agent {
	w.t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		w.t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		w.t.Fatal(err)
	}
	a := &agent{id: id, public: public, key: key, errs: make(chan error, 1000)}
	a.renew(w)
	return a
}

func (a *agent) renew(w *world) {
	w.t.Helper()
	c, err := w.authority.IssueCredential(a.id, a.public, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.jwt = c.JWT
}

func (a *agent) options(more ...nats.Option) []nats.Option {
	return append([]nats.Option{
		nats.UserJWT(func() (string, error) { a.mu.Lock(); defer a.mu.Unlock(); return a.jwt, nil }, a.key.Sign),
		nats.CustomInboxPrefix(wire.InboxPrefix(a.id)), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(), nats.ReconnectWait(20 * time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			select {
			case a.errs <- err:
			default:
			}
		}),
	}, more...)
}

func (w *world) connect(a *agent, more ...nats.Option) *nats.Conn {
	w.t.Helper()
	nc, err := nats.Connect(w.address, a.options(more...)...)
	if err != nil {
		w.t.Fatalf("agent %s: %v", a.id, err)
	}
	w.t.Cleanup(nc.Close)
	return nc
}

func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %v in vain for %s", patience, what)
		panic("unreachable")
	}
}

// eventually polls a condition that no channel tells.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-ticker.C {
		if ok() {
			return
		}
	}
	t.Fatalf("waited %v in vain for %s", patience, what)
}

// net-03: a denied subscription returns no error; the error handler is the only witness.
func TestAgentSeesAndSpeaksForNobodyElse(t *testing.T) {
	w := newWorld(t, 0)
	a := w.agent("agt_a")
	nc := w.connect(a)
	for _, subject := range []string{
		">", "*", "inventory.*", "inventory.>", "inventory.agt_b", "command.*", "command.agt_b", "command.>", "_INBOX.>", "_INBOX.*", "_INBOX.agt_b.>",
		"_INBOX.*.>", "kube.in.>", "kube.in.*.x", "kube.in.agt_b.>", "kube.>", "reply.agt_b.>", "reply.>", "*.agt_b", "$JS.>", "$SYS.>", "config.*", "heartbeat.*",
	} {
		sub, err := nc.SubscribeSync(subject)
		if err != nil {
			t.Fatalf("subscribe %s: %v, NATS was thought to be silent", subject, err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := await(t, "the refusal of "+subject, a.errs); !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("subscribe %s: %v", subject, err)
		}
		_ = sub.Unsubscribe()
	}
	for _, subject := range []string{
		"inventory.agt_b", "heartbeat.agt_b", "status.agt_b", "metrics.agt_b", "config.agt_b", "reply.agt_b.x", "kube.out.agt_b.x", "kube.in.agt_a.x",
		"command.agt_a", "_INBOX.agt_b.x", "_INBOX.agt_a.x", "inventory.agt_a.x", "$JS.API.STREAM.DELETE.INVENTORY", "$SYS.REQ.CLAIMS.UPDATE",
	} {
		if err := nc.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := await(t, "the refusal of "+subject, a.errs); !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("publish %s: %v", subject, err)
		}
	}
	for _, subject := range []string{"command.agt_a", "_INBOX.agt_a.>", "kube.in.agt_a.>"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-a.errs:
		t.Errorf("its own subjects: %v", err)
	default:
	}
}

func TestExpiryDropsAndAFreshCredentialReturns(t *testing.T) {
	w := newWorld(t, 2*time.Second)
	a := w.agent("agt_a")
	dropped, returned := make(chan error, 10), make(chan struct{}, 10)
	nc := w.connect(a,
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { dropped <- err }),
		nats.ReconnectHandler(func(*nats.Conn) { returned <- struct{}{} }))
	_ = await(t, "the drop at expiry", dropped)
	a.renew(w)
	await(t, "the return with a fresh credential", returned)
	if !nc.IsConnected() {
		eventually(t, "the connection", nc.IsConnected)
	}
}

func TestRevocationCutsAtOnceAndStays(t *testing.T) {
	w := newWorld(t, 0)
	a, other := w.agent("agt_a"), w.agent("agt_b")
	dropped := make(chan error, 100)
	nc := w.connect(a, nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { dropped <- err }))
	bystander := w.connect(other)
	if err := w.console.Revoke(t.Context(), a.public); err != nil {
		t.Fatal(err)
	}
	_ = await(t, "the cut", dropped)
	nc.Close()
	if !bystander.IsConnected() || bystander.Reconnects > 0 {
		t.Error("another agent was cut off too")
	}
	refused := func(when string) {
		t.Helper()
		if late, err := nats.Connect("nats://"+w.embedded.Addr().String(), a.options()...); err == nil {
			late.Close()
			t.Errorf("%s the revoked key connected", when)
		}
	}
	refused("after the cut")
	bystander.Close()
	w.stop()
	w.start()
	refused("after a restart")
}

func TestRevocationsOfTheDatabaseArePushedAtStart(t *testing.T) {
	w := newWorld(t, 0)
	a := w.agent("agt_a")
	w.mu.Lock()
	w.revoked[a.public] = time.Now()
	w.mu.Unlock()
	w.stop()
	w.start()
	eventually(t, "the refusal", func() bool {
		nc, err := nats.Connect("nats://"+w.embedded.Addr().String(), a.options()...)
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
}

func TestWebSocketThroughConsolesListener(t *testing.T) {
	w := newWorld(t, 0)
	mux := http.NewServeMux()
	mux.Handle("/nats", w.embedded.WebSocketHandler())
	front := httptest.NewTLSServer(mux)
	defer front.Close()
	a := w.agent("agt_a")
	transport, ok := front.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatalf("transport is %T", front.Client().Transport)
	}
	nc, err := nats.Connect("wss://"+front.Listener.Addr().String()+"/nats", a.options(nats.Secure(transport.TLSClientConfig))...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	answers, err := w.console.Conn.Subscribe("config.*", func(m *nats.Msg) { _ = m.Respond(m.Data) })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answers.Unsubscribe() }()
	if err := w.console.Conn.Flush(); err != nil {
		t.Fatal(err)
	}
	big := make([]byte, 4<<20)
	for i := range big {
		big[i] = byte(i * 31)
	}
	for range 3 {
		m, err := nc.Request("config.agt_a", big, patience)
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Data) != string(big) {
			t.Fatal("other bytes came back")
		}
	}
	resp, err := front.Client().Get(front.URL + "/nats")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("a plain GET got %d", resp.StatusCode)
	}
}

func TestListeningWithoutTLSStaysOnLoopback(t *testing.T) {
	w := newWorld(t, 0)
	_, err := natsapi.StartEmbedded(t.Context(), natsapi.EmbeddedConfig{
		Dir: t.TempDir(), Listen: "0.0.0.0:0", Authority: w.authority, Now: time.Now(), Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil || !strings.Contains(err.Error(), "PROXIMA_TLS_CERT_FILE") {
		t.Errorf("got %v", err)
	}
}

// domain records calls; answer decides what inventories meet.
type domain struct {
	answer   func(data string) error
	received chan string
	presence chan []fleet.Presence
	pulses   chan []fleet.Pulse
	epochs   atomic.Int64 // handed out
	large    func(ctx context.Context, what string) error
	suspend  func(agentID string) error
	kept     chan string // out: agents that were suspended
}

func newDomain() *domain {
	return &domain{
		answer: func(string) error { return nil }, received: make(chan string, 100),
		presence: make(chan []fleet.Presence, 100), pulses: make(chan []fleet.Pulse, 100),
		large:   func(context.Context, string) error { return nil },
		suspend: func(string) error { return nil }, kept: make(chan string, 100),
	}
}

func (d *domain) Receive(_ context.Context, agentID string, data []byte, _ time.Time) error {
	d.received <- agentID + " " + string(data)
	return d.answer(string(data))
}

func (d *domain) ReceiveLarge(ctx context.Context, agentID string, data []byte, _ time.Time) error {
	return d.large(ctx, agentID+" "+string(data))
}

func (d *domain) NextEpoch(_ context.Context, _, slug string) (int64, error) {
	d.epochs.Add(1)
	if slug != "prod" {
		return 0, errors.New("database password is hunter2")
	}
	return 7, nil
}

func (d *domain) RecordPresence(_ context.Context, b []fleet.Presence) error {
	d.presence <- b
	return nil
}

func (d *domain) RecordPulses(_ context.Context, b []fleet.Pulse) error { d.pulses <- b; return nil }

func (d *domain) Suspend(_ context.Context, agentID, _ string) error {
	err := d.suspend(agentID)
	select {
	case d.kept <- agentID:
	default:
	}
	return err
}

func (w *world) serve(d *domain) (s *natsapi.Server, stop func()) {
	w.t.Helper()
	s, err := natsapi.New(natsapi.Config{
		OwnStream: true, CanaryEvery: 200 * time.Millisecond, Control: w.console,
		Conn: w.console.Conn, JetStream: w.console.JetStream, Inventory: d, Fleet: d, Clock: clock.System(),
		Logger: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), StreamBytes: 256 << 20, RetryDelay: 50 * time.Millisecond,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	eventually(w.t, "readiness", func() bool { return s.Ready() == nil })
	return s, func() {
		cancel()
		if err := await(w.t, "the end of Run", done); err != nil {
			w.t.Error(err)
		}
	}
}

// publish returns once the stream has said that it stored text.
func publish(t *testing.T, nc *nats.Conn, subject, text string) {
	t.Helper()
	id, _ := wire.AgentOf(subject)
	stored, err := nc.SubscribeSync(wire.StoredSubject(id))
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Unsubscribe() //nolint:errcheck // the connection is open
	if err := nc.PublishMsg(&nats.Msg{Subject: subject, Data: []byte(text), Header: nats.Header{wire.HeaderSync: {text}}}); err != nil {
		t.Fatalf("publish %s: %v", text, err)
	}
	for got := ""; got != text; {
		m, err := stored.NextMsg(patience)
		if err != nil {
			t.Fatalf("%s was not said to be stored: %v", text, err)
		}
		if got = m.Header.Get(wire.HeaderSync); len(m.Data) > 0 {
			t.Errorf("the whole message came back: %d bytes", len(m.Data))
		}
	}
}

func TestIngest(t *testing.T) {
	w := newWorld(t, 0)
	d := newDomain()
	failures := 2
	d.answer = func(data string) error {
		switch {
		case data == "bad":
			return fmt.Errorf("%w: bad", wire.ErrMalformed)
		case data == "unlucky" && failures > 0:
			failures--
			return errors.New("database is gone")
		}
		return nil
	}
	_, stop := w.serve(d)
	nc := w.connect(w.agent("agt_a"))
	expect := func(want ...string) {
		t.Helper()
		for _, text := range want {
			if got := await(t, text, d.received); got != "agt_a "+text {
				t.Fatalf("received %q, want %q", got, text)
			}
		}
	}
	publish(t, nc, "inventory.agt_a", "bad")
	expect("bad")
	publish(t, nc, "inventory.agt_a", "good")
	expect("good")
	publish(t, nc, "inventory.agt_a", "unlucky")
	expect("unlucky", "unlucky", "unlucky")
	stop()
	for _, text := range []string{"one", "two", "three"} { // nobody listens: the last one waits
		publish(t, nc, "inventory.agt_a", text)
	}
	_, stop = w.serve(d)
	defer stop()
	expect("three")
	select {
	case got := <-d.received:
		t.Errorf("received %q too", got)
	default:
	}
}

func TestHeartbeatsAreBatchedAndFlushedAtTheEnd(t *testing.T) {
	w := newWorld(t, 0)
	d := newDomain()
	_, stop := w.serve(d)
	nc := w.connect(w.agent("agt_a"))
	send := func(subject string, v any) {
		t.Helper()
		body, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.Publish(subject, body); err != nil {
			t.Fatal(err)
		}
	}
	send("status.agt_a", wire.Status{Capability: 1, SentAt: time.Now(), Role: wire.RoleStandby})
	if b := await(t, "presence", d.presence); len(b) != 1 || b[0].AgentID != "agt_a" || b[0].Status.Role != wire.RoleStandby || b[0].ReceivedAt.IsZero() {
		t.Errorf("presence %+v", b)
	}
	for i := range 50 {
		send("heartbeat.agt_a", wire.Heartbeat{Capability: 1, SentAt: time.Now(), Epoch: int64(i)})
	}
	if err := nc.Publish("heartbeat.agt_a", []byte("{")); err != nil { // malformed, ignored
		t.Fatal(err)
	}
	// An answer on the same connection shows that what was sent before has reached the server.
	if _, err := nc.Request("config.agt_a", []byte(`{"want":"epoch","clusterSlug":"prod"}`), patience); err != nil {
		t.Fatal(err)
	}
	for epoch := int64(-1); epoch != 49; {
		b := await(t, "pulses", d.pulses)
		if len(b) != 1 || b[0].AgentID != "agt_a" {
			t.Fatalf("pulses %+v", b)
		}
		epoch = b[0].Heartbeat.Epoch
	}
	stop()
}

func TestConfigAndCommand(t *testing.T) {
	w := newWorld(t, 0)
	_, stop := w.serve(newDomain())
	defer stop()
	nc := w.connect(w.agent("agt_a"))
	ask := func(body string) (reply wire.ConfigReply) {
		t.Helper()
		m, err := nc.Request("config.agt_a", []byte(body), patience)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(m.Data, &reply); err != nil {
			t.Fatal(err)
		}
		return reply
	}
	if r := ask(`{"want":"epoch","clusterSlug":"prod"}`); r.Epoch != 7 || r.Code != "" {
		t.Errorf("epoch: %+v", r)
	}
	if r := ask(`{"want":"epoch","clusterSlug":"other"}`); r.Code != "unavailable" || strings.Contains(r.Message, "hunter2") {
		t.Errorf("failure: %+v", r)
	}
	if r := ask(`{"want":"moon"}`); r.Code != "unknown_want" {
		t.Errorf("unknown want: %+v", r)
	}
	if r := ask(`{`); r.Code != "malformed" {
		t.Errorf("malformed: %+v", r)
	}

	renew := wire.Command{Name: wire.CommandRenewCredentials}
	if _, err := w.console.Command(t.Context(), "agt_a", renew); !errors.Is(err, fleet.ErrNoResponder) {
		t.Errorf("absent agent: %v", err)
	}
	var silent bool
	var mu sync.Mutex
	if _, err := nc.Subscribe("command.agt_a", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if !silent {
			_ = m.Respond([]byte(`{"ok":true}`))
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if r, err := w.console.Command(t.Context(), "agt_a", renew); err != nil || !r.OK {
		t.Errorf("answered: %+v, %v", r, err)
	}
	mu.Lock()
	silent = true
	mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := w.console.Command(ctx, "agt_a", renew); !errors.Is(err, fleet.ErrNoReply) {
		t.Errorf("silent agent: %v", err)
	}
}

// An agent that names another agent's subject as the place for an answer gets nothing written there by console,
// and no presence by the acknowledgement of a stream.
func TestAnswersGoToTheAgentsOwnInbox(t *testing.T) {
	w := newWorld(t, 0)
	d := newDomain()
	// A stream that was made with acknowledgements loses them.
	old := jetstream.StreamConfig{Name: wire.StreamInventory, Subjects: []string{wire.InventorySubject("*")}, MaxMsgsPerSubject: 1}
	if _, err := w.console.JetStream.CreateStream(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	_, stop := w.serve(d)
	defer stop()
	nc, victim := w.connect(w.agent("agt_a")), w.connect(w.agent("agt_b"))
	commands, err := victim.SubscribeSync("command.agt_b")
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := victim.SubscribeSync("_INBOX.agt_b.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Flush(); err != nil {
		t.Fatal(err)
	}
	name := func(subject, body string, replies ...string) {
		t.Helper()
		for _, reply := range replies {
			if err := nc.PublishRequest(subject, reply, []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	name("config.agt_a", `{"want":"epoch","clusterSlug":"prod"}`, "heartbeat.agt_b", "status.agt_b", "inventory.agt_b", "command.agt_b", "config.agt_b",
		"_INBOX.agt_b.x", "_INBOX.agt_ab.x", "$JS.API.STREAM.PURGE.INVENTORY")
	// Nor must the server lend its own: it acknowledges for a stream wherever it is told to, unless it
	// is told not to acknowledge at all.
	name("inventory.agt_a", "good", "heartbeat.agt_b", "status.agt_b", "inventory.agt_b", "command.agt_b", "_INBOX.agt_b.stored", "_INBOX.agt_b.x")
	for _, header := range []nats.Header{
		{"Nats-Msg-Id": {"1"}},
		{"Nats-Msg-Id": {"1"}},
		{"Nats-Expected-Stream": {"OTHER"}},
		{"Nats-Expected-Last-Sequence": {"9999"}},
		{"Nats-Rollup": {"all"}},
		{"Nats-TTL": {"1s"}},
		{"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}, "Nats-Batch-Commit": {"1"}},
		{"Nats-Schedule": {"@at 2020-01-01T00:00:00Z"}, "Nats-Schedule-Target": {"command.agt_b"}},
		{"Nats-Trace-Dest": {"command.agt_b"}},
		{"Nats-Incr": {"1"}},
	} {
		for _, reply := range []string{"inventory.agt_b", "command.agt_b", "command.agt_b.u.1.f.1.0.$FI"} {
			if err := nc.PublishMsg(&nats.Msg{Subject: "inventory.agt_a", Reply: reply, Header: header, Data: []byte("hostile")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What is answered now was taken after all of the above.
	if _, err := nc.Request("config.agt_a", []byte(`{"want":"epoch","clusterSlug":"prod"}`), patience); err != nil {
		t.Fatal(err)
	}
	publish(t, nc, "inventory.agt_a", "last")
	for got := ""; got != "agt_a last"; {
		if got = await(t, "the last inventory", d.received); !strings.HasPrefix(got, "agt_a ") {
			t.Errorf("an inventory of another agent: %q", got)
		}
	}
	if err := nc.Publish("heartbeat.agt_a", []byte(`{"capability":1,"sentAt":"2026-01-01T00:00:00Z","epoch":1}`)); err != nil {
		t.Fatal(err)
	}
	for seen := false; !seen; {
		for _, pulse := range await(t, "pulses", d.pulses) {
			if seen = seen || pulse.AgentID == "agt_a"; pulse.AgentID != "agt_a" {
				t.Errorf("a heartbeat that %s did not send: %+v", pulse.AgentID, pulse)
			}
		}
	}
	select {
	case b := <-d.presence:
		t.Errorf("a status that nobody sent: %+v", b)
	default:
	}
	if m, err := commands.NextMsg(200 * time.Millisecond); err == nil {
		t.Errorf("the victim was commanded: %s", m.Data)
	}
	if m, err := inbox.NextMsg(200 * time.Millisecond); err == nil {
		t.Errorf("the victim was answered on %s: %s", m.Subject, m.Data)
	}
}

// A stream that stores what agents send is not made anew for messages of console's own that get lost, as they may
// where one agent floods it: what waits in it would be lost too.
func TestAStreamThatStoresSlowlyIsLeft(t *testing.T) {
	w := newWorld(t, 0)
	d := newDomain()
	s, stop := w.serve(d)
	defer stop()
	nc := w.connect(w.agent("agt_a"))
	stream, err := w.console.JetStream.Stream(t.Context(), wire.StreamInventory)
	if err != nil {
		t.Fatal(err)
	}
	deaf := stream.CachedInfo().Config
	deaf.RePublish = nil // nobody hears any more what is stored; three misses take fifteen seconds
	if _, err := w.console.JetStream.UpdateStream(t.Context(), deaf); err != nil {
		t.Fatal(err)
	}
	made := stream.CachedInfo().Created
	for end := time.Now().Add(17 * time.Second); time.Now().Before(end); {
		if err := nc.Publish("inventory.agt_a", []byte("on and on")); err != nil {
			t.Fatal(err)
		}
		await(t, "the inventory", d.received)
		if err := s.Ready(); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := stream.Info(t.Context()); err != nil || !info.Created.Equal(made) {
		t.Errorf("made anew: %v", err)
	}
}

// A stream that stores nothing more, as after a full disk, is noticed and made anew.
func TestAStreamThatStoresNothingIsMadeAnew(t *testing.T) {
	w := newWorld(t, 0)
	d := newDomain()
	s, stop := w.serve(d)
	defer stop()
	nc := w.connect(w.agent("agt_a"))
	publish(t, nc, "inventory.agt_a", "before")
	stream, err := w.console.JetStream.Stream(t.Context(), wire.StreamInventory)
	if err != nil {
		t.Fatal(err)
	}
	sealed := stream.CachedInfo().Config
	sealed.Sealed = true
	if _, err := w.console.JetStream.UpdateStream(t.Context(), sealed); err != nil {
		t.Fatal(err)
	}
	eventually(t, "console to notice", func() bool { return s.Ready() != nil })
	eventually(t, "the stream to be made anew", func() bool { return s.Ready() == nil })
	publish(t, nc, "inventory.agt_a", "after")
	for got := ""; got != "agt_a after"; {
		if got = await(t, "the inventory", d.received); strings.HasPrefix(got, "console") {
			t.Errorf("console's own message was taken for an inventory: %q", got)
		}
	}
}

// One connection does not take the memory of all.
func TestSubscriptionsOfAnAgentAreBounded(t *testing.T) {
	w := newWorld(t, 0)
	a := w.agent("agt_a")
	nc := w.connect(a)
	for i := range 1000 {
		if _, err := nc.SubscribeSync(fmt.Sprintf("_INBOX.agt_a.%d", i)); err != nil {
			return // refused by the client, which was told
		}
	}
	if err := nc.Flush(); err != nil {
		return // the server closed the connection
	}
	select {
	case err := <-a.errs:
		t.Log("refused:", err)
	case <-time.After(patience):
		t.Error("a thousand subscriptions on one connection were taken")
	}
}

// One agent that sends as fast as it can does not keep console from the others.
func TestAFloodHoldsUpNobodyElse(t *testing.T) {
	w := newWorld(t, 0)
	d := newDomain()
	_, stop := w.serve(d)
	defer stop()
	flood, other := w.connect(w.agent("agt_a")), w.connect(w.agent("agt_b"))
	for range 200_000 {
		for subject, body := range map[string]string{
			"config.agt_a": `{"want":"epoch","clusterSlug":"prod"}`, "status.agt_a": `{"capability":1,"sentAt":"2026-01-01T00:00:00Z"}`,
		} {
			if err := flood.PublishRequest(subject, "_INBOX.agt_a.x", []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := flood.Flush(); err != nil {
		t.Fatal(err)
	}
	answer, err := other.Request("config.agt_b", []byte(`{"want":"epoch","clusterSlug":"prod"}`), patience)
	if err != nil || !strings.Contains(string(answer.Data), `"epoch":7`) {
		t.Fatalf("the other agent: %v", err)
	}
	if asked := d.epochs.Load(); asked > 200 {
		t.Errorf("%d requests of the flood were taken", asked)
	}
}

// external is a NATS that runs on exactly what Setup wrote, with console's connection to it.
type external struct {
	*world
	server *server.Server
}

func newExternal(t *testing.T) *external {
	t.Helper()
	dir := t.TempDir()
	if _, err := natsauth.Setup(dir, natsauth.Options{DataDir: filepath.Join(dir, "data"), NoTLS: true, Port: -1, WebSocketPort: -1, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	keys, err := natsauth.Load(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	e := &external{world: &world{t: t, dir: dir, revoked: map[string]time.Time{}}}
	if e.authority, err = natsauth.New(keys, 0); err != nil {
		t.Fatal(err)
	}
	e.run(0)
	t.Cleanup(e.halt)
	e.address = e.server.ClientURL()
	if e.console, err = natsapi.Connect(t.Context(), natsapi.ConnectConfig{
		URLs: []string{e.address}, Authority: e.authority, Revocations: e, Clock: clock.System(), Logger: slog.New(slog.DiscardHandler),
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.console.Close)
	return e
}

// run starts the server on a port, or on a free one for zero.
func (e *external) run(port int) {
	e.t.Helper()
	opts, err := server.ProcessConfigFile(filepath.Join(e.dir, natsauth.ServerFile))
	if err != nil {
		e.t.Fatal(err)
	}
	if opts.MaxPayload != wire.MaxPayload {
		e.t.Errorf("max_payload is %d", opts.MaxPayload)
	}
	opts.NoSigs, opts.NoLog = true, true
	if port != 0 {
		opts.Port = port
	}
	if e.server, err = server.NewServer(opts); err != nil {
		e.t.Fatal(err)
	}
	e.server.Start()
	if !e.server.ReadyForConnections(patience) {
		e.t.Fatal("the external server did not start")
	}
}

func (e *external) halt() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// An external server goes, and comes back.
func TestExternalServerOfSetup(t *testing.T) {
	w := newExternal(t)
	listening, ok := w.server.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("address is %T", w.server.Addr())
	}
	d := newDomain()
	s, stop := w.serve(d)
	defer stop()
	a := w.agent("agt_a")
	nc := w.connect(a)
	publish(t, nc, "inventory.agt_a", "before")
	await(t, "the inventory before", d.received)

	w.halt()
	eventually(t, "unreadiness", func() bool { return s.Ready() != nil })
	w.run(listening.Port)
	eventually(t, "readiness again", func() bool { return s.Ready() == nil && nc.IsConnected() })
	publish(t, nc, "inventory.agt_a", "after")
	if got := await(t, "the inventory after", d.received); got != "agt_a after" {
		t.Errorf("received %q", got)
	}
	eventually(t, "the revocation", func() bool { return w.console.Revoke(t.Context(), a.public) == nil })
	eventually(t, "the cut", func() bool { return !nc.IsConnected() })
}

func TestSetupKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	o := natsauth.Options{Now: time.Now()}
	if _, err := natsauth.Setup(dir, o); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, natsauth.ServerFile)
	if err := os.WriteFile(conf, []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := natsauth.Setup(dir, o); err != nil {
		t.Errorf("second run: %v", err)
	}
	if got, err := os.ReadFile(conf); err != nil || string(got) != "edited" {
		t.Errorf("the edited file became %q, %v", got, err)
	}
	if _, err := natsauth.Setup(dir, natsauth.Options{KeysDir: t.TempDir(), Now: time.Now()}); !errors.Is(err, natsauth.ErrOtherKeys) {
		t.Errorf("other keys: %v", err)
	}
}
