// Package fake holds services that answer from memory, and the data of a small invented fleet: for the
// tests of the pages and for the preview program. Nothing of it is part of console.
package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/audit/trail"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/console/tenancy"
	"prxm.uz/proxima/internal/slug"
)

// Password lets every user of a world in.
const Password = "correct horse battery"

// World is everything that the services answer from. Guard it by its lock while it is served.
type World struct {
	sync.Mutex
	Users        map[string]access.Principal // by user id
	Clients      []tenancy.Client
	Environments []tenancy.Environment
	Attempts     map[string]onboarding.Status // by attempt id
	Clusters     []inventory.Cluster
	Objects      map[string][]inventory.Object // by cluster id
	Agents       []fleet.Agent
	Audited      []audit.Event // newest first
	Tokens       []enrollment.Token
	Findings     map[string]enrollment.Findings // by agent id
	Team         Team
	// Broken, where set, is what every read answers.
	Broken error
	// Now is the time at which new things are made.
	Now func() time.Time
}

func notFound(what string) error {
	return problem.New(problem.NotFound, "not_found", "No "+what+" of this id is known to you.")
}

type sessionKey struct{}

// Session is one browser's session; put it into a request's context by [WithSession].
type Session struct{ User string }

// WithSession adds a session to a context.
func WithSession(ctx context.Context, s *Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// Sessions implements web.Sessions over the context.
type Sessions struct{}

// SignIn implements web.Sessions.
func (Sessions) SignIn(ctx context.Context, userID string) error {
	if s, ok := ctx.Value(sessionKey{}).(*Session); ok {
		s.User = userID
	}
	return nil
}

// SignOut implements web.Sessions.
func (s Sessions) SignOut(ctx context.Context) error { return s.SignIn(ctx, "") }

// UserID implements web.Sessions.
func (Sessions) UserID(ctx context.Context) string {
	if s, ok := ctx.Value(sessionKey{}).(*Session); ok {
		return s.User
	}
	return ""
}

// ID implements web.Sessions.
func (s Sessions) ID(ctx context.Context) string {
	if s.UserID(ctx) == "" {
		return ""
	}
	return Here
}

// Alive implements web.Sessions.
func (s Sessions) Alive(ctx context.Context) (bool, error) { return s.UserID(ctx) != "", nil }

// Access implements web.Access.
type Access struct{ *World }

// SignIn implements web.Access.
func (a Access) SignIn(_ context.Context, email, password, _ string) (access.Principal, error) {
	a.Lock()
	defer a.Unlock()
	if email == "locked@ostmark.example" {
		p := problem.New(problem.TooMany, "too_many_attempts", "Too many sign-ins failed for this account.").WithCure("Wait 5 minutes, then try again.")
		p.RetryAfterSeconds = 300
		return access.Principal{}, p
	}
	for _, u := range a.Users {
		if strings.EqualFold(u.Email, email) && password == Password {
			return u, nil
		}
	}
	return access.Principal{}, problem.New(problem.Unauthenticated, "sign_in_refused", "Email and password do not match an active account.").WithCure("Check both and try again.")
}

// SignedOut implements web.Access.
func (Access) SignedOut(context.Context, access.Principal) error { return nil }

// Principal implements web.Access.
func (a Access) Principal(_ context.Context, userID string) (access.Principal, error) {
	a.Lock()
	defer a.Unlock()
	u, ok := a.Users[userID]
	if !ok {
		return access.Principal{}, problem.New(problem.Unauthenticated, "unauthenticated", "The account is gone.")
	}
	return u, nil
}

// ChangePassword implements web.Access.
func (a Access) ChangePassword(_ context.Context, _ access.Principal, current, next string) error {
	switch {
	case current != Password:
		return problem.New(problem.Unprocessable, "wrong_password", "The current password does not match.").InField("currentPassword")
	case len(next) < 12:
		return problem.New(problem.Unprocessable, "weak_password", "The new password has fewer than 12 characters.").WithCure("Choose a longer one.").InField("newPassword")
	}
	return nil
}

// MintAPIToken implements web.Access.
func (a Access) MintAPIToken(_ context.Context, p access.Principal, name string, expiresIn time.Duration) (access.APIToken, string, error) {
	a.Lock()
	defer a.Unlock()
	return a.mintToken(p.UserID, name, expiresIn)
}

// APITokens implements web.Access.
func (a Access) APITokens(ctx context.Context, p access.Principal) ([]access.APIToken, error) {
	return People(a).APITokens(ctx, p, p.UserID)
}

// RevokeAPIToken implements web.Access.
func (a Access) RevokeAPIToken(ctx context.Context, p access.Principal, tokenID string) error {
	return People(a).RevokeAPIToken(ctx, p, p.UserID, tokenID)
}

// Sessions implements web.Access.
func (a Access) Sessions(_ context.Context, p access.Principal) ([]access.Session, error) {
	a.Lock()
	defer a.Unlock()
	return slices.Clone(a.Team.Sessions[p.UserID]), a.Broken
}

// EndSession implements web.Access.
func (a Access) EndSession(_ context.Context, p access.Principal, id string) error {
	a.Lock()
	defer a.Unlock()
	held := a.Team.Sessions[p.UserID]
	i := slices.IndexFunc(held, func(s access.Session) bool { return s.ID == id })
	if i < 0 {
		return notFound("session")
	}
	a.Team.Sessions[p.UserID] = slices.Delete(slices.Clone(held), i, i+1)
	return nil
}

// EndOtherSessions implements web.Access.
func (a Access) EndOtherSessions(_ context.Context, p access.Principal, keep string) (int, error) {
	a.Lock()
	defer a.Unlock()
	held := a.Team.Sessions[p.UserID]
	left := slices.DeleteFunc(slices.Clone(held), func(s access.Session) bool { return s.ID != keep })
	a.Team.Sessions[p.UserID] = left
	return len(held) - len(left), nil
}

// Tenancy implements web.Tenancy.
type Tenancy struct{ *World }

// PlacesFor implements web.Tenancy.
func (t Tenancy) PlacesFor(_ context.Context, p access.Principal, perm access.Permission) (tenancy.Places, error) {
	t.Lock()
	defer t.Unlock()
	var out tenancy.Places
	reach := p.Reach(perm)
	for _, c := range t.Clients {
		if reach.All || slices.ContainsFunc(reach.Scopes, func(s access.Scope) bool { return s.ClientID == c.ID }) {
			out.Clients = append(out.Clients, c)
		}
	}
	for _, e := range t.Environments {
		if p.Allows(perm, access.Scope{ClientID: e.ClientID, EnvironmentID: e.ID}) {
			out.Environments = append(out.Environments, e)
		}
	}
	return out, t.Broken
}

// CreateClient implements web.Tenancy.
func (t Tenancy) CreateClient(_ context.Context, _ access.Principal, name string) (tenancy.Client, error) {
	t.Lock()
	defer t.Unlock()
	if name == "" {
		return tenancy.Client{}, problem.New(problem.Unprocessable, "invalid_name", "A client needs a name.").WithCure("Type one of at most 100 characters.").InField("name")
	}
	c := tenancy.Client{ID: fmt.Sprintf("cl_%d", len(t.Clients)+1), Name: name, CreatedAt: t.Now()}
	t.Clients = append(t.Clients, c)
	return c, nil
}

// CreateEnvironment implements web.Tenancy.
func (t Tenancy) CreateEnvironment(_ context.Context, _ access.Principal, clientID, name string) (tenancy.Environment, error) {
	t.Lock()
	defer t.Unlock()
	if name == "" {
		return tenancy.Environment{}, problem.New(problem.Unprocessable, "invalid_name", "An environment needs a name.").WithCure("Type one, such as prod.").InField("name")
	}
	e := tenancy.Environment{ID: fmt.Sprintf("en_%d", len(t.Environments)+1), ClientID: clientID, Name: name, CreatedAt: t.Now()}
	t.Environments = append(t.Environments, e)
	return e, nil
}

// Onboarding implements web.Onboarding.
type Onboarding struct{ *World }

// Record implements web.Onboarding.
func (o Onboarding) Record(_ context.Context, p access.Principal, clientID, environmentID, displayName string) (onboarding.Recorded, error) {
	o.Lock()
	defer o.Unlock()
	i := slices.IndexFunc(o.Environments, func(e tenancy.Environment) bool { return e.ID == environmentID })
	if i < 0 || o.Environments[i].ClientID != clientID {
		return onboarding.Recorded{}, problem.New(problem.Unprocessable, "unknown_environment", "The client has no such environment.").WithCure("Choose one of the list.").InField("environmentId")
	}
	s := slug.Make(displayName)
	if s == "" {
		return onboarding.Recorded{}, problem.New(problem.Unprocessable, "invalid_name", "The name holds no letter a to z and no digit, so no slug can be made of it.").WithCure("Add one.").InField("displayName")
	}
	for _, a := range o.Attempts {
		if a.Attempt.Slug == s && a.Attempt.EnvironmentID == environmentID {
			return onboarding.Recorded{Attempt: a.Attempt, Resumed: true, TokenNote: "The token of this attempt still lives, and a live token is never replaced."}, nil
		}
	}
	a := onboarding.Attempt{
		ID: fmt.Sprintf("ob_%d", len(o.Attempts)+1), ClientID: clientID, ClientName: o.clientName(clientID), EnvironmentID: environmentID,
		EnvironmentName: o.Environments[i].Name, Slug: s, DisplayName: displayName, CreatedAt: o.Now(), CreatedBy: p.UserID, CreatedByName: p.Name,
	}
	token := o.token(a, "it_1")
	o.Attempts[a.ID] = onboarding.Status{Attempt: a, CheckedAt: o.Now(), Inventory: Waiting(o.Now()), Tokens: []enrollment.Token{token}}
	return onboarding.Recorded{Attempt: a, Token: &token, Plain: "pit_8Wq2vTn4RkZc6YdHsL1mBfGx9JaPu3Eo"}, nil
}

func (w *World) clientName(id string) string {
	for _, c := range w.Clients {
		if c.ID == id {
			return c.Name
		}
	}
	return ""
}

func (w *World) token(a onboarding.Attempt, id string) enrollment.Token {
	return enrollment.Token{
		ID: id, ClientID: a.ClientID, EnvironmentID: a.EnvironmentID, OnboardingID: a.ID, Prefix: "pit_8Wq2", MaxUses: 25,
		CreatedAt: w.Now(), ExpiresAt: w.Now().Add(24 * time.Hour), First: true,
	}
}

// AddToken implements web.Onboarding.
func (o Onboarding) AddToken(_ context.Context, _ access.Principal, attemptID string) (enrollment.Token, string, error) {
	o.Lock()
	defer o.Unlock()
	status, ok := o.Attempts[attemptID]
	if !ok {
		return enrollment.Token{}, "", notFound("attempt")
	}
	token := o.token(status.Attempt, fmt.Sprintf("it_%d", len(status.Tokens)+1))
	token.Prefix, token.First = "pit_N0th", false
	status.Tokens = append(status.Tokens, token)
	o.Attempts[attemptID] = status
	return token, "pit_N0thingReal4RkZc6YdHsL1mBfGx9Jk", nil
}

// List implements web.Onboarding.
func (o Onboarding) List(_ context.Context, _ access.Principal, _ string, unfinished bool) ([]onboarding.Attempt, error) {
	o.Lock()
	defer o.Unlock()
	var out []onboarding.Attempt
	for _, s := range o.Attempts {
		if !unfinished || s.Attempt.AbandonedAt.IsZero() && s.Attempt.ArchivedAt.IsZero() && s.Attempt.InventoryDoneAt.IsZero() {
			out = append(out, s.Attempt)
		}
	}
	slices.SortFunc(out, func(a, b onboarding.Attempt) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return out, o.Broken
}

// Status implements web.Onboarding.
func (o Onboarding) Status(_ context.Context, _ access.Principal, id string) (onboarding.Status, error) {
	o.Lock()
	defer o.Unlock()
	s, ok := o.Attempts[id]
	if !ok {
		return onboarding.Status{}, notFound("attempt")
	}
	s.Inventory.Gates = slices.Clone(s.Inventory.Gates)
	return s, o.Broken
}

// Abandon implements web.Onboarding.
func (o Onboarding) Abandon(_ context.Context, _ access.Principal, id string) error {
	o.Lock()
	defer o.Unlock()
	s, ok := o.Attempts[id]
	if !ok {
		return notFound("attempt")
	}
	s.Attempt.AbandonedAt = o.Now()
	o.Attempts[id] = s
	return nil
}

// Command implements web.Onboarding.
func (o Onboarding) Command(_ context.Context, _ access.Principal, id, plain string) (onboarding.Command, error) {
	o.Lock()
	defer o.Unlock()
	s, ok := o.Attempts[id]
	if !ok {
		return onboarding.Command{}, notFound("attempt")
	}
	if plain == "" {
		plain = "<install-token>"
	}
	return onboarding.Command{
		Method: "manifest", Check: "kubectl config current-context",
		Text: "kubectl apply -f 'https://console.ostmark.example/install/cluster-agent/base.yaml' &&\n" +
			"kubectl -n proxima-system create secret generic proxima-install-token \\\n  --from-literal=token='" + plain + "' \\\n  --dry-run=client -o yaml | kubectl apply -f - &&\n" +
			"kubectl apply -f 'https://console.ostmark.example/install/cluster-agent/deployment.yaml' &&\n" +
			"kubectl -n proxima-system set env deployment/proxima-cluster-agent \\\n  PROXIMA_CLUSTER_NAME='" + strings.ReplaceAll(s.Attempt.DisplayName, "'", `'\''`) + "' \\\n  PROXIMA_CLUSTER_SLUG='" + s.Attempt.Slug + "' \\\n  PROXIMA_BACKEND_URL='https://console.ostmark.example'",
		Warnings: []string{"The address in this command is a private one. A cluster elsewhere cannot reach it."},
	}, nil
}

// Inventory implements web.Inventory.
type Inventory struct{ *World }

// Clusters implements web.Inventory.
func (i Inventory) Clusters(_ context.Context, p access.Principal, q inventory.ClusterQuery) ([]inventory.Cluster, int, error) {
	i.Lock()
	defer i.Unlock()
	var out []inventory.Cluster
	for _, c := range i.World.Clusters {
		if !p.Allows(access.HostsRead, access.Scope{ClientID: c.ClientID, EnvironmentID: c.EnvironmentID}) ||
			q.ClientID != "" && q.ClientID != c.ClientID || q.EnvironmentID != "" && q.EnvironmentID != c.EnvironmentID ||
			!strings.Contains(strings.ToLower(c.Name+" "+c.Slug), strings.ToLower(q.Text)) {
			continue
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b inventory.Cluster) int { return strings.Compare(a.Name, b.Name) })
	if q.Desc {
		slices.Reverse(out)
	}
	return cut(out, q.Offset, q.Limit), len(out), i.Broken
}

func cut[T any](all []T, offset, limit int) []T {
	offset = min(offset, len(all))
	return all[offset:min(len(all), offset+limit)]
}

// Cluster implements web.Inventory.
func (i Inventory) Cluster(_ context.Context, p access.Principal, id string) (inventory.Cluster, error) {
	i.Lock()
	defer i.Unlock()
	for _, c := range i.World.Clusters {
		if c.ID == id && p.Allows(access.HostsRead, access.Scope{ClientID: c.ClientID, EnvironmentID: c.EnvironmentID}) {
			return c, i.Broken
		}
	}
	return inventory.Cluster{}, notFound("cluster")
}

// Objects implements web.Inventory.
func (i Inventory) Objects(ctx context.Context, p access.Principal, q inventory.Query) (page inventory.Page, err error) {
	if page.Cluster, err = i.Cluster(ctx, p, q.ClusterID); err != nil {
		return page, err
	}
	i.Lock()
	defer i.Unlock()
	var out []inventory.Object
	for _, o := range i.World.Objects[q.ClusterID] {
		if o.Section != q.Section {
			continue
		}
		if !slices.Contains(page.Namespaces, o.Namespace) && o.Namespace != "" {
			page.Namespaces = append(page.Namespaces, o.Namespace)
		}
		if !slices.Contains(page.States, o.State) && o.State != "" {
			page.States = append(page.States, o.State)
		}
		if q.Namespace != "" && q.Namespace != o.Namespace || q.State != "" && q.State != o.State || q.Kind != "" && q.Kind != o.Kind ||
			q.Node != "" && q.Node != o.Node || !strings.Contains(o.Name, q.Text) {
			continue
		}
		out = append(out, o)
	}
	if q.Desc {
		slices.Reverse(out)
	}
	page.Objects, page.Total = cut(out, q.Offset, q.Limit), len(out)
	return page, i.Broken
}

// Object implements web.Inventory.
func (i Inventory) Object(_ context.Context, _ access.Principal, clusterID string, k inventory.Key) (inventory.Object, error) {
	i.Lock()
	defer i.Unlock()
	for _, o := range i.World.Objects[clusterID] {
		if o.Key == k {
			return o, i.Broken
		}
	}
	return inventory.Object{}, notFound("object")
}

// AcceptIdentity implements web.Inventory.
func (i Inventory) AcceptIdentity(_ context.Context, _ access.Principal, clusterID, uid string) (inventory.Cluster, error) {
	i.Lock()
	defer i.Unlock()
	for n, c := range i.World.Clusters {
		if c.ID != clusterID {
			continue
		}
		if c.Conflict.UID != uid {
			return c, problem.New(problem.Conflict, "identity_changed", "Another identity reports by now.").WithCure("Look at both again, then decide.")
		}
		c.UID, c.Conflict = uid, inventory.Conflict{}
		i.World.Clusters[n] = c
		return c, nil
	}
	return inventory.Cluster{}, notFound("cluster")
}

// Removal implements web.Inventory.
func (i Inventory) Removal(ctx context.Context, p access.Principal, clusterID string) (inventory.Removal, error) {
	c, err := i.Cluster(ctx, p, clusterID)
	if err != nil {
		return inventory.Removal{}, err
	}
	i.Lock()
	defer i.Unlock()
	r := inventory.Removal{Cluster: c, Attempt: c.Name, LiveTokens: 1}
	for _, a := range i.Agents {
		if a.ClusterSlug == c.Slug {
			r.Agents = append(r.Agents, a)
		}
	}
	if i.World.Now().Sub(c.HeartbeatAt) < fleet.PresentWithin {
		r.Refusal = problem.New(problem.Conflict, "cluster_alive", "Agent "+c.AgentName+" of this cluster was seen 12s ago: it still reports.").
			WithCure("Uninstall the agent in the cluster, or revoke it under Agents; then remove the cluster.")
	}
	return r, nil
}

// Remove implements web.Inventory.
func (i Inventory) Remove(_ context.Context, _ access.Principal, clusterID string) error {
	i.Lock()
	defer i.Unlock()
	for n, c := range i.World.Clusters {
		switch {
		case c.ID != clusterID:
		case i.World.Now().Sub(c.HeartbeatAt) < fleet.PresentWithin:
			return problem.New(problem.Conflict, "cluster_alive", "Agent "+c.AgentName+" of this cluster was seen 12s ago: it still reports.").
				WithCure("Uninstall the agent in the cluster, or revoke it under Agents; then remove the cluster.")
		default:
			i.World.Clusters = slices.Delete(i.World.Clusters, n, n+1)
			return nil
		}
	}
	return notFound("cluster")
}

// Fleet implements web.Fleet.
type Fleet struct{ *World }

// Agents implements web.Fleet.
func (f Fleet) Agents(_ context.Context, _ access.Principal, q fleet.Filter) ([]fleet.Agent, int, error) {
	f.Lock()
	defer f.Unlock()
	var out []fleet.Agent
	for _, a := range f.World.Agents {
		if q.ExcludeCollectors && a.Type == fleet.TypeCollector || q.Type != "" && q.Type != a.Type || q.ClientID != "" && q.ClientID != a.ClientID ||
			q.ClusterSlug != "" && q.ClusterSlug != a.ClusterSlug || !strings.Contains(a.Name+" "+a.ClusterSlug, q.Text) {
			continue
		}
		out = append(out, a)
	}
	return cut(out, q.Offset, q.Limit), len(out), f.Broken
}

// Agent implements web.Fleet.
func (f Fleet) Agent(_ context.Context, p access.Principal, id string) (fleet.Agent, error) {
	return f.change(p, id, func(int) {})
}

// RotateCredentials implements web.Fleet; an agent without a role is offline.
func (f Fleet) RotateCredentials(_ context.Context, p access.Principal, id string) (fleet.Agent, error) {
	if a, err := f.change(p, id, func(int) {}); err == nil && a.Role == "" {
		return a, problem.New(problem.Unavailable, "agent_offline", "Nobody listens for commands to agent "+a.Name+". It was last heard 3h ago. Nothing was changed.").
			WithCure("Rotate once it is online.")
	}
	return f.change(p, id, func(i int) { f.World.Agents[i].Template, f.World.Agents[i].CredentialIssuedAt = 1, f.Now() })
}

// ReleaseIdentity implements web.Fleet.
func (f Fleet) ReleaseIdentity(_ context.Context, p access.Principal, id string) (fleet.Agent, error) {
	if a, err := f.change(p, id, func(int) {}); err == nil && a.Present(f.Now()) {
		return a, problem.New(problem.Conflict, "agent_alive", "Agent "+a.Name+" was seen 12s ago, so it still holds its identity.").
			WithCure("Stop the agent and wait until it was quiet for five minutes.")
	}
	return f.change(p, id, func(i int) { f.World.Agents[i].PublicKey, f.World.Agents[i].ReleasedAt = "", f.Now() })
}

// Revoke implements web.Fleet.
func (f Fleet) Revoke(_ context.Context, p access.Principal, id string) (fleet.Agent, error) {
	return f.change(p, id, func(i int) { f.World.Agents[i].RevokedAt = f.Now() })
}

// Delete implements web.Fleet.
func (f Fleet) Delete(_ context.Context, p access.Principal, id string) error {
	_, err := f.change(p, id, func(i int) { f.World.Agents = slices.Delete(f.World.Agents, i, i+1) })
	return err
}

func (f Fleet) change(p access.Principal, id string, act func(i int)) (fleet.Agent, error) {
	f.Lock()
	defer f.Unlock()
	for i, a := range f.World.Agents {
		if a.ID == id && p.Allows(access.AgentsRead, a.Scope()) {
			act(i)
			return a, f.Broken
		}
	}
	return fleet.Agent{}, notFound("agent")
}

// Enrollment implements web.Enrollment.
type Enrollment struct{ *World }

// Tokens implements web.Enrollment.
func (e Enrollment) Tokens(_ context.Context, p access.Principal, q enrollment.TokenQuery) ([]enrollment.Token, int, error) {
	e.Lock()
	defer e.Unlock()
	var out []enrollment.Token
	for _, t := range e.World.Tokens {
		if p.Allows(access.HostsWrite, t.Scope()) && (q.ClientID == "" || q.ClientID == t.ClientID) && (q.EnvironmentID == "" || q.EnvironmentID == t.EnvironmentID) &&
			(q.State == "" || q.State == t.State(e.Now())) {
			out = append(out, t)
		}
	}
	return cut(out, q.Offset, q.Limit), len(out), e.Broken
}

// TokenOf implements web.Enrollment.
func (e Enrollment) TokenOf(_ context.Context, p access.Principal, id string) (enrollment.Token, error) {
	e.Lock()
	defer e.Unlock()
	for _, t := range e.World.Tokens {
		if t.ID == id && p.Allows(access.HostsWrite, t.Scope()) {
			return t, e.Broken
		}
	}
	return enrollment.Token{}, notFound("install token")
}

// Mint implements web.Enrollment.
func (e Enrollment) Mint(_ context.Context, p access.Principal, r enrollment.MintRequest) (enrollment.Token, string, error) {
	e.Lock()
	defer e.Unlock()
	if r.ExpiresIn > enrollment.AttemptLifetime && r.AgentType != fleet.TypeNodeMonitor {
		return enrollment.Token{}, "", problem.New(problem.Invalid, "invalid_request", "A life of "+r.ExpiresIn.String()+" is not possible.").WithCure("Ask for less.").InField("expiresInHours")
	}
	if r.ClientID == "" {
		return enrollment.Token{}, "", problem.New(problem.NotFound, "environment_not_found", "There is no such environment.").InField("environmentID")
	}
	t := enrollment.Token{
		ID: fmt.Sprintf("it_%d", len(e.World.Tokens)+1), ClientID: r.ClientID, EnvironmentID: r.EnvironmentID, Name: r.Name, Prefix: "pit_M1nt", AgentType: r.AgentType,
		MaxUses: r.MaxUses, CreatedAt: e.Now(), CreatedBy: p.UserID, CreatedByName: p.Email, ExpiresAt: e.Now().Add(r.ExpiresIn),
	}
	e.World.Tokens = append([]enrollment.Token{t}, e.World.Tokens...)
	return t, "pit_M1ntedHereRkZc6YdHsL1mBfGx9JaP", nil
}

// Revoke implements web.Enrollment.
func (e Enrollment) Revoke(_ context.Context, p access.Principal, id string) error {
	e.Lock()
	defer e.Unlock()
	for i, t := range e.World.Tokens {
		if t.ID == id && p.Allows(access.HostsWrite, t.Scope()) {
			e.World.Tokens[i].RevokedAt = e.Now()
			return e.Broken
		}
	}
	return notFound("install token")
}

// FindingsOf implements web.Enrollment.
func (e Enrollment) FindingsOf(_ context.Context, _ access.Principal, a fleet.Agent) (*enrollment.Findings, error) {
	e.Lock()
	defer e.Unlock()
	if found, ok := e.Findings[a.ID]; ok {
		return &found, e.Broken
	}
	return nil, e.Broken //nolint:nilnil // none is an ordinary answer
}

// ErrBroken stands for a fault whose text must not reach a page.
var ErrBroken = errors.New("database is locked: /var/lib/proxima/console.db")

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // wire types always encode
	}
	return b
}

