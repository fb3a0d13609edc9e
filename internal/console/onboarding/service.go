package onboarding

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/id"
	"prxm.uz/proxima/internal/console/install"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/slug"
)

// longestName is how many characters a cluster's display name may have.
const longestName = 100

// Environments answers where an environment lies; enrollment.Store has it.
type Environments interface {
	// Environment answers an environment's client and its name, enrollment.ErrNotFound if none.
	Environment(ctx context.Context, environmentID string) (access.Scope, string, error)
}

// Resolver looks a host up; *net.Resolver has it.
type Resolver interface {
	// LookupNetIP is that of net.Resolver.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config is what a Service needs; every field is.
type Config struct {
	Store        Store
	Environments Environments
	Clock        clock.Clock
	Logger       *slog.Logger
	// PublicURL is what commands print as the backend's URL.
	PublicURL string
	// SyncInterval is console's own PROXIMA_K8S_SYNC_INTERVAL.
	SyncInterval time.Duration
	// Resolver looks the public URL's host up, for the warnings beside a command.
	Resolver Resolver
}

// Service records attempts and measures them. It is safe for concurrent use.
type Service struct{ Config }

// New makes a Service.
func New(c Config) *Service {
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	return &Service{Config: c}
}

// Recorded answers a recording.
type Recorded struct {
	Attempt Attempt
	// Resumed is true where the attempt stood already.
	Resumed bool
	// Token and Plain are set where this very call minted a token; TokenNote says why where not.
	Token     *enrollment.Token
	Plain     string
	TokenNote string
	// Notes say what was taken otherwise than asked for.
	Notes []string
}

// Record makes an attempt and mints its token, or comes back to the attempt that stands on the same
// environment and slug. A token that lives or was used is never replaced; one that is a dead end is
// . The caller needs hosts:write on the environment.
func (s *Service) Record(ctx context.Context, p access.Principal, clientID, environmentID, displayName string) (Recorded, error) {
	scope, environment, err := s.Environments.Environment(ctx, environmentID)
	switch {
	case errors.Is(err, enrollment.ErrNotFound), err == nil && scope.ClientID != clientID:
		return Recorded{}, unknownEnvironment(environmentID)
	case err != nil:
		return Recorded{}, fmt.Errorf("find the environment: %w", err)
	case !p.Allows(access.HostsWrite, scope):
		if !p.Allows(access.HostsRead, scope) {
			return Recorded{}, unknownEnvironment(environmentID)
		}
		return Recorded{}, access.Refuse(access.HostsWrite)
	}
	name := strings.TrimSpace(displayName)
	derived, err := derive(name)
	if err != nil {
		return Recorded{}, err
	}
	var out Recorded
	record := func() error {
		return s.Store.InTx(ctx, func(tx Tx) error {
			out = Recorded{}
			return s.record(ctx, tx, p, scope, environment, derived, name, &out)
		})
	}
	if err = record(); errors.Is(err, ErrTaken) { // another request was faster: come back to its attempt
		err = record()
	}
	if err != nil {
		return Recorded{}, fmt.Errorf("record the attempt: %w", err)
	}
	return out, nil
}

// derive checks a name and makes its slug.
func derive(name string) (string, error) {
	refuse := func(message, cure string) error {
		return problem.New(problem.Unprocessable, "name_invalid", message).WithCure(cure).InField("displayName")
	}
	switch {
	case name == "":
		return "", refuse("The cluster has no name.", "Type one; its slug is made of the letters a to z and the digits in it.")
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return "", refuse("The name is not text.", "Type it anew.")
	case utf8.RuneCountInString(name) > longestName:
		return "", refuse(fmt.Sprintf("The name has %d characters.", utf8.RuneCountInString(name)), fmt.Sprintf("Choose one of at most %d.", longestName))
	}
	if err := install.CheckName(name); err != nil {
		return "", refuse("The name cannot be part of a command that is pasted into a terminal: "+err.Error()+".", "Choose a name without it.")
	}
	if r, found := access.Invisible(name); found {
		return "", refuse(fmt.Sprintf("The name %q holds %U, which cannot be seen.", name, r), "Remove it.")
	}
	derived := slug.Make(name)
	if derived == "" {
		return "", refuse(fmt.Sprintf("No slug can be made of the name %q: it holds neither a letter a to z nor a digit.", name), "Add one, as in \"prod-1\".")
	}
	return derived, nil
}

func (s *Service) record(ctx context.Context, tx Tx, p access.Principal, scope access.Scope, environment, derived, name string, out *Recorded) error {
	now := s.Clock.Now()
	a, err := tx.AttemptBySlug(ctx, scope.EnvironmentID, derived)
	switch {
	case errors.Is(err, ErrNotFound):
		a = Attempt{
			ID: id.New("onb"), ClientID: scope.ClientID, EnvironmentID: scope.EnvironmentID, Slug: derived, DisplayName: name,
			CreatedAt: now, CreatedBy: p.UserID,
		}
		if err := tx.InsertAttempt(ctx, a); err != nil {
			return err
		}
		if err := tx.AppendAudit(ctx, event(a, p, now, audit.OnboardingRecorded)); err != nil {
			return err
		}
		if a, err = tx.AttemptBySlug(ctx, scope.EnvironmentID, derived); err != nil { // with the names
			return err
		}
	case err != nil:
		return err
	default:
		out.Resumed = true
	}
	if out.Resumed && !a.AbandonedAt.IsZero() {
		if err := tx.SetAbandoned(ctx, a.ID, time.Time{}); err != nil {
			return err
		}
		if err := tx.AppendAudit(ctx, event(a, p, now, audit.OnboardingResumed)); err != nil {
			return err
		}
		a.AbandonedAt = time.Time{}
		out.Notes = append(out.Notes, "This attempt was abandoned; it is open again, with what was measured before.")
	}
	if out.Resumed && a.DisplayName != name {
		out.Notes = append(out.Notes, fmt.Sprintf("The attempt on slug %s in %s is recorded as %q; that name stays.", derived, environment, a.DisplayName))
	}
	out.Attempt = a
	return s.firstToken(ctx, tx, p, a, now, out)
}

// firstToken mints where the attempt has no token, or none that still leads anywhere.
func (s *Service) firstToken(ctx context.Context, tx Tx, p access.Principal, a Attempt, now time.Time, out *Recorded) error {
	tokens, err := tx.TokensOfOnboarding(ctx, a.ID)
	if err != nil {
		return err
	}
	if note := keep(tokens, now); note != "" {
		out.TokenNote = note
		return nil
	}
	t, plain := enrollment.NewToken(a.Scope(), a.ID, p.UserID, now)
	t.First = true
	if err := t.Store(ctx, tx, plain, p); err != nil {
		return err
	}
	if len(tokens) > 0 {
		out.Notes = append(out.Notes, "No collector had enrolled with the tokens before, and none of them can be used any more; this one takes their place.")
	}
	out.Token, out.Plain = &t, plain
	return nil
}

// keep says why no token is minted, or "" where one is due: there is none, or all are dead ends.
func keep(tokens []enrollment.Token, now time.Time) string {
	for _, t := range tokens {
		if t.CollectorsEnrolled > 0 {
			return fmt.Sprintf("A collector has enrolled with the token %s…, so it is not replaced. Add a token where another replica has to enroll.", t.Prefix)
		}
	}
	for _, t := range tokens {
		if (t.AgentType == "" || t.AgentType == fleet.TypeCollector) && t.State(now) == enrollment.StateLive {
			return fmt.Sprintf("The token %s… still admits agents, so it is not replaced; its plain value was shown once. Where it is lost, add a token.", t.Prefix)
		}
	}
	for _, t := range tokens {
		if t.Gone() > 0 {
			return fmt.Sprintf("An agent enrolled with the token %s… and was deleted or enrolled anew since, so the token is not replaced. Add a token where an agent has to enroll.", t.Prefix)
		}
	}
	return ""
}

// AddToken mints a further token for an attempt, at any time, and answers its plain value once (X-14,
// The caller needs hosts:write on the environment.
func (s *Service) AddToken(ctx context.Context, p access.Principal, attemptID string) (enrollment.Token, string, error) {
	a, err := s.attempt(ctx, p, attemptID, access.HostsWrite)
	if err != nil {
		return enrollment.Token{}, "", err
	}
	if !a.ArchivedAt.IsZero() {
		return enrollment.Token{}, "", archived(a)
	}
	t, plain := enrollment.NewToken(a.Scope(), a.ID, p.UserID, s.Clock.Now())
	if err := s.Store.InTx(ctx, func(tx Tx) error { return t.Store(ctx, tx, plain, p) }); err != nil {
		return enrollment.Token{}, "", fmt.Errorf("add a token: %w", err)
	}
	return t, plain, nil
}

// List lists the attempts of a client that the caller may read, newest first, those of every client
// where clientID is "". Their verdicts are cached ones.
func (s *Service) List(ctx context.Context, p access.Principal, clientID string, unfinished bool) ([]Attempt, error) {
	reach := p.Reach(access.HostsRead)
	attempts, err := s.Store.Attempts(ctx, clientID, reach, unfinished)
	if err != nil {
		return nil, fmt.Errorf("list attempts: %w", err)
	}
	return attempts, nil
}

// Abandon stamps an attempt abandoned and touches nothing else. Abandoning twice is no error.
func (s *Service) Abandon(ctx context.Context, p access.Principal, attemptID string) error {
	a, err := s.attempt(ctx, p, attemptID, access.HostsWrite)
	switch {
	case err != nil:
		return err
	case !a.ArchivedAt.IsZero():
		return archived(a)
	case !a.AbandonedAt.IsZero():
		return nil
	}
	now := s.Clock.Now()
	err = s.Store.InTx(ctx, func(tx Tx) error {
		if err := tx.SetAbandoned(ctx, a.ID, now); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, event(a, p, now, audit.OnboardingAbandoned))
	})
	if err != nil {
		return fmt.Errorf("abandon the attempt: %w", err)
	}
	return nil
}

