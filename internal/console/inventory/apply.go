package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/id"
)

const (
	// rowsAtOnce is the most that one transaction writes, near a second on SQLite, which has one writer.
	rowsAtOnce = 10_000
	// partRows is what one writes of an inventory that takes more: heartbeats wait behind it, again and again.
	partRows = 2_000
	// quickObjects and quickBytes bound what is received beside the inventories of others, and quickObjects also
	// what is stored of the cluster: each row's hash is compared. It takes about a second.
	quickObjects = 20_000
	quickBytes   = 16 << 20
	// maxEpochLeap is how far an epoch may be above those that console knows of. A database that was
	// restored from a copy has forgotten some; an epoch near wire.MaxOrder would leave none to hand out.
	maxEpochLeap = 1_000_000
)

// errMoved means that another inventory of the cluster was stored between reading the hashes and a
// transaction; the message is delivered again.
var errMoved = errors.New("the cluster changed meanwhile; deliver the inventory again")

// ErrLarge is what Receive answers for an inventory that would hold up those of others; ReceiveLarge takes it.
var ErrLarge = errors.New("the inventory is large, or changes much")

// arrival is one inventory on its way into the store.
type arrival struct {
	content
	agent fleet.Agent
	at    time.Time // received
	large bool      // others do not wait
}

// apply stores an inventory, in one transaction unless it changes more than rowsAtOnce, and answers how
// many rows it wrote, or why the inventory was dropped. Between parts it waits as long as the last one took,
// so that others write as much. The hashes of what is stored are read before, so that transactions are short;
// that is safe, since each of them compares the cluster's revision with the one that it builds on.
func (s *Service) apply(ctx context.Context, n arrival, before Cluster, stored map[Key]Stored) (written int, reason string, err error) {
	gone, err := s.publisherGone(ctx, before, n.agent)
	if err != nil {
		return 0, "", err
	}
	var rest Change
	var revision int64
	begun := s.Clock.Now()
	err = s.Store.InTx(ctx, func(tx Tx) error {
		var c Cluster
		written, rest = 0, Change{}
		c, reason, err = n.enter(ctx, tx, before, gone)
		if err != nil || reason != "" || n.isStored(c) {
			return err
		}
		rest = diff(c, n.content, stored, n.at)
		written = len(rest.Upsert) + len(rest.Delete)
		size := rowsAtOnce
		if rest.rows() > rowsAtOnce {
			if !n.large {
				return ErrLarge
			}
			size = partRows
		}
		part := rest.cut(size)
		revision = c.Revision + 1
		return n.write(ctx, tx, c, part, rest.empty())
	})
	for err == nil && !rest.empty() {
		if err := s.Clock.Sleep(ctx, s.Clock.Now().Sub(begun)); err != nil {
			return 0, "", err
		}
		begun = s.Clock.Now()
		part := rest.cut(partRows)
		err = s.Store.InTx(ctx, func(tx Tx) error {
			c, err := tx.ClusterBySlug(ctx, n.agent.EnvironmentID, n.agent.ClusterSlug)
			switch {
			case err != nil && !errors.Is(err, ErrNotFound):
				return fmt.Errorf("find the cluster: %w", err)
			case err != nil || c.ID != part.ClusterID || c.Revision != revision:
				return errMoved
			}
			return n.write(ctx, tx, c, part, rest.empty())
		})
		revision++
	}
	return written, reason, err
}

// stored reads the cluster of an agent, which has no ID if there is none, and the hashes of its objects.
func (s *Service) stored(ctx context.Context, a fleet.Agent, large bool) (Cluster, map[Key]Stored, error) {
	c, err := s.Store.ClusterBySlug(ctx, a.EnvironmentID, a.ClusterSlug)
	switch {
	case errors.Is(err, ErrNotFound):
		return Cluster{}, nil, nil
	case err != nil:
		return c, nil, fmt.Errorf("find the cluster: %w", err)
	}
	if !large && (c.PartlyApplied || c.Counts.all() > quickObjects) {
		return c, nil, ErrLarge
	}
	hashes, err := s.Store.Hashes(ctx, c.ID)
	if err != nil {
		return c, nil, fmt.Errorf("read the stored hashes: %w", err)
	}
	return c, hashes, nil
}

// publisherGone tells that what is stored is of an agent that may not publish any more. Its place in the
// order then binds no other: else an agent that was revoked for what it sent would keep the cluster.
func (s *Service) publisherGone(ctx context.Context, c Cluster, a fleet.Agent) (bool, error) {
	if c.ID == "" || c.AgentID == a.ID {
		return false, nil
	}
	publisher, err := s.Agents.Agent(ctx, c.AgentID)
	switch {
	case errors.Is(err, fleet.ErrNotFound):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("find agent %s: %w", c.AgentID, err)
	}
	return !publisher.RevokedAt.IsZero(), nil
}

// isOf tells that the newest sync of c is this one; isStored that it is stored whole.
func (n arrival) isOf(c Cluster) bool {
	return c.AgentID == n.agent.ID && c.Epoch == n.inv.Epoch && c.Sync == n.inv.Sync
}

func (n arrival) isStored(c Cluster) bool { return n.isOf(c) && !c.PartlyApplied }

