package cluster

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/version"
	"prxm.uz/proxima/internal/wire"
)

// presenceInterval is how often every replica says that it is there.
const presenceInterval = 30 * time.Second

// heartbeats sends the leader's heartbeat at once and at every interval, while ctx lasts.
func (a *agent) heartbeats(ctx context.Context) {
	for {
		if _, err := a.awaitConnection(ctx); err != nil {
			return
		}
		a.beat(ctx)
		if !a.pause(ctx, clock.Jitter(a.cfg.HeartbeatInterval, 0.05)) {
			return
		}
	}
}

func (a *agent) beat(ctx context.Context) {
	a.mu.Lock()
	beat := wire.Heartbeat{Capability: wire.CapabilityVersion, SentAt: a.clock.Now().UTC(), ClusterSlug: a.request.ClusterSlug, Epoch: a.epoch, LastSync: a.lastSync}
	a.mu.Unlock()
	a.send(ctx, wire.HeartbeatSubject(a.creds.get().AgentID), beat)
}

// presence sends the status at every interval, and at once when the role changes or the connection is
// new.
func (a *agent) presence(ctx context.Context) {
	for {
		if _, err := a.connection.Await(ctx); err != nil {
			return
		}
		a.mu.Lock()
		changed := a.changed
		status := wire.Status{
			Capability: wire.CapabilityVersion, SentAt: a.clock.Now().UTC(), Version: version.String(), Role: a.current, ClusterSlug: a.request.ClusterSlug,
			Template: a.creds.get().Credential.Template, SyncIntervalSeconds: int64(a.cfg.SyncInterval / time.Second), LastSync: a.lastSync,
		}
		a.mu.Unlock()
		a.send(ctx, wire.StatusSubject(a.creds.get().AgentID), status)
		timer := a.clock.NewTimer(clock.Jitter(presenceInterval, 0.05))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-changed:
			timer.Stop()
		case <-timer.C():
		}
	}
}

// send publishes a small message; one that is lost is followed by the next.
func (a *agent) send(ctx context.Context, subject string, message any) {
	body, err := json.Marshal(message)
	if err == nil {
		var nc *nats.Conn
		if nc, err = a.connection.Conn(); err == nil {
			err = nc.Publish(subject, body)
		}
	}
	if err != nil {
		a.log.DebugContext(ctx, "message not sent", "subject", subject, "reason", err.Error())
	}
}

// setRole changes the role; presence follows at once.
func (a *agent) setRole(_ context.Context, role wire.Role) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == role {
		return
	}
	a.current = role
	close(a.changed)
	a.changed = make(chan struct{})
}

// subscribe listens for commands on a new connection.
func (a *agent) subscribe(nc *nats.Conn) error {
	_, err := nc.Subscribe(wire.CommandSubject(a.creds.get().AgentID), func(msg *nats.Msg) {
		go a.command(nc, msg) // never work in the client's own goroutine
	})
	if err != nil {
		return err
	}
	return nc.FlushTimeout(requestTimeout)
}

// command carries out a command of console and answers where it asked for an answer.
func (a *agent) command(nc *nats.Conn, msg *nats.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
	defer cancel()
	var cmd wire.Command
	reply := wire.CommandReply{Code: "malformed", Message: "the command cannot be read"}
	if err := wire.Decode(msg.Data, &cmd); err == nil {
		reply = a.carryOut(ctx, cmd)
	}
	result := "ok"
	if !reply.OK {
		result = reply.Code
	}
	if cmd.Name != wire.CommandRenewCredentials {
		cmd.Name = "unknown" // a label must not grow with what is sent
	}
	a.metrics.commands.WithLabelValues(cmd.Name, result).Inc()
	a.log.InfoContext(ctx, "command of console", "command", cmd.Name, "result", result)
	if msg.Reply == "" {
		return
	}
	body, err := json.Marshal(reply)
	if err == nil {
		err = nc.Publish(msg.Reply, body)
	}
	if err != nil {
		a.log.WarnContext(ctx, "command could not be answered", "command", cmd.Name, "reason", err.Error())
	}
}

func (a *agent) carryOut(ctx context.Context, cmd wire.Command) wire.CommandReply {
	switch cmd.Name {
	case wire.CommandRenewCredentials:
		done := make(chan error, 1)
		select {
		case a.renewNow <- done:
		case <-ctx.Done():
			return wire.CommandReply{Code: "busy", Message: "another renewal is under way"}
		}
		if err := <-done; err != nil {
			return wire.CommandReply{Code: "not_renewed", Message: cut(err.Error(), 1024)}
		}
		return wire.CommandReply{OK: true}
	default:
		return wire.CommandReply{Code: "unknown_command", Message: "this agent does not know the command; it may be older than console"}
	}
}
