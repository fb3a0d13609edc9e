package enrollment_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/problem"
)

func TestMint(t *testing.T) {
	const day = 24 * time.Hour
	node := func(r *enrollment.MintRequest) { r.AgentType = fleet.TypeNodeMonitor }
	forAttempt := func(r *enrollment.MintRequest) { r.OnboardingID, r.EnvironmentID = "onb", "" }
	atDesks(t, func(t *testing.T, d *desk) {
		d.attempt("onb", "alpha")
		for name, c := range map[string]struct {
			change []func(*enrollment.MintRequest)
			uses   int
			life   time.Duration
			code   string // of the refusal
		}{
			"single use":                    {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.MaxUses = 1 }}, 1, day, ""},
			"unlimited":                     {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.MaxUses = 0 }}, 0, day, ""},
			"one hour":                      {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.ExpiresIn = time.Hour }}, 25, time.Hour, ""},
			"longer than a day":             {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.ExpiresIn = 25 * time.Hour }}, 0, 0, "invalid_request"},
			"attempt: its own rules (X-14)": {[]func(*enrollment.MintRequest){forAttempt, func(r *enrollment.MintRequest) { r.MaxUses, r.ExpiresIn = 7, time.Hour }}, 25, day, ""},
			"node agents: 90 days (X-20)":   {[]func(*enrollment.MintRequest){node, func(r *enrollment.MintRequest) { r.MaxUses, r.ExpiresIn = 500, 90*day }}, 500, 90 * day, ""},
			"node agents: 91 days":          {[]func(*enrollment.MintRequest){node, func(r *enrollment.MintRequest) { r.ExpiresIn = 91 * day }}, 0, 0, "invalid_request"},
			"node agents of an attempt":     {[]func(*enrollment.MintRequest){forAttempt, node, func(r *enrollment.MintRequest) { r.MaxUses, r.ExpiresIn = 3, 30*day }}, 3, 30 * day, ""},
			"below zero":                    {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.MaxUses = -1 }}, 0, 0, "invalid_request"},
			"negative life":                 {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.ExpiresIn = -time.Hour }}, 0, 0, "invalid_request"},
			"unknown type":                  {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.AgentType = "root" }}, 0, 0, "invalid_request"},
			"long name":                     {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.Name = strings.Repeat("a", 101) }}, 0, 0, "name_invalid"},
			"NUL in the name":               {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.Name = "a\x00" }}, 0, 0, "name_invalid"},
			"name is not UTF-8":             {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.Name = "\xff" }}, 0, 0, "name_invalid"},
			"a name that hides something":   {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.Name = "a\u200bb" }}, 0, 0, "name_invalid"},
			"environment of another client": {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.EnvironmentID = "zeta-prod" }}, 0, 0, "environment_not_found"},
			"no such environment":           {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.EnvironmentID = "none" }}, 0, 0, "environment_not_found"},
			"no such attempt":               {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.OnboardingID = "none" }}, 0, 0, "onboarding_not_found"},
			"attempt of another client":     {[]func(*enrollment.MintRequest){func(r *enrollment.MintRequest) { r.OnboardingID, r.ClientID = "onb", "zeta" }}, 0, 0, "onboarding_not_found"},
		} {
			req := enrollment.MintRequest{ClientID: "acme", EnvironmentID: "acme-prod", MaxUses: 25}
			for _, change := range c.change {
				change(&req)
			}
			tokens := d.db.Count(t, "SELECT COUNT(*) FROM install_tokens")
			got, plain, err := d.Mint(t.Context(), writer(), req)
			if problem.CodeOf(err) != c.code || (err == nil) != (c.code == "") {
				t.Errorf("%s: %v, want %q", name, err, c.code)
			}
			if err != nil {
				if n := d.db.Count(t, "SELECT COUNT(*) FROM install_tokens"); plain != "" || n != tokens {
					t.Errorf("%s: refused, and %d tokens became %d", name, tokens, n)
				}
				continue
			}
			if got.MaxUses != c.uses || got.ExpiresAt.Sub(got.CreatedAt) != c.life || got.AgentType != req.AgentType || got.EnvironmentID != "acme-prod" ||
				got.OnboardingID != req.OnboardingID || got.First || got.CreatedBy != "usr_x" {
				t.Errorf("%s: %+v", name, got)
			}
			if diff := cmp.Diff(got, d.token(got.ID)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if minted, rows := d.db.Count(t, "SELECT COUNT(*) FROM install_tokens"), d.db.Audits(t, "install_token_minted"); minted != rows {
			t.Errorf("%d tokens and %d audit rows", minted, rows)
		}
	})
}

