package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/id"
	"prxm.uz/proxima/internal/wire"
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
	DropOtherSlug    = "other_slug"
	DropOlder        = "older"
	DropOtherCluster = "other_cluster"
)

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

// Receive takes one published inventory. A message that is malformed answers wire.ErrMalformed; one
// that must not be applied is dropped, counted and no error; any other error means that it should be
// delivered again. Receiving the same message twice changes nothing.
func (s *Service) Receive(ctx context.Context, agentID string, data []byte, receivedAt time.Time) error {
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
	}
	inv, err := wire.DecodeInventory(data)
	if err != nil {
		return err
	}
	s.noteSlug(ctx, a, inv.ClusterSlug, receivedAt)
	if inv.ClusterSlug != a.ClusterSlug {
		return s.drop(ctx, agentID, DropOtherSlug)
	}
	rows, err := objectsOf(inv)
	if err != nil {
		return err
	}
	written, reason, err := s.apply(ctx, a, inv, rows, receivedAt)
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

// apply stores an inventory in one transaction. The hashes of what is stored are read before it, so
// that the transaction is short; that is safe, since every sync of this cluster changes its row, and
// the row's (epoch, sync) is compared again inside.
func (s *Service) apply(ctx context.Context, a fleet.Agent, inv *wire.Inventory, rows []Object, receivedAt time.Time) (written int, reason string, err error) {
	before, err := s.Store.ClusterBySlug(ctx, a.EnvironmentID, a.ClusterSlug)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return 0, "", fmt.Errorf("find the cluster: %w", err)
	}
	stored := map[Key]Stored{}
	if err == nil {
		if stored, err = s.Store.Hashes(ctx, before.ID); err != nil {
			return 0, "", fmt.Errorf("read the stored hashes: %w", err)
		}
	}
	err = s.Store.InTx(ctx, func(tx Tx) error {
		written, reason = 0, ""
		c, err := unmoved(ctx, tx, before, a, inv, receivedAt)
		switch {
		case err != nil:
			return err
		case c.UID != inv.ClusterUID:
			reason = DropOtherCluster
			return tx.UpdateCluster(ctx, withConflict(c, a, inv, receivedAt))
		case inv.Epoch < c.Epoch || inv.Epoch == c.Epoch && inv.Sync <= c.Sync:
			if inv.Epoch == c.Epoch && inv.Sync == c.Sync && c.AgentID == a.ID {
				return nil // the same message again: it is stored
			}
			reason = DropOlder
			c.Dropped, c.DroppedAt, c.DroppedReason = c.Dropped+1, receivedAt, reason
			return tx.UpdateCluster(ctx, c)
		}
		change := diff(c, a, inv, rows, stored, receivedAt)
		written = len(change.Upsert) + len(change.Delete)
		if err := tx.ApplyObjects(ctx, change); err != nil {
			return fmt.Errorf("store the objects: %w", err)
		}
		if err := tx.UpdateCluster(ctx, change.Cluster); err != nil {
			return fmt.Errorf("store the sync: %w", err)
		}
		return nil
	})
	return written, reason, err
}

// unmoved reads the cluster again within the transaction, and stores a new one where there was none before.
func unmoved(ctx context.Context, tx Tx, before Cluster, a fleet.Agent, inv *wire.Inventory, receivedAt time.Time) (Cluster, error) {
	c, err := tx.ClusterBySlug(ctx, a.EnvironmentID, a.ClusterSlug)
	switch {
	case errors.Is(err, ErrNotFound) && before.ID != "":
		return c, errMoved // removed meanwhile: the hashes that were read are of rows that are gone
	case errors.Is(err, ErrNotFound):
		c = newCluster(a, inv, receivedAt)
		if err := tx.InsertCluster(ctx, c); err != nil {
			return c, fmt.Errorf("store the cluster: %w", err)
		}
	case err != nil:
		return c, fmt.Errorf("find the cluster: %w", err)
	case c.ID != before.ID || c.Epoch != before.Epoch || c.Sync != before.Sync:
		return c, errMoved
	}
	return c, nil
}

// errMoved means that another inventory of the cluster was stored between reading the hashes and the
// transaction; the message is delivered again.
var errMoved = errors.New("the cluster changed meanwhile; deliver the inventory again")

func newCluster(a fleet.Agent, inv *wire.Inventory, receivedAt time.Time) Cluster {
	return Cluster{
		ID: id.New("cls"), ClientID: a.ClientID, EnvironmentID: a.EnvironmentID, Slug: a.ClusterSlug,
		Name: cmp.Or(inv.ClusterName, a.ClusterSlug), UID: inv.ClusterUID, AgentID: a.ID, FirstSyncAt: receivedAt, LastSyncAt: receivedAt,
	}
}

// withConflict notes an inventory with another fingerprint. Nothing else of it is stored.
func withConflict(c Cluster, a fleet.Agent, inv *wire.Inventory, receivedAt time.Time) Cluster {
	if c.Conflict.UID != inv.ClusterUID || c.Conflict.SeenAt.IsZero() {
		c.Conflict.FirstSeenAt = receivedAt
	}
	c.Conflict.UID, c.Conflict.AgentID, c.Conflict.SeenAt = inv.ClusterUID, a.ID, receivedAt
	c.Dropped, c.DroppedAt, c.DroppedReason = c.Dropped+1, receivedAt, DropOtherCluster
	return c
}
