package enrollment_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/jwt/v2"

	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/natsauth"
	"prxm.uz/proxima/internal/console/problem"
)

func TestAStrangerWithATokenBecomesAnAgent(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		token, plain := d.mint(nil)
		d.clock.Advance(time.Hour)
		p := d.pod("proxima-agent-cluster-agent-0")
		got := p.in(plain)
		want := fleet.Agent{
			ID: got.Agent.ID, ClientID: "acme", EnvironmentID: "acme-prod", Type: fleet.TypeCollector, ClusterSlug: "alpha",
			Name: "proxima-agent-cluster-agent-0", PublicKey: p.public, EnrolledBy: token.ID, EnrolledAt: d.clock.Now(), Version: "0.9.0", Capability: 1,
			Template: natsauth.Template, CredentialIssuedAt: d.clock.Now(), CredentialExpiresAt: d.clock.Now().Add(7 * 24 * time.Hour),
		}
		if diff := cmp.Diff(want, got.Agent); diff != "" {
			t.Error(diff)
		}
		stored, err := d.db.Fleet().Agent(t.Context(), got.Agent.ID)
		must(t, err)
		if diff := cmp.Diff(want, stored); diff != "" {
			t.Error(diff)
		}
		if got.Resumed || got.EnvironmentName != "prod" || got.NATSCA == "" ||
			!cmp.Equal(got.NATSURLs, []string{"tls://console.example:4222", "wss://console.example/nats"}) {
			t.Errorf("the answer is %+v", got)
		}
		claims, err := jwt.DecodeUserClaims(got.Credential.JWT)
		must(t, err)
		if claims.Subject != p.public || claims.Name != got.Agent.ID || claims.Expires != want.CredentialExpiresAt.Unix() {
			t.Errorf("the credential is of %s for %s until %d", claims.Subject, claims.Name, claims.Expires)
		}
		after := d.token(token.ID)
		if after.Uses != 1 || after.CollectorsEnrolled != 1 || !after.SucceededAt.Equal(d.clock.Now()) || !after.Refusal.At.IsZero() {
			t.Errorf("the token is %+v", after)
		}
		if n := d.db.Audits(t, "agent_enrolled"); n != 1 {
			t.Errorf("%d audit rows", n)
		}
	})
}

