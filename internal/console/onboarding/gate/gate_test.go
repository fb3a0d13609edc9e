package gate

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden file anew")

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func facts(change func(*Facts)) Facts {
	token := Token{Prefix: "pit_AB12", CreatedAt: noon.Add(-time.Hour), ExpiresAt: noon.Add(23 * time.Hour), Uses: 1, MaxUses: 25, Collectors: 1, SucceededAt: noon.Add(-50 * time.Minute)}
	collector := Collector{Name: "halden-prod", Slug: "halden-prod", Version: "0.9.0", EnrolledAt: noon.Add(-50 * time.Minute), HeartbeatAt: noon.Add(-11 * time.Second), PresenceAt: noon.Add(-9 * time.Second), Leads: true, CredentialExpiresAt: noon.Add(6 * 24 * time.Hour)}
	f := Facts{
		Slug: "halden-prod", Environment: "prod", SyncInterval: 5 * time.Minute,
		Tokens:     Measured([]Token{token}, noon),
		Collectors: Measured([]Collector{collector}, noon),
		Cluster:    Measured(&Cluster{Ours: true, Publisher: "halden-prod", UID: "uid-1", FirstSyncAt: noon.Add(-49 * time.Minute), LastSyncAt: noon.Add(-2 * time.Minute), Nodes: 24, Namespaces: 61, Workloads: 418, Pods: 900}, noon),
		Findings:   Measured([]Finding(nil), noon),
		Others:     Measured([]Collector(nil), noon),
	}
	if change != nil {
		change(&f)
	}
	return f
}

func noCollector(f *Facts) {
	f.Collectors.Value = nil
	f.Cluster.Value = nil
	f.Tokens.Value[0].Collectors, f.Tokens.Value[0].Uses, f.Tokens.Value[0].SucceededAt = 0, 0, time.Time{}
}

func refused(code string) func(*Facts) {
	return func(f *Facts) {
		noCollector(f)
		f.Tokens.Value[0].Refusal = Refusal{At: noon.Add(-time.Minute), Code: code, AgentName: "halden-prod", Slug: "halden-prod", AgentType: "collector", Version: "0.8.0", Address: "203.0.113.7"}
	}
}

// stranger is a refusal beside the collector that enrolled.
func stranger(code, name string, at time.Time) func(*Facts) {
	return func(f *Facts) {
		f.Tokens.Value[0].Refusal = Refusal{At: at, Code: code, AgentName: name, Slug: "halden-prod", AgentType: "collector", Version: "0.9.0", Address: "203.0.113.7"}
	}
}

// beside is a second collector of the attempt, silent for a while.
func beside(name, slug string, silent time.Duration) func(*Facts) {
	return func(f *Facts) {
		f.Collectors.Value = append(f.Collectors.Value, Collector{Name: name, Slug: slug, Version: "0.9.0", EnrolledAt: noon.Add(-40 * time.Minute), PresenceAt: noon.Add(-silent)})
	}
}

// suspend makes the collector one that Console suspended so long ago, and that was heard until then.
func suspend(f *Facts, i int, since time.Duration) {
	at := noon.Add(-since)
	c := &f.Collectors.Value[i]
	c.SuspendedAt, c.SuspendedUntil = at, at.Add(10*time.Minute)
	c.PresenceAt = at.Add(-4 * time.Second)
	if !c.HeartbeatAt.IsZero() {
		c.HeartbeatAt = at.Add(-6 * time.Second)
	}
}

// holder is a collector on the slug that enrolled with the token of another install.
func holder(change func(*Collector)) func(*Facts) {
	return func(f *Facts) {
		noCollector(f)
		c := Collector{Name: "halden-prod", Slug: "halden-prod", EnrolledAt: noon.Add(-72 * time.Hour), HeartbeatAt: noon.Add(-4 * time.Second), PresenceAt: noon.Add(-9 * time.Second), Leads: true}
		change(&c)
		f.Others = Measured([]Collector{c}, noon)
	}
}

// story is one situation whose sentences the golden file shows.
type story struct {
	name   string
	change func(*Facts)
}

