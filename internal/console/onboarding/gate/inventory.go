package gate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// HeartbeatWindow is how old the freshest heartbeat may be, and how long a collector may take
// after its enrolment to send the first.
const HeartbeatWindow = 5 * time.Minute

// PresenceWindow is within which a replica counts as present: each publishes its status every 30 s
// and two of them may get lost.
const PresenceWindow = 90 * time.Second

// noteStrangerFor is for how long a sentence still speaks of a refusal that fails nothing. The evidence
// keeps it.
const noteStrangerFor = time.Hour

// The gates of the inventory track, in order.
const (
	titleToken     = "Install token issued"
	titleEnrolled  = "Agent enrolled as a collector"
	titleHeartbeat = "Heartbeat fresh"
	titleSync      = "First inventory sync landed"
)

// logCommand shows the collector's log, whichever form installed it.
const logCommand = "kubectl -n proxima-system logs -l app.kubernetes.io/name=proxima-cluster-agent --tail=100 --prefix"

// restartCommand starts the pod again, whose state goes with it unless it lies on a volume.
const restartCommand = "kubectl -n proxima-system rollout restart deployment/proxima-cluster-agent"

// Inventory judges the inventory track: does the cluster appear in Console?
func Inventory(f Facts, now time.Time) Track {
	token := judgeToken(f, now)
	token.Evidence = tokenEvidence(f)

	enrolled := judgeEnrolled(f, token.State, now)
	enrolled.Evidence = enrolledEvidence(f)

	heartbeat, stopped := notReached(enrolled)
	if stopped {
		heartbeat.Sentence += heardBefore(f, now)
	} else {
		heartbeat = judgeHeartbeat(f, now)
	}
	heartbeat.Evidence = heartbeatEvidence(f)

	sync, stopped := notReached(enrolled, heartbeat)
	if stopped {
		sync.Sentence += storedBefore(f, now)
		if out, _ := keptOut(f.replicas(), now); sync.State == Blocked {
			sync.Sentence += suspensionNote(out, now)
		}
	}
	if conflict, ok := judgeConflict(f, now); ok && sync.State != Blocked {
		sync, stopped = conflict, true
	}
	if !stopped {
		sync = judgeSync(f, now)
	}
	sync.Evidence = syncEvidence(f)

	gates := []Gate{token, enrolled, heartbeat, sync}
	for i, id := range []string{"token", "enrolled", "heartbeat", "sync"} {
		gates[i].ID, gates[i].Number = id, i+1
		gates[i].Title = []string{titleToken, titleEnrolled, titleHeartbeat, titleSync}[i]
		if !f.RemovedAt.IsZero() {
			gates[i] = archivedGate(f, gates[i], now)
		}
	}
	return newTrack(inventoryOwner(f, gates), gates...)
}

// inventoryOwner names who owns the next step.
func inventoryOwner(f Facts, gates []Gate) string {
	if !f.RemovedAt.IsZero() {
		return "Nobody has to act: this attempt is archived."
	}
	unread := f.Tokens.Why() != "" || f.Collectors.Why() != "" || f.Cluster.Why() != ""
	for _, g := range gates {
		switch g.State {
		case Failed, Warning:
			if f.Unstored != "" && g.Action != nil && g.Action.Text == mendConsole {
				return fmt.Sprintf("The next step is with whoever runs Console: gate %d says what to do.", g.Number)
			}
			if unread && g.Action == nil {
				return fmt.Sprintf("The next step is with whoever runs Console: gate %d says what could not be read.", g.Number)
			}
			return fmt.Sprintf("The next step is with whoever runs the install in the cluster: gate %d says what to do.", g.Number)
		case Waiting:
			if slices.ContainsFunc(gates, func(g Gate) bool { return g.State == Failed }) {
				continue // a conflict of identity fails gate 4 while gate 3 waits
			}
			if g.Number == 2 {
				return "The next step is with whoever runs the install command against the cluster."
			}
			return "Nobody has to act: Console is measuring."
		case Passed, Blocked:
		}
	}
	return "Nobody has to act: the inventory is proved."
}

// notReached carries a state forward: after a failed or blocked gate the next is blocked, after
// a waiting one it waits. stopped is false where the gate is to be judged by its own facts.
func notReached(before ...Gate) (g Gate, stopped bool) {
	for i, b := range before {
		number := i + 2 // the first of them is gate 2
		switch b.State {
		case Failed, Blocked:
			return Gate{State: Blocked, Sentence: fmt.Sprintf("Not judged, since gate %d has not passed. Nothing was attempted here, and nothing was sent to the cluster.", number)}, true
		case Waiting:
			return Gate{State: Waiting, Sentence: fmt.Sprintf("Not reached: gate %d is still waiting, and this gate starts when it has passed.", number)}, true
		case Passed, Warning:
		}
	}
	return Gate{}, false
}

// heardBefore and storedBefore say beside a gate that is not judged what had arrived all the same.
func heardBefore(f Facts, now time.Time) string {
	var freshest Collector
	for _, c := range f.Collectors.Value {
		if c.HeartbeatAt.After(freshest.HeartbeatAt) {
			freshest = c
		}
	}
	if f.Collectors.Why() != "" || freshest.HeartbeatAt.IsZero() {
		return ""
	}
	return fmt.Sprintf(" The last heartbeat, of %s, arrived %s.", freshest.Name, ago(now, freshest.HeartbeatAt))
}

func storedBefore(f Facts, now time.Time) string {
	c := f.Cluster.Value
	if f.Cluster.Why() != "" || c == nil || !c.Ours {
		return ""
	}
	return fmt.Sprintf(" The last inventory arrived %s and is kept.", ago(now, c.LastSyncAt))
}

