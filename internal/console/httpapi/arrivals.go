package httpapi

import (
	"context"
	"time"

	api "prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/problem"
)

// CreateChallenge implements the operation createChallenge.
func (s *server) CreateChallenge(ctx context.Context, _ api.CreateChallengeRequestObject) (api.CreateChallengeResponseObject, error) {
	challenge, expires, err := s.Enrollment.Challenge(ctx)
	if err != nil {
		return nil, err
	}
	return api.CreateChallenge200JSONResponse{Challenge: challenge, ExpiresAt: expires.UTC()}, nil
}

// EnrollAgent implements the operation enrollAgent.
func (s *server) EnrollAgent(ctx context.Context, r api.EnrollAgentRequestObject) (api.EnrollAgentResponseObject, error) {
	c := callerOf(ctx)
	e, err := s.Enrollment.Enroll(ctx, c.installToken, enrollment.Request{
		AgentType: fleet.Type(r.Body.AgentType), Name: r.Body.Name, ClusterSlug: given(r.Body.ClusterSlug),
		ClusterName: given(r.Body.ClusterName), Version: r.Body.Version, Capability: r.Body.Capability,
		PublicKey: r.Body.PublicKey, Challenge: r.Body.Challenge, Signature: r.Body.Signature,
	}, c.remoteAddr)
	if err != nil {
		return nil, err
	}
	return api.EnrollAgent200JSONResponse{
		AgentID: e.Agent.ID, ClientID: e.Agent.ClientID, EnvironmentID: e.Agent.EnvironmentID, EnvironmentName: e.EnvironmentName,
		Name: e.Agent.Name, ClusterSlug: e.Agent.ClusterSlug, Resumed: e.Resumed, Credential: credential(e.Credential),
		NatsURLs: each(e.NATSURLs, same), NatsCA: text(e.NATSCA),
	}, nil
}

// PostFindings implements the operation postFindings.
func (s *server) PostFindings(ctx context.Context, r api.PostFindingsRequestObject) (api.PostFindingsResponseObject, error) {
	return api.PostFindings204Response{}, s.Enrollment.PostFindings(ctx, callerOf(ctx).installToken, enrollment.FindingsPost{
		AgentType: fleet.Type(r.Body.AgentType), Name: r.Body.Name, ClusterSlug: given(r.Body.ClusterSlug), Version: r.Body.Version,
		Items: each(r.Body.Findings, func(f api.Finding) enrollment.Finding {
			return enrollment.Finding{Check: f.Check, Status: string(f.Status), Message: f.Message, Cure: given(f.Cure), At: given(f.At)}
		}),
	})
}

// RenewCredential implements the operation renewCredential.
func (s *server) RenewCredential(ctx context.Context, r api.RenewCredentialRequestObject) (api.RenewCredentialResponseObject, error) {
	c, err := s.Enrollment.Renew(ctx, r.AgentID, enrollment.RenewRequest{
		PublicKey: r.Body.PublicKey, Challenge: r.Body.Challenge, Signature: r.Body.Signature, Version: r.Body.Version,
	}, callerOf(ctx).remoteAddr)
	if err != nil {
		return nil, err
	}
	return api.RenewCredential200JSONResponse(credential(c)), nil
}

// ListInstallTokens implements the operation listInstallTokens.
func (s *server) ListInstallTokens(ctx context.Context, r api.ListInstallTokensRequestObject) (api.ListInstallTokensResponseObject, error) {
	tokens, total, err := s.Enrollment.Tokens(ctx, who(ctx), enrollment.TokenQuery{
		ClientID: r.ClientID, EnvironmentID: given(r.Params.Environment), State: string(given(r.Params.State)),
		Limit: limit(r.Params.Limit), Offset: given(r.Params.Offset),
	})
	if err != nil {
		return nil, err
	}
	now := s.Clock.Now()
	return api.ListInstallTokens200JSONResponse{
		Items: each(tokens, func(t enrollment.Token) api.InstallToken { return installToken(t, now) }), Total: total,
	}, nil
}