// attempt reads an attempt for a caller who has perm on it. Whoever may not read it is told that there
// is none.
func (s *Service) attempt(ctx context.Context, p access.Principal, attemptID string, perm access.Permission) (Attempt, error) {
	a, err := s.Store.Attempt(ctx, attemptID)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !p.Allows(access.HostsRead, a.Scope()):
		return Attempt{}, unknownAttempt(attemptID)
	case err != nil:
		return Attempt{}, fmt.Errorf("read the attempt: %w", err)
	case !p.Allows(perm, a.Scope()):
		return Attempt{}, access.Refuse(perm)
	}
	return a, nil
}

// Status is one measurement of an attempt.
type Status struct {
	Attempt   Attempt
	CheckedAt time.Time
	Inventory gate.Track
	// ClusterID is the cluster on the attempt's slug, "" if none was collected yet.
	ClusterID string
	// Tokens are those of the attempt, newest first.
	Tokens []enrollment.Token
}

func event(a Attempt, p access.Principal, at time.Time, action audit.Action) audit.Event {
	return p.Did(at, action).On("onboarding", a.ID, a.Slug).In(a.ClientID, a.EnvironmentID).With("display_name", a.DisplayName).With("cluster_slug", a.Slug)
}

func unknownAttempt(attemptID string) error {
	return problem.New(problem.NotFound, "onboarding_not_found", fmt.Sprintf("There is no attempt %q.", attemptID)).
		WithCure("Check the id; if it is right, you have no role where the attempt lives.")
}

func unknownEnvironment(environmentID string) error {
	return problem.New(problem.NotFound, "environment_not_found", fmt.Sprintf("There is no environment %q of this client.", environmentID)).
		WithCure("Choose one of the client's environments.").InField("environmentID")
}

func archived(a Attempt) error {
	return problem.New(problem.Conflict, "onboarding_archived", fmt.Sprintf("The attempt on %s is archived: its cluster was removed.", a.Slug)).
		WithCure("Record the cluster again; the slug is free.")
}
