package inventory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/problem"
)

// KeepUnseen is how long an object stays that is missing from lists which were cut: it is not known
// to be gone, and lists that are cut for ever must not gather rows for ever.
const KeepUnseen = 24 * time.Hour

// Observer counts what happens to inventories.
type Observer interface {
	// InventoryApplied is called once an inventory is stored, with the number of rows written.
	InventoryApplied(rows int, took time.Duration)
	// InventoryDropped is called for an inventory that was not applied.
	InventoryDropped(reason string)
}

// AgentStore is what receiving needs of the stored agents.
type AgentStore interface {
	// Agent reads an agent; fleet.ErrNotFound if none.
	Agent(ctx context.Context, id string) (fleet.Agent, error)
	// RecordPublishedSlug notes that an agent published under another slug than it enrolled for.
	RecordPublishedSlug(ctx context.Context, id, slug string, at time.Time) error
}

// Config is what a Service needs.
type Config struct {
	Store    Store
	Agents   AgentStore
	Clock    clock.Clock
	Logger   *slog.Logger
	Observer Observer
}

// Service receives inventories and answers questions about clusters. It is safe for concurrent use.
type Service struct{ Config }

// New makes a Service.
func New(c Config) *Service { return &Service{Config: c} }

// The reasons why an inventory is dropped.
const (
	DropUnknownAgent = "unknown_agent"
	DropRevoked      = "agent_revoked"
	DropNotCollector = "not_a_collector"
	DropRemoved      = "cluster_removed"
	DropOtherSlug    = "other_slug"
	DropOlder        = "older"
	DropEpochAhead   = "epoch_ahead"
	DropOtherCluster = "other_cluster"
)

// DropSentence says what a reason means, for the page of the cluster that counts it; the reason itself for
// one that is unknown.
func DropSentence(reason string) string {
	switch reason {
	case DropOlder:
		return "It is older than what is stored, as the last words of a collector that another one took over from are. If it goes on, restart the collector: it then asks for its place in the order anew."
	case DropEpochAhead:
		return "It claims a place in the order far beyond any that this Console gave out, which no collector of ours does. Find out what runs under that agent’s name, and revoke it."
	case DropOtherCluster:
		return "It describes another cluster: its kube-system namespace has another UID."
	}
	return reason
}

// NextEpoch hands out the next epoch of the cluster that the agent belongs to. Only a collector
// that is not revoked gets one, and only for the slug it enrolled with.
func (s *Service) NextEpoch(ctx context.Context, agentID, clusterSlug string) (int64, error) {
	a, err := s.Agents.Agent(ctx, agentID)
	if err != nil {
		return 0, fmt.Errorf("find agent %s: %w", agentID, err)
	}
	if a.Type != fleet.TypeCollector || !a.RevokedAt.IsZero() {
		return 0, fmt.Errorf("agent %s of type %s gets no epoch", agentID, a.Type)
	}
	if !a.ClusterRemovedAt.IsZero() {
		return 0, problem.New(problem.Conflict, "cluster_removed", fmt.Sprintf("Cluster %s was removed from Console at %s; nothing of it is stored any more.", a.ClusterSlug, a.ClusterRemovedAt.UTC().Format(time.RFC3339))).
			WithCure("Uninstall this agent. To bring the cluster back, add it again in Console, delete the agent’s record there, and let the agent enroll with the new token and without its old state.")
	}
	s.noteSlug(ctx, a, clusterSlug, s.Clock.Now())
	var epoch int64
	err = s.Store.InTx(ctx, func(tx Tx) error {
		stored, err := tx.ClusterBySlug(ctx, a.EnvironmentID, a.ClusterSlug)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("find the cluster: %w", err)
		}
		epoch, err = tx.NextEpoch(ctx, a.EnvironmentID, a.ClusterSlug, stored.Epoch+1)
		return err
	})
	return epoch, err
}

// Receive takes one published inventory. A message that is malformed answers wire.ErrMalformed, one that
// takes long ErrLarge; one that must not be applied is dropped, counted and no error; any other error means
// that it should be delivered again. Receiving the same message twice changes nothing.
func (s *Service) Receive(ctx context.Context, agentID string, data []byte, receivedAt time.Time) error {
	return s.receive(ctx, agentID, data, receivedAt, false)
}

// ReceiveLarge is Receive for inventories of every size. What it writes it writes in parts, with pauses in which
// others write.
func (s *Service) ReceiveLarge(ctx context.Context, agentID string, data []byte, receivedAt time.Time) error {
	return s.receive(ctx, agentID, data, receivedAt, true)
}

func (s *Service) receive(ctx context.Context, agentID string, data []byte, receivedAt time.Time, large bool) error {
	start := s.Clock.Now()
	a, err := s.Agents.Agent(ctx, agentID)
	switch {
	case errors.Is(err, fleet.ErrNotFound):
		return s.drop(ctx, agentID, DropUnknownAgent)
	case err != nil:
		return fmt.Errorf("find agent %s: %w", agentID, err)
	case !a.RevokedAt.IsZero():
		return s.drop(ctx, agentID, DropRevoked)
	case a.Type != fleet.TypeCollector:
		return s.drop(ctx, agentID, DropNotCollector)
	case !a.ClusterRemovedAt.IsZero():
		return s.drop(ctx, agentID, DropRemoved)
	}
	before, stored, err := s.stored(ctx, a, large)
	if err != nil {
		return err
	}
	got, err := read(data, stored, large)
	if err != nil {
		return err
	}
	s.noteSlug(ctx, a, got.inv.ClusterSlug, receivedAt)
	if got.inv.ClusterSlug != a.ClusterSlug {
		return s.drop(ctx, agentID, DropOtherSlug)
	}
	written, reason, err := s.apply(ctx, arrival{content: got, agent: a, at: receivedAt, large: large}, before, stored)
	switch {
	case err != nil:
		return err
	case reason != "":
		return s.drop(ctx, agentID, reason)
	}
	s.Observer.InventoryApplied(written, s.Clock.Now().Sub(start))
	return nil
}

// noteSlug keeps the slug under which an agent publishes, if it is not its own, and forgets it
// once the agent is back under its own.
func (s *Service) noteSlug(ctx context.Context, a fleet.Agent, published string, at time.Time) {
	switch {
	case published != a.ClusterSlug:
		published = column(published)
	case a.PublishedSlug == "":
		return
	default:
		published = ""
	}
	if err := s.Agents.RecordPublishedSlug(ctx, a.ID, published, at); err != nil {
		s.Logger.ErrorContext(ctx, "the slug under which an agent publishes could not be stored", "agent", a.ID, "error", err)
	}
}

func (s *Service) drop(ctx context.Context, agentID, reason string) error {
	s.Logger.WarnContext(ctx, "inventory dropped", "agent", agentID, "reason", reason)
	s.Observer.InventoryDropped(reason)
	return nil
}
