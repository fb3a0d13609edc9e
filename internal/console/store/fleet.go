package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/store/internal/dbtype"
	"prxm.uz/proxima/internal/console/store/internal/sqlgen"
	"prxm.uz/proxima/internal/wire"
)

// Fleet returns the store of package fleet.
func (db *DB) Fleet() fleet.Store { return fleetStore{db} }

type fleetStore struct{ db *DB }

func (s fleetStore) InTx(ctx context.Context, f func(fleet.Tx) error) error {
	return s.db.inTx(ctx, func(t *tx) error { return f(t) })
}

func fleetErrors() sentinels { return sentinels{missing: fleet.ErrNotFound} }

// selectAgents is the one way to read agents; scanAgent takes its columns.
const selectAgents = `SELECT a.id, a.client_id, a.environment_id, a.agent_type, a.cluster_slug, a.name, a.public_key,
	a.enrolled_by, a.enrolled_at, a.version, a.capability, a.template, a.credential_issued_at,
	a.credential_expires_at, a.revoked_at, a.released_at, a.suspended_at, a.suspended_why, a.cluster_removed_at, a.heartbeat_at, a.presence_at, a.role,
	a.reported_sync, a.published_slug, a.published_slug_at, a.sync_interval_seconds
FROM agents a`

func scanAgent(r *sql.Rows) (fleet.Agent, error) {
	var a fleet.Agent
	var enrolledBy dbtype.Text
	var enrolledAt, issuedAt, expiresAt, revokedAt, releasedAt, suspendedAt, removedAt, heartbeatAt, presenceAt, publishedAt dbtype.Time
	var reported string
	err := r.Scan(&a.ID, &a.ClientID, &a.EnvironmentID, &a.Type, &a.ClusterSlug, &a.Name, &a.PublicKey,
		&enrolledBy, &enrolledAt, &a.Version, &a.Capability, &a.Template, &issuedAt,
		&expiresAt, &revokedAt, &releasedAt, &suspendedAt, &a.SuspendedWhy, &removedAt, &heartbeatAt, &presenceAt, &a.Role,
		&reported, &a.PublishedSlug, &publishedAt, &a.SyncIntervalSeconds)
	if err != nil {
		return a, err
	}
	a.EnrolledBy = string(enrolledBy)
	a.EnrolledAt, a.CredentialIssuedAt, a.CredentialExpiresAt = enrolledAt.Time, issuedAt.Time, expiresAt.Time
	a.RevokedAt, a.ReleasedAt, a.SuspendedAt, a.PublishedSlugAt = revokedAt.Time, releasedAt.Time, suspendedAt.Time, publishedAt.Time
	a.ClusterRemovedAt, a.HeartbeatAt, a.PresenceAt = removedAt.Time, heartbeatAt.Time, presenceAt.Time
	return a, fromJSON(reported, &a.ReportedSync, "agent "+a.ID)
}

func (r reads) agent(ctx context.Context, l *list) (fleet.Agent, error) {
	return one(ctx, r.raw, selectAgents+l.condition(), l.args, scanAgent)
}

func (r reads) agentByID(ctx context.Context, id string) (fleet.Agent, error) {
	var l list
	l.equal("a.id", id)
	return r.agent(ctx, &l)
}

func (r reads) Agent(ctx context.Context, id string) (fleet.Agent, error) {
	a, err := r.agentByID(ctx, id)
	return a, fleetErrors().translate(err, "agent "+id)
}

func (s fleetStore) Agent(ctx context.Context, id string) (fleet.Agent, error) {
	return s.db.plain().Agent(ctx, id)
}

func (t *tx) AgentByName(ctx context.Context, environmentID string, kind fleet.Type, clusterSlug, name string) (fleet.Agent, error) {
	var l list
	l.equal("a.environment_id", environmentID)
	l.equal("a.agent_type", string(kind))
	l.equal("a.cluster_slug", clusterSlug)
	l.equal("a.name", name)
	a, err := t.agent(ctx, &l)
	return a, enrollmentErrors().translate(err, "agent "+name)
}

// AgentByKey finds nobody under an empty key.
func (t *tx) AgentByKey(ctx context.Context, publicKey string) (fleet.Agent, error) {
	var l list
	l.fixed("a.public_key <> ''") // also lets the engine use the partial index
	l.equal("a.public_key", publicKey)
	a, err := t.agent(ctx, &l)
	return a, enrollmentErrors().translate(err, "agent by key "+publicKey)
}

