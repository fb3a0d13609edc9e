// Package natsapi is console's edge to NATS: it runs the embedded server, connects, turns messages of
// agents into one domain call each, and acknowledges what the domain took. It decides nothing about
// what a message says.
package natsapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/wire"
)

const (
	queueGroup   = "console" // replicas share
	consumerName = "console" // one for all replicas
	flushEvery   = time.Second
	// maxBuffered bounds the agents whose presence or pulse waits for one second's batch.
	maxBuffered  = 100_000
	storeTimeout = 10 * time.Second
	// ackWait is above receiveTimeout, so that no message is in work twice.
	ackWait        = 2 * time.Minute
	receiveTimeout = 90 * time.Second
	// DefaultStreamBytes bounds the stream of inventories, in bytes.
	DefaultStreamBytes = 8 << 30
)

// InventoryReceiver is the domain of inventories; inventory.Service has it.
type InventoryReceiver interface {
	// Receive answers nil for what it stored or dropped, wire.ErrMalformed for what no delivery will cure,
	// inventory.ErrLarge for what ReceiveLarge is to take, and any other error for what is to be delivered
	// again.
	Receive(ctx context.Context, agentID string, data []byte, receivedAt time.Time) error
	// ReceiveLarge takes every inventory; it may run beside Receive, for another agent.
	ReceiveLarge(ctx context.Context, agentID string, data []byte, receivedAt time.Time) error
	// NextEpoch hands out an epoch greater than all before.
	NextEpoch(ctx context.Context, agentID, clusterSlug string) (int64, error)
}

// FleetReceiver is the domain of agents; fleet.Service has it. It passes over agents it does not know.
type FleetReceiver interface {
	// RecordPresence stores received statuses; an error means that the batch comes again.
	RecordPresence(ctx context.Context, batch []fleet.Presence) error
	// RecordPulses does the same with heartbeats.
	RecordPulses(ctx context.Context, batch []fleet.Pulse) error
	// Suspend keeps an agent out for a while that sends or connects far more than an agent does.
	Suspend(ctx context.Context, agentID, why string) error
}

// Config is what a Server needs.
type Config struct {
	Conn      *nats.Conn
	JetStream jetstream.JetStream
	Inventory InventoryReceiver
	Fleet     FleetReceiver
	Clock     clock.Clock
	Logger    *slog.Logger
	Registry  prometheus.Registerer
	// Control closes connections of agents that have too many; nil leaves them.
	Control *Connection
	// StreamBytes bounds the stream of inventories; zero means DefaultStreamBytes. Replicas is its
	// number of copies; zero means one.
	StreamBytes int64
	Replicas    int
	// RetryDelay is the first wait before a message is delivered again, growing to a minute; zero means
	// two seconds.
	RetryDelay time.Duration
	// OwnStream says that the stream may be deleted and made anew where it stores nothing more: NATS is
	// this console's own.
	OwnStream bool
	// CanaryEvery is how often the stream is tried; zero means every twenty seconds.
	CanaryEvery time.Duration
}

// Server takes in what agents publish. Its methods may be called from several goroutines.
type Server struct {
	Config
	metrics   *metrics
	pace      *pace
	lane      *lane
	consuming atomic.Bool                  // the stream and its consumer are there
	canary    atomic.Pointer[canaryResult] // the last
	stored    atomic.Pointer[lastInventory]
	suspects  chan suspect

	mu       sync.Mutex // guards the batch
	presence map[string]fleet.Presence
	pulses   map[string]fleet.Pulse
}

// New makes a Server and registers its metrics.
func New(c Config) (*Server, error) {
	if c.StreamBytes == 0 {
		c.StreamBytes = DefaultStreamBytes
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.RetryDelay == 0 {
		c.RetryDelay = 2 * time.Second
	}
	if c.CanaryEvery == 0 {
		c.CanaryEvery = canaryEvery
	}
	m, err := newMetrics(c.Registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics of ingest: %w", err)
	}
	return &Server{Config: c, metrics: m, pace: newPace(), lane: newLane(), suspects: make(chan suspect, maxSuspects), presence: map[string]fleet.Presence{}, pulses: map[string]fleet.Pulse{}}, nil
}

// Run takes messages until ctx ends, and stores the last batch before it returns. NATS that is away is
// waited for; an error means that nothing was begun.
func (s *Server) Run(ctx context.Context) error {
	var subscriptions []*nats.Subscription
	for subject, handle := range map[string]nats.MsgHandler{
		wire.InventorySubject("*"): s.weigh,
		wire.HeartbeatSubject("*"): s.takeHeartbeat,
		wire.StatusSubject("*"):    s.takeStatus,
		wire.ConfigSubject("*"):    func(m *nats.Msg) { s.answerConfig(ctx, m) },
	} {
		sub, err := s.Conn.QueueSubscribe(subject, queueGroup, handle)
		if err != nil {
			return fmt.Errorf("subscribe to %s: %w", subject, err)
		}
		subscriptions = append(subscriptions, sub)
	}
	var group sync.WaitGroup
	group.Go(func() { s.takeInventories(ctx) })
	group.Go(func() { s.takeLarge(ctx) })
	group.Go(func() { s.holdLarge(ctx) })
	group.Go(func() { s.flushBatches(ctx) })
	group.Go(func() { s.watchStream(ctx) })
	group.Go(func() { s.suspend(ctx) })
	group.Go(func() { s.watchConnections(ctx) })
	<-ctx.Done()
	for _, sub := range subscriptions {
		_ = sub.Unsubscribe() // fails only where the connection is closed
	}
	group.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	s.flush(last)
	return nil
}

// Ready answers nil while console is connected and takes inventories, else why not.
func (s *Server) Ready() error {
	if err := up(s.Conn); err != nil {
		return err
	}
	if !s.consuming.Load() {
		return errors.New("the stream " + wire.StreamInventory + " is not there: JetStream does not answer")
	}
	if last := s.canary.Load(); last != nil {
		return last.err
	}
	return nil
}

func (s *Server) streamConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: wire.StreamInventory, Subjects: []string{wire.InventorySubject("*")},
		Description: "the last inventory of each agent",
		Storage:     jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
		// An acknowledgement would go to any subject the agent names, with the server's rights; what is
		// republished goes to the agent's own inbox.
		NoAck:             true,
		RePublish:         &jetstream.RePublish{Source: wire.InventorySubject("*"), Destination: wire.StoredSubject("{{wildcard(1)}}"), HeadersOnly: true},
		MaxMsgsPerSubject: 1, MaxBytes: s.StreamBytes, MaxMsgSize: wire.MaxPayload, Replicas: s.Replicas,
	}
}

