package onboarding

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/wire"
)

// whyUnread is what people read of a fault of the database; the log has the rest.
const whyUnread = "the database answered with an error, which Console’s log has"

// whyUnstored is what people read where the database takes no writes.
const whyUnstored = "the database takes nothing, and Console’s log says why"

// facts turns what the store holds into what the gates judge. All rows were read in one snapshot at
// readAt, so all facts carry that time; when something happened stands within them.
func facts(r Rows, syncInterval time.Duration, readAt time.Time) gate.Facts {
	return gate.Facts{
		Slug: r.Attempt.Slug, Environment: r.Attempt.EnvironmentName, SyncInterval: syncInterval, RemovedAt: r.Attempt.ArchivedAt,
		Tokens:     reading(each(r.Tokens, tokenFact), r.Unread.Tokens, readAt),
		Collectors: reading(each(r.Collectors, collectorFact), r.Unread.Collectors, readAt),
		Cluster:    reading(clusterFact(r), r.Unread.Cluster, readAt),
		Others:     reading(each(r.Others, collectorFact), r.Unread.Others, readAt),
		Findings:   reading(findingFacts(r.Findings), r.Unread.Findings, readAt),
	}
}

func reading[T any](v T, unread error, at time.Time) gate.Reading[T] {
	if unread != nil {
		return gate.CouldNotRead[T](whyUnread, at)
	}
	return gate.Measured(v, at)
}

func each[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}

func tokenFact(t enrollment.Token) gate.Token {
	pinned := string(t.AgentType)
	if t.AgentType == fleet.TypeCollector {
		pinned = ""
	}
	return gate.Token{
		Prefix: t.Prefix, CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, RevokedAt: t.RevokedAt, PinnedTo: pinned,
		Uses: t.Uses, MaxUses: t.MaxUses, Collectors: t.CollectorsEnrolled, Others: t.OthersEnrolled, Gone: t.Gone(), SucceededAt: t.SucceededAt,
		Refusal: gate.Refusal{
			At: t.Refusal.At, Code: t.Refusal.Code, AgentName: t.Refusal.AgentName, Slug: t.Refusal.ClusterSlug,
			AgentType: string(t.Refusal.AgentType), Version: t.Refusal.Version, Address: host(t.Refusal.RemoteAddr),
		},
	}
}

// host is an address without its port.
func host(remoteAddr string) string {
	if ap, err := netip.ParseAddrPort(remoteAddr); err == nil {
		return ap.Addr().Unmap().String()
	}
	return cmp.Or(remoteAddr, "an unknown address")
}

func collectorFact(a fleet.Agent) gate.Collector {
	c := gate.Collector{
		Name: a.Name, Slug: a.ClusterSlug, Version: a.Version, EnrolledAt: a.EnrolledAt, RevokedAt: a.RevokedAt, ReleasedAt: a.ReleasedAt,
		SuspendedAt: a.SuspendedAt, SuspendedUntil: a.SuspendedUntil(), HeartbeatAt: a.HeartbeatAt, PresenceAt: a.PresenceAt, Leads: a.Role == wire.RoleLeader, CredentialExpiresAt: a.CredentialExpiresAt,
		PublishedSlug: a.PublishedSlug, PublishedSlugAt: a.PublishedSlugAt,
		ReportedInterval: time.Duration(a.SyncIntervalSeconds) * time.Second,
	}
	if r := a.ReportedSync; r != nil {
		c.ReportedError, c.ReportedAt = r.Error, a.PresenceAt
	}
	return c
}

func clusterFact(r Rows) *gate.Cluster {
	if r.Cluster == nil || r.Cluster.LastSyncAt.IsZero() {
		return nil // none, or one whose first inventory is not stored whole yet
	}
	ours := func(agentID string) bool {
		return agentID != "" && slices.ContainsFunc(r.Collectors, func(a fleet.Agent) bool { return a.ID == agentID })
	}
	in := r.Cluster
	out := &gate.Cluster{
		Ours: ours(in.AgentID), Publisher: in.AgentName, UID: in.UID, FirstSyncAt: in.FirstSyncAt, LastSyncAt: in.LastSyncAt,
		Nodes: in.Counts.Nodes, Namespaces: in.Counts.Namespaces, Workloads: in.Counts.Workloads, Pods: in.Counts.Pods,
		SameUID: each(r.SameUID, func(c inventory.Cluster) string { return c.Slug }),
	}
	for _, k := range in.Kinds {
		if k.Unread != "" {
			out.Unread = append(out.Unread, gate.UnreadKind{Kind: string(k.Kind), Reason: string(k.Unread)})
		}
	}
	if c := in.Conflict; !c.SeenAt.IsZero() {
		out.Conflict = gate.Conflict{
			UID: c.UID, Sender: c.AgentName, Ours: ours(c.AgentID), Publisher: c.AgentID == in.AgentID, FirstSeenAt: c.FirstSeenAt, SeenAt: c.SeenAt,
		}
	}
	return out
}

func findingFacts(posts []enrollment.Findings) []gate.Finding {
	var out []gate.Finding
	for _, p := range posts {
		for _, f := range p.Items {
			out = append(out, gate.Finding{
				Agent: p.AgentName, Check: f.Check, Status: f.Status, Message: f.Message, Cure: f.Cure, At: p.ReceivedAt,
			})
		}
	}
	return out
}
