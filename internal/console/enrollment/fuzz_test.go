package enrollment_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/wire"
)

// FuzzEnroll: on either database a stranger with a token is stored with the words that it signed, or refused with
// a code, a cure and no use spent. With one part of the proof forged, it is refused.
func FuzzEnroll(f *testing.F) {
	desks := []*desk{newDesk(f, engines.SQLite(f)), newDesk(f, engines.Postgres(f))}
	var tokens, plains []string
	for _, d := range desks {
		token, plain := d.mint(func(r *enrollment.MintRequest) { r.MaxUses = 0 })
		tokens, plains = append(tokens, token.ID), append(plains, plain)
	}
	const collector, version = string(fleet.TypeCollector), "0.9.0"
	f.Add(collector, "web-0", "alpha", version, 1, "", "", "")
	f.Add(string(fleet.TypeHost), "host.example", "", "v0.9.0-dev+abc", -1, "", "", "")
	f.Add("x", "a\x00b", "Alpha", "0.8.0", 1, "", "", "")
	f.Add(collector, strings.Repeat("é", 300), "alpha\n", "\xff", 1, "", "", "")
	f.Add(collector, "web-1", "alpha", version, 1, "UAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "", "")
	f.Add(collector, "web-2", "alpha", version, 1, "", strings.Repeat("A", 75), "")
	f.Add(collector, "web-3", "alpha", version, 1, "", "", strings.Repeat("A", 86))
	f.Fuzz(func(t *testing.T, agentType, name, clusterSlug, version string, capability int, key, challenge, signature string) {
		for i, d := range desks {
			d.t = t
			p := d.pod(name)
			p.AgentType, p.ClusterSlug, p.Version, p.Capability = fleet.Type(agentType), clusterSlug, version, capability
			request := p.proof()
			for part, forged := range map[*string]string{&request.PublicKey: key, &request.Challenge: challenge, &request.Signature: signature} {
				if forged != "" {
					*part = forged
				}
			}
			before, agents := d.token(tokens[i]), d.agents()
			resp, err := d.Enroll(t.Context(), plains[i], request, "198.51.100.7")
			after := d.token(tokens[i])
			if err != nil {
				refused, ok := errors.AsType[*problem.Error](err)
				if !ok || refused.Code == "" || refused.Cure == "" || refused.Kind.Status() >= 500 {
					t.Errorf("refused as %v", err)
				}
				if after.Uses != before.Uses || d.agents() != agents {
					t.Errorf("refused as %v, with %d uses instead of %d and %d agents instead of %d", err, after.Uses, before.Uses, d.agents(), agents)
				}
				continue
			}
			if key+challenge+signature != "" {
				t.Errorf("a forged proof got in: %+v", request)
			}
			stored, err := d.db.Fleet().Agent(t.Context(), resp.Agent.ID)
			must(t, err)
			want := fleet.Agent{Type: fleet.Type(agentType), Name: name, ClusterSlug: clusterSlug, Version: version, Capability: capability, PublicKey: p.public}
			got := fleet.Agent{Type: stored.Type, Name: stored.Name, ClusterSlug: stored.ClusterSlug, Version: stored.Version, Capability: stored.Capability, PublicKey: stored.PublicKey}
			if diff := cmp.Diff(want, got); diff != "" || after.Uses != before.Uses+1 {
				t.Errorf("%d uses after %d: %s", after.Uses, before.Uses, diff)
			}
		}
	})
}

// FuzzFindings: on either database a self-check is kept as it was sent, or refused with the field and a cure.
func FuzzFindings(f *testing.F) {
	desks := []*desk{newDesk(f, engines.SQLite(f)), newDesk(f, engines.Postgres(f))}
	var plains []string
	for _, d := range desks {
		d.attempt("onb", "alpha")
		_, plain := d.mint(func(r *enrollment.MintRequest) { r.OnboardingID = "onb" })
		plains = append(plains, plain)
	}
	f.Add("web-0", "alpha", "0.9.0", "dns", "ok", "The name resolves.", "", uint8(1))
	f.Add("web-0", "", "", "tcp", "failed", "a\nb", strings.Repeat("é", 1024), uint8(40))
	f.Add("web-0", "", "", "tcp", "failed", strings.Repeat("é", 1025), "", uint8(1))
	f.Add("web\x00", "-", "\xff", "", "passed", "\x00", "\xff", uint8(41))
	f.Add("web-0", "", "", "tcp", "ok", "a\x00b", "", uint8(1))
	f.Add("web-0", "", "", "", "", "", "", uint8(0))
	f.Fuzz(func(t *testing.T, name, clusterSlug, version, check, status, message, cure string, count uint8) {
		for i, d := range desks {
			d.t = t
			d.clock.Advance(time.Microsecond) // the newest names are kept
			post := enrollment.FindingsPost{AgentType: fleet.TypeCollector, Name: name, ClusterSlug: clusterSlug, Version: version}
			for range count {
				post.Items = append(post.Items, enrollment.Finding{Check: check, Status: status, Message: message, Cure: cure, At: d.clock.Now()})
			}
			if err := d.PostFindings(t.Context(), plains[i], post); err != nil {
				refused, ok := errors.AsType[*problem.Error](err)
				if !ok || refused.Kind != problem.Invalid || refused.Field == "" || refused.Cure == "" {
					t.Errorf("refused as %.2000v", err)
				}
				continue
			}
			if len(name) > wire.MaxName || count > 40 || len(message)+len(cure) > 2*4*1024 || count > 0 && strings.ContainsRune(name+version+check+message+cure, 0) {
				t.Errorf("%d findings of %.2000q and %.2000q under the name %.500q were taken", count, message, cure, name)
			}
			kept, err := d.db.Enrollment().FindingsOfOnboarding(t.Context(), "onb")
			must(t, err)
			found := false
			for _, k := range kept {
				if k.AgentName == name {
					found = k.ClusterSlug == clusterSlug && k.Version == version && cmp.Equal(k.Items, post.Items, cmpopts.EquateEmpty())
				}
			}
			if !found || len(kept) > 50 {
				t.Errorf("sent %.2000v, and of %d that are kept none is the same", post, len(kept))
			}
		}
	})
}
