package gate

import (
	"fmt"
	"time"
)

// mendFlood is what to do about an agent that Console keeps out because it floods.
const mendFlood = "A suspended agent comes back by itself. If it happens again, find out what else uses its key, such as a second process on a copy of its data directory, and revoke it under Agents if it goes on."

// suspended tells whether Console keeps the collector out now. What is revoked is not kept out for a while alone.
func (c Collector) suspended(now time.Time) bool {
	return c.RevokedAt.IsZero() && now.Before(c.SuspendedUntil)
}

// keptOut are the collectors that Console suspended; all tells that there are some, and that nobody else is there, or
// enrolled so lately that it may be.
func keptOut(collectors []Collector, now time.Time) (out []Collector, all bool) {
	live, _ := unrevoked(collectors)
	others := 0
	for _, c := range live {
		switch {
		case c.suspended(now):
			out = append(out, c)
		case c.present(now), now.Sub(c.EnrolledAt) <= HeartbeatWindow:
			others++
		}
	}
	return out, len(out) > 0 && others == 0
}

// suspensionNote says whom Console keeps out, since when, until when and why; "" where there is nobody.
func suspensionNote(out []Collector, now time.Time) string {
	if len(out) == 0 {
		return ""
	}
	names := make([]string, 0, len(out))
	for _, c := range out {
		names = append(names, fmt.Sprintf("%s (%s, until %s)", c.Name, ago(now, c.SuspendedAt), clock(c.SuspendedUntil)))
	}
	if len(out) == 1 {
		return fmt.Sprintf(" Console suspended %s, since it sent far more than an agent does, or opened far more connections; Console’s log says which. It gets no credential until then, and nothing it sends is taken.", names[0])
	}
	return fmt.Sprintf(" Console suspended %s, since each sent far more than an agent does, or opened far more connections; Console’s log says which. They get no credential until then, and nothing they send is taken.", list(names))
}

// withSuspension says beside a gate that waits for something to arrive whom Console itself keeps out. Where nobody
// else is left, that is the cause, and nothing else is to be done.
func withSuspension(g Gate, collectors []Collector, now time.Time) Gate {
	if _, all := keptOut(collectors, now); all {
		g.Action = nil
	}
	return besideSuspension(g, collectors, now)
}

// besideSuspension is the same for a gate whose own action stays.
func besideSuspension(g Gate, collectors []Collector, now time.Time) Gate {
	out, _ := keptOut(collectors, now)
	if len(out) == 0 {
		return g
	}
	g.Sentence += suspensionNote(out, now)
	if g.Action == nil {
		g.Action = &Action{Text: mendFlood}
		return g
	}
	g.Action.Text += " " + mendFlood
	return g
}

// judgeSuspended is for collectors of which none is left that may send: the last heartbeat may be fresh, but none follows.
func judgeSuspended(out []Collector, freshest Collector, now time.Time) Gate {
	g := Gate{State: Failed, Action: &Action{Text: mendFlood}}
	switch age := now.Sub(freshest.HeartbeatAt); {
	case freshest.HeartbeatAt.IsZero():
		g.Sentence = "No heartbeat was taken yet."
	case age <= HeartbeatWindow:
		g.State = Warning
		g.Sentence = fmt.Sprintf("The last heartbeat, of %s, arrived %s, inside the %s window, but none follows now.", freshest.Name, ago(now, freshest.HeartbeatAt), adjective(limit(HeartbeatWindow)))
	default:
		g.Sentence = fmt.Sprintf("The last heartbeat, of %s, arrived %s, beyond the %s window.", freshest.Name, ago(now, freshest.HeartbeatAt), adjective(limit(HeartbeatWindow)))
	}
	g.Sentence += suspensionNote(out, now)
	return g
}

// refusedUntil says of a refused agent that Console suspended how long that lasts.
func refusedUntil(r Refusal, collectors []Collector, now time.Time) string {
	out, _ := keptOut(collectors, now)
	for _, c := range out {
		if r.Code == "agent_suspended" && c.Name == r.AgentName && c.Slug == r.Slug {
			return fmt.Sprintf(" Console suspended it %s, until %s.", ago(now, c.SuspendedAt), clock(c.SuspendedUntil))
		}
	}
	return ""
}

// suspensionEnded says of a silent collector that Console kept it out before.
func suspensionEnded(c Collector, now time.Time) string {
	if c.SuspendedUntil.IsZero() || now.Before(c.SuspendedUntil) || c.heardAt().After(c.SuspendedUntil) {
		return ""
	}
	return fmt.Sprintf(" Console had suspended it, since it sent far more than an agent does, or opened far more connections; that ended %s, and it has not come back since.", ago(now, c.SuspendedUntil))
}