// archivedGate takes back what no longer holds, once the cluster was removed and the attempt archived
// with it: nothing more is counted for it, and nothing that its gates ask for can be done. What
// passed is still so.
func archivedGate(f Facts, g Gate, now time.Time) Gate {
	if g.ID != "sync" && g.State == Passed {
		return g
	}
	removed := fmt.Sprintf("the cluster was removed in Console %s, at %s, and this attempt was archived with it.", ago(now, f.RemovedAt), instant(f.RemovedAt))
	g.State, g.Action = Warning, nil
	if g.ID != "sync" {
		g.Sentence = "Not judged any more: " + removed
		return g
	}
	g.Sentence = capital(removed) + " Its inventory went with it."
	c := f.Cluster.Value
	switch {
	case f.Cluster.Why() != "":
		g.Sentence += fmt.Sprintf(" Whether a cluster %s exists now could not be read (%s).", f.Slug, f.Cluster.Why())
	case c == nil:
		g.Action = &Action{Text: "To bring the cluster in again, record it anew; its slug is free."}
	case c.Ours:
		g.Sentence += fmt.Sprintf(" This attempt’s collector still published %s, which made a cluster %s anew; an archived attempt does not count it.", ago(now, c.LastSyncAt), f.Slug)
		g.Action = &Action{Text: fmt.Sprintf("If the cluster is to be gone, uninstall its collector or revoke %s under Agents, and remove the cluster again.", orDeleted(c.Publisher)), Offer: OfferOpenCluster}
	default:
		g.Sentence += fmt.Sprintf(" A cluster %s exists now, published by %s.", f.Slug, orDeleted(c.Publisher))
		g.Action = &Action{Text: "See the cluster that exists now.", Offer: OfferOpenCluster}
	}
	return g
}

// ---- gate 1

func judgeToken(f Facts, now time.Time) Gate {
	if why := f.Tokens.Why(); why != "" {
		return Gate{State: Warning, Sentence: fmt.Sprintf("The install tokens of this attempt could not be read (%s), so whether one is valid is unknown.", why)}
	}
	tokens := f.Tokens.Value
	if t, ok := firstToken(tokens, func(t Token) bool { return t.Collectors > 0 }); ok {
		return Gate{State: Passed, Sentence: usedTokenSentence(t, now)}
	}
	if t, ok := firstToken(tokens, func(t Token) bool { return t.usable(now) }); ok {
		return Gate{State: Passed, Sentence: liveTokenSentence(t, now)}
	}
	if t, ok := firstToken(tokens, func(t Token) bool { return t.Gone > 0 && t.PinnedTo == "" }); ok {
		return Gate{State: Passed, Sentence: usedTokenSentence(t, now)}
	}
	return deadTokenGate(tokens, now)
}

// firstToken returns the newest token that fits.
func firstToken(tokens []Token, fits func(Token) bool) (Token, bool) {
	var found Token
	ok := false
	for _, t := range tokens {
		if fits(t) && (!ok || t.CreatedAt.After(found.CreatedAt)) {
			found, ok = t, true
		}
	}
	return found, ok
}

func usedTokenSentence(t Token, now time.Time) string {
	who := count(t.Collectors, "collector", "collectors") + " enrolled with it"
	if t.Collectors == 0 {
		who = count(t.Gone, "agent", "agents") + ", deleted or enrolled anew since, enrolled with it"
	}
	switch {
	case !t.RevokedAt.IsZero():
		return fmt.Sprintf("The install token was revoked %s, after %s. Enrolment does not lapse with the token.", ago(now, t.RevokedAt), who)
	case !now.Before(t.ExpiresAt):
		return fmt.Sprintf("The install token expired %s, and %s in time. Enrolment does not lapse with the token.", ago(now, t.ExpiresAt), who)
	case t.usedUp():
		return fmt.Sprintf("All %d uses of the install token are spent, and %s. A further replica needs a further token.", t.MaxUses, who)
	default:
		return fmt.Sprintf("The install token is valid for another %s; %s, and %s.", Span(t.ExpiresAt.Sub(now)), uses(t), who)
	}
}

func liveTokenSentence(t Token, now time.Time) string {
	s := fmt.Sprintf("An install token is valid for another %s; %s.", Span(t.ExpiresAt.Sub(now)), uses(t))
	if t.Others > 0 {
		s += " Only node agents enrolled with it so far."
	}
	return s
}

func uses(t Token) string {
	if t.MaxUses == 0 {
		return fmt.Sprintf("%s counted, without a limit", count(t.Uses, "use", "uses"))
	}
	return fmt.Sprintf("%d of %d uses counted", t.Uses, t.MaxUses)
}

func deadTokenGate(tokens []Token, now time.Time) Gate {
	renew := &Action{Text: "Mint a new install token here, then run the printed command again.", Offer: OfferNewToken}
	t, ok := firstToken(tokens, func(Token) bool { return true })
	if !ok {
		return Gate{State: Failed, Sentence: "No install token is recorded for this attempt, so no collector can enroll.", Action: renew}
	}
	others := ""
	if t.Others > 0 {
		others = fmt.Sprintf(" %s enrolled with it, and node agents do not make a cluster appear.", count(t.Others, "node agent", "node agents"))
	}
	var why string
	switch {
	case t.PinnedTo != "":
		why = fmt.Sprintf("The install token is pinned to agents of type %s, so no collector can enroll with it.", t.PinnedTo)
	case !t.RevokedAt.IsZero():
		why = fmt.Sprintf("The install token was revoked %s, before any collector enrolled.", ago(now, t.RevokedAt))
	case t.usedUp():
		why = fmt.Sprintf("All %d uses of the install token are spent, and no collector is among them.", t.MaxUses)
	default:
		why = fmt.Sprintf("The install token expired %s, and no collector had enrolled with it.", ago(now, t.ExpiresAt))
	}
	return Gate{State: Failed, Sentence: why + others, Action: renew}
}

func tokenEvidence(f Facts) []Evidence {
	var out []Evidence
	for _, t := range newestFirst(f.Tokens.Value) {
		state := "expires " + instant(t.ExpiresAt)
		if !t.RevokedAt.IsZero() {
			state = "revoked " + instant(t.RevokedAt)
		}
		out = append(out, Evidence{Label: "Token " + t.Prefix + "…", Value: uses(t) + ", " + state, At: f.Tokens.At})
		if len(out) == 5 {
			break
		}
	}
	return out
}

func newestFirst(tokens []Token) []Token {
	return slices.SortedStableFunc(slices.Values(tokens), func(a, b Token) int { return b.CreatedAt.Compare(a.CreatedAt) })
}

// ---- gate 2

func judgeEnrolled(f Facts, token State, now time.Time) Gate {
	r, refused := openRefusal(f.Tokens.Value)
	refused = refused && f.Tokens.Why() == ""
	holder, outlived := outliving(f, r, now)
	if refused && !outlived && f.Collectors.Why() == "" {
		g := refusedGate(r, now)
		g.Sentence += refusedUntil(r, f.Collectors.Value, now)
		return g
	}
	if token == Failed {
		return Gate{State: Blocked, Sentence: "Not judged, since gate 1 has not passed: without a valid install token no collector can enroll. Nothing was attempted here, and nothing was sent to the cluster."}
	}
	if why := f.Collectors.Why(); why != "" {
		g := Gate{State: Warning, Sentence: fmt.Sprintf("The enrolled agents could not be read (%s), so whether a collector enrolled is unknown.", why)}
		if refused {
			g.Sentence += " " + refusedGate(r, now).Sentence
		}
		return g
	}
	collectors := f.Collectors.Value
	if len(collectors) == 0 {
		return waitingForCollector(f, now)
	}
	names := make([]string, 0, len(collectors))
	live := 0
	for _, c := range collectors {
		names = append(names, c.Name)
		if c.RevokedAt.IsZero() {
			live++
		}
	}
	if live == 0 {
		return Gate{
			State:    Warning,
			Sentence: fmt.Sprintf("%s enrolled with this attempt’s token, and %s revoked since, so nothing it sends is accepted.", capital(count(len(collectors), "collector", "collectors")), plural(len(collectors), "its credential was", "their credentials were")),
			Action:   &Action{Text: "Delete the agent’s record if it is to come back, add a token, and run the install again."},
		}
	}
	g := Gate{State: Passed, Sentence: fmt.Sprintf("%s enrolled with this attempt’s token: %s. Collectors create no host record, so this cluster appears under Clusters and never under Hosts.", capital(count(len(collectors), "collector", "collectors")), list(names))}
	if refused && now.Sub(r.At) <= noteStrangerFor {
		g = besideStranger(g, r, holder, now)
	}
	if _, all := keptOut(collectors, now); all {
		g.State = Warning // true, but not yet usable
	}
	return besideSuspension(g, collectors, now)
}

func waitingForCollector(f Facts, now time.Time) Gate {
	g := Gate{State: Waiting, Sentence: "No collector has enrolled with this attempt’s token yet. "}
	if h, ok := slugHolder(f); ok {
		g = withHolder(g, f, h, now)
	} else {
		g.Sentence += "This ends when the printed command has run and the pod has started."
		g.Action = &Action{Text: "Where the pod runs already, read its log: it names the cause and the cure.", Command: logCommand}
	}
	g.Sentence += " An agent that does not reach this Console leaves no trace here, nor does one whose token is unknown or not of this attempt: the pod’s log names the cause, such as token_unknown."
	for _, t := range f.Tokens.Value {
		if t.Others > 0 {
			g.Sentence += " Node agents did enroll; they are not collectors."
			break
		}
	}
	for _, fd := range f.Findings.Value {
		if fd.Status == "failed" {
			g.Sentence += fmt.Sprintf(" An agent reported a failed self-check of its own (%s); see the evidence.", fd.Check)
			break
		}
	}
	if why := f.Others.Why(); why != "" {
		g.Sentence += fmt.Sprintf(" Whether an agent of another install holds the slug could not be read (%s).", why)
	}
	return g
}

// slugHolder returns the agent on the slug, heard last, that enrolled with another install's token. A
// released one holds nothing.
func slugHolder(f Facts) (Collector, bool) {
	var h Collector
	if f.Others.Why() != "" {
		return h, false
	}
	for _, c := range f.Others.Value {
		if c.ReleasedAt.IsZero() && (h.Name == "" || c.heardAt().After(h.heardAt())) {
			h = c
		}
	}
	return h, h.Name != ""
}

// withHolder names an agent that never enrols again by itself, and whose record holds its name, so that
// waiting alone may end nothing. It is not counted: only the attempt's own tokens tell whose an agent is
//
func withHolder(g Gate, f Facts, h Collector, now time.Time) Gate {
	g.Sentence += fmt.Sprintf("Agent %s enrolled for slug %s %s with the token of another install, so it is not counted here", h.Name, f.Slug, ago(now, h.EnrolledAt))
	again := fmt.Sprintf("delete the record of %s under Agents, run the printed command, and start the pod again without its old state, which on a volume has to be removed first", h.Name)
	g.Action = &Action{Text: capital(again) + ".", Command: restartCommand}
	const ends = " This ends when a pod has enrolled with this attempt’s token."
	refused := " A pod of that name is refused as long as this record stands." + ends
	switch {
	case !h.RevokedAt.IsZero():
		g.Sentence += fmt.Sprintf("; it was revoked %s.", ago(now, h.RevokedAt)) + refused
	case h.present(now):
		g.Sentence += fmt.Sprintf("; it was heard %s. It keeps its identity and does not enroll again.", ago(now, h.heardAt())) + ends
		stands := "its next inventory makes it appear under Clusters"
		if f.Cluster.Why() == "" && f.Cluster.Value != nil {
			stands, g.Action.Offer = "it stands under Clusters", OfferOpenCluster
		}
		g.Action.Text = fmt.Sprintf("If it is this same cluster, nothing is missing: %s, and this attempt may be abandoned. To install it anew, %s. If it is another cluster, record this one under another name.", stands, again)
	case h.heardAt().IsZero():
		g.Sentence += "; it was never heard." + refused
	default:
		g.Sentence += fmt.Sprintf("; it was last heard %s.", ago(now, h.heardAt())) + refused
	}
	return g
}

