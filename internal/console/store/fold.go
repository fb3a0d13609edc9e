package store

import "strings"

// fold makes two names that differ in case alone equal. It is done here and not in SQL, since the
// engines fold differently beyond ASCII.
func fold(s string) string { return strings.ToLower(s) }

// versionOrder makes versions comparable as text: every run of digits is padded to eight, so that
// v1.9 comes before v1.10.
func versionOrder(version string) string {
	var b strings.Builder
	for i := 0; i < len(version); {
		end := i
		for end < len(version) && version[end] >= '0' && version[end] <= '9' {
			end++
		}
		if end == i {
			b.WriteByte(version[i])
			i++
			continue
		}
		for pad := end - i; pad < 8; pad++ {
			b.WriteByte('0')
		}
		b.WriteString(version[i:end])
		i = end
	}
	return b.String()
}
