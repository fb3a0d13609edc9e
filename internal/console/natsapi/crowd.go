package natsapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
)

const (
	// maxConnectionsOfAgent is what one credential may hold on one server: an agent needs one, two for a moment; those
	// of a network that breaks stay until the server misses their answers.
	maxConnectionsOfAgent = 8
	// crowd is more than any broken network leaves behind.
	crowd = 64
	// connectionsAtOnce is how many connections a server lists in one answer.
	connectionsAtOnce = 1000
)

// listenForArrivals notes on which servers agents connect. The server tells it in the system account.
func (n *Connection) listenForArrivals() error {
	subject := "$SYS.ACCOUNT." + n.config.Authority.AgentsAccount() + ".CONNECT"
	_, err := n.system.Subscribe(subject, func(m *nats.Msg) {
		var event struct {
			Server struct {
				ID string `json:"id"`
			} `json:"server"`
		}
		if json.Unmarshal(m.Data, &event) != nil || event.Server.ID == "" {
			return
		}
		n.arrived.Lock()
		n.servers[event.Server.ID] = true
		n.arrived.Unlock()
		select {
		case n.came <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return nil
}

// arrivals are the servers to which agents connected since the last call.
func (n *Connection) arrivals() []string {
	n.arrived.Lock()
	defer n.arrived.Unlock()
	found := slices.Collect(maps.Keys(n.servers))
	clear(n.servers)
	return found
}

// connectionInfo is what is read of a server's answer about a connection.
type connectionInfo struct {
	ID   uint64 `json:"cid"`
	User string `json:"authorized_user"`
	JWT  string `json:"jwt"`
}

// thin closes the oldest of the connections that a credential has too many of on a server: of an agent whose
// network breaks, the newest is the one that lives. It answers the agents with so many that no network explains
// it, each with the number.
func (n *Connection) thin(ctx context.Context, server string) (map[string]int, error) {
	byUser := map[string][]connectionInfo{}
	for offset, total := 0, 1; offset < total; offset += connectionsAtOnce {
		var reply struct {
			Data struct {
				Total       int              `json:"total"`
				Connections []connectionInfo `json:"connections"`
			} `json:"data"`
		}
		ask := map[string]any{"auth": true, "acc": n.config.Authority.AgentsAccount(), "offset": offset, "limit": connectionsAtOnce}
		if err := n.askServer(ctx, server, "CONNZ", ask, &reply); err != nil {
			return nil, err
		}
		total = reply.Data.Total
		for _, c := range reply.Data.Connections {
			byUser[c.User] = append(byUser[c.User], c)
		}
	}
	crowds := map[string]int{}
	for _, all := range byUser {
		if len(all) > crowd {
			if claims, err := jwt.DecodeUserClaims(all[0].JWT); err == nil {
				crowds[claims.Name] = len(all)
				continue
			}
		}
		slices.SortFunc(all, func(a, b connectionInfo) int { return cmp.Compare(a.ID, b.ID) })
		for _, c := range all[:max(0, len(all)-maxConnectionsOfAgent)] {
			if err := n.askServer(ctx, server, "KICK", map[string]any{"cid": c.ID}, nil); err != nil {
				return crowds, err
			}
		}
	}
	return crowds, nil
}

func (n *Connection) askServer(ctx context.Context, server, what string, ask, reply any) error {
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	answer, err := n.systemRequest(ctx, "$SYS.REQ.SERVER."+server+"."+what, body)
	if err != nil {
		return fmt.Errorf("ask server %s for %s: %w", server, what, err)
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(answer, reply); err != nil {
		return fmt.Errorf("the answer of server %s to %s is no JSON: %w", server, what, err)
	}
	return nil
}
