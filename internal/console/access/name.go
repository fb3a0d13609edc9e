package access

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"prxm.uz/proxima/internal/console/problem"
)

// CheckName holds the rules of every name that people give: 1 to limit characters, none of them a
// control or direction mark, no space at either end.
func CheckName(field, name string, limit int) error {
	bad := func(message, cure string) error {
		return problem.New(problem.Invalid, "name_invalid", message).WithCure(cure).InField(field)
	}
	n := utf8.RuneCountInString(name)
	switch {
	case !utf8.ValidString(name):
		return bad("The "+field+" is not valid UTF-8.", "Send text.")
	case n == 0, n > limit:
		return bad(fmt.Sprintf("The %s has %d characters.", field, n), fmt.Sprintf("Give 1 to %d characters.", limit))
	case strings.TrimSpace(name) != name:
		return bad(fmt.Sprintf("The %s %q begins or ends with a space.", field, name), "Remove the space.")
	case strings.ContainsFunc(name, hidden):
		return bad(fmt.Sprintf("The %s %q holds a character that cannot be seen.", field, name), "Remove control and direction characters.")
	}
	return nil
}

func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
