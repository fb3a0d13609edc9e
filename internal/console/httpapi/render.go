package httpapi

import (
	"time"

	api "prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/console/tenancy"
)

// text leaves out what is empty.
func text[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	return new(string(s))
}

// at leaves out the zero time.
func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// given is what a pointer holds, or the zero value.
func given[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// each renders a list; the result is never null.
func each[T, R any](items []T, render func(T) R) []R {
	out := make([]R, len(items))
	for i, item := range items {
		out[i] = render(item)
	}
	return out
}

func same[T any](item T) T { return item }

func apiToken(t access.APIToken) api.APIToken {
	return api.APIToken{
		ID: t.ID, Name: t.Name, Prefix: t.Prefix, CreatedAt: t.CreatedAt.UTC(), ExpiresAt: at(t.ExpiresAt),
		LastUsedAt: at(t.LastUsedAt), RevokedAt: at(t.RevokedAt),
	}
}

func session(p access.Principal) api.Session {
	s := api.Session{UserID: p.UserID, Email: p.Email, Name: p.Name, Permissions: []api.GrantedPermission{}}
	for _, g := range p.Grants {
		for _, perm := range g.Permissions {
			s.Permissions = append(s.Permissions, api.GrantedPermission{
				Permission: string(perm), ClientID: text(g.Scope.ClientID), EnvironmentID: text(g.Scope.EnvironmentID),
			})
		}
	}
	return s
}

func client(c tenancy.Client) api.TenantClient {
	return api.TenantClient{ID: c.ID, Name: c.Name, CreatedAt: c.CreatedAt.UTC()}
}

func environment(e tenancy.Environment) api.Environment {
	return api.Environment{ID: e.ID, ClientID: e.ClientID, Name: e.Name, CreatedAt: e.CreatedAt.UTC()}
}

func user(u tenancy.User, assignments []tenancy.Assignment) api.User {
	return api.User{
		ID: u.ID, Kind: api.UserKind(u.Kind), Email: u.Email, Name: u.Name, Active: u.Active, CreatedAt: u.CreatedAt.UTC(),
		Assignments: each(assignments, assignment),
	}
}

func assignment(a tenancy.Assignment) api.Assignment {
	return api.Assignment{
		ID: a.ID, RoleID: a.RoleID, RoleName: a.RoleName, ClientID: text(a.Scope.ClientID), EnvironmentID: text(a.Scope.EnvironmentID),
	}
}

func role(r tenancy.Role) api.Role {
	return api.Role{
		ID: r.ID, Name: r.Name, BuiltIn: r.BuiltIn, Holders: r.Holders,
		Permissions: each(r.Permissions, func(p access.Permission) string { return string(p) }),
	}
}

func credential(c enrollment.Credential) api.Credential {
	return api.Credential{Jwt: c.JWT, Template: c.Template, IssuedAt: c.IssuedAt.UTC(), ExpiresAt: c.ExpiresAt.UTC()}
}

func installToken(t enrollment.Token, now time.Time) api.InstallToken {
	out := api.InstallToken{
		ID: t.ID, ClientID: t.ClientID, EnvironmentID: t.EnvironmentID, OnboardingID: text(t.OnboardingID), Name: text(t.Name),
		Prefix: t.Prefix, MaxUses: t.MaxUses, Uses: t.Uses, CreatedAt: t.CreatedAt.UTC(), ExpiresAt: t.ExpiresAt.UTC(),
		CreatedBy: text(t.CreatedBy), RevokedAt: at(t.RevokedAt), SucceededAt: at(t.SucceededAt), State: api.InstallTokenState(t.State(now)),
	}
	if t.AgentType != "" {
		out.AgentType = new(api.AgentType(t.AgentType))
	}
	return out
}

func attempt(a onboarding.Attempt) api.Onboarding {
	out := api.Onboarding{
		ID: a.ID, ClientID: a.ClientID, ClientName: text(a.ClientName), EnvironmentID: a.EnvironmentID, EnvironmentName: a.EnvironmentName,
		Slug: a.Slug, DisplayName: a.DisplayName, CreatedAt: a.CreatedAt.UTC(), CreatedBy: text(a.CreatedBy),
		AbandonedAt: at(a.AbandonedAt), ArchivedAt: at(a.ArchivedAt), InventoryDoneAt: at(a.InventoryDoneAt),
		AccessDoneAt: at(a.AccessDoneAt), LastCheckedAt: at(a.LastCheckedAt),
	}
	if s := a.LastStatus; s != nil {
		out.LastStatus = &api.StatusSummary{
			Passed: s.Passed, Waiting: s.Waiting, Blocked: s.Blocked, Warning: s.Warning, Failed: s.Failed,
			Gate: text(s.Gate), State: text(s.State),
		}
	}
	return out
}

func command(c onboarding.Command) api.InstallCommand {
	return api.InstallCommand{
		Method: api.InstallCommandMethod(c.Method), Text: c.Text, Check: c.Check, Warnings: each(c.Warnings, same),
	}
}

func track(t gate.Track, doneAt time.Time) api.Track {
	return api.Track{Available: true, Done: t.Done, DoneAt: at(doneAt), Owner: t.Owner, Gates: each(t.Gates, judged)}
}

func judged(g gate.Gate) api.Gate {
	out := api.Gate{
		ID: g.ID, Number: g.Number, Title: g.Title, State: api.GateState(g.State), Sentence: g.Sentence,
		Evidence: each(g.Evidence, func(e gate.Evidence) api.Evidence {
			shown := api.Evidence{Label: e.Label, Value: e.Value, At: at(e.At)}
			if e.Reported {
				shown.Reported = new(true)
			}
			return shown
		}),
	}
	if a := g.Action; a != nil {
		out.Action = &api.GateAction{Text: a.Text, Command: text(a.Command), Offer: text(a.Offer)}
	}
	return out
}

func kind(k inventory.KindState) api.KindState {
	return api.KindState{
		Kind: string(k.Kind), Unread: text(k.Unread), Message: text(k.Message), Kept: k.Kept, Total: k.Total, ReadAt: at(k.ReadAt),
	}
}

func cluster(c inventory.Cluster) api.Cluster {
	out := api.Cluster{
		ID: c.ID, ClientID: c.ClientID, ClientName: c.ClientName, EnvironmentID: c.EnvironmentID, EnvironmentName: c.EnvironmentName,
		Slug: c.Slug, Name: c.Name, UID: c.UID, Version: text(c.Version), Platform: text(c.Platform), Provider: text(c.Provider),
		AgentID: text(c.AgentID), AgentName: text(c.AgentName), FirstSyncAt: at(c.FirstSyncAt), LastSyncAt: at(c.LastSyncAt),
		Collectors: c.Collectors, EnrolledAt: at(c.EnrolledAt), HeartbeatAt: at(c.HeartbeatAt), Kinds: each(c.Kinds, kind),
		Dropped: c.Dropped, DroppedAt: at(c.DroppedAt), DroppedReason: text(c.DroppedReason),
	}
	if c.Counted() {
		out.Counts = new(counts(c.Counts))
	}
	if c.PartlyApplied {
		out.PartlyStored = new(true)
	}
	if x := c.Conflict; !x.SeenAt.IsZero() {
		out.Conflict = &api.IdentityConflict{
			UID: x.UID, AgentID: text(x.AgentID), AgentName: text(x.AgentName), FirstSeenAt: x.FirstSeenAt.UTC(), SeenAt: x.SeenAt.UTC(),
		}
	}
	return out
}

func agent(a fleet.Agent) api.Agent {
	out := api.Agent{
		ID: a.ID, ClientID: a.ClientID, EnvironmentID: a.EnvironmentID, Type: api.AgentType(a.Type), ClusterSlug: text(a.ClusterSlug),
		Name: a.Name, EnrolledAt: a.EnrolledAt.UTC(), EnrolledBy: text(a.EnrolledBy), Version: a.Version, Template: a.Template,
		CredentialIssuedAt: at(a.CredentialIssuedAt), CredentialExpiresAt: at(a.CredentialExpiresAt), RevokedAt: at(a.RevokedAt),
		ReleasedAt: at(a.ReleasedAt), SuspendedUntil: at(a.SuspendedUntil()), HeartbeatAt: at(a.HeartbeatAt), PresenceAt: at(a.PresenceAt), Role: text(a.Role),
		SuspendedWhy: text(a.SuspendedWhy), ClusterRemovedAt: at(a.ClusterRemovedAt), PublishedSlug: text(a.PublishedSlug),
	}
	if s := a.ReportedSync; s != nil {
		out.ReportedSync = &api.ReportedSync{Number: s.Number, FinishedAt: s.FinishedAt.UTC(), DurationMs: s.DurationMS, Error: text(s.Error)}
	}
	return out
}

func finding(f enrollment.Finding) api.Finding {
	return api.Finding{Check: f.Check, Status: api.FindingStatus(f.Status), Message: f.Message, Cure: text(f.Cure), At: at(f.At)}
}

func removal(r inventory.Removal) api.Removal {
	out := api.Removal{ClusterID: r.Cluster.ID, Slug: r.Cluster.Slug, Attempt: text(r.Attempt), LiveTokens: r.LiveTokens, Agents: each(r.Agents, agent)}
	if r.Cluster.Counted() {
		out.Counts = new(counts(r.Cluster.Counts))
	}
	if r.Refusal != nil {
		out.Refusal = new(r.Refusal.Message + " " + r.Refusal.Cure)
	}
	return out
}

func counts(c inventory.Counts) api.Counts {
	return api.Counts{Nodes: c.Nodes, Namespaces: c.Namespaces, Workloads: c.Workloads, Pods: c.Pods, Services: c.Services, Events: c.Events}
}
