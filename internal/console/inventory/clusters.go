package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/problem"
)

// Scope is where the cluster lives.
func (c Cluster) Scope() access.Scope {
	return access.Scope{ClientID: c.ClientID, EnvironmentID: c.EnvironmentID}
}

// Counted tells whether a sync was ever stored whole. Until then nobody counted what the cluster holds.
func (c Cluster) Counted() bool { return !c.LastSyncAt.IsZero() }

// ClusterSortKeys are the columns by which clusters sort; the first is the default.
func ClusterSortKeys() []string {
	return []string{"name", "enrolled", "heartbeat", "inventory", "nodes", "pods", "version"}
}

// SortKeys are the columns by which a section sorts; the first is the default.
func SortKeys(s Section) []string {
	switch s {
	case SectionNodes:
		return []string{"name", "state", "cpu", "memory", "age"}
	case SectionNamespaces:
		return []string{"name", "state", "count", "age"}
	case SectionWorkloads:
		return []string{"name", "namespace", "kind", "state", "ready", "age"}
	case SectionPods:
		return []string{"name", "namespace", "state", "restarts", "node", "owner", "cpu", "memory", "age"}
	case SectionServices:
		return []string{"name", "namespace", "state", "age"}
	case SectionEvents:
		return []string{"age", "state", "namespace", "name", "count", "owner"}
	}
	return nil
}

// Clusters lists the clusters that the caller may read, with the number of all that match.
func (s *Service) Clusters(ctx context.Context, p access.Principal, q ClusterQuery) ([]Cluster, int, error) {
	q.Reach = p.Reach(access.HostsRead)
	q.Limit = limited(q.Limit)
	if q.Sort == "" {
		q.Sort = ClusterSortKeys()[0]
	}
	if !slices.Contains(ClusterSortKeys(), q.Sort) {
		return nil, 0, unknownSort(q.Sort, ClusterSortKeys())
	}
	if !storable(q.ClientID, q.EnvironmentID, q.Text) {
		return nil, 0, nil // no stored text can match
	}
	clusters, total, err := s.Store.Clusters(ctx, q)
	if err != nil {
		return nil, 0, fmt.Errorf("list clusters: %w", err)
	}
	return clusters, total, nil
}

// storable tells whether every text could stand in the database: PostgreSQL refuses others even as
// something to look for.
func storable(texts ...string) bool {
	for _, s := range texts {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return false
		}
	}
	return true
}

func limited(n int) int {
	if n < 1 || n > 500 {
		return 100
	}
	return n
}

func unknownSort(key string, known []string) error {
	return problem.New(problem.Invalid, "invalid_sort", fmt.Sprintf("%q is no column to sort by; the columns are %q.", key, known)).
		WithCure("Choose one of them, with a hyphen before it for the other direction.").InField("sort")
}

// Cluster reads one cluster.
func (s *Service) Cluster(ctx context.Context, p access.Principal, clusterID string) (Cluster, error) {
	c, err := s.Store.Cluster(ctx, clusterID)
	if errors.Is(err, ErrNotFound) || err == nil && !p.Allows(access.HostsRead, c.Scope()) {
		return Cluster{}, clusterNotFound(clusterID)
	}
	return c, err
}

func clusterNotFound(clusterID string) error {
	return problem.New(problem.NotFound, "cluster_not_found", fmt.Sprintf("There is no cluster %s.", clusterID)).
		WithCure("Check the id; if it is right, the cluster was removed, or you have no role where it lives.")
}

// Objects reads one page of a section.
func (s *Service) Objects(ctx context.Context, p access.Principal, q Query) (Page, error) {
	c, err := s.Cluster(ctx, p, q.ClusterID)
	if err != nil {
		return Page{}, err
	}
	keys := SortKeys(q.Section)
	if keys == nil {
		return Page{}, problem.New(problem.NotFound, "section_not_found", fmt.Sprintf("A cluster has no section %q.", q.Section)).
			WithCure(fmt.Sprintf("The sections are %q.", Sections()))
	}
	q.Limit = limited(q.Limit)
	if q.Sort == "" {
		q.Sort = keys[0] // of events their age: the newest first
	}
	if !slices.Contains(keys, q.Sort) {
		return Page{}, unknownSort(q.Sort, keys)
	}
	if !storable(q.Namespace, q.State, q.Kind, q.Node, q.Text) {
		return Page{Cluster: c}, nil // no stored text can match
	}
	page, err := s.Store.Objects(ctx, q)
	if err != nil {
		return Page{}, fmt.Errorf("list %s: %w", q.Section, err)
	}
	page.Cluster = c
	return page, nil
}

