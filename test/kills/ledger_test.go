package kills

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/agent/enroll"
	"prxm.uz/proxima/test/harness"
)

// ledger is what was asked of console and what it acknowledged. Of what it did not answer for, both is right:
// that it was done, and that it was not.
type ledger struct {
	watched string // the attempt of the agent that runs

	mu         sync.Mutex
	asked      map[string]bool // slugs of attempts, and whether they were acknowledged
	attempts   []attempt       // acknowledged
	tokens     map[string]bool // ids of tokens, and whether their revocation was acknowledged
	running    int             // agents that are programs of their own
	identities []*identity
}

// attempt is one that can be used: its token admits agents.
type attempt struct{ id, slug, tokenID, token string }

// identity is an agent that enrolls. It keeps its key over every try, as an agent does.
type identity struct {
	attempt

	name    string
	address string // it calls from
	key     nkeys.KeyPair
	agentID string // "" until acknowledged
	refused string // the code of a refusal
}

func (l *ledger) String() string {
	acknowledged := 0
	for _, i := range l.identities {
		if i.agentID != "" {
			acknowledged++
		}
	}
	return fmt.Sprintf("%d attempts, %d tokens beside their first, %d agents asked to enroll and %d did, and %d that ran",
		len(l.asked), len(l.tokens), len(l.identities), acknowledged, l.running)
}

func (l *ledger) begin(recorded console.OnboardingRecorded) {
	l.watched = recorded.Onboarding.ID
	l.asked = map[string]bool{recorded.Onboarding.Slug: true}
	l.tokens = map[string]bool{}
	l.running = 1
}

// work asks until ctx ends.
func (l *ledger) work(ctx context.Context, h *house, draw *rand.Rand) {
	for ctx.Err() == nil {
		switch a, ok := l.pick(draw); {
		case !ok, draw.IntN(4) == 0:
			l.record(ctx, h, fmt.Sprintf("c-%x", draw.Uint64()))
		case draw.IntN(4) == 0:
			l.mint(ctx, h, a)
		case draw.IntN(8) == 0:
			l.revoke(ctx, h, a)
		default:
			l.enroll(ctx, h, a, fmt.Sprintf("agent-%x", draw.Uint64()))
		}
	}
}

func (l *ledger) pick(draw *rand.Rand) (attempt, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.attempts) == 0 {
		return attempt{}, false
	}
	return l.attempts[draw.IntN(len(l.attempts))], true
}

func (l *ledger) record(ctx context.Context, h *house, slug string) {
	l.mu.Lock()
	l.asked[slug] = l.asked[slug] || false
	l.mu.Unlock()
	recorded, err := h.console.Record(ctx, h.place, slug)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[slug] = true
	if recorded.InstallToken == nil {
		return // asked a second time: the token was shown to nobody
	}
	l.attempts = append(l.attempts, attempt{id: recorded.Onboarding.ID, slug: slug, token: *recorded.InstallToken})
}

func (l *ledger) mint(ctx context.Context, h *house, a attempt) {
	var minted console.InstallTokenMinted
	_, err := h.console.Do(ctx, http.MethodPost, "/api/v1/clients/"+url.PathEscape(h.place.ClientID)+"/install-tokens",
		console.InstallTokenInput{OnboardingID: &a.id}, &minted)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens[minted.InstallToken.ID] = false
	l.attempts = append(l.attempts, attempt{id: a.id, slug: a.slug, tokenID: minted.InstallToken.ID, token: minted.Token})
}

func (l *ledger) revoke(ctx context.Context, h *house, a attempt) {
	if a.tokenID == "" {
		return
	}
	if _, err := h.console.Do(ctx, http.MethodDelete, "/api/v1/install-tokens/"+url.PathEscape(a.tokenID), nil, nil); err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens[a.tokenID] = true
}

func (l *ledger) enroll(ctx context.Context, h *house, a attempt, name string) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return
	}
	l.mu.Lock()
	n := len(l.identities)
	i := &identity{attempt: a, name: name, address: fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255), key: key}
	l.identities = append(l.identities, i)
	l.mu.Unlock()
	_ = i.try(ctx, h) // settled later
}