// Every refusal has a code, a cure, spends no use and, where it presented a known token, stays on that
// token although the enrolment was rolled back.
func TestEveryRefusalHasItsCodeAndCure(t *testing.T) {
	type story struct {
		token   enrollment.Token
		plain   string
		pod     *pod
		request func() enrollment.Request // nil: what the pod signs now
	}
	for name, c := range map[string]struct {
		kind    problem.Kind
		code    string
		says    string
		unknown bool // the token is: nothing is recorded
		begin   func(*desk, *story)
	}{
		"token unknown": {problem.Unauthenticated, enrollment.CodeTokenUnknown, "does not know", true, func(_ *desk, s *story) {
			s.plain = "pit_" + strings.Repeat("A", 32)
		}},
		"token blank": {problem.Unauthenticated, enrollment.CodeTokenUnknown, "does not know", true, func(_ *desk, s *story) { s.plain = " \r\n" }},
		"token expired": {problem.Forbidden, enrollment.CodeTokenExpired, "2026-03-02 12:00 UTC", false, func(d *desk, _ *story) {
			d.clock.Advance(24 * time.Hour) // to the second
		}},
		"token used up": {problem.Forbidden, enrollment.CodeTokenUsedUp, "All 1 uses", false, func(d *desk, s *story) {
			s.token, s.plain = d.mint(func(r *enrollment.MintRequest) { r.MaxUses = 1 })
			d.pod("earlier").in(s.plain)
		}},
		"token revoked": {problem.Forbidden, enrollment.CodeTokenRevoked, "revoked", false, func(d *desk, s *story) {
			must(d.t, d.Revoke(d.t.Context(), writer(), s.token.ID))
		}},
		"token of another type": {problem.Forbidden, enrollment.CodeTokenWrongType, "admits agents of type k8s-node-monitor", false, func(d *desk, s *story) {
			s.token, s.plain = d.mint(func(r *enrollment.MintRequest) { r.AgentType = fleet.TypeNodeMonitor })
		}},
		"name taken": {problem.Conflict, enrollment.CodeAlreadyEnrolled, "already enrolled", false, func(_ *desk, s *story) {
			s.pod.in(s.plain)
			s.pod = s.pod.lost()
		}},
		"agent too old":         {problem.TooOld, enrollment.CodeAgentTooOld, "0.8.9", false, func(_ *desk, s *story) { s.pod.Version = "0.8.9" }},
		"agent without version": {problem.TooOld, enrollment.CodeAgentTooOld, "0.9.0", false, func(_ *desk, s *story) { s.pod.Version = "" }},
		"agent revoked": {problem.Forbidden, enrollment.CodeAgentRevoked, "was revoked", false, func(d *desk, s *story) {
			id := s.pod.in(s.plain).Agent.ID
			d.act(func(tx fleet.Tx) error { return tx.RevokeAgent(d.t.Context(), id, d.clock.Now()) })
		}},
		"agent revoked, another key": {problem.Forbidden, enrollment.CodeAgentRevoked, "was revoked", false, func(d *desk, s *story) {
			id := s.pod.in(s.plain).Agent.ID
			d.act(func(tx fleet.Tx) error { return tx.RevokeAgent(d.t.Context(), id, d.clock.Now()) })
			s.pod = s.pod.lost()
		}},
		"agent suspended": {problem.TooMany, enrollment.CodeAgentSuspended, "is kept out until", false, func(d *desk, s *story) {
			id := s.pod.in(s.plain).Agent.ID
			d.act(func(tx fleet.Tx) error { return tx.SuspendAgent(d.t.Context(), id, "it flooded", d.clock.Now()) })
		}},
		"agent suspended, another key": {problem.TooMany, enrollment.CodeAgentSuspended, "is kept out until", false, func(d *desk, s *story) {
			id := s.pod.in(s.plain).Agent.ID
			d.act(func(tx fleet.Tx) error { return tx.SuspendAgent(d.t.Context(), id, "it flooded", d.clock.Now()) })
			s.pod = s.pod.lost()
		}},
		"key in use": {problem.Conflict, enrollment.CodeKeyInUse, "belongs to agent a of cluster slug \"alpha\"", false, func(_ *desk, s *story) {
			s.pod.in(s.plain)
			s.pod.Name = "b" // a copied state.json
		}},
		"key in use elsewhere": {problem.Conflict, enrollment.CodeKeyInUse, "belongs to another agent.", false, func(d *desk, s *story) {
			s.pod.in(s.plain)
			s.token, s.plain = d.mint(func(r *enrollment.MintRequest) { r.EnvironmentID = "acme-test" })
		}},
		"key in use, released name": {problem.Conflict, enrollment.CodeKeyInUse, "belongs to agent a", false, func(d *desk, s *story) {
			other := d.pod("b")
			id := other.in(s.plain).Agent.ID
			d.act(func(tx fleet.Tx) error { return tx.ReleaseAgent(d.t.Context(), id, d.clock.Now()) })
			s.pod.in(s.plain)
			s.pod.Name = "b"
		}},
		"signed by another key": {problem.Unauthenticated, enrollment.CodeProofInvalid, "does not prove", false, func(_ *desk, s *story) {
			s.request = func() enrollment.Request {
				r, other := s.pod.proof(), s.pod.lost().proof()
				r.Challenge, r.Signature = other.Challenge, other.Signature
				return r
			}
		}},
		"signed for another name": {problem.Unauthenticated, enrollment.CodeProofInvalid, "does not prove", false, func(_ *desk, s *story) {
			s.request = func() enrollment.Request {
				r := s.pod.proof()
				r.Name = "b"
				return r
			}
		}},
		"challenge expired": {problem.Unauthenticated, enrollment.CodeProofInvalid, "does not prove", false, func(d *desk, s *story) {
			s.request = func() enrollment.Request {
				r := s.pod.proof()
				d.clock.Advance(5*time.Minute + time.Second)
				return r
			}
		}},
		"challenge of nobody": {problem.Unauthenticated, enrollment.CodeProofInvalid, "does not prove", false, func(_ *desk, s *story) {
			s.request = func() enrollment.Request {
				r := s.pod.proof()
				r.Challenge = "made up"
				return r
			}
		}},
		"no key": {problem.Unauthenticated, enrollment.CodeProofInvalid, "does not prove", false, func(_ *desk, s *story) {
			s.request = func() enrollment.Request {
				r := s.pod.proof()
				r.PublicKey = ""
				return r
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			atDesks(t, func(t *testing.T, d *desk) {
				s := &story{pod: d.pod("a")}
				s.token, s.plain = d.mint(nil)
				c.begin(d, s)
				before, agents := d.token(s.token.ID), d.agents()
				d.clock.Advance(time.Minute)
				if s.request == nil {
					s.request = s.pod.proof
				}
				req := s.request()
				_, err := d.Enroll(t.Context(), s.plain, req, "198.51.100.7")
				want(t, err, c.kind, c.code)
				p, ok := err.(*problem.Error) //nolint:errorlint // not wrapped: the text is what agents log
				if !ok || p.Cure == "" || !strings.Contains(p.Message, c.says) {
					t.Errorf("the refusal is %v, cure %q; it should say %q", err, p.Cure, c.says)
				}
				if secret := strings.TrimSpace(s.plain); secret != "" && strings.Contains(err.Error()+p.Cure, secret) {
					t.Error("the refusal repeats the token")
				}
				if !c.unknown {
					before.Refusal = enrollment.Refusal{
						At: d.clock.Now(), Code: c.code, AgentName: req.Name, AgentType: req.AgentType, ClusterSlug: req.ClusterSlug,
						Version: req.Version, RemoteAddr: "198.51.100.7",
					}
				}
				if diff := cmp.Diff(before, d.token(s.token.ID)); diff != "" {
					t.Error(diff)
				}
				if n := d.agents(); n != agents {
					t.Errorf("%d agents became %d", agents, n)
				}
			})
		})
	}
}

// A form that cannot be stored is refused before anything of it is, the refusal on the token included.
func TestHostileRequestsStoreNothing(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		token, plain := d.mint(nil)
		before := d.token(token.ID)
		for name, change := range map[string]func(*pod){
			"no name":            func(p *pod) { p.Name = "" },
			"NUL in the name":    func(p *pod) { p.Name = "a\x00b" },
			"name is not UTF-8":  func(p *pod) { p.Name = "a\xff" },
			"line break in name": func(p *pod) { p.Name = "a\nb" },
			"name too long":      func(p *pod) { p.Name = strings.Repeat("a", 254) },
			"name of 10 kB":      func(p *pod) { p.Name = strings.Repeat("a", 10_000) },
			"no slug":            func(p *pod) { p.ClusterSlug = "" },
			"slug with capitals": func(p *pod) { p.ClusterSlug = "Alpha" },
			"slug too long":      func(p *pod) { p.ClusterSlug = strings.Repeat("a", 64) },
			"NUL in the slug":    func(p *pod) { p.ClusterSlug = "a\x00b" },
			"slug is not UTF-8":  func(p *pod) { p.ClusterSlug = "a\xffb" },
			"slug of a host":     func(p *pod) { p.AgentType = fleet.TypeHost },
			"unknown type":       func(p *pod) { p.AgentType = "root" },
			"no type":            func(p *pod) { p.AgentType = "" },
			"NUL in the version": func(p *pod) { p.Version = "0.9.0\x00" },
			"version of 10 kB":   func(p *pod) { p.Version = "0.9.0-" + strings.Repeat("a", 10_000) },
		} {
			p := d.pod("a")
			change(p)
			if _, err := p.enroll(plain); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := cmp.Diff(before, d.token(token.ID)); diff != "" {
			t.Error(diff)
		}
		if n := d.agents(); n != 0 {
			t.Errorf("%d agents are stored", n)
		}
		stranger := d.pod("a")
		stranger.AgentType = "root"
		_, err := stranger.enroll(plain)
		want(t, err, problem.Invalid, enrollment.CodeInvalidRequest)
		if p, _ := errors.AsType[*problem.Error](err); p.Message != `There is no type of agent "root"; the types are ["collector" "k8s-node-monitor" "host"].` ||
			p.Cure != "Run the printed command again: it names the image of this Console's version, whose agent is of a type that Console knows." {
			t.Errorf("%q, cure %q", p.Message, p.Cure)
		}
		for _, name := range []string{"node-1.example", strings.Repeat("a", 253), "узел-1", "a'b\"c$(d)`e`"} {
			p := d.pod(name)
			p.AgentType, p.ClusterSlug = fleet.TypeHost, ""
			if got := p.in(plain); got.Agent.Name != name {
				t.Errorf("%q came in as %q", name, got.Agent.Name)
			}
		}
	})
}