// Audit implements web.Audit.
type Audit struct{ *World }

// Events implements web.Audit. The cursor is the id of the last row of the page before.
func (a Audit) Events(_ context.Context, p access.Principal, q trail.Query) (trail.Page, error) {
	a.Lock()
	defer a.Unlock()
	if !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To) {
		return trail.Page{}, problem.New(problem.Invalid, "range_invalid", "The range ends before it begins.").WithCure("Give a from that is before to.").InField("from")
	}
	var page trail.Page
	behind := q.Cursor == ""
	for _, e := range a.Audited {
		switch {
		case !p.Allows(access.AuditRead, access.Scope{ClientID: e.ClientID, EnvironmentID: e.EnvironmentID}),
			q.Actor != "" && q.Actor != e.ActorID && !strings.EqualFold(q.Actor, e.ActorName), q.Action != "" && q.Action != e.Action,
			q.ClientID != "" && q.ClientID != e.ClientID, q.EnvironmentID != "" && q.EnvironmentID != e.EnvironmentID,
			q.ResourceType != "" && q.ResourceType != e.ResourceType, q.ResourceID != "" && q.ResourceID != e.ResourceID,
			q.ClusterSlug != "" && q.ClusterSlug != e.Detail["cluster_slug"],
			e.At.Before(q.From), !q.To.IsZero() && !e.At.Before(q.To):
		case !behind:
			behind = e.ID == q.Cursor
		case len(page.Events) == q.Limit:
			page.Next = page.Events[q.Limit-1].ID
			return page, a.Broken
		default:
			page.Events = append(page.Events, e)
		}
	}
	return page, a.Broken
}

// Kept implements web.Audit.
func (a Audit) Kept() time.Duration { return 365 * 24 * time.Hour }