func stories() []story {
	return []story{
		{"all four passed", nil},
		{"nothing has run", noCollector},
		{"tokens unread", func(f *Facts) { f.Tokens = CouldNotRead[[]Token]("the database did not answer", noon) }},
		{"agents unread", func(f *Facts) { f.Collectors = CouldNotRead[[]Collector]("the database did not answer", noon) }},
		{"agents unread, no inventory", func(f *Facts) {
			f.Collectors = CouldNotRead[[]Collector]("the database did not answer", noon)
			f.Cluster.Value = nil
		}},
		{"self-checks unread", func(f *Facts) { f.Findings = CouldNotRead[[]Finding]("the database did not answer", noon) }},
		{"cluster unread", func(f *Facts) { f.Cluster = CouldNotRead[*Cluster]("the database did not answer", noon) }},
		{"no token", func(f *Facts) { noCollector(f); f.Tokens.Value = nil }},
		{"token expired unused", func(f *Facts) { noCollector(f); f.Tokens.Value[0].ExpiresAt = noon.Add(-time.Hour) }},
		{"token expired, used by node agents only", func(f *Facts) {
			noCollector(f)
			f.Tokens.Value[0].Others, f.Tokens.Value[0].ExpiresAt = 3, noon.Add(-time.Hour)
		}},
		{"token live, used by node agents only", func(f *Facts) { noCollector(f); f.Tokens.Value[0].Others = 3 }},
		{"token expired, its agent deleted since", func(f *Facts) {
			noCollector(f)
			t := &f.Tokens.Value[0]
			t.ExpiresAt, t.Uses, t.Collectors, t.Gone = noon.Add(-time.Hour), 1, 0, 1
		}},
		{"token expired after enrolment", func(f *Facts) { f.Tokens.Value[0].ExpiresAt = noon.Add(-time.Hour) }},
		{"token used up before a collector", func(f *Facts) { noCollector(f); f.Tokens.Value[0].Uses = 25; f.Tokens.Value[0].Others = 25 }},
		{"token used up after a collector", func(f *Facts) { f.Tokens.Value[0].Uses = 25 }},
		{"token revoked unused", func(f *Facts) { noCollector(f); f.Tokens.Value[0].RevokedAt = noon.Add(-time.Minute) }},
		{"token revoked after enrolment", func(f *Facts) { f.Tokens.Value[0].RevokedAt = noon.Add(-time.Minute) }},
		{"token pinned", func(f *Facts) { noCollector(f); f.Tokens.Value[0].PinnedTo = "k8s-node-monitor" }},
		{"refused: token_expired", refused("token_expired")},
		{"refused: token_used_up", refused("token_used_up")},
		{"refused: token_revoked", refused("token_revoked")},
		{"refused: token_wrong_type", refused("token_wrong_type")},
		{"refused: already_enrolled", refused("already_enrolled")},
		{"refused: agent_too_old", refused("agent_too_old")},
		{"refused: agent_revoked", refused("agent_revoked")},
		{"refused: agent_suspended", refused("agent_suspended")},
		{"refused: key_in_use", refused("key_in_use")},
		{"refused: proof_invalid", refused("proof_invalid")},
		{"refused: invalid_request", refused("invalid_request")},
		{"refused: a code of a later Console", refused("moon_phase")},
		{"refused: a stranger with the name of a healthy collector", stranger("already_enrolled", "halden-prod", noon.Add(-time.Minute))},
		{"refused: a moment after the collector of that name was heard", stranger("already_enrolled", "halden-prod", noon.Add(-2*time.Second))},
		{"refused: a further replica beside a healthy collector", stranger("token_used_up", "agent-1", noon.Add(-time.Minute))},
		{"refused: a stranger, hours ago", stranger("already_enrolled", "halden-prod", noon.Add(-3*time.Hour))},
		{"refused: the pod lost its state", func(f *Facts) {
			stranger("already_enrolled", "halden-prod", noon.Add(-3*time.Second))(f)
			f.Collectors.Value[0].HeartbeatAt, f.Collectors.Value[0].PresenceAt = noon.Add(-2*time.Minute), noon.Add(-2*time.Minute)
		}},
		{"refused: the healthy collector is of another slug", func(f *Facts) {
			stranger("already_enrolled", "halden-prod", noon.Add(-time.Minute))(f)
			f.Collectors.Value[0].Slug = "halden-prd"
			f.Cluster.Value = nil
		}},
		{"refused: the collector was released", func(f *Facts) {
			stranger("token_expired", "halden-prod", noon.Add(-time.Minute))(f)
			f.Collectors.Value[0].ReleasedAt = noon.Add(-5 * time.Minute)
		}},
		{"refused, and the agents could not be read", func(f *Facts) {
			stranger("already_enrolled", "halden-prod", noon.Add(-time.Minute))(f)
			f.Collectors = CouldNotRead[[]Collector]("the database did not answer", noon)
		}},
		{"self-check failed before enrolling", func(f *Facts) {
			noCollector(f)
			f.Findings.Value = []Finding{{Agent: "halden-prod", Check: "tls", Status: "failed", Message: "The certificate of the backend is not trusted.", Cure: "Set PROXIMA_CA_FILE.", At: noon.Add(-time.Minute)}}
		}},
		{"collector revoked", func(f *Facts) { f.Collectors.Value[0].RevokedAt = noon.Add(-time.Minute) }},
		{"enrolled, no heartbeat yet", func(f *Facts) {
			c := &f.Collectors.Value[0]
			c.EnrolledAt, c.HeartbeatAt, c.PresenceAt = noon.Add(-time.Minute), time.Time{}, time.Time{}
			f.Cluster.Value = nil
		}},
		{"enrolled, never a heartbeat", func(f *Facts) {
			c := &f.Collectors.Value[0]
			c.HeartbeatAt, c.PresenceAt = time.Time{}, time.Time{}
			f.Cluster.Value = nil
		}},
		{"collector silent", func(f *Facts) {
			f.Collectors.Value[0].HeartbeatAt, f.Collectors.Value[0].PresenceAt = noon.Add(-26*time.Minute), noon.Add(-26*time.Minute)
		}},
		{"collector silent, credential expired", func(f *Facts) {
			c := &f.Collectors.Value[0]
			c.HeartbeatAt, c.PresenceAt, c.CredentialExpiresAt = noon.Add(-26*time.Minute), time.Time{}, noon.Add(-20*time.Minute)
		}},
		{"standbys without a leader", func(f *Facts) { f.Collectors.Value[0].HeartbeatAt = noon.Add(-26 * time.Minute) }},
		{"three replicas", func(f *Facts) {
			for _, n := range []string{"agent-1", "agent-2"} {
				f.Collectors.Value = append(f.Collectors.Value, Collector{Name: n, Slug: "halden-prod", Version: "0.9.0", EnrolledAt: noon.Add(-40 * time.Minute), PresenceAt: noon.Add(-5 * time.Second)})
			}
		}},
		{"a replica that is gone is no standby", beside("agent-1", "halden-prod", 3*time.Minute)},
		{"a collector of another slug is no standby", beside("own2", "own2", 5*time.Second)},
		{"silent, while a collector of another slug reports", func(f *Facts) {
			beside("own2", "own2", 5*time.Second)(f)
			f.Collectors.Value[1].HeartbeatAt = noon.Add(-5 * time.Second)
			f.Collectors.Value[0].HeartbeatAt, f.Collectors.Value[0].PresenceAt = noon.Add(-26*time.Minute), noon.Add(-26*time.Minute)
		}},
		{"three replicas, all silent", func(f *Facts) {
			f.Collectors.Value[0].HeartbeatAt, f.Collectors.Value[0].PresenceAt = noon.Add(-26*time.Minute), noon.Add(-26*time.Minute)
			f.Collectors.Value = append(f.Collectors.Value, Collector{Name: "agent-1", Slug: "halden-prod", EnrolledAt: noon.Add(-40 * time.Minute)})
		}},
		{"suspended a moment ago", func(f *Facts) { suspend(f, 0, 10*time.Second) }},
		{"suspended, and the window is over", func(f *Facts) {
			suspend(f, 0, 7*time.Minute)
			f.Cluster.Value.LastSyncAt = noon.Add(-8 * time.Minute)
		}},
		{"suspended, and the inventory is old", func(f *Facts) {
			suspend(f, 0, 4*time.Minute)
			f.Cluster.Value.LastSyncAt = noon.Add(-11 * time.Minute)
		}},
		{"suspended before its first inventory", func(f *Facts) {
			suspend(f, 0, 4*time.Minute)
			f.Cluster.Value = nil
		}},
		{"suspended before its first inventory, inside the budget", func(f *Facts) {
			suspend(f, 0, time.Minute)
			f.Collectors.Value[0].EnrolledAt = noon.Add(-4 * time.Minute)
			f.Cluster.Value = nil
		}},
		{"suspended before its first heartbeat", func(f *Facts) {
			suspend(f, 0, 30*time.Second)
			c := &f.Collectors.Value[0]
			c.EnrolledAt, c.HeartbeatAt, c.PresenceAt = noon.Add(-time.Minute), time.Time{}, time.Time{}
			f.Cluster.Value = nil
		}},
		{"suspended, while another install has the slug", func(f *Facts) {
			suspend(f, 0, 4*time.Minute)
			f.Cluster.Value.Ours, f.Cluster.Value.Publisher = false, "old-agent"
		}},
		{"the leader is suspended, and a standby is there", func(f *Facts) {
			beside("agent-1", "halden-prod", 5*time.Second)(f)
			suspend(f, 0, time.Minute)
		}},
		{"the leader is suspended and still holds the Lease", func(f *Facts) {
			beside("agent-1", "halden-prod", 5*time.Second)(f)
			suspend(f, 0, 7*time.Minute)
		}},
		{"the leader is suspended, and the standby was gone long before", func(f *Facts) {
			beside("agent-1", "halden-prod", 2*time.Hour)(f)
			suspend(f, 0, time.Minute)
		}},
		{"suspended, and a stranger was refused", func(f *Facts) {
			suspend(f, 0, time.Minute)
			stranger("token_expired", "other-agent", noon.Add(-2*time.Minute))(f)
		}},
		{"both replicas are suspended", func(f *Facts) {
			beside("agent-1", "halden-prod", 6*time.Minute)(f)
			suspend(f, 0, 7*time.Minute)
			suspend(f, 1, 6*time.Minute)
		}},
		{"suspended, and the other replica revoked", func(f *Facts) {
			beside("agent-1", "halden-prod", 6*time.Minute)(f)
			suspend(f, 0, 7*time.Minute)
			f.Collectors.Value[1].RevokedAt = noon.Add(-time.Minute)
		}},
		{"suspended and revoked", func(f *Facts) {
			suspend(f, 0, 7*time.Minute)
			f.Collectors.Value[0].RevokedAt = noon.Add(-time.Minute)
		}},
		{"the suspension ended, and it did not come back", func(f *Facts) { suspend(f, 0, 12*time.Minute) }},
		{"the suspension ended, and it came back", func(f *Facts) {
			suspend(f, 0, 12*time.Minute)
			f.Collectors.Value[0].HeartbeatAt, f.Collectors.Value[0].PresenceAt = noon.Add(-5*time.Second), noon.Add(-5*time.Second)
		}},
		{"suspended, and its pod lost its state", func(f *Facts) {
			suspend(f, 0, 3*time.Minute)
			stranger("agent_suspended", "halden-prod", noon.Add(-time.Minute))(f)
		}},
		{"sync inside the budget", func(f *Facts) { f.Cluster.Value = nil; f.Collectors.Value[0].EnrolledAt = noon.Add(-4 * time.Minute) }},
		{"sync late", func(f *Facts) { f.Cluster.Value = nil }},
		{"sync late, collector reports an error", func(f *Facts) {
			f.Cluster.Value = nil
			f.Collectors.Value[0].ReportedError, f.Collectors.Value[0].ReportedAt = "list pods: forbidden", noon.Add(-time.Minute)
		}},
		{"sync old", func(f *Facts) { f.Cluster.Value.LastSyncAt = noon.Add(-11 * time.Minute) }},
		{"late, and the collector says why", func(f *Facts) {
			f.Cluster.Value.LastSyncAt = noon.Add(-11 * time.Minute)
			f.Collectors.Value[0].ReportedError, f.Collectors.Value[0].ReportedAt = "the API server does not answer", noon.Add(-time.Minute)
		}},
		{"kind unread", func(f *Facts) {
			f.Cluster.Value.Unread = []UnreadKind{{"pods", "forbidden"}, {"events", "unavailable"}, {"services", "not_served"}}
		}},
		{"kinds forbidden", func(f *Facts) {
			f.Cluster.Value.Unread = []UnreadKind{{"pods", "forbidden"}, {"nodes", "forbidden"}}
		}},
		{"kind not served", func(f *Facts) { f.Cluster.Value.Unread = []UnreadKind{{"deployments", "not_served"}} }},
		{"kind unavailable", func(f *Facts) { f.Cluster.Value.Unread = []UnreadKind{{"events", "unavailable"}} }},
		{"same cluster under another slug", func(f *Facts) { f.Cluster.Value.SameUID = []string{"halden-old"} }},
		{"another slug", func(f *Facts) { f.Cluster.Value = nil; f.Collectors.Value[0].Slug = "halden-prd" }},
		{"cluster of another install, inside the budget", func(f *Facts) {
			f.Cluster.Value.Ours, f.Cluster.Value.Publisher = false, "old-agent"
			f.Collectors.Value[0].EnrolledAt = noon.Add(-4 * time.Minute)
		}},
		{"cluster of another install, late", func(f *Facts) { f.Cluster.Value.Ours, f.Cluster.Value.Publisher = false, "" }},
		{"rebuilt cluster", func(f *Facts) {
			f.Cluster.Value.Conflict = Conflict{UID: "uid-2", Sender: "halden-prod", Ours: true, Publisher: true, FirstSeenAt: noon.Add(-time.Minute), SeenAt: noon.Add(-time.Minute)}
		}},
		{"rebuilt cluster, reported by another agent", func(f *Facts) {
			f.Cluster.Value.Conflict = Conflict{UID: "uid-2", Sender: "agent-1", Ours: true, FirstSeenAt: noon.Add(-time.Minute), SeenAt: noon.Add(-time.Minute)}
		}},
		{"another cluster, reported by an agent of another install", func(f *Facts) {
			f.Cluster.Value.Conflict = Conflict{UID: "uid-2", Sender: "somebody-else", FirstSeenAt: noon.Add(-time.Minute), SeenAt: noon.Add(-time.Minute)}
		}},
		{"rebuilt cluster, before the first heartbeat", func(f *Facts) {
			c := &f.Collectors.Value[0]
			c.EnrolledAt, c.HeartbeatAt, c.PresenceAt = noon.Add(-time.Minute), time.Time{}, time.Time{}
			f.Cluster.Value.Conflict = Conflict{UID: "uid-2", Sender: "halden-prod", Ours: true, FirstSeenAt: noon.Add(-time.Second), SeenAt: noon.Add(-time.Second)}
		}},
		{"two clusters run", func(f *Facts) {
			f.Cluster.Value.Conflict = Conflict{UID: "uid-2", Sender: "agent-1", Ours: true, FirstSeenAt: noon.Add(-time.Hour), SeenAt: noon.Add(-3 * time.Minute)}
		}},
		{"two clusters run with one identity", func(f *Facts) {
			f.Cluster.Value.Conflict = Conflict{UID: "uid-2", Sender: "halden-prod", Ours: true, Publisher: true, FirstSeenAt: noon.Add(-time.Hour), SeenAt: noon.Add(-3 * time.Minute)}
		}},
		{"two clusters ran, and the stored one is gone", func(f *Facts) {
			f.Cluster.Value.LastSyncAt = noon.Add(-20 * time.Minute)
			f.Cluster.Value.Conflict = Conflict{UID: "uid-2", Sender: "agent-1", Ours: true, FirstSeenAt: noon.Add(-time.Hour), SeenAt: noon.Add(-3 * time.Minute)}
		}},
		{"the other cluster went quiet", func(f *Facts) {
			f.Cluster.Value.Conflict = Conflict{UID: "uid-2", Sender: "agent-1", Ours: true, FirstSeenAt: noon.Add(-time.Hour), SeenAt: noon.Add(-11 * time.Minute)}
		}},
		{"archived, and nothing came since", func(f *Facts) { f.RemovedAt = noon.Add(-5 * time.Minute); f.Cluster.Value = nil }},
		{"archived, the collector is silent", func(f *Facts) {
			f.RemovedAt = noon.Add(-3 * time.Hour)
			f.Collectors.Value[0].HeartbeatAt, f.Collectors.Value[0].PresenceAt = noon.Add(-4*time.Hour), noon.Add(-4*time.Hour)
			f.Cluster.Value = nil
		}},
		{"archived, and the collector publishes again", func(f *Facts) { f.RemovedAt = noon.Add(-5 * time.Minute) }},
		{"archived, and another install has the slug", func(f *Facts) {
			f.RemovedAt = noon.Add(-5 * time.Minute)
			f.Cluster.Value.Ours, f.Cluster.Value.Publisher = false, "new-agent"
		}},
		{"archived before anything enrolled, its token dead", func(f *Facts) {
			noCollector(f)
			f.Tokens.Value[0].ExpiresAt, f.RemovedAt = noon.Add(-time.Hour), noon.Add(-5*time.Minute)
		}},
		{"an agent of an earlier install holds the slug", holder(func(*Collector) {})},
		{"an agent of an earlier install is silent", holder(func(c *Collector) { c.HeartbeatAt, c.PresenceAt = noon.Add(-48*time.Hour), noon.Add(-48*time.Hour) })},
		{"an agent of an earlier install is revoked", holder(func(c *Collector) { c.RevokedAt = noon.Add(-time.Hour) })},
		{"an agent of an earlier install is released", holder(func(c *Collector) { c.ReleasedAt = noon.Add(-time.Hour) })},
		{"an agent of an earlier install was never heard", holder(func(c *Collector) { c.HeartbeatAt, c.PresenceAt = time.Time{}, time.Time{} })},
		{"an agent of an earlier install holds the slug, its cluster stands", func(f *Facts) {
			stored := *f.Cluster.Value
			holder(func(*Collector) {})(f)
			stored.Ours = false
			f.Cluster.Value = &stored
		}},
		{"archived, and the agents could not be read", func(f *Facts) {
			f.RemovedAt, f.Cluster.Value.Ours = noon.Add(-5*time.Minute), false
			f.Collectors = CouldNotRead[[]Collector]("the database did not answer", noon)
		}},
		{"agents of earlier installs unread", func(f *Facts) {
			noCollector(f)
			f.Others = CouldNotRead[[]Collector]("the database did not answer", noon)
		}},
		{"interval differs", func(f *Facts) {
			f.SyncInterval = 90 * time.Second
			f.Collectors.Value[0].ReportedInterval = time.Hour
			f.Cluster.Value = nil
		}},
		{"the sync is stale, and the collector's interval is longer", func(f *Facts) {
			f.SyncInterval = 90 * time.Second
			f.Collectors.Value[0].ReportedInterval = time.Hour
			f.Cluster.Value.LastSyncAt = noon.Add(-4 * time.Minute)
		}},
		{"the leader was killed, and another follows", func(f *Facts) {
			dead, next := f.Collectors.Value[0], f.Collectors.Value[0]
			dead.HeartbeatAt, dead.PresenceAt = noon.Add(-40*time.Second), noon.Add(-40*time.Second)
			next.Name, next.HeartbeatAt = "halden-prod-1", noon.Add(-3*time.Second)
			f.Collectors.Value = []Collector{dead, next}
		}},
		{"Console cannot store, and the collector is not heard", func(f *Facts) {
			f.Unstored = "the database does not take it"
			f.Collectors.Value[0].HeartbeatAt, f.Collectors.Value[0].PresenceAt = noon.Add(-6*time.Minute), noon.Add(-6*time.Minute)
			f.Cluster.Value.LastSyncAt = noon.Add(-11 * time.Minute)
		}},
		{"Console cannot store, and the sync is stale", func(f *Facts) {
			f.Unstored = "the database does not take it"
			f.Cluster.Value.LastSyncAt = noon.Add(-11 * time.Minute)
		}},
		{"Console cannot store, and nothing ever came", func(f *Facts) {
			f.Unstored = "the database does not take it"
			f.Collectors.Value[0].HeartbeatAt, f.Collectors.Value[0].PresenceAt = time.Time{}, time.Time{}
			f.Cluster.Value = nil
		}},
		{"Console cannot store, and no inventory ever came", func(f *Facts) {
			f.Unstored = "the database does not take it"
			f.Cluster.Value = nil
		}},
	}
}

