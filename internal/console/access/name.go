package access

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"prxm.uz/proxima/internal/console/problem"
)

// CheckName holds the rules of every name that people give: 1 to limit characters, none of them a
// control or direction mark or one that cannot be seen, no space at either end.
func CheckName(field, name string, limit int) error {
	bad := func(message, cure string) error {
		return problem.New(problem.Invalid, "name_invalid", message).WithCure(cure).InField(field)
	}
	n := utf8.RuneCountInString(name)
	r, hidden := hiddenIn(name)
	switch {
	case !utf8.ValidString(name):
		return bad("The "+field+" is not valid UTF-8.", "Send text.")
	case n == 0, n > limit:
		return bad(fmt.Sprintf("The %s has %d characters.", field, n), fmt.Sprintf("Give 1 to %d characters.", limit))
	case strings.TrimSpace(name) != name:
		return bad(fmt.Sprintf("The %s %q begins or ends with a space.", field, name), "Remove the space.")
	case hidden:
		return bad(fmt.Sprintf("The %s %q holds %U, which cannot be seen.", field, name, r), "Remove it.")
	}
	return nil
}

func hiddenIn(name string) (rune, bool) {
	for _, r := range name {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return r, true
		}
	}
	return Invisible(name)
}

// Invisible returns the first character of a name that is drawn as nothing: a format character, direction
// marks among them, or a filler. Two names that differ in it alone look the same. The joiners U+200C and
// U+200D are spelling between two letters, and allowed there.
func Invisible(name string) (rune, bool) {
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case r == '\u200c', r == '\u200d':
			if i == 0 || i == len(runes)-1 || !spells(runes[i-1]) || !spells(runes[i+1]) {
				return r, true
			}
		case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
			return r, true
		}
	}
	return 0, false
}

// spells tells whether r is part of a word: a letter, or a mark on one.
func spells(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }
