package enrollment

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/id"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/slug"
	"prxm.uz/proxima/internal/version"
	"prxm.uz/proxima/internal/wire"
)

// Credential is what lets an agent connect to NATS: a JWT bound to its key.
type Credential struct {
	JWT       string
	Template  int
	IssuedAt  time.Time
	ExpiresAt time.Time
}

// Authority issues credentials and challenges; package natsauth has it.
type Authority interface {
	// IssueCredential makes a credential with the literal permissions of the present template.
	IssueCredential(agentID, publicKey string, now time.Time) (Credential, error)
	// NewChallenge makes a challenge that CheckChallenge takes until expiresAt.
	NewChallenge(now time.Time) (challenge string, expiresAt time.Time, err error)
	// CheckChallenge refuses a challenge that is not of this console or has expired.
	CheckChallenge(challenge string, now time.Time) error
	// VerifyProof checks the signature of the key over the text.
	VerifyProof(publicKey, signature string, text []byte) error
}

// Config is what a Service needs.
type Config struct {
	Store     Store
	Authority Authority
	Fleet     FleetStore
	Clock     clock.Clock
	Logger    *slog.Logger
	// NATSURLs are handed to agents in order of preference; NATSCA is the PEM behind them, or "".
	NATSURLs []string
	NATSCA   string
}

// FleetStore is what renewal needs of the stored agents.
type FleetStore interface {
	// Agent reads an agent; fleet.ErrNotFound if none.
	Agent(ctx context.Context, id string) (fleet.Agent, error)
	// RenewCredential notes the template and the times of a credential that was issued.
	RenewCredential(ctx context.Context, id string, template int, issuedAt, expiresAt time.Time) error
}

// Service decides who gets in. It is safe for concurrent use.
type Service struct{ Config }

// New makes a Service.
func New(c Config) *Service { return &Service{Config: c} }

// Request is a stranger's request to become an agent.
type Request struct {
	AgentType   fleet.Type
	Name        string
	ClusterSlug string // "" for host agents
	ClusterName string
	Version     string
	Capability  int
	PublicKey   string
	Challenge   string
	Signature   string
}

// Response tells an agent who it is.
type Response struct {
	Agent           fleet.Agent
	EnvironmentName string
	// Resumed means that the same key enrolled before, and got the same identity back.
	Resumed    bool
	Credential Credential
	NATSURLs   []string
	NATSCA     string
}

// FindingsPost is a self-check as an agent sends it.
type FindingsPost struct {
	AgentType   fleet.Type
	Name        string
	ClusterSlug string
	Version     string
	Items       []Finding
}

// RenewRequest proves that an agent holds its key, and asks for a fresh credential.
type RenewRequest struct {
	PublicKey string
	Challenge string
	Signature string
	Version   string
}

// Challenge makes a challenge for an agent to sign; it is valid for five minutes on every replica.
func (s *Service) Challenge(context.Context) (string, time.Time, error) {
	return s.Authority.NewChallenge(s.Clock.Now())
}

// Enroll makes the bearer of a token an agent, or refuses with a problem of its own for each cause. A
// refusal that presented a known token is kept on that token, and spends no use.
func (s *Service) Enroll(ctx context.Context, token string, req Request, remoteAddr string) (Response, error) {
	t, err := s.tokenOf(ctx, token)
	if err != nil {
		return Response{}, err
	}
	if err := checkForm(req); err != nil {
		return Response{}, err // nothing of it is fit to be stored
	}
	var resp Response
	if err = s.checkProof(req); err == nil {
		resp, err = s.admit(ctx, hashToken(token), req, remoteAddr)
	}
	if err == nil {
		s.Logger.InfoContext(ctx, "agent enrolled", "agent", resp.Agent.ID, "name", req.Name, "type", string(req.AgentType), "cluster_slug", req.ClusterSlug, "resumed", resp.Resumed)
		return resp, nil
	}
	if p, ok := errors.AsType[*problem.Error](err); ok && p.Kind != problem.Unavailable {
		s.Logger.WarnContext(ctx, "enrolment refused", "code", p.Code, "name", req.Name, "type", string(req.AgentType), "cluster_slug", req.ClusterSlug, "token", t.Prefix)
		refusal := Refusal{At: s.Clock.Now(), Code: p.Code, AgentName: req.Name, AgentType: req.AgentType, ClusterSlug: req.ClusterSlug, Version: req.Version, RemoteAddr: remoteAddr}
		if rerr := s.Store.RecordRefusal(ctx, t.ID, refusal); rerr != nil {
			s.Logger.ErrorContext(ctx, "a refusal could not be stored", "error", rerr)
		}
	}
	return Response{}, err
}

