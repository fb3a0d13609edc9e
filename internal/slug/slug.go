// Package slug owns the one way in which a display name becomes a cluster slug. Console and both
// agents use it, so what the wizard shows is what an agent would derive by itself.
package slug

import "strings"

// MaxLength is the greatest number of characters in a slug: that of a DNS label.
const MaxLength = 63

// Make derives the slug of a display name: lower-cased, every run of other characters than a to z
// and 0 to 9 joined to one hyphen, none at the ends, cut to [MaxLength]. It is empty when the name
// holds no usable character ("東京"); the caller must then ask for a slug. Any other result is
// [Valid], and Make of a valid slug without two hyphens in a row is that slug.
func Make(name string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if !alphanumeric(r) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('-')
		}
		gap = false
		if b.Len() >= MaxLength {
			break
		}
		b.WriteRune(r)
	}
	s := b.String()
	if len(s) > MaxLength {
		s = s[:MaxLength]
	}
	return strings.TrimRight(s, "-")
}

// Valid reports whether s may be a cluster's slug: 1 to 63 characters of a to z, 0 to 9 and hyphen,
// the first and the last not a hyphen.
func Valid(s string) bool {
	if s == "" || len(s) > MaxLength || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, r := range s {
		if r != '-' && !alphanumeric(r) {
			return false
		}
	}
	return true
}

func alphanumeric(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' }