// a replica that was added after the attempt's token expired enrolls with a token minted for the
// attempt, and counts for it.
func TestATokenForAnAttempt(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		d.attempt("onb", "alpha")
		forAttempt := func(r *enrollment.MintRequest) { r.OnboardingID = "onb" }
		_, first := d.mint(forAttempt)
		d.pod("replica-0").in(first)
		d.clock.Advance(25 * time.Hour)
		_, err := d.pod("replica-1").enroll(first)
		want(t, err, problem.Forbidden, enrollment.CodeTokenExpired)
		added, plain := d.mint(forAttempt)
		if got := d.pod("replica-1").in(plain); got.Agent.EnrolledBy != added.ID {
			t.Errorf("it is enrolled by %s", got.Agent.EnrolledBy)
		}
		tokens, err := d.db.Enrollment().TokensOfOnboarding(t.Context(), "onb")
		must(t, err)
		collectors := 0
		for _, token := range tokens {
			collectors += token.CollectorsEnrolled
		}
		if len(tokens) != 2 || collectors != 2 {
			t.Errorf("%d tokens with %d collectors", len(tokens), collectors)
		}
		// An archived attempt takes no token any more.
		must(t, d.db.Onboarding().InTx(t.Context(), func(tx onboarding.Tx) error { return tx.SetAbandoned(t.Context(), "onb", d.clock.Now()) }))
		d.mint(forAttempt) // an abandoned one does: it may come back
		must(t, d.db.Inventory().InTx(t.Context(), func(tx inventory.Tx) error {
			c := inventory.Cluster{ID: "cls", ClientID: "acme", EnvironmentID: "acme-prod", Slug: "alpha", UID: "uid"}
			if err := tx.InsertCluster(t.Context(), c); err != nil {
				return err
			}
			return tx.DeleteCluster(t.Context(), c.ID, d.clock.Now())
		}))
		_, _, err = d.Mint(t.Context(), writer(), enrollment.MintRequest{ClientID: "acme", OnboardingID: "onb"})
		want(t, err, problem.NotFound, "onboarding_not_found")
	})
}

// a token admits every type unless it is pinned to one.
func TestWhomATokenAdmits(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		for _, pinned := range append(fleet.Types(), "") {
			_, plain := d.mint(func(r *enrollment.MintRequest) { r.AgentType = pinned })
			for _, kind := range fleet.Types() {
				p := d.pod(fmt.Sprintf("pinned-%s-%s", pinned, kind))
				if p.AgentType = kind; kind == fleet.TypeHost {
					p.ClusterSlug = ""
				}
				_, err := p.enroll(plain)
				if admitted := pinned == "" || pinned == kind; (err == nil) != admitted || !admitted && problem.CodeOf(err) != enrollment.CodeTokenWrongType {
					t.Errorf("pinned to %q, an agent of type %s: %v", pinned, kind, err)
				}
			}
		}
	})
}

func TestTheStatesOfAToken(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	live := enrollment.Token{ExpiresAt: now.Add(time.Second), MaxUses: 2, Uses: 1}
	with := func(change func(*enrollment.Token)) enrollment.Token {
		token := live
		change(&token)
		return token
	}
	for state, tokens := range map[string][]enrollment.Token{
		enrollment.StateLive:    {live, with(func(x *enrollment.Token) { x.MaxUses, x.Uses = 0, 1000 })},
		enrollment.StateExpired: {with(func(x *enrollment.Token) { x.ExpiresAt = now }), with(func(x *enrollment.Token) { x.ExpiresAt, x.Uses = now, 2 })},
		enrollment.StateUsedUp:  {with(func(x *enrollment.Token) { x.Uses = 2 })},
		enrollment.StateRevoked: {with(func(x *enrollment.Token) { x.RevokedAt, x.ExpiresAt, x.Uses = now, now, 2 })},
	} {
		for i, token := range tokens {
			if got := token.State(now); got != state {
				t.Errorf("token %d is %s, want %s", i, got, state)
			}
		}
	}
}

