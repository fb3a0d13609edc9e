package web

import (
	"net/http"
	"strconv"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/problem"
)

// tokensPageSize is how many install tokens a page shows.
const tokensPageSize = 100

// tokensData is the page of install tokens.
type tokensData struct {
	base
	Rows     []tokenRow
	List     list
	Pager    pager
	Names    names
	Filtered bool
	Done     string
}

// tokenRow is one install token.
type tokenRow struct {
	enrollment.Token
	Where string
	State fact
	Live  bool
}

func tokenStateOptions() []option {
	return []option{
		{enrollment.StateLive, "Live"}, {enrollment.StateExpired, "Expired"}, {enrollment.StateUsedUp, "Used up"}, {enrollment.StateRevoked, "Revoked"},
	}
}

func (s *server) tokens(v *visit) error {
	l := readList(v.r, tokensPageSize, nil)
	q := enrollment.TokenQuery{
		ClientID: l.get("client"), EnvironmentID: l.get("environment"), Limit: l.Size, Offset: l.offset(),
	}
	for _, o := range tokenStateOptions() {
		if o.Value == l.get("state") {
			q.State = o.Value
		}
	}
	tokens, total, err := s.Enrollment.Tokens(v.ctx(), v.who, q)
	if err != nil {
		return err
	}
	page := tokensData{
		base: s.base(v, "Install tokens", "install-tokens"), List: l, Pager: l.pager(len(tokens), total),
		Filtered: l.filtered("client", "environment", "state"),
	}
	if page.Pager.beyond() {
		v.goTo(l.page(page.Pager.Pages))
		return nil
	}
	if page.Names, err = s.names(v, access.HostsWrite); err != nil {
		return err
	}
	for _, t := range tokens {
		page.Rows = append(page.Rows, newTokenRow(t, page.Names, v.now))
	}
	if v.r.URL.Query().Get("did") == "revoked" {
		page.Done = "The token is revoked. It admits nobody any more; agents that enrolled with it stay."
	}
	page.announce(v, l, plural(total, "token", "tokens"))
	return v.render(http.StatusOK, tokensView(page))
}

func newTokenRow(t enrollment.Token, n names, now time.Time) tokenRow {
	row := tokenRow{
		Token: t, State: tokenFact(t, now), Live: t.State(now) == enrollment.StateLive,
		Where: n.client(t.ClientID) + " / " + n.environment(t.EnvironmentID),
	}
	if row.Live && t.MaxUses == 0 {
		row.State.Class, row.State.Word = "warning", "Open without limit, expires"
	}
	return row
}

// The choices of how often a token may be used.
const (
	usesOne       = "one"
	usesMany      = "many"
	usesUnlimited = "unlimited"
)

// mintData is the form that asks for an install token.
type mintData struct {
	base
	Names    names
	Attempts []onboarding.Attempt
	// What was chosen.
	Environment, Attempt, Type, Uses, Count, Hours, Name string
	Fault                                                *fault
}

// mostAttempts is how many attempts the form offers, the newest first.
const mostAttempts = 200

func (s *server) mintPage(v *visit) error {
	q := v.r.URL.Query()
	return s.showMint(v, http.StatusOK, mintData{
		Environment: q.Get("environment"), Attempt: q.Get("attempt"), Uses: usesOne, Count: "10", Hours: "24",
	})
}

func (s *server) showMint(v *visit, status int, page mintData) error {
	page.base = s.base(v, "Mint an install token", "install-tokens")
	page.Narrow = true
	page.Here = "/install-tokens/mint"
	var err error
	if page.Names, err = s.names(v, access.HostsWrite); err != nil {
		return err
	}
	attempts, err := s.Onboarding.List(v.ctx(), v.who, "", false)
	if err != nil {
		return err
	}
	for _, a := range attempts {
		if a.ArchivedAt.IsZero() && v.who.Allows(access.HostsWrite, a.Scope()) && len(page.Attempts) < mostAttempts {
			page.Attempts = append(page.Attempts, a)
		}
	}
	return v.render(status, mintView(page))
}