// openRefusal returns the newest refusal that no success on any of the attempt's tokens followed.
func openRefusal(tokens []Token) (Refusal, bool) {
	var last Refusal
	var success time.Time
	for _, t := range tokens {
		if t.Refusal.At.After(last.At) {
			last = t.Refusal
		}
		if t.SucceededAt.After(success) {
			success = t.SucceededAt
		}
	}
	return last, !last.At.IsZero() && last.At.After(success)
}

// outliving returns a collector of the attempt's own slug that was heard after the refusal, which is a
// later success, or that is present now: an enrolled agent never enrols again, so being heard is
// the only sign that it gives.
func outliving(f Facts, r Refusal, now time.Time) (Collector, bool) {
	var found Collector
	for _, c := range f.Collectors.Value {
		stands := c.RevokedAt.IsZero() && c.ReleasedAt.IsZero()
		if c.Slug == f.Slug && stands && (c.heardAt().After(r.At) || c.present(now)) && c.heardAt().After(found.heardAt()) {
			found = c
		}
	}
	return found, !found.heardAt().IsZero()
}

// besideStranger adds to a passed gate whom Console refused while the attempt's own collector works.
func besideStranger(g Gate, r Refusal, holder Collector, now time.Time) Gate {
	if r.Code != "already_enrolled" {
		why, cure := refusalOf(r)
		g.Sentence += fmt.Sprintf(" Beside it, agent %s tried to enroll from %s %s and was refused: %s.", r.AgentName, r.Address, ago(now, r.At), why)
		g.Action = cure
		return g
	}
	g.Sentence += fmt.Sprintf(" Another pod tried to enroll as %s from %s %s and was refused, since an agent of that name is enrolled for slug %s.", r.AgentName, r.Address, ago(now, r.At), r.Slug)
	if holder.heardAt().After(r.At) {
		g.Sentence += fmt.Sprintf(" %s itself was heard since, %s.", holder.Name, ago(now, holder.heardAt()))
	} else {
		g.Sentence += fmt.Sprintf(" %s itself was last heard %s, before that; should it not be heard again within %s, its pod lost its state, and this gate fails.", holder.Name, ago(now, holder.heardAt()), limit(PresenceWindow))
	}
	g.Action = &Action{Text: fmt.Sprintf("If that pod is a second copy of this agent, uninstall it where it runs; if it is of another cluster, record that cluster under another name. As long as %s is heard, neither release nor delete it.", holder.Name)}
	return g
}

// refusedGate words a refusal and its cure.
func refusedGate(r Refusal, now time.Time) Gate {
	why, cure := refusalOf(r)
	return Gate{State: Failed, Sentence: fmt.Sprintf("Agent %s tried to enroll from %s %s and was refused: %s.", r.AgentName, r.Address, ago(now, r.At), why), Action: cure}
}

// refusalOf says why an enrolment was refused, and what cures it. The codes are those of package
// enrollment; one that is not here is of a Console that knows more than this one.
func refusalOf(r Refusal) (why string, cure *Action) {
	switch r.Code {
	case "token_expired":
		return "its install token had expired", &Action{Text: "Get a valid token here, and put it into the Secret proxima-install-token by running the printed command again.", Offer: OfferAddToken}
	case "token_used_up":
		return "every use of its install token was spent", &Action{Text: "Add a token here and run the printed command again with it.", Offer: OfferAddToken}
	case "token_revoked":
		return "its install token had been revoked", &Action{Text: "Find out why the token was revoked; then add a token here and run the printed command again.", Offer: OfferAddToken}
	case "token_wrong_type":
		return fmt.Sprintf("its install token is not for agents of type %s", r.AgentType),
			&Action{Text: "Add a token here, which admits collectors, and run the printed command again.", Offer: OfferAddToken}
	case "already_enrolled":
		return fmt.Sprintf("an agent of that name is already enrolled for slug %s, and a name keeps the identity it enrolled with, so a pod whose state was lost cannot take it over", r.Slug),
			&Action{Text: "If that agent lost its state, release its identity or delete its record under Agents; the pod then enrolls by itself. If it is another cluster, record that one under another name."}
	case "agent_too_old":
		return fmt.Sprintf("its version %s is older than this Console accepts", r.Version),
			&Action{Text: "Run the printed command again: it names the image of this Console’s version."}
	case "agent_revoked":
		return "the credential of the agent of that name had been revoked here",
			&Action{Text: "Find out why it was revoked. If the agent is to come back, delete its record under Agents; the pod then enrolls with a new identity."}
	case "agent_suspended":
		return "the agent of that name had sent far more than an agent does, or opened far more connections, and is kept out for ten minutes",
			&Action{Text: mendFlood}
	case "key_in_use":
		return "its key belongs to another agent",
			&Action{Text: "Give each agent a data directory of its own: a copied state.json is another agent’s identity. Remove the copy and start the pod again, which makes a key of its own."}
	case "proof_invalid":
		return "its signature did not prove that it holds the key it presented, or came more than five minutes after the challenge that it signs",
			&Action{Text: "The agent asks for a new challenge and tries again by itself. If it keeps being refused, see whether a proxy on the way to Console delays or changes requests."}
	case "invalid_request":
		return "the public key that it presented is not one for NATS users",
			&Action{Text: "Run the printed command again: it names the image of this Console’s version, whose agent makes such a key."}
	default:
		return "the code is " + r.Code, &Action{Text: "Read the pod’s log: it has the refusal with its cure.", Command: logCommand}
	}
}

