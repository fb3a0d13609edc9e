package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
)

func TestTokensComeBackAsTheyWerePut(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Enrollment()
		house(t, db)
		putAttempt(t, db, attempt("o", "alpha"))
		want := token("t")
		want.OnboardingID, want.AgentType, want.First = "o", fleet.TypeCollector, true
		putToken(t, db, want)
		refusal := enrollment.Refusal{
			At: after(time.Minute), Code: "wrong_type", AgentName: "a", AgentType: fleet.TypeHost, ClusterSlug: "alpha", Version: "1", RemoteAddr: "192.0.2.1",
		}
		older := refusal
		older.At, older.Code = noon, "older"
		for _, r := range []enrollment.Refusal{refusal, older} { // the older one comes late and is passed over
			if err := s.RecordRefusal(ctx, "t", r); err != nil {
				t.Fatal(err)
			}
		}
		putAgent(t, db, collector("a", "alpha", "t"))
		node := collector("n", "alpha", "t")
		node.Type = fleet.TypeNodeMonitor
		putAgent(t, db, node)
		want.Refusal, want.CollectorsEnrolled, want.OthersEnrolled = refusal, 1, 1
		byHash, err := s.TokenByHash(ctx, hashOf("t"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, byHash); diff != "" {
			t.Error(diff)
		}
		of, err := s.TokensOfOnboarding(ctx, "o")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]enrollment.Token{want}, of); diff != "" {
			t.Error(diff)
		}
		if all, n, err := s.Tokens(ctx, enrollment.TokenQuery{ClientID: "acme", Reach: access.Reach{All: true}, Limit: 10}); err != nil || len(all) != 1 || n != 1 {
			t.Errorf("tokens of acme: %v, %v", all, err)
		}
		if all, n, err := s.Tokens(ctx, enrollment.TokenQuery{ClientID: "zeta", Reach: access.Reach{All: true}, Limit: 10}); err != nil || len(all) != 0 || n != 0 {
			t.Errorf("tokens of zeta: %v, %v", all, err)
		}
		if scope, err := s.AttemptScope(ctx, "o"); err != nil || scope != (access.Scope{ClientID: "acme", EnvironmentID: "acme-prod"}) {
			t.Errorf("scope %v, %v", scope, err)
		}
		if _, name, err := s.Environment(ctx, "acme-test"); err != nil || name != "test" {
			t.Errorf("environment %q, %v", name, err)
		}
	})
}

func TestSixtyFourRacersUseTwentyFiveUses(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Enrollment()
		house(t, db)
		putToken(t, db, token("t"))
		errNone := errors.New("no use is left")
		done := make(chan error)
		for i := range 64 {
			go func() {
				done <- s.InTx(ctx, func(x enrollment.Tx) error {
					found, err := x.TokenByHash(ctx, hashOf("t"))
					if err != nil {
						return err
					}
					if ok, err := x.UseToken(ctx, found.ID, after(time.Minute)); err != nil {
						return err
					} else if !ok {
						return errNone
					}
					if err := x.InsertAgent(ctx, collector(fmt.Sprint(i), "alpha", found.ID)); err != nil {
						return err
					}
					return x.AppendAudit(ctx, audit.Event{ID: fmt.Sprint(i), At: noon, ActorKind: "agent", Action: "agent_enrolled"})
				})
			}()
		}
		in, out := 0, 0
		for range 64 {
			switch err := <-done; {
			case err == nil:
				in++
			case errors.Is(err, errNone):
				out++
			default:
				t.Error(err)
			}
		}
		got, err := s.Token(ctx, "t")
		if err != nil {
			t.Fatal(err)
		}
		if in != 25 || out != 39 || got.Uses != 25 || got.CollectorsEnrolled != 25 || !got.SucceededAt.Equal(after(time.Minute)) {
			t.Errorf("%d came in, %d did not; the token counts %d uses and %d collectors", in, out, got.Uses, got.CollectorsEnrolled)
		}
	})
}

