package web

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/a-h/templ"

	"prxm.uz/proxima/internal/console/access"
)

// current marks the link of the page that is shown.
func current(is bool, kind string) templ.Attributes {
	if !is {
		return nil
	}
	return templ.Attributes{"aria-current": kind}
}

// called is the name of a person, or the e-mail address of one without.
func called(p access.Principal) string {
	if p.Name != "" {
		return p.Name
	}
	return p.Email
}

// initials are the first letters of at most two parts of a name.
func initials(name string) string {
	var out []rune
	for _, part := range strings.Fields(name) {
		first := []rune(part)[0]
		if len(out) < 2 && unicode.IsLetter(first) {
			out = append(out, unicode.ToUpper(first))
		}
	}
	return string(out)
}

// invalid are the attributes of an input, with its error where the fault is its own.
func invalid(f *fault, field string) templ.Attributes {
	if f == nil || f.Field != field {
		return nil
	}
	return templ.Attributes{"aria-invalid": "true", "aria-describedby": field + "-error"}
}

// described adds a hint to what describes an input, its error first.
func described(f *fault, field, hint string) templ.Attributes {
	out := templ.Attributes{"aria-describedby": hint}
	if f != nil && f.Field == field {
		out["aria-invalid"] = "true"
		out["aria-describedby"] = field + "-error " + hint
	}
	return out
}

// number writes n for an attribute, without commas.
func number(n int) string { return strconv.Itoa(n) }
