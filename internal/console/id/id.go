// Package id makes the identifiers of console's own rows: a prefix that says what is named, and
// randomness that nobody can guess or enumerate. It refuses to carry meaning beyond the prefix.
package id

import (
	"crypto/rand"
	"strings"
)

// New returns prefix, an underscore and 26 characters of a to z and 2 to 7, which carry 130 random
// bits: New("cli") is like "cli_k3v…". It is safe for concurrent use and never fails.
func New(prefix string) string { return prefix + "_" + strings.ToLower(rand.Text()) }