// tokenOf finds a token by its plain value. White space around it is a slip of the hand (tok-01).
func (s *Service) tokenOf(ctx context.Context, plain string) (Token, error) {
	if strings.TrimSpace(plain) == "" {
		return Token{}, refuseUnknown()
	}
	t, err := s.Store.TokenByHash(ctx, hashToken(plain))
	switch {
	case errors.Is(err, ErrNotFound):
		return Token{}, refuseUnknown()
	case err != nil:
		return Token{}, fmt.Errorf("find the install token: %w", err)
	}
	return t, nil
}

func hashToken(plain string) []byte {
	sum := sha256.Sum256([]byte(strings.TrimSpace(plain)))
	return sum[:]
}

// longestVersion bounds the version that an agent names, in bytes.
const longestVersion = 64

// printable tells whether a text can be stored and shown: UTF-8 without control characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// checkForm checks the form of a request.
func checkForm(req Request) error {
	switch {
	case !slices.Contains(fleet.Types(), req.AgentType):
		return invalid("agentType", fmt.Sprintf("There is no type of agent %q; the types are %q.", req.AgentType, fleet.Types()),
			"Run the printed command again: it names the image of this Console's version, whose agent is of a type that Console knows.")
	case req.Name == "" || len(req.Name) > wire.MaxName:
		return invalid("name", fmt.Sprintf("The agent's name has %d bytes; 1 to %d are allowed.", len(req.Name), wire.MaxName),
			"Give the agent such a name, which a pod takes from POD_NAME or the cluster slug.")
	case !printable(req.Name):
		return invalid("name", fmt.Sprintf("The agent's name %q is not text without control characters.", req.Name),
			"Give the agent a name without them, which a pod takes from POD_NAME or the cluster slug.")
	case len(req.Version) > longestVersion || !printable(req.Version):
		return invalid("version", fmt.Sprintf("The agent's version has %d bytes or is not text; up to %d are allowed.", len(req.Version), longestVersion),
			"Run the printed command again: it names the image of this Console's version.")
	case req.AgentType == fleet.TypeHost && req.ClusterSlug != "":
		return invalid("clusterSlug", "A host agent belongs to no cluster.", "Leave PROXIMA_CLUSTER_SLUG out.")
	case req.AgentType != fleet.TypeHost && !slug.Valid(req.ClusterSlug):
		return invalid("clusterSlug", fmt.Sprintf("The cluster slug %q is not one: 1 to 63 lower case letters, digits and hyphens, none at the ends.", req.ClusterSlug),
			"Set PROXIMA_CLUSTER_SLUG to the slug that Console shows, as the printed command does.")
	}
	return nil
}

func invalid(field, message, cure string) error {
	return problem.New(problem.Invalid, CodeInvalidRequest, message).WithCure(cure).InField(field)
}

// checkProof checks that the sender holds the key.
func (s *Service) checkProof(req Request) error {
	if err := s.Authority.CheckChallenge(req.Challenge, s.Clock.Now()); err != nil {
		return refuseProof(err)
	}
	if err := s.Authority.VerifyProof(req.PublicKey, req.Signature, wire.EnrollProof(req.Challenge, string(req.AgentType), req.ClusterSlug, req.Name)); err != nil {
		return refuseProof(err)
	}
	return nil
}

// admit lets a stranger in or refuses; everything in one transaction.
func (s *Service) admit(ctx context.Context, hash []byte, req Request, remoteAddr string) (Response, error) {
	if !version.AtLeast(req.Version, MinimumVersion) {
		return Response{}, refuseVersion(req)
	}
	var resp Response
	err := s.Store.InTx(ctx, func(tx Tx) error {
		now := s.Clock.Now()
		t, err := tx.TokenByHash(ctx, hash)
		if err != nil {
			return fmt.Errorf("find the install token: %w", err)
		}
		holder, err := tx.AgentByName(ctx, t.EnvironmentID, req.AgentType, req.ClusterSlug, req.Name)
		switch {
		case errors.Is(err, ErrNotFound):
			holder = fleet.Agent{}
		case err != nil:
			return fmt.Errorf("find the agent: %w", err)
		case !holder.RevokedAt.IsZero():
			return refuseRevoked(holder.Name)
		case now.Before(holder.SuspendedUntil()):
			return refuseSuspended(holder, now)
		case holder.PublicKey == req.PublicKey:
			resp, err = s.giveBack(ctx, tx, t, holder, req, now)
			return err
		}
		if err := s.spend(ctx, tx, t, holder, req, now); err != nil {
			return err
		}
		resp, err = s.newIdentity(ctx, tx, t, holder, req, now)
		if err != nil {
			return err
		}
		return tx.AppendAudit(ctx, enrolled(resp.Agent, t, now, remoteAddr))
	})
	if err != nil {
		return Response{}, err
	}
	if _, resp.EnvironmentName, err = s.Store.Environment(ctx, resp.Agent.EnvironmentID); err != nil {
		return Response{}, fmt.Errorf("read the environment: %w", err)
	}
	resp.NATSURLs, resp.NATSCA = s.NATSURLs, s.NATSCA
	return resp, nil
}