// takeInventories keeps a consumer open. An external NATS may lose its stream, so it is made anew.
func (s *Server) takeInventories(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		err := s.consume(ctx, func() { failures = 0; s.consuming.Store(true) })
		s.consuming.Store(false)
		if ctx.Err() != nil {
			return
		}
		failures++
		s.Logger.WarnContext(ctx, "inventories cannot be taken, trying again", "error", err)
		_ = s.Clock.Sleep(ctx, clock.Backoff(failures, 250*time.Millisecond, 10*time.Second))
	}
}

func (s *Server) consume(ctx context.Context, begun func()) error {
	setup, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	stream, err := s.JetStream.CreateOrUpdateStream(setup, s.streamConfig())
	if err != nil {
		return fmt.Errorf("make the stream %s: %w", wire.StreamInventory, err)
	}
	consumer, err := stream.CreateOrUpdateConsumer(setup, jetstream.ConsumerConfig{
		Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait,
		DeliverPolicy: jetstream.DeliverAllPolicy, MaxDeliver: -1,
		// Memory is bounded by pulling one at a time; more may wait for their retry, and must not keep others
		// from being delivered.
		MaxAckPending: 1000,
	})
	if err != nil {
		return fmt.Errorf("make the consumer of %s: %w", wire.StreamInventory, err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(1), jetstream.PullExpiry(10*time.Second), jetstream.PullHeartbeat(2*time.Second))
	if err != nil {
		return fmt.Errorf("pull from %s: %w", wire.StreamInventory, err)
	}
	defer context.AfterFunc(ctx, messages.Stop)()
	defer messages.Stop()
	begun()
	for {
		m, err := messages.Next()
		if err != nil {
			return fmt.Errorf("next message of %s: %w", wire.StreamInventory, err)
		}
		s.takeInventory(ctx, stream, m)
	}
}

// takeInventory makes one domain call and tells JetStream what became of the message, or leaves both to the
// lane. Twice is as good as once, so an acknowledgement that is lost does no harm.
func (s *Server) takeInventory(ctx context.Context, stream jetstream.Stream, m jetstream.Msg) {
	const kind = "inventory"
	if m.Subject() == wire.InventorySubject(canaryID) {
		s.settle(ctx, canaryID, m.Ack())
		return
	}
	start := s.Clock.Now()
	s.metrics.received.WithLabelValues(kind).Inc()
	agentID, known := wire.AgentOf(m.Subject())
	delivered, lag := s.lag(ctx, stream, m)
	if !known {
		s.metrics.dropped.WithLabelValues(kind).Inc()
		s.settle(ctx, agentID, m.Term())
		return
	}
	d := delivery{message: m, agentID: agentID, receivedAt: start.Add(-lag), number: delivered}
	if s.lane.wants(agentID) {
		s.toLane(ctx, d)
		return
	}
	err := s.receive(ctx, d, receiveTimeout, s.Inventory.Receive)
	large := errors.Is(err, inventory.ErrLarge)
	// What was stored may have waited for the database, behind the lane; what is malformed took the time itself.
	if large || errors.Is(err, wire.ErrMalformed) && s.Clock.Now().Sub(start) > slowAfter {
		s.lane.note(agentID, true)
	}
	if large {
		s.toLane(ctx, d)
		return
	}
	s.finish(ctx, d, err)
}

// delivery is a message with what JetStream says of it.
type delivery struct {
	message    jetstream.Msg
	agentID    string
	receivedAt time.Time
	number     int // of this delivery of the message
}

func (s *Server) receive(ctx context.Context, d delivery, limit time.Duration, f func(context.Context, string, []byte, time.Time) error) error {
	start := s.Clock.Now()
	work, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f(work, d.agentID, d.message.Data(), d.receivedAt)
	s.metrics.seconds.WithLabelValues("inventory").Observe(s.Clock.Now().Sub(start).Seconds())
	return err
}

// finish tells JetStream what became of a message.
func (s *Server) finish(ctx context.Context, d delivery, err error) {
	switch {
	case err == nil:
		last := lastInventory{at: s.Clock.Now(), lag: s.Clock.Now().Sub(d.receivedAt)}
		s.stored.Store(&last)
		s.metrics.lag.Observe(last.lag.Seconds())
		s.settle(ctx, d.agentID, d.message.Ack())
	case errors.Is(err, wire.ErrMalformed):
		s.metrics.malformed.WithLabelValues("inventory").Inc()
		s.Logger.WarnContext(ctx, "inventory refused", "agent", d.agentID, "error", err)
		s.settle(ctx, d.agentID, d.message.TermWithReason("malformed"))
	case ctx.Err() != nil:
		s.settle(ctx, d.agentID, d.message.Nak()) // another replica, or the next start, takes it at once
	default:
		s.metrics.failed.WithLabelValues("inventory").Inc()
		s.Logger.ErrorContext(ctx, "inventory could not be stored, it will be delivered again", "agent", d.agentID, "deliveries", d.number, "error", err)
		s.settle(ctx, d.agentID, d.message.NakWithDelay(clock.Backoff(d.number, s.RetryDelay, time.Minute)))
	}
}

func (s *Server) settle(ctx context.Context, agentID string, err error) {
	if err != nil {
		s.Logger.WarnContext(ctx, "inventory could not be acknowledged, it will be delivered again", "agent", agentID, "error", err)
	}
}

// lag tells how long the message waited, by the server's clock alone: console's may differ, and what
// waited while console was down must not look fresh.
func (s *Server) lag(ctx context.Context, stream jetstream.Stream, m jetstream.Msg) (delivered int, lag time.Duration) {
	meta, err := m.Metadata()
	if err != nil {
		return 1, 0
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := stream.Info(ctx)
	if err != nil {
		return int(meta.NumDelivered), max(0, s.Clock.Now().Sub(meta.Timestamp))
	}
	return int(meta.NumDelivered), max(0, info.TimeStamp.Sub(meta.Timestamp))
}

func (s *Server) answerConfig(ctx context.Context, m *nats.Msg) {
	const kind = "config"
	start := s.Clock.Now()
	agentID, ok := s.accept(kind, m)
	if !ok {
		return
	}
	// Console may publish everywhere: an answer to any other subject would lend its rights to the agent.
	if !strings.HasPrefix(m.Reply, wire.InboxPrefix(agentID)+".") {
		s.metrics.dropped.WithLabelValues(kind).Inc()
		return
	}
	work, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	reply := s.config(work, agentID, m.Data)
	s.metrics.seconds.WithLabelValues(kind).Observe(s.Clock.Now().Sub(start).Seconds())
	if err := respond(m, reply); err != nil {
		s.Logger.WarnContext(ctx, "configuration could not be answered", "agent", agentID, "error", err)
	}
}

// config decides nothing: it decodes, asks, and words the failure.
func (s *Server) config(ctx context.Context, agentID string, data []byte) wire.ConfigReply {
	var request wire.ConfigRequest
	if err := wire.Decode(data, &request); err != nil {
		s.metrics.malformed.WithLabelValues("config").Inc()
		return wire.ConfigReply{Code: "malformed", Message: "the request is no ConfigRequest"}
	}
	if request.Want != wire.WantEpoch {
		return wire.ConfigReply{Code: "unknown_want", Message: "this console knows want \"" + wire.WantEpoch + "\" alone"}
	}
	epoch, err := s.Inventory.NextEpoch(ctx, agentID, request.ClusterSlug)
	if err != nil {
		if problem.Is(err, problem.Conflict) {
			s.Logger.InfoContext(ctx, "no epoch was handed out", "agent", agentID, "reason", err.Error())
			return refusal(err)
		}
		s.metrics.failed.WithLabelValues("config").Inc()
		s.Logger.ErrorContext(ctx, "no epoch was handed out", "agent", agentID, "error", err)
		return refusal(err)
	}
	return wire.ConfigReply{Epoch: epoch}
}

// accept counts a message and reads the agent's id; what is larger than a small message, or more than an
// agent has to say, is dropped.
func (s *Server) accept(kind string, m *nats.Msg) (agentID string, ok bool) {
	s.metrics.received.WithLabelValues(kind).Inc()
	agentID, ok = wire.AgentOf(m.Subject)
	switch {
	case !ok || !s.paced(kind, agentID, "messages of kind "+kind, len(m.Data)):
		s.metrics.dropped.WithLabelValues(kind).Inc()
		ok = false
	case len(m.Data) > wire.MaxMessage:
		s.metrics.malformed.WithLabelValues(kind).Inc()
		ok = false
	}
	return agentID, ok
}