func enrolledEvidence(f Facts) []Evidence {
	var out []Evidence
	for _, c := range f.Collectors.Value {
		v := "version " + c.Version
		if c.Slug != f.Slug {
			v += ", for slug " + c.Slug
		}
		if !c.RevokedAt.IsZero() {
			v += ", revoked " + instant(c.RevokedAt)
		}
		if !c.SuspendedAt.IsZero() {
			v += ", suspended " + instant(c.SuspendedAt) + " until " + instant(c.SuspendedUntil)
		}
		out = append(out, Evidence{Label: "Collector " + c.Name, Value: v, At: c.EnrolledAt})
		if len(out) == 8 {
			break
		}
	}
	for _, t := range f.Tokens.Value {
		if !t.Refusal.At.IsZero() {
			out = append(out, Evidence{Label: "Refused", Value: fmt.Sprintf("%s as %s from %s, code %s", t.Refusal.AgentName, t.Refusal.AgentType, t.Refusal.Address, t.Refusal.Code), At: t.Refusal.At})
		}
	}
	if why := f.Findings.Why(); why != "" {
		out = append(out, Evidence{Label: "Self-checks", Value: "could not be read: " + why, At: f.Findings.At})
	}
	for _, fd := range f.Findings.Value {
		if fd.Status == "ok" || fd.Status == "skipped" || len(out) >= 20 {
			continue
		}
		v := fd.Message
		if fd.Cure != "" {
			v += " " + fd.Cure
		}
		out = append(out, Evidence{Label: fmt.Sprintf("%s of %s", fd.Check, fd.Agent), Value: v, At: fd.At, Reported: true})
	}
	return out
}

// ---- gate 3

func judgeHeartbeat(f Facts, now time.Time) Gate {
	if why := f.Collectors.Why(); why != "" {
		return Gate{State: Warning, Sentence: fmt.Sprintf("The heartbeats could not be read (%s), so whether the collector lives is unknown.", why)}
	}
	collectors, revoked := unrevoked(f.replicas())
	if len(collectors) == 0 && len(revoked) > 0 {
		return judgeRevoked(revoked, now)
	}
	var freshest, newest Collector
	var present []string
	for _, c := range collectors {
		if c.HeartbeatAt.After(freshest.HeartbeatAt) {
			freshest = c
		}
		if c.EnrolledAt.After(newest.EnrolledAt) {
			newest = c
		}
		if c.present(now) && !c.suspended(now) {
			present = append(present, c.Name)
		}
	}
	out, all := keptOut(collectors, now)
	if all {
		return judgeSuspended(out, freshest, now)
	}
	window := limit(HeartbeatWindow)
	deadline := newest.EnrolledAt.Add(HeartbeatWindow)
	switch {
	case !freshest.HeartbeatAt.IsZero() && now.Sub(freshest.HeartbeatAt) <= HeartbeatWindow:
		return Gate{State: Passed, Sentence: fmt.Sprintf("%s sent a heartbeat %s, inside the %s window.%s", freshest.Name, ago(now, freshest.HeartbeatAt), adjective(window), standbys(collectors, freshest.Name, now)+suspensionNote(out, now))}
	case now.Before(deadline):
		return Gate{State: Waiting, Sentence: fmt.Sprintf("%s enrolled %s and has not sent a heartbeat yet. The first is due within %s of the enrolment, by %s.", newest.Name, ago(now, newest.EnrolledAt), window, clock(deadline))}
	}
	if f.Unstored != "" {
		return unstoredGate(f, "heartbeat", freshest.HeartbeatAt, now)
	}
	g := Gate{State: Failed, Action: &Action{Text: "See in the pod’s log why it stopped or cannot reach NATS.", Command: logCommand}}
	if freshest.HeartbeatAt.IsZero() {
		g.Sentence = fmt.Sprintf("%s enrolled %s and never sent a heartbeat; the first was due within %s.", newest.Name, ago(now, newest.EnrolledAt), window)
	} else {
		g.Sentence = fmt.Sprintf("%s was last heard %s, beyond the %s window.", freshest.Name, ago(now, freshest.HeartbeatAt), adjective(window))
	}
	switch {
	case len(present) > 0:
		g.Sentence += fmt.Sprintf(" %s still reports its presence, so its connection works and no replica leads.", list(present))
		g.Action.Text = "Look for leader election in the pod’s log: the Lease proxima-cluster-agent may be held by a pod that is gone, or the Role for it may be missing."
	case len(collectors) == 1:
		g.Sentence += " It is the only collector of this cluster, so this is not a quiet standby."
	default:
		g.Sentence += fmt.Sprintf(" None of the %d collectors of this cluster is heard.", len(collectors))
	}
	if freshest.HeartbeatAt.IsZero() {
		freshest = newest
	}
	g.Sentence += credentialNote(freshest, now) + suspensionEnded(freshest, now)
	return withSuspension(g, collectors, now)
}

// mendConsole is the cure where Console itself is what fails.
const mendConsole = "Mend this Console first: its log says why nothing can be stored, such as a full disk or a database that another process locks. Agents send again by themselves once that is over."

// unstoredGate is for silence while Console itself can store nothing.
func unstoredGate(f Facts, what string, last, now time.Time) Gate {
	s := fmt.Sprintf("No %s is stored yet, and this Console cannot store what agents send now (%s), so whether one arrived is unknown.", what, f.Unstored)
	if !last.IsZero() {
		s = fmt.Sprintf("The last %s that was stored is from %s, and this Console cannot store what agents send now (%s), so whether one arrived since is unknown.", what, ago(now, last), f.Unstored)
	}
	return Gate{
		State:    Warning,
		Sentence: s,
		Action:   &Action{Text: mendConsole},
	}
}