func TestARefusedEnrolmentLeavesNothing(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Enrollment()
		house(t, db)
		putToken(t, db, token("t"))
		putAgent(t, db, collector("a", "alpha", "t"))
		refuse := func(what string, change func(*fleet.Agent)) {
			t.Helper()
			err := s.InTx(ctx, func(x enrollment.Tx) error {
				if ok, err := x.UseToken(ctx, "t", noon); err != nil || !ok {
					t.Errorf("use: %v, %v", ok, err)
				}
				a := collector("b", "beta", "t")
				change(&a)
				return x.InsertAgent(ctx, a)
			})
			if !errors.Is(err, enrollment.ErrTaken) {
				t.Errorf("%s: got %v", what, err)
			}
		}
		refuse("the name is held", func(a *fleet.Agent) { a.Name, a.ClusterSlug = "name-a", "alpha" })
		refuse("the key is held", func(a *fleet.Agent) { a.PublicKey = "Ua" })
		if got, err := s.Token(ctx, "t"); err != nil || got.Uses != 0 {
			t.Errorf("a refusal spent a use: %+v, %v", got, err)
		}
		// the same name in another cluster is another agent; released identities share no key.
		same := collector("c", "gamma", "t")
		same.Name = "name-a"
		putAgent(t, db, same)
		for _, id := range []string{"d", "e"} {
			released := collector(id, "delta", "t")
			released.PublicKey = ""
			putAgent(t, db, released)
		}
		write(t, db, func(x *tx) error {
			if _, err := x.AgentByKey(ctx, ""); !errors.Is(err, enrollment.ErrNotFound) {
				t.Errorf("an agent was found under no key: %v", err)
			}
			found, err := x.AgentByName(ctx, "acme-prod", fleet.TypeCollector, "gamma", "name-a")
			if diff := cmp.Diff(same, found); diff != "" {
				t.Error(diff)
			}
			return err
		})
	})
}

func TestAnAgentsKeyIsRememberedWhenItEnds(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		house(t, db)
		putToken(t, db, token("t"))
		for _, id := range []string{"revoked", "released", "deleted", "rebound", "well"} {
			putAgent(t, db, collector(id, "alpha", "t"))
		}
		err := db.Fleet().InTx(ctx, func(x fleet.Tx) error {
			for _, err := range []error{
				x.RevokeAgent(ctx, "revoked", after(1*time.Minute)),
				x.ReleaseAgent(ctx, "released", after(2*time.Minute)),
				x.DeleteAgent(ctx, "deleted", after(3*time.Minute)),
			} {
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		write(t, db, func(x *tx) error {
			for _, id := range []string{"rebound", "well"} {
				a, err := x.Agent(ctx, id)
				if err != nil {
					return err
				}
				a.CredentialIssuedAt = after(4 * time.Minute)
				if id == "rebound" {
					a.PublicKey = "Unew"
				}
				if err := x.BindAgent(ctx, a); err != nil {
					return err
				}
			}
			return nil
		})
		want := map[string]time.Time{
			"Urevoked": after(1 * time.Minute), "Ureleased": after(2 * time.Minute), "Udeleted": after(3 * time.Minute), "Urebound": after(4 * time.Minute),
		}
		got, err := db.Fleet().Revoked(ctx, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if late, err := db.Fleet().Revoked(ctx, after(3*time.Minute)); err != nil || len(late) != 2 {
			t.Errorf("since the third minute: %v, %v", late, err)
		}
		if released, err := db.Fleet().Agent(ctx, "released"); err != nil || released.PublicKey != "" || !released.ReleasedAt.Equal(after(2*time.Minute)) {
			t.Errorf("%+v, %v", released, err)
		}
		if _, err := db.Fleet().Agent(ctx, "deleted"); !errors.Is(err, fleet.ErrNotFound) {
			t.Errorf("the deleted agent: %v", err)
		}
		err = db.Fleet().InTx(ctx, func(x fleet.Tx) error { return x.DeleteAgent(ctx, "nobody", noon) })
		if !errors.Is(err, fleet.ErrNotFound) {
			t.Errorf("deleting nobody: %v", err)
		}
	})
}

func TestFindingsKeepTheNewestFifty(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, s := t.Context(), db.Enrollment()
		house(t, db)
		putAttempt(t, db, attempt("o", "alpha"))
		tok := token("t")
		tok.OnboardingID = "o"
		putToken(t, db, tok)
		for i := range 60 {
			f := enrollment.Findings{
				TokenID: "t", AgentName: fmt.Sprintf("agent-%02d", i), ReceivedAt: after(time.Duration(i) * time.Second),
				Items: []enrollment.Finding{{Check: "dns", Status: "failed", Message: "no such host", At: noon}},
			}
			for range 2 { // the same agent again replaces what it posted
				if err := s.PutFindings(ctx, f); err != nil {
					t.Fatal(err)
				}
			}
		}
		found, err := s.FindingsOfOnboarding(ctx, "o")
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 50 || found[0].AgentName != "agent-59" || found[49].AgentName != "agent-10" {
			t.Fatalf("%d findings are kept", len(found))
		}
		if diff := cmp.Diff([]enrollment.Finding{{Check: "dns", Status: "failed", Message: "no such host", At: noon}}, found[0].Items); diff != "" {
			t.Error(diff)
		}
		if err := s.PutFindings(ctx, enrollment.Findings{TokenID: "none", AgentName: "x", ReceivedAt: noon}); !errors.Is(err, enrollment.ErrNotFound) {
			t.Errorf("findings under no token: %v", err)
		}
	})
}
