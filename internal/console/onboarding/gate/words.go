package gate

import (
	"fmt"
	"strings"
	"time"
)

// ago words an age: "11 s ago", "26 min ago", "3 h 5 min ago", "2 d ago". An instant that lies ahead,
// as after a step of the clock, reads "0 s ago".
func ago(now, t time.Time) string { return Span(now.Sub(t)) + " ago" }

// Span words a duration in its two largest units, rounded down.
func Span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	case d < 48*time.Hour:
		h, m := int(d/time.Hour), int(d%time.Hour/time.Minute)
		if m == 0 {
			return fmt.Sprintf("%d h", h)
		}
		return fmt.Sprintf("%d h %d min", h, m)
	default:
		return fmt.Sprintf("%d d", int(d/(24*time.Hour)))
	}
}

// limit words a limit in whole units: "10 minutes", "90 seconds", "2 hours".
func limit(d time.Duration) string {
	switch {
	case d >= 2*time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d hours", d/time.Hour)
	case d >= 2*time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	default:
		return fmt.Sprintf("%d seconds", d/time.Second)
	}
}

// setting words a duration as the variable takes it: 5m, 90s.
func setting(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// clock words an instant of today or not far from it.
func clock(t time.Time) string { return t.UTC().Format("15:04 UTC") }

// instant words an instant in full.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// count words a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// list joins names: "a", "a and b", "a, b and c"; beyond four it counts the rest.
func list(names []string) string {
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		return names[0]
	case n <= 4:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	default:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), n-3)
	}
}