// enter reads the cluster again within the first transaction, and stores a new one where there is none.
// With a reason the inventory must not be applied, which is noted on the cluster.
func (n arrival) enter(ctx context.Context, tx Tx, before Cluster, publisherGone bool) (c Cluster, reason string, err error) {
	last, err := tx.LastEpoch(ctx, n.agent.EnvironmentID, n.agent.ClusterSlug)
	if err != nil {
		return c, "", err
	}
	c, err = tx.ClusterBySlug(ctx, n.agent.EnvironmentID, n.agent.ClusterSlug)
	ahead := n.inv.Epoch-max(last, c.Epoch) > maxEpochLeap
	switch {
	case err != nil && !errors.Is(err, ErrNotFound):
		return c, "", fmt.Errorf("find the cluster: %w", err)
	case err != nil && before.ID != "":
		return c, "", errMoved // removed meanwhile: the hashes that were read are of rows that are gone
	case err != nil && ahead:
		return c, DropEpochAhead, nil
	case err != nil:
		if removed, err := n.removedMeanwhile(ctx, tx); err != nil || removed {
			return c, DropRemoved, err
		}
		c = n.newCluster()
		if err := tx.InsertCluster(ctx, c); err != nil {
			return c, "", fmt.Errorf("store the cluster: %w", err)
		}
		return c, "", nil
	case c.ID != before.ID || c.Revision != before.Revision:
		return c, "", errMoved
	}
	switch reason = n.refused(c, ahead, publisherGone); reason {
	case "":
		return c, "", nil
	case DropOtherCluster:
		return c, reason, tx.UpdateCluster(ctx, n.withConflict(c))
	default:
		return c, reason, tx.UpdateCluster(ctx, n.withDropped(c, reason))
	}
}

// removedMeanwhile tells whether a person removed the cluster since the agent was read.
func (n arrival) removedMeanwhile(ctx context.Context, tx Tx) (bool, error) {
	collectors, err := tx.CollectorsOf(ctx, n.agent.EnvironmentID, n.agent.ClusterSlug)
	if err != nil {
		return false, fmt.Errorf("find the collectors: %w", err)
	}
	for _, a := range collectors {
		if a.ID == n.agent.ID {
			return !a.ClusterRemovedAt.IsZero(), nil
		}
	}
	return false, nil
}

// refused tells why the inventory must not be applied to c, or "" if it may.
func (n arrival) refused(c Cluster, ahead, publisherGone bool) string {
	switch {
	case c.UID != n.inv.ClusterUID:
		return DropOtherCluster
	case ahead:
		return DropEpochAhead
	case n.isOf(c) || publisherGone:
		return ""
	case n.inv.Epoch < c.Epoch || n.inv.Epoch == c.Epoch && n.inv.Sync <= c.Sync:
		return DropOlder
	}
	return ""
}

// write stores a part of the change, and with the last of them what the sync says of the cluster.
func (n arrival) write(ctx context.Context, tx Tx, c Cluster, part Change, last bool) error {
	if err := tx.ApplyObjects(ctx, part); err != nil {
		return fmt.Errorf("store the objects: %w", err)
	}
	if last {
		c = n.synced(c)
		c.Counts = part.Counts
	}
	c.Epoch, c.Sync, c.AgentID, c.PartlyApplied = n.inv.Epoch, n.inv.Sync, n.agent.ID, !last
	c.Revision++
	if err := tx.UpdateCluster(ctx, c); err != nil {
		return fmt.Errorf("store the sync: %w", err)
	}
	return nil
}

func (n arrival) newCluster() Cluster {
	a := n.agent
	return Cluster{
		ID: id.New("cls"), ClientID: a.ClientID, EnvironmentID: a.EnvironmentID, Slug: a.ClusterSlug,
		Name: cmp.Or(n.inv.ClusterName, a.ClusterSlug), UID: n.inv.ClusterUID, AgentID: a.ID,
	}
}

// synced is the cluster once a sync is stored whole, but for its counts.
func (n arrival) synced(c Cluster) Cluster {
	if c.FirstSyncAt.IsZero() {
		c.FirstSyncAt = n.at
	}
	c.LastSyncAt, c.CollectedAt = n.at, n.inv.CollectedAt
	if n.inv.ClusterName != "" {
		c.Name = n.inv.ClusterName
	}
	if n.inv.Cluster.Version != "" {
		c.Version, c.Platform, c.Provider = n.inv.Cluster.Version, n.inv.Cluster.Platform, n.inv.Cluster.Provider
	}
	c.Kinds = kindStates(c.Kinds, n.inv.Kinds, n.at)
	if c.Conflict.UID == c.UID {
		c.Conflict = Conflict{}
	}
	return c
}

// withConflict notes an inventory with another fingerprint. Nothing else of it is stored.
func (n arrival) withConflict(c Cluster) Cluster {
	if c.Conflict.UID != n.inv.ClusterUID || c.Conflict.SeenAt.IsZero() {
		c.Conflict.FirstSeenAt = n.at
	}
	c.Conflict.UID, c.Conflict.AgentID, c.Conflict.SeenAt = n.inv.ClusterUID, n.agent.ID, n.at
	return n.withDropped(c, DropOtherCluster)
}

func (n arrival) withDropped(c Cluster, reason string) Cluster {
	c.Dropped, c.DroppedAt, c.DroppedReason = c.Dropped+1, n.at, reason
	return c
}
