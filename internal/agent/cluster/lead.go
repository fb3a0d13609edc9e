package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"prxm.uz/proxima/internal/agent/collector"
	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/wire"
)

const (
	requestTimeout = 10 * time.Second
	publishTimeout = 30 * time.Second
	// headerRoom is left for the message's headers, which count towards max_payload.
	headerRoom = 512
	// soonest is how soon a failed sync is tried again; the wait doubles up to the interval.
	soonest = 15 * time.Second
)

// ErrPayloadTooLarge is answered for an inventory above the server's max_payload (B-96).
var ErrPayloadTooLarge = errors.New("inventory is too large for one NATS message")

// lead collects and reports until ctx ends, because the lease was lost, or the agent stops.
func (a *agent) lead(ctx context.Context) {
	a.metrics.leader.Set(1)
	defer a.metrics.leader.Set(0)
	a.setEpoch(0)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { a.heartbeats(ctx) })

	if !a.takeEpoch(ctx) {
		return
	}
	c := a.collector()
	failures := 0
	for number := int64(1); ; number++ {
		if _, err := a.awaitConnection(ctx); err != nil {
			return
		}
		begun := a.clock.Now()
		if !a.syncOnce(ctx, c, number) {
			failures++
		} else {
			failures = 0
		}
		wait := a.cfg.SyncInterval - a.clock.Now().Sub(begun)
		if failures > 0 {
			wait = clock.Backoff(failures, min(soonest, a.cfg.SyncInterval), a.cfg.SyncInterval)
		}
		if !a.pause(ctx, max(wait, time.Second)) {
			return
		}
	}
}

// pause waits, and reports false when there is nothing more to do.
func (a *agent) pause(ctx context.Context, d time.Duration) bool {
	timer := a.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-a.stopping:
		return false
	case <-timer.C():
		return true
	}
}

func (a *agent) awaitConnection(ctx context.Context) (*nats.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-a.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return a.connection.Await(ctx)
}

// takeEpoch asks console for an epoch until it answers. False means that the time of leading is
// over.
func (a *agent) takeEpoch(ctx context.Context) bool {
	for failures := 1; ; failures++ {
		nc, err := a.awaitConnection(ctx)
		if err != nil {
			return false
		}
		epoch, err := a.askEpoch(ctx, nc)
		if err == nil {
			a.setEpoch(epoch)
			a.log.InfoContext(ctx, "epoch received", "epoch", epoch)
			return true
		}
		a.log.WarnContext(ctx, "console did not hand out an epoch, so nothing can be published; asking again", "reason", err.Error())
		a.report(ctx, 0, a.clock.Now(), fmt.Errorf("no epoch: %w", err))
		if !a.pause(ctx, clock.Backoff(failures, time.Second, 30*time.Second)) {
			return false
		}
	}
}

func (a *agent) askEpoch(ctx context.Context, nc *nats.Conn) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body, err := json.Marshal(wire.ConfigRequest{Want: wire.WantEpoch, ClusterSlug: a.request.ClusterSlug})
	if err != nil {
		return 0, err
	}
	msg, err := nc.RequestWithContext(ctx, wire.ConfigSubject(a.creds.get().AgentID), body)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return 0, errors.New("console does not listen on NATS now")
	case err != nil:
		return 0, fmt.Errorf("console did not answer: %w", err)
	}
	var reply wire.ConfigReply
	if err := wire.Decode(msg.Data, &reply); err != nil {
		return 0, err
	}
	if reply.Code != "" || reply.Epoch < 1 {
		return 0, fmt.Errorf("console refused (%s): %s", reply.Code, reply.Message)
	}
	return reply.Epoch, nil
}