// Object reads one object.
func (s *Service) Object(ctx context.Context, p access.Principal, clusterID string, k Key) (Object, error) {
	if _, err := s.Cluster(ctx, p, clusterID); err != nil {
		return Object{}, err
	}
	var o Object
	err := ErrNotFound
	if storable(string(k.Section), k.Kind, k.Namespace, k.Name) {
		o, err = s.Store.Object(ctx, clusterID, k)
	}
	if errors.Is(err, ErrNotFound) {
		return Object{}, problem.New(problem.NotFound, "object_not_found", fmt.Sprintf("The stored inventory has no %s %q.", k.Kind, k.Name)).
			WithCure("It may be gone since the last sync, or lie in a namespace that is not collected; list the section anew.")
	}
	return o, err
}

// AcceptIdentity takes a new fingerprint for a cluster that was rebuilt. The caller names the
// fingerprint that the page showed, so that a third one cannot slip in between.
func (s *Service) AcceptIdentity(ctx context.Context, p access.Principal, clusterID, uid string) (Cluster, error) {
	err := s.act(ctx, p, clusterID, audit.ClusterIdentityAccepted, map[string]string{"uid_after": uid}, func(tx Tx, c Cluster) error {
		if c.Conflict.UID == "" || c.Conflict.UID != uid {
			return problem.New(problem.Conflict, "identity_not_reported", fmt.Sprintf("No cluster with the kube-system UID %q reports under this slug now.", uid)).WithCure("Reload the cluster's page and read which identity reports.")
		}
		// What was read of which kind was of the old cluster: its rows go with the next sync.
		c.UID, c.Conflict, c.Kinds = uid, Conflict{}, nil
		c.Revision++
		return tx.UpdateCluster(ctx, c)
	})
	if err != nil {
		return Cluster{}, err
	}
	return s.Store.Cluster(ctx, clusterID)
}

// EndConflicts ends the conflicts of identity whose cause is gone: the other cluster was quiet for so
// long while the stored one synced, or the agent that reported it was revoked or deleted. A cluster that
// was rebuilt never syncs under its old fingerprint again, so its conflict waits for a person.
func (s *Service) EndConflicts(ctx context.Context, quiet time.Duration) error {
	n, err := s.Store.EndConflicts(ctx, s.Clock.Now().Add(-quiet))
	if err != nil {
		return fmt.Errorf("end conflicts of identity: %w", err)
	}
	if n > 0 {
		s.Logger.InfoContext(ctx, "conflicts of identity ended", "clusters", n)
	}
	return nil
}

func (s *Service) act(ctx context.Context, p access.Principal, clusterID string, action audit.Action, detail map[string]string, do func(Tx, Cluster) error) error {
	return s.Store.InTx(ctx, func(tx Tx) error {
		c, err := tx.Cluster(ctx, clusterID)
		if errors.Is(err, ErrNotFound) || err == nil && !p.Allows(access.HostsRead, c.Scope()) && !p.Allows(access.HostsWrite, c.Scope()) {
			return clusterNotFound(clusterID)
		}
		if err != nil {
			return fmt.Errorf("find the cluster: %w", err)
		}
		if !p.Allows(access.HostsWrite, c.Scope()) {
			return access.Refuse(access.HostsWrite)
		}
		if err := do(tx, c); err != nil {
			return err
		}
		e := p.Did(s.Clock.Now(), action).On("cluster", c.ID, c.Name).In(c.ClientID, c.EnvironmentID).With("cluster_slug", c.Slug).With("uid", c.UID)
		for name, value := range detail {
			e = e.With(name, value)
		}
		return tx.AppendAudit(ctx, e)
	})
}