func TestWhoMayMintListAndRevoke(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		ctx := t.Context()
		d.attempt("onb", "alpha")
		prod, _ := d.mint(nil)
		d.clock.Advance(time.Second)
		test, _ := d.mint(func(r *enrollment.MintRequest) { r.EnvironmentID = "acme-test" })
		inProd := grant(access.Scope{ClientID: "acme", EnvironmentID: "acme-prod"}, access.HostsRead, access.HostsWrite)
		for name, c := range map[string]struct {
			p                    access.Principal
			kind                 problem.Kind // of the refusal; 0: none
			mint, attempt, token string       // codes
			lists                []string
		}{
			"writer":          {writer(), 0, "", "", "", []string{test.ID, prod.ID}},
			"writer in prod":  {inProd, 0, "", "", "", []string{prod.ID}},
			"reader":          {reader(), problem.Forbidden, "permission_missing", "permission_missing", "permission_missing", nil},
			"stranger":        {stranger(), problem.NotFound, "environment_not_found", "onboarding_not_found", "install_token_not_found", nil},
			"nobody":          {access.Principal{}, problem.NotFound, "environment_not_found", "onboarding_not_found", "install_token_not_found", nil},
			"writer in test":  {grant(access.Scope{ClientID: "acme", EnvironmentID: "acme-test"}, access.HostsRead, access.HostsWrite), problem.NotFound, "environment_not_found", "onboarding_not_found", "install_token_not_found", []string{test.ID}},
			"agents' manager": {grant(access.Scope{ClientID: "acme"}, access.AgentsRead, access.AgentsWrite), problem.NotFound, "environment_not_found", "onboarding_not_found", "install_token_not_found", nil},
		} {
			if c.kind != 0 {
				check := func(what, code string, err error) {
					t.Helper()
					if !problem.Is(err, c.kind) || problem.CodeOf(err) != code {
						t.Errorf("%s %s: %v, want %s", name, what, err, code)
					}
				}
				_, _, err := d.Mint(ctx, c.p, enrollment.MintRequest{ClientID: "acme", EnvironmentID: "acme-prod"})
				check("mints", c.mint, err)
				_, _, err = d.Mint(ctx, c.p, enrollment.MintRequest{ClientID: "acme", OnboardingID: "onb"})
				check("mints for the attempt", c.attempt, err)
				check("revokes", c.token, d.Revoke(ctx, c.p, prod.ID))
			}
			found, total, err := d.Tokens(ctx, c.p, enrollment.TokenQuery{ClientID: "acme"})
			must(t, err)
			var ids []string
			for _, token := range found {
				ids = append(ids, token.ID)
			}
			if diff := cmp.Diff(c.lists, ids); diff != "" || total != len(ids) {
				t.Errorf("%s lists: %s", name, diff)
			}
		}
		want(t, d.Revoke(ctx, writer(), "tok_none"), problem.NotFound, "install_token_not_found")
		if got := d.token(prod.ID); !got.RevokedAt.IsZero() || d.db.Audits(t, "install_token_minted") != 2 {
			t.Errorf("somebody got through: %+v", got)
		}
	})
}

func TestRevokingAToken(t *testing.T) {
	atDesks(t, func(t *testing.T, d *desk) {
		token, plain := d.mint(nil)
		p := d.pod("a")
		p.in(plain)
		d.clock.Advance(time.Minute)
		must(t, d.Revoke(t.Context(), writer(), token.ID))
		at := d.clock.Now()
		d.clock.Advance(time.Minute)
		must(t, d.Revoke(t.Context(), writer(), token.ID)) // twice is no error
		if got := d.token(token.ID); !got.RevokedAt.Equal(at) || got.State(at) != enrollment.StateRevoked || d.db.Audits(t, "install_token_revoked") != 1 {
			t.Errorf("%+v with %d audit rows", got, d.db.Audits(t, "install_token_revoked"))
		}
		_, err := d.pod("b").enroll(plain)
		want(t, err, problem.Forbidden, enrollment.CodeTokenRevoked)
		if n := d.agents(); n != 1 { // who is in stays
			t.Errorf("%d agents", n)
		}
	})
}