func (s fleetStore) Agents(ctx context.Context, f fleet.Filter) (found []fleet.Agent, total int, err error) {
	var l list
	l.reach("a.client_id", "a.environment_id", f.Reach)
	l.equalIf("a.agent_type", string(f.Type))
	l.equalIf("a.client_id", f.ClientID)
	l.equalIf("a.environment_id", f.EnvironmentID)
	l.equalIf("a.cluster_slug", f.ClusterSlug)
	l.containsAny([]string{"LOWER(a.name)", "a.cluster_slug"}, f.Text)
	if f.ExcludeCollectors {
		l.fixed("a.agent_type <> 'collector'")
	}
	err = s.db.snapshot(ctx, func(r reads) error {
		if total, err = count(ctx, r.raw, "agents a", &l); err != nil {
			return err
		}
		query := selectAgents + l.condition() + " ORDER BY a.name, a.cluster_slug, a.id" + l.page(f.Limit, 1000, f.Offset)
		found, err = rows(ctx, r.raw, query, l.args, scanAgent)
		return err
	})
	return found, total, fleetErrors().translate(err, "list agents")
}

func (t *tx) InsertAgent(ctx context.Context, a fleet.Agent) error {
	reported, err := toJSON(a.ReportedSync)
	if err != nil {
		return err
	}
	n, err := t.q.InsertAgent(ctx, sqlgen.InsertAgentParams{
		ID: a.ID, ClientID: a.ClientID, EnvironmentID: a.EnvironmentID, AgentType: string(a.Type),
		ClusterSlug: a.ClusterSlug, Name: a.Name, PublicKey: a.PublicKey, EnrolledBy: dbtype.Text(a.EnrolledBy),
		EnrolledAt: dbtype.At(a.EnrolledAt), Version: a.Version, Capability: int64(a.Capability),
		Template: int64(a.Template), CredentialIssuedAt: dbtype.At(a.CredentialIssuedAt),
		CredentialExpiresAt: dbtype.At(a.CredentialExpiresAt), RevokedAt: dbtype.At(a.RevokedAt),
		ReleasedAt: dbtype.At(a.ReleasedAt), HeartbeatAt: dbtype.At(a.HeartbeatAt),
		PresenceAt: dbtype.At(a.PresenceAt), Role: string(a.Role), ReportedSync: reported,
		PublishedSlug: a.PublishedSlug, PublishedSlugAt: dbtype.At(a.PublishedSlugAt),
		SyncIntervalSeconds: a.SyncIntervalSeconds,
	})
	return enrollmentErrors().inserted(n, err, "insert agent "+a.ID)
}

// BindAgent also remembers the key that it replaces as revoked, at the time of the new credential.
func (t *tx) BindAgent(ctx context.Context, a fleet.Agent) error {
	before, err := t.q.AgentKey(ctx, a.ID)
	if err != nil {
		return enrollmentErrors().translate(err, "bind agent "+a.ID)
	}
	if before != a.PublicKey {
		if err := t.revokeKey(ctx, before, a.ID, a.CredentialIssuedAt, enrollmentErrors()); err != nil {
			return err
		}
	}
	n, err := t.q.BindAgent(ctx, sqlgen.BindAgentParams{
		ID: a.ID, PublicKey: a.PublicKey, EnrolledBy: dbtype.Text(a.EnrolledBy), EnrolledAt: dbtype.At(a.EnrolledAt),
		Version: a.Version, Capability: int64(a.Capability), Template: int64(a.Template),
		CredentialIssuedAt: dbtype.At(a.CredentialIssuedAt), CredentialExpiresAt: dbtype.At(a.CredentialExpiresAt),
		RevokedAt: dbtype.At(a.RevokedAt), ReleasedAt: dbtype.At(a.ReleasedAt), ClusterRemovedAt: dbtype.At(a.ClusterRemovedAt),
	})
	return enrollmentErrors().changed(n, err, "bind agent "+a.ID)
}

func (t *tx) revokeKey(ctx context.Context, key, agentID string, at time.Time, errs sentinels) error {
	if key == "" {
		return nil
	}
	err := t.q.PutRevokedKey(ctx, sqlgen.PutRevokedKeyParams{PublicKey: key, AgentID: agentID, RevokedAt: dbtype.At(at)})
	return errs.translate(err, "remember the key of agent "+agentID)
}

// end remembers an agent's key as revoked and then does what ends it.
func (t *tx) end(ctx context.Context, id string, at time.Time, what string, f func() (int64, error)) error {
	key, err := t.q.AgentKey(ctx, id)
	if err != nil {
		return fleetErrors().translate(err, what+" "+id)
	}
	if err := t.revokeKey(ctx, key, id, at, fleetErrors()); err != nil {
		return err
	}
	n, err := f()
	return fleetErrors().changed(n, err, what+" "+id)
}

func (t *tx) RevokeAgent(ctx context.Context, id string, at time.Time) error {
	return t.end(ctx, id, at, "revoke agent", func() (int64, error) {
		return t.q.RevokeAgent(ctx, sqlgen.RevokeAgentParams{ID: id, RevokedAt: dbtype.At(at)})
	})
}

func (t *tx) ReleaseAgent(ctx context.Context, id string, at time.Time) error {
	return t.end(ctx, id, at, "release agent", func() (int64, error) {
		return t.q.ReleaseAgent(ctx, sqlgen.ReleaseAgentParams{ID: id, ReleasedAt: dbtype.At(at)})
	})
}

