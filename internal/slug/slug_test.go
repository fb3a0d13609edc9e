package slug_test

import (
	"encoding/csv"
	"os"
	"regexp"
	"strings"
	"testing"

	"prxm.uz/proxima/internal/slug"
)

func TestMakeFollowsTheTable(t *testing.T) {
	f, err := os.Open("testdata/names.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		if got := slug.Make(row[0]); got != row[1] {
			t.Errorf("Make(%q) = %q, want %q", row[0], got, row[1])
		}
	}
}

func TestMakeCutsTo63(t *testing.T) {
	for name, want := range map[string]string{
		strings.Repeat("a", 63):                  strings.Repeat("a", 63),
		strings.Repeat("a", 64):                  strings.Repeat("a", 63),
		strings.Repeat("a", 62) + " b":           strings.Repeat("a", 62),
		strings.Repeat("a", 61) + " b":           strings.Repeat("a", 61) + "-b",
		strings.Repeat("a", 63) + " b":           strings.Repeat("a", 63),
		strings.Repeat("-", 500) + "a":           "a",
		strings.Repeat("ab ", 100):               strings.Repeat("ab-", 21)[:62],
		strings.Repeat("\xff", 100) + "x\x00y\n": "x-y",
	} {
		if got := slug.Make(name); got != want {
			t.Errorf("Make(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestValid(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "7": true, "a-b": true, "a--b": true, strings.Repeat("a", 63): true,
		"": false, "-": false, "-a": false, "a-": false, "A": false, "a_b": false, "a.b": false, "a\n": false,
		"é": false, strings.Repeat("a", 64): false, "a b": false, "a\x00": false,
	} {
		if got := slug.Valid(s); got != want {
			t.Errorf("Valid(%q) = %v", s, got)
		}
	}
}

// FuzzSlug compares with slow models: the expression of A-18, and one regular replacement.
func FuzzSlug(f *testing.F) {
	for _, seed := range []string{"", "Prod EU", "--a--", "a\xffb", "İstanbul", strings.Repeat("x-", 40)} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`\A[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\z`)
	other := regexp.MustCompile(`[^a-z0-9]+`)
	f.Fuzz(func(t *testing.T, name string) {
		if got, want := slug.Valid(name), form.MatchString(name); got != want {
			t.Errorf("Valid(%q) = %v, the expression says %v", name, got, want)
		}
		model := strings.Trim(other.ReplaceAllString(strings.ToLower(name), "-"), "-")
		if len(model) > 63 {
			model = strings.TrimRight(model[:63], "-")
		}
		got := slug.Make(name)
		if got != model {
			t.Errorf("Make(%q) = %q, the model says %q", name, got, model)
		}
		if got != "" && !form.MatchString(got) {
			t.Errorf("Make(%q) = %q is not a valid slug", name, got)
		}
		if again := slug.Make(got); again != got {
			t.Errorf("Make(%q) = %q, not itself", got, again)
		}
	})
}