// tok-01: white space around a token is a slip of the hand.
func TestWhiteSpaceAroundATokenIsForgiven(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		token, plain := d.mint(nil)
		for i, around := range []string{"%s\n", " %s\r\n", "\t%s"} {
			d.pod(fmt.Sprint(i)).in(fmt.Sprintf(around, plain))
		}
		if uses := d.token(token.ID).Uses; uses != 3 {
			t.Errorf("%d uses", uses)
		}
		_, err := d.pod("b").enroll(plain[:8] + " " + plain[8:])
		want(t, err, problem.Unauthenticated, enrollment.CodeTokenUnknown)
	})
}

func TestFiftyAgentsRaceForTwentyFiveUses(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		token, plain := d.mint(nil)
		requests := make([]enrollment.Request, 50)
		for i := range requests {
			requests[i] = d.pod(fmt.Sprint("replica-", i)).proof()
		}
		errs := race(len(requests), func(i int) error {
			_, err := d.Enroll(t.Context(), plain, requests[i], "")
			return err
		})
		in, out := 0, 0
		for _, err := range errs {
			switch {
			case err == nil:
				in++
			case problem.CodeOf(err) == enrollment.CodeTokenUsedUp:
				out++
			default:
				t.Error(err)
			}
		}
		after := d.token(token.ID)
		if in != 25 || out != 25 || after.Uses != 25 || after.CollectorsEnrolled != 25 || d.agents() != 25 || d.db.Audits(t, "agent_enrolled") != 25 {
			t.Errorf("%d came in, %d did not; %d uses, %d agents, %d audit rows", in, out, after.Uses, d.agents(), d.db.Audits(t, "agent_enrolled"))
		}
		if after.Refusal.Code != enrollment.CodeTokenUsedUp {
			t.Errorf("the refusal on the token is %+v", after.Refusal)
		}
	})
}

