package clock

import (
	"math/rand/v2"
	"time"
)

// Jitter spreads d: it returns a duration drawn evenly from d-fraction*d to d+fraction*d, so that
// many processes with one interval do not act in the same instant. A fraction outside 0 to 1 is cut
// to that range, and a d of zero or less comes back unchanged. The draw is guessable: never use it
// for a secret.
func Jitter(d time.Duration, fraction float64) time.Duration {
	if d <= 0 || !(fraction > 0) { // the negation also catches NaN
		return d
	}
	fraction = min(fraction, 1)
	spread := float64(d) * fraction
	return max(0, d+time.Duration((2*rand.Float64()-1)*spread))
}

// Backoff returns how long to wait before the attempt after the given number of failures (1 or
// more): base doubled for each further failure, at most limit, with a jitter of a half. It never
// returns more than limit.
func Backoff(failures int, base, limit time.Duration) time.Duration {
	d := base
	for range failures - 1 {
		if d >= limit/2 {
			d = limit
			break
		}
		d *= 2
	}
	return min(limit, Jitter(d, 0.5))
}
