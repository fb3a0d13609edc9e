package web

import (
	"fmt"
	"strconv"
	"time"
)

// length names a duration by its largest unit, as tables show it: "9 s", "38 min", "5 h", "84 d".
func length(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h", int(d/time.Hour))
	default:
		return fmt.Sprintf("%d d", int(d/(24*time.Hour)))
	}
}

// age says where t stands relative to now: "9 s ago", "in 23 h". Within a second it is "now", since
// the clocks that took the two values may differ by as much. console.js says the same while a page
// stays open.
func age(now, t time.Time) string {
	d := now.Sub(t)
	switch {
	case d >= time.Second:
		return length(d) + " ago"
	case d > -time.Second:
		return "now"
	default:
		return "in " + length(-d)
	}
}

// span is age without "ago", for columns whose head says Age.
func span(now, t time.Time) string { return length(max(0, now.Sub(t))) }

// exact is the time to the second, always in UTC.
func exact(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// machine is the time for the datetime attribute.
func machine(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// grouped writes a number with a comma between thousands.
func grouped[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// plural joins a number with its noun: "1 cluster", "2 clusters".
func plural[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// cpu writes millicores as Kubernetes does: "250m", "2".
func cpu(millis int64) string {
	if millis%1000 == 0 {
		return grouped(millis / 1000)
	}
	return strconv.FormatInt(millis, 10) + "m"
}

// memory writes bytes in the binary units of Kubernetes: "512Mi", "62.7Gi".
func memory(bytes int64) string {
	const ki, mi, gi = int64(1) << 10, int64(1) << 20, int64(1) << 30
	switch {
	case bytes >= 10*gi:
		return fmt.Sprintf("%.1fGi", float64(bytes)/float64(gi))
	case bytes >= mi:
		return strconv.FormatInt((bytes+mi-1)/mi, 10) + "Mi"
	case bytes >= ki:
		return strconv.FormatInt((bytes+ki-1)/ki, 10) + "Ki"
	default:
		return strconv.FormatInt(bytes, 10)
	}
}