// race runs f n times at once and returns the answers.
func race(n int, f func(int) error) []error {
	errs := make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { errs[i] = f(i) })
	}
	wait.Wait()
	return errs
}

func TestAnAgentThatRacesItselfIsOneAgent(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		token, plain := d.mint(nil)
		req := d.pod("a").proof()
		var mu sync.Mutex
		ids, fresh := map[string]int{}, 0
		for _, err := range race(20, func(int) error {
			resp, err := d.Enroll(t.Context(), plain, req, "")
			mu.Lock()
			defer mu.Unlock()
			ids[resp.Agent.ID]++
			if !resp.Resumed {
				fresh++
			}
			return err
		}) {
			must(t, err)
		}
		if uses := d.token(token.ID).Uses; len(ids) != 1 || fresh != 1 || uses != 1 || d.agents() != 1 {
			t.Errorf("identities %v, %d of them fresh, %d uses, %d agents", ids, fresh, uses, d.agents())
		}
	})
}

func TestOneNameIsWonByOneKey(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		token, plain := d.mint(nil)
		requests := make([]enrollment.Request, 10)
		for i := range requests {
			requests[i] = d.pod("a").proof()
		}
		in := 0
		for _, err := range race(len(requests), func(i int) error {
			_, err := d.Enroll(t.Context(), plain, requests[i], "")
			return err
		}) {
			if err == nil {
				in++
			} else if problem.CodeOf(err) != enrollment.CodeAlreadyEnrolled {
				t.Error(err)
			}
		}
		if uses := d.token(token.ID).Uses; in != 1 || uses != 1 || d.agents() != 1 {
			t.Errorf("%d came in with %d uses; %d agents", in, uses, d.agents())
		}
	})
}