func (t *tx) DeleteAgent(ctx context.Context, id string, at time.Time) error {
	return t.end(ctx, id, at, "delete agent", func() (int64, error) { return t.q.DeleteAgent(ctx, id) })
}

func (t *tx) SuspendAgent(ctx context.Context, id, why string, at time.Time) error {
	n, err := t.q.SuspendAgent(ctx, sqlgen.SuspendAgentParams{ID: id, SuspendedWhy: why, SuspendedAt: dbtype.At(at)})
	return fleetErrors().changed(n, err, "suspend agent "+id)
}

// Batches are written in the order of agents, since replicas that each begin elsewhere would wait for
// each other until PostgreSQL finds the deadlock, a second later.

func (s fleetStore) RecordPulses(ctx context.Context, batch []fleet.Pulse) error {
	batch = slices.SortedStableFunc(slices.Values(batch), func(a, b fleet.Pulse) int { return strings.Compare(a.AgentID, b.AgentID) })
	return s.db.inTx(ctx, func(t *tx) error {
		for _, p := range batch {
			_, err := t.q.RecordPulse(ctx, sqlgen.RecordPulseParams{
				ID: p.AgentID, HeartbeatAt: dbtype.At(p.ReceivedAt), Capability: int64(p.Heartbeat.Capability),
			})
			if err == nil {
				err = t.reportedSync(ctx, p.AgentID, p.ReceivedAt, p.Heartbeat.LastSync)
			}
			if err != nil {
				return fleetErrors().translate(err, "record a heartbeat of agent "+p.AgentID)
			}
		}
		return nil
	})
}

func (s fleetStore) RecordPresence(ctx context.Context, batch []fleet.Presence) error {
	batch = slices.SortedStableFunc(slices.Values(batch), func(a, b fleet.Presence) int { return strings.Compare(a.AgentID, b.AgentID) })
	return s.db.inTx(ctx, func(t *tx) error {
		for _, p := range batch {
			_, err := t.q.RecordPresence(ctx, sqlgen.RecordPresenceParams{
				ID: p.AgentID, PresenceAt: dbtype.At(p.ReceivedAt), Version: p.Status.Version,
				Capability: int64(p.Status.Capability), Role: string(p.Status.Role),
				SyncIntervalSeconds: p.Status.SyncIntervalSeconds,
			})
			if err == nil {
				err = t.reportedSync(ctx, p.AgentID, p.ReceivedAt, p.Status.LastSync)
			}
			if err != nil {
				return fleetErrors().translate(err, "record the status of agent "+p.AgentID)
			}
		}
		return nil
	})
}

func (t *tx) reportedSync(ctx context.Context, agentID string, receivedAt time.Time, s *wire.SyncInfo) error {
	if s == nil {
		return nil
	}
	text, err := toJSON(s)
	if err != nil {
		return err
	}
	return t.q.RecordReportedSync(ctx, sqlgen.RecordReportedSyncParams{
		ID: agentID, ReportedSync: text, ReportedSyncAt: dbtype.At(receivedAt),
	})
}

func (s fleetStore) RenewCredential(ctx context.Context, id string, template int, issuedAt, expiresAt time.Time) error {
	return s.db.inTx(ctx, func(t *tx) error {
		n, err := t.q.RenewCredential(ctx, sqlgen.RenewCredentialParams{
			ID: id, Template: int64(template), CredentialIssuedAt: dbtype.At(issuedAt), CredentialExpiresAt: dbtype.At(expiresAt),
		})
		return fleetErrors().changed(n, err, "renew the credential of agent "+id)
	})
}

// RecordPublishedSlug passes over an agent that is not there, and a time before the stored one.
func (s fleetStore) RecordPublishedSlug(ctx context.Context, id, slug string, at time.Time) error {
	return s.db.inTx(ctx, func(t *tx) error {
		_, err := t.q.RecordPublishedSlug(ctx, sqlgen.RecordPublishedSlugParams{ID: id, PublishedSlug: slug, PublishedSlugAt: dbtype.At(at)})
		return fleetErrors().translate(err, "record the slug of agent "+id)
	})
}

// Revoked also holds the keys of identities that were released, keys that another one replaced, and those of
// suspended agents: what was issued since is not refused.
func (s fleetStore) Revoked(ctx context.Context, since time.Time) (map[string]time.Time, error) {
	found, err := s.db.read.RevokedKeys(ctx, from(since))
	if err != nil {
		return nil, fleetErrors().translate(err, "revoked keys")
	}
	keys := make(map[string]time.Time, len(found))
	for _, row := range found {
		keys[row.PublicKey] = row.RevokedAt.Time
	}
	suspended, err := s.db.read.SuspendedKeys(ctx, from(since))
	if err != nil {
		return nil, fleetErrors().translate(err, "keys of suspended agents")
	}
	for _, row := range suspended {
		if row.SuspendedAt.After(keys[row.PublicKey]) {
			keys[row.PublicKey] = row.SuspendedAt.Time
		}
	}
	return keys, nil
}
