package web

import "github.com/a-h/templ"

// notChanged heads what an act was refused for.
const notChanged = "Nothing was changed"

// confirmData is the page that says what an act comes to before it is done, or why it cannot be.
type confirmData struct {
	base
	Crumbs []link
	Last   string // of the crumbs
	Head   string
	// Failed heads the summary of a refusal.
	Failed string
	Facts  []confirmFact
	Comes  []string
	// Blocks says what stands against the act, "" if nothing does; Cure what to do about that.
	Blocks, Cure   string
	Action, Button string
	Back, Keep     string
	Danger         bool
	Fault          *fault
}

// confirmFact is one thing to know of what is acted on.
type confirmFact struct {
	Label string
	Value templ.Component
}

// confirm renders such a page.
func (v *visit) confirm(status int, d confirmData) error {
	d.Narrow = true
	return v.render(status, confirmView(d))
}