// CreateInstallToken implements the operation createInstallToken; absent fields take the defaults of
// the contract.
func (s *server) CreateInstallToken(ctx context.Context, r api.CreateInstallTokenRequestObject) (api.CreateInstallTokenResponseObject, error) {
	in := r.Body
	if in.EnvironmentID == nil && in.OnboardingID == nil {
		return nil, problem.New(problem.Invalid, "request_invalid", "The token needs an environment or an attempt.").
			WithCure("Send environmentID or onboardingID.").InField("environmentID")
	}
	mint := enrollment.MintRequest{
		ClientID: r.ClientID, EnvironmentID: given(in.EnvironmentID), OnboardingID: given(in.OnboardingID), Name: given(in.Name),
		AgentType: fleet.Type(given(in.AgentType)), MaxUses: 1, ExpiresIn: 24 * time.Hour,
	}
	if in.MaxUses != nil {
		mint.MaxUses = *in.MaxUses
	}
	if given(in.Unlimited) {
		if in.MaxUses != nil {
			return nil, problem.New(problem.Invalid, "request_invalid", "The token cannot be unlimited and have a number of uses.").
				WithCure("Send either unlimited or maxUses.").InField("unlimited")
		}
		mint.MaxUses = 0
	}
	if in.ExpiresInHours != nil {
		mint.ExpiresIn = time.Duration(*in.ExpiresInHours) * time.Hour
	}
	t, plain, err := s.Enrollment.Mint(ctx, who(ctx), mint)
	if err != nil {
		return nil, err
	}
	return api.CreateInstallToken201JSONResponse{Token: plain, InstallToken: installToken(t, s.Clock.Now())}, nil
}

// RevokeInstallToken implements the operation revokeInstallToken.
func (s *server) RevokeInstallToken(ctx context.Context, r api.RevokeInstallTokenRequestObject) (api.RevokeInstallTokenResponseObject, error) {
	return api.RevokeInstallToken204Response{}, s.Enrollment.Revoke(ctx, who(ctx), r.TokenID)
}

// RecordOnboarding implements the operation recordOnboarding.
func (s *server) RecordOnboarding(ctx context.Context, r api.RecordOnboardingRequestObject) (api.RecordOnboardingResponseObject, error) {
	p := who(ctx)
	rec, err := s.Onboarding.Record(ctx, p, r.ClientID, r.Body.EnvironmentID, r.Body.DisplayName)
	if err != nil {
		return nil, err
	}
	c, err := s.Onboarding.Command(ctx, p, rec.Attempt.ID, rec.Plain)
	if err != nil {
		return nil, err
	}
	out := api.OnboardingRecorded{
		Onboarding: attempt(rec.Attempt), Resumed: rec.Resumed, InstallToken: text(rec.Plain), InstallTokenNote: rec.TokenNote, Command: command(c),
	}
	if len(rec.Notes) > 0 {
		out.Notes = &rec.Notes
	}
	if rec.Token != nil {
		out.Token = new(installToken(*rec.Token, s.Clock.Now()))
	}
	if rec.Resumed {
		return api.RecordOnboarding200JSONResponse(out), nil
	}
	return api.RecordOnboarding201JSONResponse(out), nil
}

// ListOnboardings implements the operation listOnboardings.
func (s *server) ListOnboardings(ctx context.Context, r api.ListOnboardingsRequestObject) (api.ListOnboardingsResponseObject, error) {
	attempts, err := s.Onboarding.List(ctx, who(ctx), r.ClientID, given(r.Params.Unfinished))
	if err != nil {
		return nil, err
	}
	return api.ListOnboardings200JSONResponse{Items: each(attempts, attempt)}, nil
}

// GetOnboardingStatus implements the operation getOnboardingStatus. The access track has no gates until
// this console measures it.
func (s *server) GetOnboardingStatus(ctx context.Context, r api.GetOnboardingStatusRequestObject) (api.GetOnboardingStatusResponseObject, error) {
	st, err := s.Onboarding.Status(ctx, who(ctx), r.OnboardingID)
	if err != nil {
		return nil, err
	}
	return api.GetOnboardingStatus200JSONResponse(status(st)), nil
}

func status(st onboarding.Status) api.OnboardingStatus {
	return api.OnboardingStatus{
		Onboarding: attempt(st.Attempt), CheckedAt: st.CheckedAt.UTC(), ClusterID: text(st.ClusterID),
		Inventory: track(st.Inventory, st.Attempt.InventoryDoneAt), Access: api.Track{Gates: []api.Gate{}},
	}
}

// GetInstallCommand implements the operation getInstallCommand: never with a token.
func (s *server) GetInstallCommand(ctx context.Context, r api.GetInstallCommandRequestObject) (api.GetInstallCommandResponseObject, error) {
	c, err := s.Onboarding.Command(ctx, who(ctx), r.OnboardingID, "")
	if err != nil {
		return nil, err
	}
	return api.GetInstallCommand200JSONResponse(command(c)), nil
}

// AbandonOnboarding implements the operation abandonOnboarding.
func (s *server) AbandonOnboarding(ctx context.Context, r api.AbandonOnboardingRequestObject) (api.AbandonOnboardingResponseObject, error) {
	return api.AbandonOnboarding204Response{}, s.Onboarding.Abandon(ctx, who(ctx), r.OnboardingID)
}
