// Package gate judges. It takes the facts that package onboarding gathered, each with the time at
// which it was measured, and answers with gates: a state, the sentence that explains it, the action
// that mends it, and the evidence. It is pure and total: no clock, no store, no error.
//
// The states are five and no more. What could not be read is a warning whose sentence names
// it, never a pass. A waiting gate leaves the later ones waiting, a failed one blocks
// them.
package gate

import "time"

// State is the state of a gate.
type State string

// The five states.
const (
	Passed  State = "passed"
	Waiting State = "waiting"
	Blocked State = "blocked"
	Warning State = "warning"
	Failed  State = "failed"
)

// States lists the five.
func States() []State { return []State{Passed, Waiting, Blocked, Warning, Failed} }

// Gate is one judged gate. Pages, API and CLI print it as it is.
type Gate struct {
	// ID is stable: token, enrolled, heartbeat, sync.
	ID string
	// Number counts from 1 within the track.
	Number   int
	Title    string
	State    State
	Sentence string
	// Action is set where something is to be done; always with Failed.
	Action   *Action
	Evidence []Evidence
}

// Action is what mends a gate.
type Action struct {
	Text string
	// Command is a shell command that shows the cause, or "".
	Command string
	// Offer names what a page may put beside the text: one of the Offer constants, or "".
	Offer string
}

// What a page may offer beside an action.
const (
	// OfferNewToken: record again, which mints a token for the dead end.
	OfferNewToken = "new_token"
	// OfferAddToken: mint a further token for the attempt.
	OfferAddToken = "add_token"
	// OfferOpenCluster: open the cluster that stands on the slug.
	OfferOpenCluster = "open_cluster"
	// OfferAcceptIdentity: accept the new fingerprint on the cluster's page.
	OfferAcceptIdentity = "accept_identity"
)

// Evidence is one fact that a gate was judged by.
type Evidence struct {
	Label string
	Value string
	// At is when it was measured; zero where the fact has no time of its own.
	At time.Time
	// Reported marks what an agent said of itself; it decides nothing.
	Reported bool
}

// Track is the gates of one question.
type Track struct {
	Gates []Gate
	// Done is true if and only if every gate passed.
	Done bool
	// Owner names who owns the next step.
	Owner string
}

// Passed counts the gates that passed.
func (t Track) Passed() int {
	n := 0
	for _, g := range t.Gates {
		if g.State == Passed {
			n++
		}
	}
	return n
}

func newTrack(owner string, gates ...Gate) Track {
	t := Track{Gates: gates, Owner: owner}
	t.Done = len(gates) > 0 && t.Passed() == len(gates)
	return t
}