// unrevoked parts the collectors that may still be heard from those that may not.
func unrevoked(all []Collector) (live, revoked []Collector) {
	for _, c := range all {
		if c.RevokedAt.IsZero() {
			live = append(live, c)
		} else {
			revoked = append(revoked, c)
		}
	}
	return live, revoked
}

// judgeRevoked is for collectors that were all revoked: the last heartbeat may be fresh, but none follows.
func judgeRevoked(revoked []Collector, now time.Time) Gate {
	last := revoked[0]
	for _, c := range revoked {
		if c.RevokedAt.After(last.RevokedAt) {
			last = c
		}
	}
	return Gate{
		State:    Failed,
		Sentence: fmt.Sprintf("The credential of %s was revoked %s: no heartbeat of it is taken since, and no collector of this cluster is left.", last.Name, ago(now, last.RevokedAt)),
		Action:   &Action{Text: fmt.Sprintf("Find out why it was revoked. If the collector is to come back, delete the record of %s under Agents, run the printed command, and start the pod again without its old state.", last.Name)},
	}
}

// credentialNote adds what became of the credential of a silent collector.
func credentialNote(c Collector, now time.Time) string {
	if !c.CredentialExpiresAt.IsZero() && now.After(c.CredentialExpiresAt) {
		return fmt.Sprintf(" Its credential expired %s and was not renewed since.", ago(now, c.CredentialExpiresAt))
	}
	return ""
}

// standbys says of the other replicas that they are rightly quiet, and names those that are
// not there.
func standbys(replicas []Collector, leader string, now time.Time) string {
	var names, gone []string
	for _, c := range replicas {
		switch {
		case c.Name == leader || !c.RevokedAt.IsZero() || !c.ReleasedAt.IsZero() || c.suspended(now):
		case c.present(now) && c.Leads: // a deposed leader says at once that it stands by
			gone = append(gone, fmt.Sprintf("%s (led before, last heard %s)", c.Name, ago(now, c.heardAt())))
		case c.present(now):
			names = append(names, c.Name)
		case c.heardAt().IsZero():
			gone = append(gone, c.Name+" (never heard)")
		default:
			gone = append(gone, fmt.Sprintf("%s (last heard %s)", c.Name, ago(now, c.heardAt())))
		}
	}
	s := ""
	if len(names) > 0 {
		s = fmt.Sprintf(" It leads; %s %s, and only the leader sends heartbeats.", list(names), plural(len(names), "is a standby", "are standbys"))
	}
	if len(gone) > 0 {
		s += fmt.Sprintf(" Not there now: %s.", list(gone))
	}
	return s
}

func heartbeatEvidence(f Facts) []Evidence {
	var out []Evidence
	for _, c := range f.Collectors.Value {
		if len(out) >= 16 {
			break
		}
		if !c.HeartbeatAt.IsZero() {
			out = append(out, Evidence{Label: "Heartbeat of " + c.Name, Value: instant(c.HeartbeatAt), At: c.HeartbeatAt})
		}
		if !c.PresenceAt.IsZero() {
			role := "standby"
			if c.Leads {
				role = "leader"
			}
			out = append(out, Evidence{Label: "Presence of " + c.Name, Value: "says it is the " + role, At: c.PresenceAt, Reported: true})
		}
	}
	return out
}

// ---- gate 4

// judgeConflict answers with a failed gate where one of this attempt's collectors reports another
// cluster than the one that is stored.
func judgeConflict(f Facts, now time.Time) (Gate, bool) {
	c := f.Cluster.Value
	if f.Cluster.Why() != "" || c == nil || c.Conflict.UID == "" || !c.Conflict.Ours || c.outlived(f.budget(), now) {
		return Gate{}, false
	}
	g := Gate{
		State: Failed,
		Sentence: fmt.Sprintf("%s reported %s from a cluster whose kube-system UID is %s, but %s in %s is stored with the UID %s. Nothing of it was stored.",
			c.Conflict.Sender, ago(now, c.Conflict.SeenAt), c.Conflict.UID, f.Slug, f.Environment, c.UID),
	}
	remove := fmt.Sprintf("uninstall the collector there, delete the record of %s under Agents", c.Conflict.Sender)
	if c.Conflict.Publisher { // its record is the stored cluster's too
		remove = "uninstall the collector there"
	}
	if !c.both(f.budget(), now) {
		g.Action = &Action{Text: fmt.Sprintf("If the cluster was rebuilt, accept the new identity on its page. If the command ran against the wrong cluster, %s, and record that cluster under another name.", remove), Offer: OfferAcceptIdentity}
		return g, true
	}
	g.Sentence += fmt.Sprintf(" The stored cluster synced after that began, %s: two clusters run under this slug, and none was rebuilt.", ago(now, c.LastSyncAt))
	ends := fmt.Sprintf("This gate judges the stored cluster again once that record is deleted, or nothing came from the other cluster for %s.", limit(f.budget()))
	if c.Conflict.Publisher {
		g.Sentence += fmt.Sprintf(" Both report as %s, so its state.json was copied.", c.Conflict.Sender)
		ends = fmt.Sprintf("This gate judges the stored cluster again once nothing came from the other one for %s.", limit(f.budget()))
	}
	g.Action = &Action{Text: fmt.Sprintf("In the cluster whose kube-system UID is %s, %s, and record that cluster under another name. %s", c.Conflict.UID, remove, ends), Command: "kubectl get namespace kube-system -o jsonpath='{.metadata.uid}'"}
	return g, true
}