func TestSentences(t *testing.T) {
	var out strings.Builder
	for _, s := range stories() {
		fmt.Fprintf(&out, "# %s\n", s.name)
		track := Inventory(facts(s.change), noon)
		for _, g := range track.Gates {
			fmt.Fprintf(&out, "%d %s: %s\n  %s\n", g.Number, g.Title, g.State, g.Sentence)
			if g.Action != nil {
				fmt.Fprintf(&out, "  Next: %s", g.Action.Text)
				if g.Action.Offer != "" {
					fmt.Fprintf(&out, " [%s]", g.Action.Offer)
				}
				if g.Action.Command != "" {
					fmt.Fprintf(&out, " $ %s", g.Action.Command)
				}
				out.WriteString("\n")
			}
			for _, e := range g.Evidence {
				fmt.Fprintf(&out, "  - %s: %s\n", e.Label, e.Value)
			}
		}
		fmt.Fprintf(&out, "  done=%t; %s\n\n", track.Done, track.Owner)
	}
	path := filepath.Join("testdata", "inventory.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("sentences changed; read them, then run with -update (-want +got):\n%s", diff)
	}
}

// TestInvariants judges random facts and holds the verdicts to the rules that no fact may break.
func TestInvariants(t *testing.T) {
	const seed = 20261130
	rng := rand.New(rand.NewPCG(seed, seed))
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	seen := map[string]int{}
	for i := range n {
		f := randomFacts(rng)
		track := Inventory(f, noon)
		if len(track.Gates) != 4 {
			t.Fatalf("seed %d, case %d: %d gates, want 4", seed, i, len(track.Gates))
		}
		passed, stopped := 0, State("")
		for j, g := range track.Gates {
			seen[fmt.Sprintf("%d %s", g.Number, g.State)]++
			fail := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("seed %d, case %d, gate %d: "+format+"\n%s: %s\nfacts: %+v", append([]any{seed, i, g.Number}, append(args, g.State, g.Sentence, f)...)...)
			}
			if g.Number != j+1 || g.Title == "" || g.Sentence == "" || strings.Contains(g.Sentence, "%!") {
				fail("malformed gate")
			}
			unread := []string{f.Tokens.Why(), f.Collectors.Why(), f.Collectors.Why(), f.Cluster.Why()}[j]
			switch g.State {
			case Passed:
				passed++
				if unread != "" || j == 3 && f.Collectors.Why() != "" {
					fail("passed on an unread fact")
				}
			case Blocked:
				if !strings.Contains(g.Sentence, "Nothing was attempted") || !strings.Contains(g.Sentence, "nothing was sent") {
					fail("blocked does not say that nothing was attempted or sent")
				}
			case Waiting:
				if !strings.Contains(g.Sentence, "ends when") && !strings.Contains(g.Sentence, "due within") && !strings.Contains(g.Sentence, "starts when") {
					fail("waiting does not name what ends it")
				}
			case Failed:
				if f.Unstored != "" && (strings.Contains(g.Sentence, "last heard") || strings.Contains(g.Sentence, "never sent") || strings.Contains(g.Sentence, "arrived within")) {
					fail("blames an agent's silence while Console can store nothing")
				}
				if g.Action == nil || g.Action.Text == "" {
					fail("failed without an action")
				}
			case Warning:
			default:
				fail("a sixth state")
			}
			if !f.RemovedAt.IsZero() && (g.State != Passed && g.State != Warning || j == 3 && !strings.Contains(g.Sentence, "removed in Console")) {
				fail("judged although it is archived")
			}
			if j == 1 && g.State == Failed && slices.ContainsFunc(f.Collectors.Value, func(c Collector) bool {
				return c.Slug == f.Slug && c.RevokedAt.IsZero() && c.ReleasedAt.IsZero() && noon.Sub(c.PresenceAt) < time.Minute
			}) {
				fail("failed beside a collector that is present")
			}
			if live, _ := unrevoked(f.replicas()); j > 0 && f.Collectors.Why() == "" && g.State != Passed && f.RemovedAt.IsZero() && len(live) > 0 && (j == 2 && g.State != Blocked || j == 3 && stopped == Failed) &&
				!slices.ContainsFunc(live, func(c Collector) bool { return !noon.Before(c.SuspendedUntil) }) && !strings.Contains(g.Sentence, "Console suspended") {
				fail("hides that Console itself keeps all collectors out")
			}
			if c := f.Cluster.Value; j == 3 && g.State == Blocked && f.Cluster.Why() == "" && c != nil && c.Ours && !strings.Contains(g.Sentence, "The last inventory arrived") {
				fail("denies the inventory that arrived")
			}
			if stopped == Failed && g.State != Blocked && (j != 1 || !strings.Contains(g.Sentence, "refused")) {
				fail("after a failed gate")
			}
			if g.State == Failed || g.State == Blocked {
				stopped = Failed
			}
			if j == 3 && (g.State == Waiting || g.State == Failed) && strings.Contains(g.Sentence, "twice this Console") && !strings.Contains(g.Sentence, limit(f.budget())) {
				fail("the budget is not %s", limit(f.budget()))
			}
		}
		if track.Done != (passed == 4) {
			t.Fatalf("seed %d, case %d: done=%t with %d passed", seed, i, track.Done, passed)
		}
	}
	for _, want := range []string{"1 passed", "1 failed", "1 warning", "2 passed", "2 waiting", "2 blocked", "2 failed", "2 warning", "3 passed", "3 waiting", "3 blocked", "3 failed", "3 warning", "4 passed", "4 waiting", "4 blocked", "4 failed", "4 warning"} {
		if seen[want] == 0 {
			t.Errorf("no random case reached gate %s", want)
		}
	}
}