// giveBack answers an agent that holds its key already: a retry after a lost answer. It spends no use.
func (s *Service) giveBack(ctx context.Context, tx Tx, t Token, holder fleet.Agent, req Request, now time.Time) (resp Response, err error) {
	resp.Resumed = true
	holder.Version, holder.Capability = req.Version, req.Capability
	if resp.Agent, resp.Credential, err = s.bind(ctx, tx, holder, now); err != nil {
		return Response{}, err
	}
	if err := tx.SucceedToken(ctx, t.ID, now); err != nil { // ends what a refusal before left
		return Response{}, fmt.Errorf("note the success of the install token: %w", err)
	}
	return resp, nil
}

// spend refuses what must be refused, and counts a use of the token for the rest. holder is the released
// agent of that name, or the zero Agent.
func (s *Service) spend(ctx context.Context, tx Tx, t Token, holder fleet.Agent, req Request, now time.Time) error {
	if state := t.stateFor(req.AgentType, now); state != StateLive {
		return refuseToken(t, state, req)
	}
	if holder.PublicKey != "" {
		return refuseTaken(req)
	}
	other, err := tx.AgentByKey(ctx, req.PublicKey)
	if err == nil {
		return refuseKey(t, other)
	}
	if !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("find the agent by its key: %w", err)
	}
	ok, err := tx.UseToken(ctx, t.ID, now)
	if err != nil {
		return fmt.Errorf("count the use of the install token: %w", err)
	}
	if !ok {
		return refuseToken(t, StateUsedUp, req)
	}
	return nil
}

// newIdentity binds the key to the released holder, or to a new agent where holder is the zero Agent.
func (s *Service) newIdentity(ctx context.Context, tx Tx, t Token, holder fleet.Agent, req Request, now time.Time) (resp Response, err error) {
	agent := holder
	if holder.ID == "" {
		agent = fleet.Agent{
			ID: id.New("agt"), ClientID: t.ClientID, EnvironmentID: t.EnvironmentID,
			Type: req.AgentType, ClusterSlug: req.ClusterSlug, Name: req.Name,
		}
	}
	agent.PublicKey, agent.EnrolledBy, agent.EnrolledAt = req.PublicKey, t.ID, now
	agent.Version, agent.Capability, agent.ReleasedAt = req.Version, req.Capability, time.Time{}
	agent.ClusterRemovedAt = time.Time{} // a live token is a person’s word that it may report again
	if holder.ID != "" {
		resp.Agent, resp.Credential, err = s.bind(ctx, tx, agent, now)
		return resp, err
	}
	if resp.Agent, resp.Credential, err = s.issue(agent, now); err != nil {
		return Response{}, err
	}
	if err := tx.InsertAgent(ctx, resp.Agent); errors.Is(err, ErrTaken) {
		return Response{}, refuseTaken(req)
	} else if err != nil {
		return Response{}, fmt.Errorf("store the agent: %w", err)
	}
	return resp, nil
}

func enrolled(agent fleet.Agent, t Token, now time.Time, remoteAddr string) audit.Event {
	e := audit.Agent(now, audit.AgentEnrolled, agent.ID, agent.Name).On("agent", agent.ID, agent.Name).In(agent.ClientID, agent.EnvironmentID).
		With("type", string(agent.Type)).With("cluster_slug", agent.ClusterSlug).With("token", t.Prefix).With("version", agent.Version)
	e.RemoteAddr = remoteAddr
	return e
}

// issue makes a credential and notes its times on the agent.
func (s *Service) issue(a fleet.Agent, now time.Time) (fleet.Agent, Credential, error) {
	c, err := s.Authority.IssueCredential(a.ID, a.PublicKey, now)
	if err != nil {
		return a, Credential{}, problem.New(problem.Invalid, CodeInvalidRequest, "The public key is not a user nkey.").
			WithCure("Run the printed command again: it names the image of this Console's version, whose agent makes such a key.").InField("publicKey").Because(err)
	}
	a.Template, a.CredentialIssuedAt, a.CredentialExpiresAt = c.Template, c.IssuedAt, c.ExpiresAt
	return a, c, nil
}

// bind issues a credential to an agent whose row exists, and writes it.
func (s *Service) bind(ctx context.Context, tx Tx, a fleet.Agent, now time.Time) (fleet.Agent, Credential, error) {
	a, c, err := s.issue(a, now)
	if err != nil {
		return a, c, err
	}
	if err := tx.BindAgent(ctx, a); errors.Is(err, ErrTaken) {
		return a, c, refuseKey(Token{}, fleet.Agent{})
	} else if err != nil {
		return a, c, fmt.Errorf("bind the agent's key: %w", err)
	}
	return a, c, nil
}