func judgeSync(f Facts, now time.Time) Gate {
	if why := f.Cluster.Why(); why != "" {
		return Gate{State: Warning, Sentence: fmt.Sprintf("The stored clusters could not be read (%s), so whether an inventory landed is unknown.", why)}
	}
	if why := f.Collectors.Why(); why != "" {
		return judgeSyncOfUnknown(f, why, now)
	}
	if c := f.Cluster.Value; c != nil && c.Ours {
		return landedGate(f, c, now)
	}
	if g, ok := otherSlugGate(f); ok {
		return g
	}
	first := firstEnrolment(f.Collectors.Value)
	deadline := first.Add(f.budget())
	late := !now.Before(deadline)
	limitText := fmt.Sprintf("%s, twice this Console’s PROXIMA_K8S_SYNC_INTERVAL of %s", limit(f.budget()), setting(f.SyncInterval))
	if late && f.Unstored != "" {
		return unstoredGate(f, "inventory of this attempt’s own", time.Time{}, now)
	}
	if c := f.Cluster.Value; c != nil {
		return withSuspension(foreignGate(f, c, late, limitText, deadline), f.replicas(), now)
	}
	if !late {
		return withSuspension(Gate{State: Waiting, Sentence: fmt.Sprintf("No inventory has arrived yet. The first is due within %s from the first enrolment, by %s.", limitText, clock(deadline))}, f.replicas(), now)
	}
	g := Gate{
		State:    Failed,
		Sentence: fmt.Sprintf("No inventory arrived within %s from the first enrolment.", limitText),
		Action:   &Action{Text: fmt.Sprintf("Read the collector’s log for Kubernetes API permission errors. If it has none, check that the install points at the slug %s.", f.Slug), Command: logCommand},
	}
	if reportedError(f.Collectors.Value) != "" {
		reported, _ := lastSyncFailed(f)
		g.Sentence += reported
		g.Action.Text = "Mend what the collector reports; look in its log for Kubernetes API permission errors. The next sync that succeeds ends this."
	}
	return withSuspension(g, f.replicas(), now)
}

// judgeSyncOfUnknown is for agents that could not be read: whose inventory is stored, and from when one is
// due, is then unknown.
func judgeSyncOfUnknown(f Facts, why string, now time.Time) Gate {
	if c := f.Cluster.Value; c != nil {
		return Gate{State: Warning, Sentence: fmt.Sprintf("An inventory of %s arrived %s, but the enrolled agents could not be read (%s), so whether this attempt’s collector sent it is unknown.", f.Slug, ago(now, c.LastSyncAt), why)}
	}
	return Gate{State: Warning, Sentence: fmt.Sprintf("No inventory of %s is stored, and the enrolled agents could not be read (%s), so when one is due is unknown.", f.Slug, why)}
}

// landedGate judges an inventory that this attempt's collector published.
func landedGate(f Facts, c *Cluster, now time.Time) Gate {
	rows := fmt.Sprintf("%s, %s, %s and %s", count(c.Nodes, "node", "nodes"), count(c.Namespaces, "namespace", "namespaces"), count(c.Workloads, "workload", "workloads"), count(c.Pods, "pod", "pods"))
	switch {
	case now.Sub(c.LastSyncAt) > f.budget() && f.Unstored != "":
		return unstoredGate(f, "inventory", c.LastSyncAt, now)
	case now.Sub(c.LastSyncAt) > f.budget():
		reported, cure := lastSyncFailed(f)
		return withSuspension(Gate{
			State:    Warning,
			Sentence: fmt.Sprintf("The inventory landed, but the last sync is from %s, longer ago than %s, twice this Console’s PROXIMA_K8S_SYNC_INTERVAL of %s.%s", ago(now, c.LastSyncAt), limit(f.budget()), setting(f.SyncInterval), reported),
			Action:   &Action{Text: cure, Command: logCommand},
		}, f.replicas(), now)
	case len(c.Unread) > 0:
		return Gate{
			State:    Warning,
			Sentence: fmt.Sprintf("The inventory landed %s with %s, but not whole: %s could not be read.", ago(now, c.LastSyncAt), rows, unread(c.Unread)),
			Action:   readAgain(c.Unread),
		}
	case len(c.SameUID) > 0:
		return Gate{
			State:    Warning,
			Sentence: fmt.Sprintf("The inventory landed %s with %s, but the same cluster is also recorded as %s: both have the kube-system UID %s.", ago(now, c.LastSyncAt), rows, list(c.SameUID), c.UID),
			Action:   &Action{Text: "Keep one of the records: remove the other cluster, and uninstall its collector."},
		}
	default:
		return Gate{State: Passed, Sentence: fmt.Sprintf("This attempt’s collector publishes %s. The first sync landed %s, the latest %s: %s.", f.Slug, ago(now, c.FirstSyncAt), ago(now, c.LastSyncAt), rows)}
	}
}

// otherSlugGate names another slug under which this attempt's agent publishes.
func otherSlugGate(f Facts) (Gate, bool) {
	other := ""
	for _, c := range f.Collectors.Value {
		slug := c.Slug
		if c.PublishedSlug != "" {
			slug = c.PublishedSlug
		}
		if slug == f.Slug {
			return Gate{}, false
		}
		other = slug
	}
	if other == "" {
		return Gate{}, false
	}
	return Gate{
		State:    Failed,
		Sentence: fmt.Sprintf("This attempt’s collector publishes under the slug %s, while the attempt is recorded under %s. To Console those are two clusters.", other, f.Slug),
		Action: &Action{
			Text:    fmt.Sprintf("Set PROXIMA_CLUSTER_SLUG to %s, as the printed command does.", f.Slug),
			Command: "kubectl -n proxima-system set env deployment/proxima-cluster-agent PROXIMA_CLUSTER_SLUG='" + f.Slug + "'",
		},
	}, true
}

