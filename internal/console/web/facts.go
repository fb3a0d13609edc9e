package web

import (
	"time"

	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/wire"
)

// fact is one measured value with its age, compared with its own window and with nothing else. Facts
// stand side by side; no light sums them up.
type fact struct {
	Label string
	// Class brings colour and shape: passed, waiting, warning, failed, or "" for a plain word.
	Class string
	Word  string
	At    time.Time // zero: it has no age
	Stale bool      // older than its window
}

// enrolledFact says how many collectors are enrolled, and since when.
func enrolledFact(c inventory.Cluster) fact {
	if c.Collectors == 0 {
		return fact{Label: "Enrolled", Word: "No collector"}
	}
	return fact{Label: "Enrolled", Class: "passed", Word: plural(c.Collectors, "collector", "collectors"), At: c.EnrolledAt}
}

// heartbeatFact compares the freshest heartbeat with the fleet's window.
func heartbeatFact(c inventory.Cluster, now time.Time) fact {
	switch {
	case c.HeartbeatAt.IsZero():
		return fact{Label: "Heartbeat", Class: "waiting", Word: "None yet"}
	case now.Sub(c.HeartbeatAt) > fleet.StaleAfter:
		return fact{Label: "Heartbeat", Class: "failed", Word: "Silent", At: c.HeartbeatAt, Stale: true}
	default:
		return fact{Label: "Heartbeat", Class: "passed", Word: "Fresh", At: c.HeartbeatAt}
	}
}

// inventoryFact says how complete the last inventory was, and whether it is older than twice the sync
// interval.
func inventoryFact(c inventory.Cluster, now time.Time, interval time.Duration) fact {
	f := fact{Label: "Last inventory", Class: "passed", Word: "Complete", At: c.LastSyncAt}
	unread, cut := len(unreadKinds(c)), len(cutKinds(c))
	f.Stale = !f.At.IsZero() && now.Sub(f.At) > 2*interval
	switch {
	case !c.Conflict.SeenAt.IsZero():
		f.Class, f.Word = "failed", "Two identities"
	case f.At.IsZero() && c.PartlyApplied:
		f.Class, f.Word = "waiting", "Stored in part"
	case f.At.IsZero():
		f.Class, f.Word = "waiting", "None yet"
	case f.Stale:
		f.Class, f.Word = "warning", "Old"
	case unread > 0:
		f.Class, f.Word = "warning", plural(unread, "kind unread", "kinds unread")
	case cut > 0:
		f.Class, f.Word = "warning", plural(cut, "kind cut", "kinds cut")
	}
	return f
}

// unreadKinds are the kinds that the last sync could not read.
func unreadKinds(c inventory.Cluster) []inventory.KindState {
	var out []inventory.KindState
	for _, k := range c.Kinds {
		if k.Unread != "" {
			out = append(out, k)
		}
	}
	return out
}

// cutKinds are the kinds of which a limit left something out.
func cutKinds(c inventory.Cluster) []inventory.KindState {
	var out []inventory.KindState
	for _, k := range c.Kinds {
		if k.Unread == "" && k.Kept < k.Total {
			out = append(out, k)
		}
	}
	return out
}

// unreadWords says why a kind was not read.
func unreadWords(r wire.UnreadReason) string {
	switch r {
	case wire.UnreadForbidden:
		return "The API server answered 403: the agent's role does not cover it"
	case wire.UnreadNotServed:
		return "The API server does not serve it"
	case wire.UnreadUnavailable:
		return "The API server did not answer for it in three syncs"
	}
	return string(r)
}

// attemptFact is the stored verdict of an attempt's inventory track, as of its last check.
func attemptFact(a onboarding.Attempt) fact {
	f := fact{Label: "Inventory", Class: "waiting", Word: "Not measured yet", At: a.LastCheckedAt}
	if s := a.LastStatus; s != nil {
		total := s.Passed + s.Waiting + s.Blocked + s.Warning + s.Failed
		f.Class, f.Word = string(gate.Passed), grouped(s.Passed)+" of "+grouped(total)+" passed"
		if s.Gate != "" {
			f.Class, f.Word = s.State, f.Word+"; "+s.Gate+": "+s.State
		}
	}
	return f
}

// stateWord is the word for a gate's state.
func stateWord(s gate.State) string {
	switch s {
	case gate.Passed:
		return "Passed"
	case gate.Waiting:
		return "Waiting"
	case gate.Blocked:
		return "Blocked"
	case gate.Warning:
		return "Warning"
	case gate.Failed:
		return "Failed"
	}
	return string(s)
}
