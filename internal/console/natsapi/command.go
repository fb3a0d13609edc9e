package natsapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/wire"
)

// Command sends a command to an agent and waits for the answer, at most 5 s. It implements fleet.Commander.
func (n *Connection) Command(ctx context.Context, agentID string, c wire.Command) (wire.CommandReply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := up(n.Conn); err != nil {
		return wire.CommandReply{}, fmt.Errorf("%w: %w", fleet.ErrNotConnected, err)
	}
	body, err := json.Marshal(c)
	if err != nil {
		return wire.CommandReply{}, fmt.Errorf("encode command %s: %w", c.Name, err)
	}
	reply := strings.TrimSuffix(wire.ReplySubject(agentID), ">") + rand.Text()
	sub, err := n.Conn.SubscribeSync(reply)
	if err != nil {
		return wire.CommandReply{}, fmt.Errorf("subscribe to %s: %w", reply, err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := n.Conn.PublishRequest(wire.CommandSubject(agentID), reply, body); err != nil {
		return wire.CommandReply{}, fmt.Errorf("send command %s to agent %s: %w", c.Name, agentID, err)
	}
	m, err := sub.NextMsgWithContext(ctx)
	switch {
	case errors.Is(err, nats.ErrNoResponders), err == nil && len(m.Data) == 0 && m.Header.Get("Status") == "503":
		return wire.CommandReply{}, fmt.Errorf("command %s to agent %s: %w", c.Name, agentID, fleet.ErrNoResponder)
	case errors.Is(err, context.DeadlineExceeded):
		return wire.CommandReply{}, fmt.Errorf("command %s to agent %s: %w", c.Name, agentID, fleet.ErrNoReply)
	case err != nil:
		return wire.CommandReply{}, fmt.Errorf("command %s to agent %s: %w", c.Name, agentID, err)
	}
	var answer wire.CommandReply
	if err := wire.Decode(m.Data, &answer); err != nil {
		return wire.CommandReply{}, fmt.Errorf("answer of agent %s to %s: %w", agentID, c.Name, err)
	}
	return answer, nil
}

func respond(m *nats.Msg, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return m.Respond(body)
}

// refusal words an error for the agent; inner text never leaves console.
func refusal(err error) wire.ConfigReply {
	if p, ok := errors.AsType[*problem.Error](err); ok {
		return wire.ConfigReply{Code: p.Code, Message: p.Message}
	}
	return wire.ConfigReply{Code: "unavailable", Message: "console could not answer, its log says why; ask again"}
}
