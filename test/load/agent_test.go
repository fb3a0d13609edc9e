package load

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/agent/connection"
	"prxm.uz/proxima/internal/agent/enroll"
	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/wire"
	"prxm.uz/proxima/test/harness"
)

const (
	version = "0.9.0"
	// patience is how long an agent waits for an answer.
	patience = 10 * time.Second
	// tryAgain is when a sync that failed is tried again.
	tryAgain = time.Second
)

// agent is towards console what the cluster agent is, with a key, a credential and a connection of its own. Its
// cluster is not real.
type agent struct {
	recorded console.OnboardingRecorded
	address  string // where it enrolls from
	cluster  *watched
	every    intervals

	id       string
	template int
	link     *connection.Connection
	came     chan struct{} // a new connection

	connections atomic.Int64 // so far
	refusals    atomic.Int64 // by NATS

	mu     sync.Mutex
	epoch  int64
	stored int64 // the newest sync that is in the stream
}

// intervals are how often an agent says what.
type intervals struct{ sync, heartbeat time.Duration }

// enroll uses the install token and makes the connection, which begins with run.
func (a *agent) enroll(ctx context.Context, consoleURL string) error {
	key, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	api, err := enroll.New(consoleURL, *a.recorded.InstallToken, &http.Client{Transport: harness.From(a.address), Timeout: time.Minute})
	if err != nil {
		return err
	}
	got, err := api.Enroll(ctx, enroll.Request{AgentType: "collector", Name: a.cluster.slug, ClusterSlug: a.cluster.slug, ClusterName: a.cluster.slug, Version: version}, key)
	if err != nil {
		return fmt.Errorf("enroll %s: %w", a.cluster.slug, err)
	}
	a.id, a.template, a.came = got.AgentID, got.Credential.Template, make(chan struct{}, 1)
	a.link, err = connection.New(connection.Options{
		AgentID: a.id, URLs: got.NatsURLs, JWT: func() string { return got.Credential.Jwt }, Sign: key.Sign,
		Subscribe: func(nc *nats.Conn) error {
			if _, err := nc.Subscribe(wire.CommandSubject(a.id), func(*nats.Msg) {}); err != nil {
				return err
			}
			own := nc.Opts.ReconnectedCB
			nc.SetReconnectHandler(func(nc *nats.Conn) {
				own(nc)
				a.connected()
			})
			a.connected()
			return nc.FlushTimeout(patience)
		},
		Refused: func(error) { a.refusals.Add(1) },
		Clock:   clock.System(), Log: slog.New(slog.DiscardHandler),
	})
	return err
}

func (a *agent) connected() {
	a.connections.Add(1)
	select {
	case a.came <- struct{}{}:
	default:
	}
}

// run reports until ctx ends; a sync in progress is let finish.
func (a *agent) run(ctx context.Context) {
	linked, end := context.WithCancel(context.WithoutCancel(ctx))
	var link, work sync.WaitGroup
	link.Go(func() { a.link.Run(linked) })
	work.Go(func() { a.beat(ctx) })
	work.Go(func() { a.syncs(ctx) })
	work.Wait()
	end()
	link.Wait()
}

// beat sends heartbeat and presence at every interval, and at once on a new connection.
func (a *agent) beat(ctx context.Context) {
	for {
		nc, err := a.link.Await(ctx)
		if err != nil {
			return
		}
		a.mu.Lock()
		epoch, number := a.epoch, a.stored
		a.mu.Unlock()
		now := time.Now().UTC()
		last := &wire.SyncInfo{Number: number, FinishedAt: now}
		publish(nc, wire.HeartbeatSubject(a.id), wire.Heartbeat{Capability: wire.CapabilityVersion, SentAt: now, ClusterSlug: a.cluster.slug, Epoch: epoch, LastSync: last})
		publish(nc, wire.StatusSubject(a.id), wire.Status{
			Capability: wire.CapabilityVersion, SentAt: now, Version: version, Role: wire.RoleLeader, ClusterSlug: a.cluster.slug,
			Template: a.template, SyncIntervalSeconds: int64(a.every.sync / time.Second), LastSync: last,
		})
		select {
		case <-ctx.Done():
			return
		case <-a.came:
		case <-time.After(clock.Jitter(a.every.heartbeat, 0.05)):
		}
	}
}

// publish sends a small message; one that is lost is followed by the next.
func publish(nc *nats.Conn, subject string, message any) {
	if body, err := json.Marshal(message); err == nil {
		_ = nc.Publish(subject, body)
	}
}

// syncs publishes inventory after inventory, each with what changed since. One that fails is tried again soon. The
// second comes at any part of the interval: agents all enrolled at once, and clusters do not.
func (a *agent) syncs(ctx context.Context) {
	for number := int64(1); ; {
		nc, err := a.link.Await(ctx)
		if err != nil {
			return
		}
		began := time.Now()
		wait := tryAgain
		if err := a.sync(context.WithoutCancel(ctx), nc, number); err == nil {
			wait = a.every.sync - time.Since(began)
			if number == 1 {
				wait = rand.N(a.every.sync)
			}
			number++
			a.cluster.change()
		}
		if clock.System().Sleep(ctx, wait) != nil {
			return
		}
	}
}

// sync publishes one inventory and waits until it is in the stream.
func (a *agent) sync(ctx context.Context, nc *nats.Conn, number int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a.mu.Lock()
	epoch := a.epoch
	a.mu.Unlock()
	if epoch == 0 {
		got, err := a.askEpoch(ctx, nc)
		if err != nil {
			return err
		}
		epoch = got
	}
	a.cluster.inv.Epoch, a.cluster.inv.Sync, a.cluster.inv.CollectedAt = epoch, number, time.Now().UTC()
	payload, err := wire.EncodeInventory(&a.cluster.inv)
	if err != nil {
		return err
	}
	stored, err := nc.SubscribeSync(wire.StoredSubject(a.id))
	if err != nil {
		return err
	}
	defer func() { _ = stored.Unsubscribe() }() // fails only where the connection is closed
	msg := nats.NewMsg(wire.InventorySubject(a.id))
	msg.Data = payload
	msg.Header.Set(wire.HeaderSync, fmt.Sprintf("%d-%d", epoch, number))
	if err := nc.PublishMsg(msg); err != nil {
		return err
	}
	for {
		answer, err := stored.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		if answer.Header.Get(wire.HeaderSync) == msg.Header.Get(wire.HeaderSync) {
			break
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epoch, a.stored = epoch, number
	return nil
}

func (a *agent) askEpoch(ctx context.Context, nc *nats.Conn) (int64, error) {
	body, err := json.Marshal(wire.ConfigRequest{Want: wire.WantEpoch, ClusterSlug: a.cluster.slug})
	if err != nil {
		return 0, err
	}
	msg, err := nc.RequestWithContext(ctx, wire.ConfigSubject(a.id), body)
	if err != nil {
		return 0, err
	}
	var reply wire.ConfigReply
	if err := wire.Decode(msg.Data, &reply); err != nil {
		return 0, err
	}
	if reply.Epoch < 1 {
		return 0, fmt.Errorf("console refused (%s): %s", reply.Code, reply.Message)
	}
	return reply.Epoch, nil
}

// newest is the place of the newest inventory that is in the stream.
func (a *agent) newest() (epoch, number int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.epoch, a.stored
}