// An agent whose answer was lost asks again with the same key, and gets the same identity back without
// another use, whatever became of the token meanwhile.
// An agent whose cluster was removed keeps that mark when it presents its old key again, since no token is asked of
// it then; a new identity under a live token ends it.
func TestAnAgentOfARemovedClusterEndsThatByANewIdentityAlone(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		ctx := t.Context()
		token, plain := d.mint(nil)
		p := d.pod("a")
		id := p.in(plain).Agent.ID
		must(t, d.db.Inventory().InTx(ctx, func(tx inventory.Tx) error {
			c := inventory.Cluster{ID: "cls", ClientID: "acme", EnvironmentID: "acme-prod", Slug: "alpha", Name: "alpha", UID: "uid", AgentID: id}
			if err := tx.InsertCluster(ctx, c); err != nil {
				return err
			}
			return tx.DeleteCluster(ctx, c.ID, d.clock.Now())
		}))
		must(t, d.Revoke(ctx, writer(), token.ID))
		if again := p.in(plain); !again.Resumed || again.Agent.ClusterRemovedAt.IsZero() {
			t.Errorf("the old key, again: %+v", again)
		}
		stored := func() fleet.Agent {
			a, err := d.db.Fleet().Agent(ctx, id)
			must(t, err)
			return a
		}
		if stored().ClusterRemovedAt.IsZero() {
			t.Error("the mark is gone")
		}
		d.act(func(tx fleet.Tx) error { return tx.ReleaseAgent(ctx, id, d.clock.Now()) })
		_, plain = d.mint(nil)
		if p.lost().in(plain); !stored().ClusterRemovedAt.IsZero() {
			t.Error("a new identity keeps the mark")
		}
	})
}

func TestALostAnswerIsGivenAgain(t *testing.T) {
	for name, meanwhile := range map[string]func(*desk, enrollment.Token, string){
		"at once":       func(*desk, enrollment.Token, string) {},
		"token expired": func(d *desk, _ enrollment.Token, _ string) { d.clock.Advance(48 * time.Hour) },
		"token used up": func(d *desk, _ enrollment.Token, plain string) { d.pod("b").in(plain) },
		"token revoked": func(d *desk, token enrollment.Token, _ string) {
			must(d.t, d.Revoke(d.t.Context(), writer(), token.ID))
		},
	} {
		t.Run(name, func(t *testing.T) {
			atDesks(t, func(t *testing.T, d *desk) {
				token, plain := d.mint(func(r *enrollment.MintRequest) { r.MaxUses = 2 })
				p := d.pod("a")
				first := p.in(plain)
				meanwhile(d, token, plain)
				d.clock.Advance(time.Minute)
				before := d.token(token.ID)
				p.Version, p.Capability = "1.2.3", 2 // it may have been upgraded in between
				again := p.in(plain)
				want := first.Agent
				want.Version, want.Capability = "1.2.3", 2
				want.CredentialIssuedAt, want.CredentialExpiresAt = d.clock.Now(), d.clock.Now().Add(natsauth.DefaultTTL)
				if diff := cmp.Diff(want, again.Agent); diff != "" || !again.Resumed {
					t.Errorf("resumed %v: %s", again.Resumed, diff)
				}
				stored, err := d.db.Fleet().Agent(t.Context(), want.ID)
				must(t, err)
				if diff := cmp.Diff(want, stored); diff != "" {
					t.Error(diff)
				}
				before.SucceededAt = d.clock.Now()
				if diff := cmp.Diff(before, d.token(token.ID)); diff != "" {
					t.Error(diff)
				}
				if revoked, err := d.db.Fleet().Revoked(t.Context(), time.Time{}); err != nil || len(revoked) != 0 {
					t.Errorf("revoked keys %v, %v", revoked, err)
				}
			})
		})
	}
}