// mint mints the token. The answer itself shows it, since nothing else may know the plain value.
func (s *server) mint(v *visit) error {
	page := mintData{
		Environment: v.form("environment"), Attempt: v.form("attempt"), Type: v.form("type"), Uses: v.form("uses"), Count: v.form("count"),
		Hours: v.form("hours"), Name: v.form("name"),
	}
	req, err := s.mintRequest(v, page)
	var token enrollment.Token
	var plain string
	if err == nil {
		token, plain, err = s.Enrollment.Mint(v.ctx(), v.who, req)
	}
	if err != nil {
		told, status, ok := faultOf(err)
		if !ok {
			return err
		}
		told.Field = mintField(told.Field)
		page.Fault = &told
		return s.showMint(v, status, page)
	}
	names, err := s.names(v, access.HostsWrite)
	if err != nil {
		return err
	}
	shown := mintedData{base: s.base(v, "Install token", "install-tokens"), tokenRow: newTokenRow(token, names, v.now), Plain: plain}
	shown.Narrow = true
	shown.Location = "/install-tokens"
	return v.render(http.StatusOK, mintedView(shown))
}

// mintRequest reads the form.
func (s *server) mintRequest(v *visit, page mintData) (enrollment.MintRequest, error) {
	req := enrollment.MintRequest{Name: page.Name, AgentType: fleet.Type(page.Type), EnvironmentID: page.Environment, OnboardingID: page.Attempt}
	if page.Attempt != "" {
		attempts, err := s.Onboarding.List(v.ctx(), v.who, "", false)
		if err != nil {
			return req, err
		}
		for _, a := range attempts {
			if a.ID == page.Attempt {
				req.ClientID, req.EnvironmentID = a.ClientID, a.EnvironmentID
			}
		}
	} else {
		names, err := s.names(v, access.HostsWrite)
		if err != nil {
			return req, err
		}
		for _, e := range names.Environments {
			if e.ID == page.Environment {
				req.ClientID = e.ClientID
			}
		}
	}
	switch page.Uses {
	case usesOne:
		req.MaxUses = 1
	case usesMany:
		n, err := strconv.Atoi(page.Count)
		if err != nil || n < 1 || n > 100_000 {
			return req, mintFault("count", "“"+page.Count+"” is no number of agents from 1 to 100,000.", "Type how many agents are to enroll with the token.")
		}
		req.MaxUses = n
	case usesUnlimited:
		req.MaxUses = 0
	default:
		return req, mintFault("uses", "It is not said how many agents the token admits.", "Choose one of the three.")
	}
	hours, err := strconv.Atoi(page.Hours)
	if err != nil || hours < 1 || hours > 24*90 {
		return req, mintFault("hours", "“"+page.Hours+"” is no number of hours from 1 to 2,160.", "Type a number of hours; 24 is the usual one.")
	}
	req.ExpiresIn = time.Duration(hours) * time.Hour
	return req, nil
}

func mintFault(field, message, cure string) error {
	return problem.New(problem.Unprocessable, "request_invalid", message).WithCure(cure).InField(field)
}

// mintField is the input that a problem's field speaks of.
func mintField(field string) string {
	switch field {
	case "environmentID", "onboardingID":
		return "environment"
	case "agentType":
		return "type"
	case "maxUses":
		return "count"
	case "expiresInHours":
		return "hours"
	}
	return field
}

// mintedData is the only page that shows the plain value of the token.
type mintedData struct {
	base
	tokenRow
	Plain string
}

func (s *server) revokeTokenPage(v *visit) error {
	t, err := s.Enrollment.TokenOf(v.ctx(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	names, err := s.names(v, access.HostsWrite)
	if err != nil {
		return err
	}
	row := newTokenRow(t, names, v.now)
	comes := []string{
		"Nothing enrolls with it any more, from now on.",
		plural(t.CollectorsEnrolled+t.OthersEnrolled, "agent", "agents") + " that enrolled with it stay: each has a credential of its own.",
	}
	if t.OnboardingID != "" {
		comes = append(comes, "The attempt that it was minted for keeps what it counts; a further token can be added there.")
	}
	const back = "/install-tokens"
	return v.confirm(http.StatusOK, confirmData{
		base: s.base(v, "Revoke an install token", "install-tokens"), Crumbs: []link{{"Install tokens", back}}, Last: t.Prefix + "…", Head: "Revoke " + t.Prefix + "…?",
		Facts: []confirmFact{{"Where", plain(row.Where)}, {"Admits", plain(admits(t.AgentType))}, {"Uses", plain(uses(t))}, {"State", factValue(row.State, v.now)}},
		Comes: comes, Action: back + "/" + t.ID + "/revoke", Button: "Revoke the token", Back: back, Keep: "Keep the token", Danger: true,
	})
}

func (s *server) revokeToken(v *visit) error {
	if err := s.Enrollment.Revoke(v.ctx(), v.who, v.r.PathValue("id")); err != nil {
		return err
	}
	v.goTo("/install-tokens?did=revoked")
	return nil
}
