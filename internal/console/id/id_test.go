package id_test

import (
	"regexp"
	"testing"

	"prxm.uz/proxima/internal/console/id"
)

func TestNew(t *testing.T) {
	shape := regexp.MustCompile(`^cli_[a-z2-7]{26}$`)
	seen := map[string]bool{}
	for range 1000 {
		got := id.New("cli")
		if !shape.MatchString(got) {
			t.Fatalf("New gave %q, want the shape %s", got, shape)
		}
		if seen[got] {
			t.Fatalf("New gave %q twice", got)
		}
		seen[got] = true
	}
}