// a refusal counts until a later success, and a resumed enrolment is one.
func TestAResumeEndsARefusal(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		token, plain := d.mint(nil)
		p := d.pod("a")
		p.in(plain)
		d.clock.Advance(time.Minute)
		_, err := p.lost().enroll(plain)
		want(t, err, problem.Conflict, enrollment.CodeAlreadyEnrolled)
		if got := d.token(token.ID); !got.Refusal.At.After(got.SucceededAt) {
			t.Fatalf("refused at %v, last success at %v", got.Refusal.At, got.SucceededAt)
		}
		d.clock.Advance(time.Minute)
		p.in(plain)
		got := d.token(token.ID)
		if !got.SucceededAt.After(got.Refusal.At) || got.Refusal.Code != enrollment.CodeAlreadyEnrolled {
			t.Errorf("refused at %v, success at %v", got.Refusal.At, got.SucceededAt)
		}
		// A replica whose clock is behind does not move the success back.
		at := d.clock.Now()
		d.clock.Set(at.Add(-30 * time.Second))
		p.in(plain)
		if got := d.token(token.ID).SucceededAt; !got.Equal(at) {
			t.Errorf("the success moved back to %v", got)
		}
	})
}

// two clusters in one environment, the same release name, three equally named nodes each.
func TestEqualNamesInTwoClusters(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		token, plain := d.mint(nil)
		ids := map[string]bool{}
		for _, slug := range []string{"alpha", "beta"} {
			p := d.pod("proxima-agent-cluster-agent-0")
			p.ClusterSlug = slug
			ids[p.in(plain).Agent.ID] = true
			for i := range 3 {
				p := d.pod(fmt.Sprint("node-", i))
				p.AgentType, p.ClusterSlug = fleet.TypeNodeMonitor, slug
				ids[p.in(plain).Agent.ID] = true
			}
		}
		if got := d.token(token.ID); len(ids) != 8 || got.CollectorsEnrolled != 2 || got.OthersEnrolled != 6 {
			t.Errorf("%d identities; the token counts %d collectors and %d others", len(ids), got.CollectorsEnrolled, got.OthersEnrolled)
		}
		// The same name in another environment is another agent, too.
		_, test := d.mint(func(r *enrollment.MintRequest) { r.EnvironmentID = "acme-test" })
		if got := d.pod("proxima-agent-cluster-agent-0").in(test); ids[got.Agent.ID] || got.Agent.EnvironmentID != "acme-test" {
			t.Errorf("it came in as %+v", got.Agent)
		}
	})
}

// D-34: a released identity keeps its record, and the next key under its name is bound to it.
func TestAReleasedNameTakesANewKey(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		_, plain := d.mint(nil)
		p := d.pod("a")
		first := p.in(plain).Agent
		d.act(func(tx fleet.Tx) error { return tx.ReleaseAgent(t.Context(), first.ID, d.clock.Now()) })
		d.clock.Advance(time.Hour)
		token, plain := d.mint(nil)
		heir := p.lost()
		got := heir.in(plain)
		if got.Agent.ID != first.ID || got.Resumed || got.Agent.PublicKey != heir.public || got.Agent.EnrolledBy != token.ID || !got.Agent.ReleasedAt.IsZero() {
			t.Errorf("the record is %+v", got.Agent)
		}
		if uses := d.token(token.ID).Uses; uses != 1 || d.agents() != 1 {
			t.Errorf("%d uses, %d agents", uses, d.agents())
		}
		// The old key stays out.
		_, err := p.enroll(plain)
		want(t, err, problem.Conflict, enrollment.CodeAlreadyEnrolled)
		_, err = d.Renew(t.Context(), first.ID, p.renewal(first.ID), "")
		want(t, err, problem.NotFound, "agent_unknown")
		revoked, err := d.db.Fleet().Revoked(t.Context(), time.Time{})
		must(t, err)
		if _, ok := revoked[p.public]; !ok || len(revoked) != 1 {
			t.Errorf("revoked keys: %v", revoked)
		}
	})
}

// B-102: a deleted record frees the name, for the same key as well as for another.
func TestADeletedNameIsFree(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		_, plain := d.mint(nil)
		p := d.pod("a")
		first := p.in(plain).Agent
		d.act(func(tx fleet.Tx) error { return tx.DeleteAgent(t.Context(), first.ID, d.clock.Now()) })
		d.clock.Advance(time.Minute)
		second := p.in(plain).Agent
		if second.ID == first.ID {
			t.Error("a deleted record came back")
		}
		d.act(func(tx fleet.Tx) error { return tx.DeleteAgent(t.Context(), second.ID, d.clock.Now()) })
		p.lost().in(plain)
	})
}