// foreignGate judges a cluster on the slug that another install published.
func foreignGate(f Facts, c *Cluster, late bool, limitText string, deadline time.Time) Gate {
	publisher := "an agent whose record was deleted"
	if c.Publisher != "" {
		publisher = "agent " + c.Publisher + " of another install"
	}
	exists := fmt.Sprintf("A cluster %s exists in %s, published by %s; Console does not count it for this attempt.", f.Slug, f.Environment, publisher)
	if !late {
		return Gate{State: Waiting, Sentence: fmt.Sprintf("%s This attempt’s own inventory is due within %s from the first enrolment, by %s.", exists, limitText, clock(deadline))}
	}
	return Gate{
		State:    Failed,
		Sentence: fmt.Sprintf("%s No inventory of this attempt’s own collector arrived within %s.", exists, limitText),
		Action:   &Action{Text: "Read the collector’s log. If the other install is this same cluster, uninstall the older one; if not, record this cluster under another name.", Command: logCommand, Offer: OfferOpenCluster},
	}
}

func syncEvidence(f Facts) []Evidence {
	var out []Evidence
	if c := f.Cluster.Value; c != nil {
		out = append(out,
			Evidence{Label: "Stored fingerprint", Value: "kube-system UID " + c.UID, At: c.FirstSyncAt},
			Evidence{Label: "Last inventory", Value: fmt.Sprintf("published by %s, %d nodes, %d pods", orDeleted(c.Publisher), c.Nodes, c.Pods), At: c.LastSyncAt})
		for _, u := range c.Unread {
			out = append(out, Evidence{Label: "Unread: " + u.Kind, Value: reasonText(u.Reason), At: c.LastSyncAt, Reported: true})
		}
		if c.Conflict.UID != "" {
			out = append(out, Evidence{Label: "Other fingerprint", Value: fmt.Sprintf("kube-system UID %s, sent by %s", c.Conflict.UID, orDeleted(c.Conflict.Sender)), At: c.Conflict.SeenAt})
		}
	}
	for _, c := range f.Collectors.Value {
		if len(out) >= 20 {
			break
		}
		if c.PublishedSlug != "" {
			out = append(out, Evidence{Label: "Inventory of " + c.Name, Value: "sent under the slug " + strconv.Quote(c.PublishedSlug) + ", dropped", At: c.PublishedSlugAt})
		}
		if c.ReportedError != "" {
			out = append(out, Evidence{Label: "Last sync of " + c.Name, Value: c.ReportedError, At: c.ReportedAt, Reported: true})
		}
		if c.ReportedInterval > 0 && c.ReportedInterval != f.SyncInterval {
			out = append(out, Evidence{Label: "Sync interval of " + c.Name, Value: fmt.Sprintf("%s, while this Console expects %s", setting(c.ReportedInterval), setting(f.SyncInterval)), At: c.PresenceAt, Reported: true})
		}
	}
	return out
}

func firstEnrolment(collectors []Collector) time.Time {
	var first time.Time
	for _, c := range collectors {
		if first.IsZero() || c.EnrolledAt.Before(first) {
			first = c.EnrolledAt
		}
	}
	return first
}

// lastSyncFailed is what the collector itself says of a sync that is missing, and what to do about it.
func lastSyncFailed(f Facts) (sentence, cure string) {
	if reportedError(f.Collectors.Value) == "" {
		for _, c := range f.Collectors.Value {
			if c.ReportedInterval > f.SyncInterval {
				return fmt.Sprintf(" %s reports that it syncs every %s.", c.Name, setting(c.ReportedInterval)), "Set PROXIMA_K8S_SYNC_INTERVAL to the same value on the collector and on this Console. If they are to differ, the longer one belongs on Console."
			}
		}
		return "", "Read the collector’s log: it has every attempt to sync, and why it failed."
	}
	return " The collector reports that its last sync failed; see the evidence.", "Mend what the collector reports; its log has every attempt. The next sync that succeeds ends this."
}

func reportedError(collectors []Collector) string {
	for _, c := range collectors {
		if c.ReportedError != "" {
			return c.ReportedError
		}
	}
	return ""
}

// readAgain names what makes the unread kinds readable, each reason with its own cure.
func readAgain(kinds []UnreadKind) *Action {
	of := func(fits func(reason string) bool) string {
		var names []string
		for _, k := range kinds {
			if fits(k.Reason) {
				names = append(names, k.Kind)
			}
		}
		return list(names)
	}
	var texts []string
	a := &Action{}
	if names := of(func(r string) bool { return r == "forbidden" }); names != "" {
		texts = append(texts, fmt.Sprintf("For %s: apply the ClusterRole and its binding of this Console’s manifests again; the next sync then reads what is missing.", names))
	}
	if names := of(func(r string) bool { return r == "not_served" }); names != "" {
		texts = append(texts, fmt.Sprintf("For %s: see which APIs the cluster serves. One that is switched off or not installed stays unread, and no right in the cluster changes that.", names))
		a.Command = "kubectl api-resources"
	}
	if names := of(func(r string) bool { return r != "forbidden" && r != "not_served" }); names != "" {
		texts = append(texts, fmt.Sprintf("For %s: see in the collector’s log how the API server fails, and mend the API server; the next sync that succeeds ends this.", names))
		a.Command = logCommand
	}
	a.Text = strings.Join(texts, " ")
	return a
}

func unread(kinds []UnreadKind) string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, fmt.Sprintf("%s (%s)", k.Kind, reasonText(k.Reason)))
	}
	return list(names)
}

func reasonText(reason string) string {
	switch reason {
	case "forbidden":
		return "the API server forbids it"
	case "not_served":
		return "the API server does not serve it"
	case "unavailable":
		return "the API server failed three times in a row"
	default:
		return reason
	}
}

func orDeleted(name string) string {
	if name == "" {
		return "an agent whose record was deleted"
	}
	return name
}

// adjective turns "5 minutes" into "5-minute".
func adjective(limit string) string {
	return strings.TrimSuffix(strings.Replace(limit, " ", "-", 1), "s")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