func randomFacts(rng *rand.Rand) Facts {
	at := func(span time.Duration) time.Time { return noon.Add(-time.Duration(rng.Int64N(int64(span)))) }
	maybe := func(n int) bool { return rng.IntN(n) == 0 }
	sometimes := func(n int, t time.Time) time.Time {
		if maybe(n) {
			return t
		}
		return time.Time{}
	}
	f := Facts{Slug: "s", Environment: "e", SyncInterval: time.Duration(1+rng.IntN(20)) * 30 * time.Second}
	var tokens []Token
	for range rng.IntN(3) {
		t := Token{Prefix: "pit_AAAA", CreatedAt: at(48 * time.Hour), ExpiresAt: noon.Add(time.Duration(rng.IntN(48)-24) * time.Hour), MaxUses: rng.IntN(3), Uses: rng.IntN(3), RevokedAt: sometimes(6, at(time.Hour)), SucceededAt: sometimes(2, at(time.Hour))}
		if maybe(5) {
			t.PinnedTo = "k8s-node-monitor"
		}
		if maybe(6) {
			t.Refusal = Refusal{At: at(time.Hour), Code: []string{"token_expired", "already_enrolled", "other"}[rng.IntN(3)], AgentName: "a"}
		}
		t.Others = rng.IntN(2)
		tokens = append(tokens, t)
	}
	var collectors []Collector
	if len(tokens) > 0 {
		for range rng.IntN(4) {
			c := Collector{Name: "a", Slug: []string{"s", "s", "s", "other"}[rng.IntN(4)], EnrolledAt: at(30 * time.Minute), RevokedAt: sometimes(8, at(time.Hour)), PresenceAt: sometimes(2, at(10*time.Minute)), CredentialExpiresAt: noon.Add(time.Duration(rng.IntN(3)-1) * time.Hour)}
			if !maybe(3) {
				c.HeartbeatAt = at(8 * time.Minute)
			}
			if maybe(5) {
				c.SuspendedAt = at(20 * time.Minute)
				c.SuspendedUntil = c.SuspendedAt.Add(10 * time.Minute)
			}
			collectors = append(collectors, c)
			tokens[0].Collectors++
		}
	}
	f.Tokens, f.Collectors = Measured(tokens, noon), Measured(collectors, noon)
	f.Cluster = Measured[*Cluster](nil, noon)
	if !maybe(3) {
		c := &Cluster{Ours: !maybe(4), UID: "u", FirstSyncAt: at(time.Hour), LastSyncAt: at(15 * time.Minute)}
		if maybe(8) {
			c.Conflict = Conflict{UID: "v", Ours: maybe(2), SeenAt: at(time.Hour)}
		}
		if maybe(6) {
			c.Unread = []UnreadKind{{"pods", "forbidden"}}
		}
		f.Cluster = Measured(c, noon)
	}
	var others []Collector
	for range rng.IntN(3) {
		others = append(others, Collector{Name: "o", Slug: "s", EnrolledAt: at(time.Hour), RevokedAt: sometimes(4, at(time.Hour)), ReleasedAt: sometimes(4, at(time.Hour)), PresenceAt: sometimes(2, at(10*time.Minute))})
	}
	f.Others = Measured(others, noon)
	if maybe(10) {
		f.Unstored = "x"
	}
	if maybe(20) {
		f.RemovedAt = at(time.Hour)
	}
	if maybe(12) {
		f.Tokens = CouldNotRead[[]Token]("x", noon)
	}
	if maybe(12) {
		f.Collectors = CouldNotRead[[]Collector]("x", noon)
	}
	if maybe(12) {
		f.Cluster = CouldNotRead[*Cluster]("x", noon)
	}
	return f
}