func TestOnlyTheHashOfATokenIsStored(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		token, plain := d.mint(nil)
		if !strings.HasPrefix(plain, "pit_") || len(plain) != 36 || token.Prefix != plain[:8] {
			t.Errorf("the token %q has the prefix %q", plain, token.Prefix)
		}
		d.pod("a").in(plain)
		_, _ = d.pod("a").enroll(plain) // refused
		must(t, d.PostFindings(t.Context(), plain, enrollment.FindingsPost{AgentType: fleet.TypeCollector, Name: "a", ClusterSlug: "alpha", Version: "0.9.0"}))
		for _, table := range []string{"install_tokens", "agents", "audit_events", "findings"} {
			rows := d.db.Dump(t, table)
			if len(rows) == 0 {
				t.Errorf("table %s is empty", table)
			}
			for _, row := range rows {
				if strings.Contains(strings.Join(row, "\x1f"), plain[8:]) {
					t.Errorf("table %s holds the token", table)
				}
			}
		}
	})
}

func TestRenewal(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		_, plain := d.mint(nil)
		p := d.pod("a")
		agent := p.in(plain).Agent
		d.clock.Advance(30 * 24 * time.Hour) // offline past the end of its credential, and of its token
		c, err := d.Renew(t.Context(), agent.ID, p.renewal(agent.ID), "")
		must(t, err)
		claims, err := jwt.DecodeUserClaims(c.JWT)
		must(t, err)
		stored, err := d.db.Fleet().Agent(t.Context(), agent.ID)
		must(t, err)
		if claims.Subject != p.public || !c.ExpiresAt.Equal(d.clock.Now().Add(natsauth.DefaultTTL)) || !stored.CredentialExpiresAt.Equal(c.ExpiresAt) ||
			!stored.CredentialIssuedAt.Equal(d.clock.Now()) || !stored.EnrolledAt.Equal(agent.EnrolledAt) {
			t.Errorf("renewed to %+v, stored as %+v", c, stored)
		}
		refuse := func(why string, kind problem.Kind, code string, req enrollment.RenewRequest) {
			t.Helper()
			_, err := d.Renew(t.Context(), agent.ID, req, "")
			if !problem.Is(err, kind) || problem.CodeOf(err) != code {
				t.Errorf("%s: %v", why, err)
			}
		}
		refuse("another key", problem.NotFound, "agent_unknown", p.lost().renewal(agent.ID))
		refuse("signed for another agent", problem.Unauthenticated, enrollment.CodeProofInvalid, p.renewal("agt_other"))
		late := p.renewal(agent.ID)
		d.clock.Advance(6 * time.Minute)
		refuse("an old challenge", problem.Unauthenticated, enrollment.CodeProofInvalid, late)
		enrolling := p.proof()
		refuse("the proof of an enrolment", problem.Unauthenticated, enrollment.CodeProofInvalid,
			enrollment.RenewRequest{PublicKey: enrolling.PublicKey, Challenge: enrolling.Challenge, Signature: enrolling.Signature})
		d.act(func(tx fleet.Tx) error { return tx.SuspendAgent(t.Context(), agent.ID, "it flooded", d.clock.Now()) })
		d.clock.Advance(9 * time.Minute)
		refuse("suspended", problem.TooMany, enrollment.CodeAgentSuspended, p.renewal(agent.ID))
		_, err = d.Renew(t.Context(), agent.ID, p.renewal(agent.ID), "")
		if told, ok := errors.AsType[*problem.Error](err); !ok || told.RetryAfterSeconds != 61 {
			t.Errorf("a suspended agent is told to come again in %+v", told)
		}
		d.clock.Advance(time.Minute)
		_, err = d.Renew(t.Context(), agent.ID, p.renewal(agent.ID), "")
		must(t, err)
		d.act(func(tx fleet.Tx) error { return tx.RevokeAgent(t.Context(), agent.ID, d.clock.Now()) })
		refuse("revoked", problem.Forbidden, enrollment.CodeAgentRevoked, p.renewal(agent.ID))
		d.act(func(tx fleet.Tx) error { return tx.DeleteAgent(t.Context(), agent.ID, d.clock.Now()) })
		refuse("deleted", problem.NotFound, "agent_unknown", p.renewal(agent.ID))
	})
}
