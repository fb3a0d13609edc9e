package gate

import (
	"strings"
	"testing"
	"time"
)

// The budget of gate 4 runs from the first enrolment of the attempt: a replica that enrolls later does
// not extend it.
func TestTheBudgetRunsFromTheFirstEnrolment(t *testing.T) {
	for enrolled, want := range map[time.Duration]State{10 * time.Minute: Failed, 10*time.Minute - time.Second: Waiting} {
		f := facts(func(f *Facts) {
			f.Cluster.Value = nil
			later := f.Collectors.Value[0]
			f.Collectors.Value[0].EnrolledAt, later.EnrolledAt, later.Name = noon.Add(-enrolled), noon.Add(-time.Minute), "halden-prod-1"
			f.Collectors.Value = append(f.Collectors.Value, later)
		})
		if g := Inventory(f, noon).Gates[3]; g.State != want {
			t.Errorf("first enrolled %s ago: %s, want %s: %s", enrolled, g.State, want, g.Sentence)
		}
	}
}

// The sentence notes a refused stranger beside a healthy gate for an hour; the evidence keeps it.
func TestARefusedStrangerIsNotedForAnHour(t *testing.T) {
	for refused, want := range map[time.Duration]bool{time.Hour: true, time.Hour + time.Second: false} {
		f := facts(stranger("already_enrolled", "somebody-else", noon.Add(-refused)))
		f.Tokens.Value[0].SucceededAt, f.Collectors.Value[0].EnrolledAt = noon.Add(-2*time.Hour), noon.Add(-2*time.Hour)
		g := Inventory(f, noon).Gates[1]
		if noted := strings.Contains(g.Sentence, "somebody-else"); noted != want || g.State != Passed || len(g.Evidence) == 0 {
			t.Errorf("refused %s ago: noted %v, want %v; %s: %s", refused, noted, want, g.State, g.Sentence)
		}
	}
}

// Where no collector ever sent a heartbeat, the newest sets the deadline: a replica that has just come
// gets its whole window.
func TestTheNewestReplicaSetsTheDeadline(t *testing.T) {
	for enrolled, want := range map[time.Duration]State{HeartbeatWindow - time.Second: Waiting, HeartbeatWindow: Failed} {
		f := facts(func(f *Facts) {
			f.Cluster.Value = nil
			silent := &f.Collectors.Value[0]
			silent.HeartbeatAt, silent.PresenceAt = time.Time{}, time.Time{}
			f.Collectors.Value = append(f.Collectors.Value, Collector{Name: "halden-prod-1", Slug: "halden-prod", EnrolledAt: noon.Add(-enrolled)})
		})
		if g := Inventory(f, noon).Gates[2]; g.State != want {
			t.Errorf("newest enrolled %s ago: %s, want %s: %s", enrolled, g.State, want, g.Sentence)
		}
	}
}