func TestFindings(t *testing.T) {
	post := func(name string, items ...enrollment.Finding) enrollment.FindingsPost {
		return enrollment.FindingsPost{AgentType: fleet.TypeCollector, Name: name, ClusterSlug: "alpha", Version: "0.9.0", Items: items}
	}
	fault := enrollment.Finding{Check: "nats", Status: "failed", Message: "no route to host", Cure: "open port 443"}
	atDesks(t, func(t *testing.T, d *desk) {
		ctx := t.Context()
		d.attempt("onb", "alpha")
		token, plain := d.mint(func(r *enrollment.MintRequest) { r.OnboardingID = "onb" })
		must(t, d.PostFindings(ctx, plain+"\n", post("a", fault, fault)))
		d.clock.Advance(time.Minute)
		forged := fault
		forged.At = d.clock.Now().Add(1000 * time.Hour) // the agent's clock plays no part
		must(t, d.PostFindings(ctx, plain, post("a", forged)))
		found, err := d.db.Enrollment().FindingsOfOnboarding(ctx, "onb")
		must(t, err)
		stored := fault
		stored.At = d.clock.Now()
		if diff := cmp.Diff([]enrollment.Findings{{
			TokenID: token.ID, AgentName: "a", ClusterSlug: "alpha", Version: "0.9.0", ReceivedAt: d.clock.Now(), Items: []enrollment.Finding{stored},
		}}, found); diff != "" {
			t.Error(diff)
		}
		// A token that admits nobody any more still says who speaks.
		d.clock.Advance(48 * time.Hour)
		must(t, d.PostFindings(ctx, plain, post("b")))
		want(t, d.PostFindings(ctx, "pit_x", post("a")), problem.Unauthenticated, enrollment.CodeTokenUnknown)

		many := make([]enrollment.Finding, 41)
		for i := range many {
			many[i] = fault
		}
		for name, bad := range map[string]enrollment.FindingsPost{
			"too many":             post("c", many...),
			"no name":              post(""),
			"NUL in the name":      post("c\x00"),
			"name is not UTF-8":    post("c\xff"),
			"name of 10 kB":        post(strings.Repeat("c", 10_000)),
			"no slug":              {Name: "c", ClusterSlug: "C C"},
			"version with NUL":     {Name: "c", Version: "\x00"},
			"no check":             post("c", enrollment.Finding{Status: "ok"}),
			"long check":           post("c", enrollment.Finding{Check: strings.Repeat("c", 65), Status: "ok"}),
			"unknown status":       post("c", enrollment.Finding{Check: "c", Status: "passed"}),
			"long message":         post("c", enrollment.Finding{Check: "c", Status: "ok", Message: strings.Repeat("ж", 1025)}),
			"NUL in the message":   post("c", enrollment.Finding{Check: "c", Status: "ok", Message: "\x00"}),
			"long cure":            post("c", enrollment.Finding{Check: "c", Status: "ok", Cure: strings.Repeat("c", 1025)}),
			"message is not UTF-8": post("c", enrollment.Finding{Check: "c", Status: "ok", Message: "\xff"}),
		} {
			if err := d.PostFindings(ctx, plain, bad); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		must(t, d.PostFindings(ctx, plain, post("d", many[:40]...)))
		must(t, d.PostFindings(ctx, plain, post("d", enrollment.Finding{Check: "c", Status: "ok", Message: strings.Repeat("ж", 1024)})))

		// Of one token fifty names are kept, the newest.
		for i := range 60 {
			d.clock.Advance(time.Second)
			must(t, d.PostFindings(ctx, plain, post(fmt.Sprintf("agent-%02d", i))))
		}
		found, err = d.db.Enrollment().FindingsOfOnboarding(ctx, "onb")
		must(t, err)
		if len(found) != 50 || found[0].AgentName != "agent-59" || found[49].AgentName != "agent-10" {
			t.Errorf("%d findings are kept", len(found))
		}
		if got := d.token(token.ID); got.Uses != 0 || !got.Refusal.At.IsZero() {
			t.Errorf("findings changed the token: %+v", got)
		}
	})
}
