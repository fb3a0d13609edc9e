package web

import (
	"net/http"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/problem"
)

// noTokenMinted heads what a token was refused for.
const noTokenMinted = "No API token was minted"

// tokenForm asks for an API token.
type tokenForm struct {
	Action     string
	Name, Ends string
}

// tokenEnd is how long a token may live.
type tokenEnd struct {
	value, label string
	lifetime     time.Duration // zero: no end
}

const day = 24 * time.Hour

// tokenEnds are what the form offers, the first as the default.
func tokenEnds() []tokenEnd {
	return []tokenEnd{
		{"90", "in 90 days", 90 * day},
		{"1", "tomorrow", day},
		{"30", "in 30 days", 30 * day},
		{"365", "in a year", 365 * day},
		{"never", "when it is revoked", 0},
	}
}

// readTokenForm reads what was typed into the form that is sent to the address.
func readTokenForm(v *visit, action string) tokenForm {
	return tokenForm{Action: action, Name: v.form("token-name"), Ends: v.form("ends")}
}

// mint hands the lifetime that was chosen to what mints.
func (f tokenForm) mint(with func(time.Duration) (access.APIToken, string, error)) (access.APIToken, string, error) {
	for _, e := range tokenEnds() {
		if e.value == f.Ends {
			return with(e.lifetime)
		}
	}
	return access.APIToken{}, "", problem.New(problem.Unprocessable, "end_unknown", "No end is chosen.").WithCure("Choose one of the list.").InField("ends")
}

// tokenFault is refusalOf for that form, which shares its page with another that asks for a name.
func tokenFault(err error) (fault, int, bool) {
	told, status, ok := refusalOf(err)
	if told.Field == "name" {
		told.Field = "token-name"
	}
	return told, status, ok
}

// tokenData is the page that shows a token once.
type tokenData struct {
	base
	access.APIToken
	Crumbs []link
	Back   link
	Plain  string
}

// showToken shows the plain value, which is in this answer alone.
func (s *server) showToken(v *visit, place string, way []link, t access.APIToken, plain string) error {
	back := way[len(way)-1]
	page := tokenData{base: s.base(v, "API token "+t.Name, place), APIToken: t, Crumbs: way, Back: back, Plain: plain}
	page.Narrow, page.Location = true, back.Address
	return v.render(http.StatusOK, tokenView(page))
}

// tokenPage asks before an API token is revoked.
func (s *server) tokenPage(v *visit, place string, way []link, tokens []access.APIToken) error {
	here := way[len(way)-1].Address
	for _, t := range tokens {
		if t.ID != v.r.PathValue("token") || tokenState(t, v.now) != "" {
			continue
		}
		used := "never"
		if !t.LastUsedAt.IsZero() {
			used = exact(t.LastUsedAt)
		}
		return v.confirm(http.StatusOK, confirmData{
			base: s.base(v, "Revoke an API token", place), Crumbs: way, Last: "Revoke the API token", Head: "Revoke the API token " + t.Name + "?",
			Facts:  []confirmFact{{"Begins with", plain(t.Prefix)}, {"Last used", plain(used)}},
			Comes:  []string{"The next request that a program makes with it is refused.", "It cannot be brought back; a new one has another value."},
			Action: here + "/tokens/" + t.ID + "/revoke", Button: "Revoke the API token", Back: here, Keep: "Cancel", Danger: true,
		})
	}
	return problem.New(problem.NotFound, "not_found", "There is no live API token of this id here.").
		WithCure("Go back to the list; it may have expired, or been revoked already.")
}

// tokenState says why a token no longer works; "" where it does.
func tokenState(t access.APIToken, now time.Time) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "Revoked"
	case !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt):
		return "Expired"
	}
	return ""
}