// try enrolls. It is an error where console did not answer for it.
func (i *identity) try(ctx context.Context, h *house) error {
	client, err := enroll.New(h.console.URL, i.token, &http.Client{Transport: harness.From(i.address)})
	if err != nil {
		return err
	}
	answer, err := client.Enroll(ctx, enroll.Request{AgentType: "collector", Name: i.name, ClusterSlug: i.slug, Version: "0.9.0"}, i.key)
	if refused, ok := enroll.AsRefusal(err); ok && refused.Permanent() {
		i.refused = refused.Code
		return nil
	}
	if err != nil {
		return err
	}
	i.agentID = answer.AgentID
	return nil
}

// settle asks again for what was not answered for, with the same key and the same name: by then it is
// decided.
func (l *ledger) settle(t *testing.T, h *house) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), recovers)
	defer cancel()
	for _, i := range l.identities {
		if i.agentID != "" || i.refused != "" {
			continue
		}
		if err := harness.Await(ctx, "the answer to "+i.name, func(ctx context.Context) error { return i.try(ctx, h) }); err != nil {
			t.Fatal(err)
		}
	}
	for slug, acknowledged := range l.asked {
		if !acknowledged {
			l.record(ctx, h, slug)
		}
	}
}

// holds counts what is stored against what was acknowledged.
func (l *ledger) holds(t *testing.T, h *house) {
	t.Helper()
	asked := slices.Sorted(maps.Keys(l.asked))
	if stored := h.db.Texts(t, "SELECT slug FROM onboardings ORDER BY slug"); !slices.Equal(stored, asked) {
		t.Errorf("attempts %v, want %v", stored, asked)
	}
	h.equal(t, "attempts and their audit rows", "SELECT COUNT(*) FROM onboardings", "SELECT COUNT(*) FROM audit_events WHERE action = 'onboarding_recorded'")
	h.equal(t, "tokens and their audit rows", "SELECT COUNT(*) FROM install_tokens", "SELECT COUNT(*) FROM audit_events WHERE action = 'install_token_minted'")
	h.equal(t, "agents and their audit rows", "SELECT COUNT(*) FROM agents", "SELECT COUNT(*) FROM audit_events WHERE action = 'agent_enrolled'")
	h.none(t, "tokens whose uses are not their agents", "SELECT id FROM install_tokens WHERE uses <> (SELECT COUNT(*) FROM agents WHERE enrolled_by = install_tokens.id)")
	h.none(t, "keys of two agents", "SELECT public_key FROM agents GROUP BY public_key HAVING COUNT(*) > 1")
	h.none(t, "attempts without a token", "SELECT slug FROM onboardings WHERE NOT EXISTS (SELECT 1 FROM install_tokens WHERE onboarding_id = onboardings.id)")
	h.none(t, "inventories of others", "SELECT slug FROM clusters WHERE slug <> 'watched' AND slug NOT LIKE 'newcomer-%'")

	tokens := h.db.Texts(t, "SELECT id FROM install_tokens")
	revoked := h.db.Texts(t, "SELECT id FROM install_tokens WHERE revoked_at IS NOT NULL")
	for id, ended := range l.tokens {
		if !slices.Contains(tokens, id) || ended && !slices.Contains(revoked, id) {
			t.Errorf("the token %s, revoked: %v, is not stored so", id, ended)
		}
	}
	agents := h.db.Texts(t, "SELECT id FROM agents")
	in := 0
	for _, i := range l.identities {
		if i.agentID != "" {
			in++
		}
		if i.agentID != "" && !slices.Contains(agents, i.agentID) {
			t.Errorf("the agent %s was acknowledged as %s and is not stored", i.name, i.agentID)
		}
		if i.refused != "" && i.refused != "token_used_up" && i.refused != "token_revoked" {
			t.Errorf("the agent %s was refused with %s", i.name, i.refused)
		}
	}
	if len(agents) != in+l.running {
		t.Errorf("%d agents, %d enrolled beside the %d that ran", len(agents), in, l.running)
	}
}

func (h *house) equal(t *testing.T, what, one, other string) {
	t.Helper()
	if a, b := h.db.Count(t, one), h.db.Count(t, other); a != b {
		t.Errorf("%s: %d and %d", what, a, b)
	}
}

func (h *house) none(t *testing.T, what, query string) {
	t.Helper()
	if found := h.db.Texts(t, query); len(found) > 0 {
		t.Errorf("%s: %v", what, found)
	}
}