// Renew issues a fresh credential to an agent that proves its key. It needs no install token, so an
// agent that was offline past its credential's end comes back by itself.
func (s *Service) Renew(ctx context.Context, agentID string, req RenewRequest, _ string) (Credential, error) {
	now := s.Clock.Now()
	unknown := problem.New(problem.NotFound, "agent_unknown", fmt.Sprintf("No agent %s is enrolled with this key.", agentID)).
		WithCure("If its record was deleted or its identity released, remove the agent's state and enroll again with an install token.")
	if err := s.Authority.CheckChallenge(req.Challenge, now); err != nil {
		return Credential{}, refuseProof(err)
	}
	if err := s.Authority.VerifyProof(req.PublicKey, req.Signature, wire.RenewProof(req.Challenge, agentID)); err != nil {
		return Credential{}, refuseProof(err)
	}
	a, err := s.Fleet.Agent(ctx, agentID)
	switch {
	case errors.Is(err, fleet.ErrNotFound), err == nil && a.PublicKey != req.PublicKey:
		return Credential{}, unknown
	case err != nil:
		return Credential{}, fmt.Errorf("find the agent: %w", err)
	case !a.RevokedAt.IsZero():
		return Credential{}, refuseRevoked(a.Name)
	case now.Before(a.SuspendedUntil()):
		return Credential{}, refuseSuspended(a, now)
	}
	_, c, err := s.issue(a, now)
	if err != nil {
		return Credential{}, err
	}
	if err := s.Fleet.RenewCredential(ctx, agentID, c.Template, c.IssuedAt, c.ExpiresAt); err != nil {
		return Credential{}, fmt.Errorf("store the renewal: %w", err)
	}
	return c, nil
}

// PostFindings keeps what an agent's self-check found; evidence, never a verdict.
func (s *Service) PostFindings(ctx context.Context, token string, post FindingsPost) error {
	t, err := s.tokenOf(ctx, token)
	if err != nil {
		return err
	}
	if err := checkFindings(post); err != nil {
		return err
	}
	now := s.Clock.Now()
	f := Findings{TokenID: t.ID, AgentName: post.Name, ClusterSlug: post.ClusterSlug, Version: post.Version, ReceivedAt: now}
	for _, item := range post.Items {
		item.At = now
		f.Items = append(f.Items, item)
	}
	if err := s.Store.PutFindings(ctx, f); err != nil {
		return fmt.Errorf("store the findings: %w", err)
	}
	return nil
}

// The bounds of a self-check.
const (
	mostFindings    = 40
	longestCheck    = 64   // bytes
	longestSentence = 1024 // characters
)

// checkFindings refuses a self-check as a whole: what an agent sends is shown on a page.
func checkFindings(post FindingsPost) error {
	const shorter = "Send less: what is sent is shown on a page."
	switch {
	case post.Name == "" || len(post.Name) > wire.MaxName || !printable(post.Name):
		return invalid("name", fmt.Sprintf("The agent's name has %d bytes or is not text; 1 to %d are allowed.", len(post.Name), wire.MaxName),
			"Send the name that the agent enrolls with.")
	case post.ClusterSlug != "" && !slug.Valid(post.ClusterSlug):
		return invalid("clusterSlug", fmt.Sprintf("The cluster slug %q is not one.", post.ClusterSlug), "Set PROXIMA_CLUSTER_SLUG to the slug that Console shows, as the printed command does.")
	case len(post.Version) > longestVersion || !printable(post.Version):
		return invalid("version", fmt.Sprintf("The agent's version has %d bytes or is not text; up to %d are allowed.", len(post.Version), longestVersion), shorter)
	case len(post.Items) > mostFindings:
		return invalid("findings", fmt.Sprintf("There are %d findings; up to %d are allowed.", len(post.Items), mostFindings), shorter)
	}
	for _, f := range post.Items {
		switch {
		case f.Check == "" || len(f.Check) > longestCheck || !printable(f.Check):
			return invalid("findings", "A finding names no check, or one that is too long.", fmt.Sprintf("Name each check in 1 to %d bytes.", longestCheck))
		case !slices.Contains([]string{"ok", "warning", "failed", "skipped"}, f.Status):
			return invalid("findings", fmt.Sprintf("The finding on %s has the status %q, which is none.", f.Check, f.Status), "The states are ok, warning, failed and skipped.")
		case !sentence(f.Message) || !sentence(f.Cure):
			return invalid("findings", fmt.Sprintf("The finding on %s has a text of more than %d characters, or what is not text.", f.Check, longestSentence), shorter)
		}
	}
	return nil
}

// sentence tells whether a text can be shown to a person; it may have several lines.
func sentence(s string) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= longestSentence && !strings.ContainsRune(s, 0)
}
