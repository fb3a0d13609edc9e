package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"prxm.uz/proxima/api/console/client"
	"prxm.uz/proxima/internal/agent/doctor"
	"prxm.uz/proxima/internal/agent/enroll"
	"prxm.uz/proxima/internal/agent/identity"
	"prxm.uz/proxima/internal/clock"
)

const (
	retryBase = 2 * time.Second
	retryMost = 2 * time.Minute
)

// bind returns the agent's identity: the one on disk, or after an enrolment a new one. It retries what
// may pass, and returns what a person must put right.
func (a *agent) bind(ctx context.Context) (identity.State, error) {
	state, err := a.store.Load(AgentType)
	switch {
	case errors.Is(err, identity.ErrNone):
		a.token, err = enroll.CheckToken(a.cfg.InstallToken.Reveal())
		if err != nil {
			return state, err
		}
		if state, err = identity.NewPending(AgentType, a.request.Name, a.request.ClusterSlug); err != nil {
			return state, err
		}
	case err != nil:
		return state, err
	case state.Enrolled():
		a.token, _ = enroll.CheckToken(a.cfg.InstallToken.Reveal()) // only for findings
		a.compare(ctx, state)
		return state, nil
	default:
		if a.token, err = enroll.CheckToken(a.cfg.InstallToken.Reveal()); err != nil {
			return state, err
		}
		state.Name, state.ClusterSlug = a.request.Name, a.request.ClusterSlug
	}
	// The key must be on disk before console hears of it, or a lost answer would lose the identity.
	if err := a.store.Save(state); err != nil {
		return state, err
	}
	if a.api, err = a.client(); err != nil {
		return state, err
	}
	return a.enroll(ctx, state)
}

// compare says aloud where the identity on disk is not what is configured.
func (a *agent) compare(ctx context.Context, state identity.State) {
	if state.ClusterSlug != a.request.ClusterSlug {
		a.log.ErrorContext(ctx, "this agent enrolled for another cluster slug; console drops what it publishes",
			"enrolled_slug", state.ClusterSlug, "configured_slug", a.request.ClusterSlug,
			"cure", "set PROXIMA_CLUSTER_SLUG back to the enrolled slug, or release the identity in console and start with an empty data directory")
	}
	if state.Name != a.request.Name {
		a.log.WarnContext(ctx, "the agent keeps the name that it enrolled under", "enrolled_name", state.Name, "configured_name", a.request.Name)
	}
}

func (a *agent) enroll(ctx context.Context, state identity.State) (identity.State, error) {
	key, err := state.Key()
	if err != nil {
		return state, err
	}
	defer key.Wipe()
	for failures := 1; ; failures++ {
		a.examine(ctx)
		a.ready.set(false, "enrolling with "+string(a.cfg.BackendURL))
		answer, err := a.api.Enroll(ctx, a.request, key)
		if err == nil {
			return a.enrolled(ctx, state, answer)
		}
		if ctx.Err() != nil {
			return state, ctx.Err()
		}
		wait := clock.Backoff(failures, retryBase, retryMost)
		if refused, ok := enroll.AsRefusal(err); ok {
			if refused.Permanent() {
				return state, fmt.Errorf("enrolment: %w", err)
			}
			wait = max(wait, refused.RetryAfter)
		}
		a.ready.set(false, "not enrolled: "+err.Error())
		a.log.WarnContext(ctx, "enrolment did not succeed, trying again", "dependency", dependency(err), "reason", err.Error(), "wait", wait.Round(time.Millisecond).String())
		if err := a.clock.Sleep(ctx, wait); err != nil {
			return state, err
		}
	}
}

func dependency(err error) string {
	if u, ok := errors.AsType[*enroll.Unreachable](err); ok {
		return u.Dependency
	}
	return "console"
}

func (a *agent) enrolled(ctx context.Context, state identity.State, answer client.EnrollResponse) (identity.State, error) {
	now := a.clock.Now().UTC()
	state.AgentID, state.ClientID = answer.AgentID, answer.ClientID
	state.Environment = identity.Environment{ID: answer.EnvironmentID, Name: answer.EnvironmentName}
	state.Credential = credential(answer.Credential, now)
	state.NATSURLs, state.EnrolledAt = answer.NatsURLs, now
	if answer.NatsCA != nil {
		state.NATSCA = *answer.NatsCA
	}
	if err := a.store.Save(state); err != nil {
		return state, err
	}
	a.log.InfoContext(ctx, "enrolled", "agent_id", state.AgentID, "name", state.Name, "cluster_slug", state.ClusterSlug, "environment", state.Environment.Name, "resumed", answer.Resumed)
	return state, nil
}

func credential(c client.Credential, now time.Time) identity.Credential {
	return identity.Credential{JWT: c.Jwt, Template: c.Template, IssuedAt: c.IssuedAt, ExpiresAt: c.ExpiresAt, ReceivedAt: now}
}

// examine makes the self-check, logs what is wrong and posts it where it changed.
func (a *agent) examine(ctx context.Context) {
	findings := doctor.Run(ctx, a.subject())
	if ctx.Err() != nil || doctor.Same(findings, a.findings) {
		return
	}
	for _, f := range findings {
		if f.Status == doctor.Failed || f.Status == doctor.Warning {
			a.log.WarnContext(ctx, "self-check", "check", f.Check, "status", string(f.Status), "finding", f.Message, "cure", f.Cure)
		}
	}
	if !a.api.HasToken() {
		return
	}
	if err := a.api.PostFindings(ctx, a.request, wireFindings(findings)); err != nil {
		a.log.DebugContext(ctx, "findings were not posted", "reason", err.Error())
		return
	}
	a.findings = findings
}

func wireFindings(findings []doctor.Finding) []client.Finding {
	out := make([]client.Finding, 0, len(findings))
	for i := range findings[:min(len(findings), 40)] {
		f := &findings[i]
		item := client.Finding{Check: f.Check, Status: client.FindingStatus(f.Status), Message: cut(f.Message, 1024), At: &f.At}
		if f.Cure != "" {
			item.Cure = new(cut(f.Cure, 1024))
		}
		out = append(out, item)
	}
	return out
}

// cut bounds a text to limit bytes without tearing a character apart.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && s[limit]&0xC0 == 0x80 {
		limit--
	}
	return s[:limit]
}
