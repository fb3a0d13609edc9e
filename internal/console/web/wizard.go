package web

import (
	"net/http"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/slug"
)

// addData is step 1: which cluster.
type addData struct {
	base
	Names       names
	Client      string // chosen client's id
	Environment string
	Name        string
	Fault       *fault
}

// slugData is what the name becomes.
type slugData struct {
	Name string
	Slug string
}

// installData is step 2: the token, if this answer is the one that minted it, and the command.
type installData struct {
	base
	Attempt onboarding.Attempt
	// Token and Plain are set on the answer that minted the token, and never again.
	Token *enrollment.Token
	Plain string
	// Why says why no plain token is shown.
	Why     string
	Notes   []string
	Resumed bool
	Command onboarding.Command
	// Tokens are those minted for the attempt before.
	Tokens []enrollment.Token
	MayAdd bool
}

func (s *server) addPage(v *visit) error {
	q := v.r.URL.Query()
	page := addData{Client: q.Get("client"), Environment: q.Get("environment"), Name: strings.TrimSpace(q.Get("name"))}
	return s.showAdd(v, http.StatusOK, page)
}

// showAdd renders step 1. Whoever may make the first client is sent to do so.
func (s *server) showAdd(v *visit, status int, page addData) error {
	page.base = s.base(v, "Add cluster", "clusters")
	page.Narrow = true
	var err error
	if page.Names, err = s.names(v, access.HostsWrite); err != nil {
		return err
	}
	if len(page.Names.Environments) == 0 {
		first, err := s.startNeeded(v)
		if err != nil {
			return err
		}
		if first {
			v.goTo("/start")
			return nil
		}
	}
	return v.render(status, addView(page))
}

// slug answers while somebody types; the same rule runs again when the form is sent.
func (s *server) slug(v *visit) error {
	return v.render(http.StatusOK, slugView(slugOf(v.r.URL.Query().Get("name"))))
}

func slugOf(name string) slugData {
	return slugData{Name: strings.TrimSpace(name), Slug: slug.Make(name)}
}

// add records the attempt. The answer itself is step 2, since only it knows the plain token: an
// address could be logged or shared, and a session stored.
func (s *server) add(v *visit) error {
	client, environment, name := v.form("client"), v.form("environment"), v.form("name")
	recorded, err := s.Onboarding.Record(v.ctx(), v.who, client, environment, name)
	if err != nil {
		told, status, ok := faultOf(err)
		if !ok {
			return err
		}
		told.Field = addField(told.Field)
		return s.showAdd(v, status, addData{Client: client, Environment: environment, Name: name, Fault: &told})
	}
	page := installData{
		Attempt: recorded.Attempt, Token: recorded.Token, Plain: recorded.Plain, Why: recorded.TokenNote,
		Notes: recorded.Notes, Resumed: recorded.Resumed,
	}
	return s.showInstall(v, page)
}

// addField is the input of step 1 that a problem's field speaks of.
func addField(field string) string {
	switch f := strings.ToLower(field); {
	case strings.Contains(f, "environment"):
		return "environment"
	case strings.Contains(f, "client"):
		return "client"
	default:
		return "name"
	}
}

// installPage is step 2 as it looks to whoever comes back: with the placeholder.
func (s *server) installPage(v *visit) error {
	status, err := s.Onboarding.Status(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.showInstall(v, installData{Attempt: status.Attempt, Tokens: status.Tokens, Why: whyPlaceholder})
}

const whyPlaceholder = "A token is shown once, in the answer that minted it; Console keeps only its hash. " +
	"Put your token in place of <install-token>, or add another one."

// addToken mints a further token; as in add, the answer is the page that shows it.
func (s *server) addToken(v *visit) error {
	id := v.r.PathValue("id")
	token, plain, err := s.Onboarding.AddToken(v.ctx(), v.who, id)
	if err != nil {
		return err
	}
	status, err := s.Onboarding.Status(v.ctx(), v.who, id)
	if err != nil {
		return err
	}
	page := installData{Attempt: status.Attempt, Token: &token, Plain: plain}
	for _, t := range status.Tokens {
		if t.ID != token.ID {
			page.Tokens = append(page.Tokens, t)
		}
	}
	return s.showInstall(v, page)
}

func (s *server) showInstall(v *visit, page installData) error {
	command, err := s.Onboarding.Command(v.ctx(), v.who, page.Attempt.ID, page.Plain)
	if err != nil {
		return err
	}
	page.base, page.Command = s.base(v, "Install: "+page.Attempt.DisplayName, "clusters"), command
	page.Narrow = true
	page.MayAdd = v.who.Allows(access.HostsWrite, page.Attempt.Scope())
	page.Location = "/clusters/add/" + page.Attempt.ID + "/install"
	if page.Why == "" && page.Plain == "" {
		page.Why = whyPlaceholder
	}
	return v.render(http.StatusOK, installView(page))
}

// tokenFact says what became of a token, by its own numbers.
func tokenFact(t enrollment.Token, now time.Time) fact {
	switch {
	case !t.RevokedAt.IsZero():
		return fact{Class: "failed", Word: "Revoked", At: t.RevokedAt}
	case !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(now):
		return fact{Class: "waiting", Word: "Expired", At: t.ExpiresAt}
	case t.MaxUses > 0 && t.Uses >= t.MaxUses:
		return fact{Class: "waiting", Word: "Used up", At: t.SucceededAt}
	default:
		return fact{Class: "passed", Word: "Open, expires", At: t.ExpiresAt}
	}
}

// uses writes the use count of a token.
func uses(t enrollment.Token) string {
	if t.MaxUses == 0 {
		return grouped(t.Uses) + " uses, unlimited"
	}
	return grouped(t.Uses) + " of " + grouped(t.MaxUses) + " uses"
}

// abandonData is the page that asks before an attempt is abandoned.
type abandonData struct {
	base
	Attempt onboarding.Attempt
}

func (s *server) abandonPage(v *visit) error {
	status, err := s.Onboarding.Status(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	page := abandonData{base: s.base(v, "Abandon "+status.Attempt.DisplayName, "clusters"), Attempt: status.Attempt}
	page.Narrow = true
	return v.render(http.StatusOK, abandonView(page))
}

func (s *server) abandon(v *visit) error {
	if err := s.Onboarding.Abandon(v.ctx(), v.who, v.r.PathValue("id")); err != nil {
		return err
	}
	v.goTo("/clusters?did=abandoned")
	return nil
}