// syncOnce collects and publishes. It reports whether an inventory was published.
func (a *agent) syncOnce(ctx context.Context, c *collector.Collector, number int64) bool {
	a.syncing.Lock()
	defer a.syncing.Unlock()
	select {
	case <-a.stopping:
		return false
	default:
	}
	begun := a.clock.Now()
	a.metrics.syncs.Inc()
	inv, size, err := a.publishInventory(ctx, c, number)
	if ctx.Err() != nil {
		return false // deposed: whoever leads now reports
	}
	took := a.clock.Now().Sub(begun)
	a.metrics.duration.Set(took.Seconds())
	a.report(ctx, number, begun, err)
	if err != nil {
		a.metrics.syncErrors.Inc()
		a.log.ErrorContext(ctx, "sync failed, nothing was published", "sync", number, "reason", err.Error())
		return false
	}
	for _, k := range inv.Kinds {
		a.metrics.collected.WithLabelValues(string(k.Kind)).Set(float64(k.Kept))
	}
	a.log.InfoContext(ctx, "inventory published", "sync", number, "epoch", inv.Epoch, "nodes", len(inv.Nodes), "namespaces", len(inv.Namespaces),
		"workloads", len(inv.Workloads), "pods", len(inv.Pods), "services", len(inv.Services), "events", len(inv.Events), "bytes", size, "took", took.Round(time.Millisecond).String())
	return true
}

func (a *agent) publishInventory(ctx context.Context, c *collector.Collector, number int64) (*wire.Inventory, int, error) {
	inv, err := c.Collect(ctx)
	if err != nil {
		return nil, 0, err
	}
	inv.Epoch, inv.Sync = a.getEpoch(), number
	payload, err := wire.EncodeInventory(inv)
	if err != nil {
		return nil, 0, err
	}
	a.metrics.payload.Set(float64(len(payload)))
	nc, err := a.connection.Conn()
	if err != nil {
		return nil, 0, err
	}
	if limit := nc.MaxPayload() - headerRoom; limit > 0 && int64(len(payload)) > limit {
		a.metrics.tooLarge.WithLabelValues("rejected").Inc()
		return nil, 0, fmt.Errorf("%w: it has %d bytes, %d are allowed: lower PROXIMA_K8S_POD_LIMIT (now %d), or raise max_payload on the NATS server", ErrPayloadTooLarge, len(payload), limit, a.cfg.PodLimit)
	}
	return inv, len(payload), a.publish(ctx, nc, number, payload)
}

// publish hands the inventory to JetStream and waits until it is stored, which the stream tells on a
// subject of this agent. Storing it twice after a lost answer does no harm.
func (a *agent) publish(ctx context.Context, nc *nats.Conn, number int64, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	id := a.creds.get().AgentID
	stored, err := nc.SubscribeSync(wire.StoredSubject(id))
	if err != nil {
		return fmt.Errorf("listen for what is stored: %w", err)
	}
	defer func() { _ = stored.Unsubscribe() }() // fails only where the connection is closed
	msg := nats.NewMsg(wire.InventorySubject(id))
	msg.Data = payload
	msg.Header.Set(wire.HeaderSync, fmt.Sprintf("%d-%d", a.getEpoch(), number))
	for try := 1; ; try++ {
		err = publishOnce(ctx, nc, stored, msg)
		if err == nil {
			return nil
		}
		if try == 3 || ctx.Err() != nil {
			return fmt.Errorf("publish the inventory (%d bytes): %w", len(payload), err)
		}
		if err := a.clock.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

func publishOnce(ctx context.Context, nc *nats.Conn, stored *nats.Subscription, msg *nats.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := nc.PublishMsg(msg); err != nil {
		return err
	}
	for {
		answer, err := stored.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("the stream %s on the NATS server did not say that it is stored: see what console's /readyz says, and whether the disk of NATS is full", wire.StreamInventory)
		case err != nil:
			return err
		case answer.Header.Get(wire.HeaderSync) == msg.Header.Get(wire.HeaderSync):
			return nil
		}
	}
}

// report keeps how the last sync went, for heartbeat and presence.
func (a *agent) report(ctx context.Context, number int64, begun time.Time, err error) {
	now := a.clock.Now()
	info := &wire.SyncInfo{Number: number, FinishedAt: now.UTC(), DurationMS: now.Sub(begun).Milliseconds()}
	if err != nil {
		info.Error = cut(err.Error(), 1024)
	}
	a.mu.Lock()
	a.lastSync = info
	a.mu.Unlock()
	if ctx.Err() == nil {
		a.beat(ctx)
	}
}

func (a *agent) setEpoch(epoch int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epoch = epoch
}

func (a *agent) getEpoch() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.epoch
}
