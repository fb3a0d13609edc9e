package inventory

import (
	"context"
	"fmt"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/problem"
)

// Removal is what the removal of a cluster comes to: what goes, what stays, and what stands against it now.
type Removal struct {
	// Cluster is deleted here, with every stored row of its inventory.
	Cluster Cluster
	// Attempt is the display name of the onboarding attempt that is archived; "" if there is none.
	Attempt string
	// LiveTokens is the number of that attempt's install tokens that are revoked with it.
	LiveTokens int
	// Agents are those that enrolled for the cluster, of every type. Their records stay, and what they send of
	// the cluster is not taken any more.
	Agents []fleet.Agent
	// Refusal is why Remove would refuse now; nil if it would not.
	Refusal *problem.Error
}

// Removal tells what Remove would do, and changes nothing. It asks for the same permission.
func (s *Service) Removal(ctx context.Context, p access.Principal, clusterID string) (Removal, error) {
	c, err := s.Cluster(ctx, p, clusterID)
	if err != nil {
		return Removal{}, err
	}
	if !p.Allows(access.HostsWrite, c.Scope()) {
		return Removal{}, access.Refuse(access.HostsWrite)
	}
	now := s.Clock.Now()
	r, err := s.Store.Removal(ctx, c, now)
	if err != nil {
		return Removal{}, fmt.Errorf("read what goes with cluster %s: %w", clusterID, err)
	}
	r.Refusal = stillReporting(r.Agents, now)
	return r, nil
}

// Remove deletes a cluster with its inventory; the store archives its attempt in the same transaction, so that
// the slug is free again, revokes the attempt's tokens, and marks the agents: what they send afterwards is
// dropped until they enroll anew. Their records stay. While a collector is present it is refused, as the release
// of an identity is: whoever removes a cluster by mistake would else see it report for hours.
func (s *Service) Remove(ctx context.Context, p access.Principal, clusterID string) error {
	return s.act(ctx, p, clusterID, audit.ClusterRemoved, nil, func(tx Tx, c Cluster) error {
		now := s.Clock.Now()
		collectors, err := tx.CollectorsOf(ctx, c.EnvironmentID, c.Slug)
		if err != nil {
			return fmt.Errorf("find the collectors: %w", err)
		}
		if refusal := stillReporting(collectors, now); refusal != nil {
			return refusal
		}
		return tx.DeleteCluster(ctx, c.ID, now)
	})
}

func stillReporting(agents []fleet.Agent, now time.Time) *problem.Error {
	for _, a := range agents {
		if a.Type == fleet.TypeCollector && a.Present(now) {
			return problem.New(problem.Conflict, "cluster_alive", fmt.Sprintf("Agent %s of this cluster was seen %s ago: it still reports.", a.Name, now.Sub(a.LastSeen()).Truncate(time.Second))).
				WithCure(fmt.Sprintf("Uninstall the agent in the cluster and wait until it was quiet for %d seconds, or revoke it under Agents; then remove the cluster.", fleet.PresentWithin/time.Second))
		}
	}
	return nil
}
