package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"

	"github.com/alecthomas/kong"
)

// variableError marks an error that already names the variable.
type variableError struct{ error }

func (e variableError) Unwrap() error { return e.error }

// explain turns kong's error into one for the user: where it speaks of a flag only, the flag's
// variable is added, since most programs here are configured by variables.
func (p *parser) explain(err error) error {
	if named := (variableError{}); errors.As(err, &named) {
		return named.error
	}
	for _, f := range p.flags {
		if len(f.variables) == 0 || p.environment[f.variables[0]] == "" {
			continue
		}
		if regexp.MustCompile(`--` + regexp.QuoteMeta(f.Name) + `([^a-z0-9-]|$)`).MatchString(err.Error()) {
			return fmt.Errorf("%w (%s sets this flag)", err, f.variables[0])
		}
	}
	return err
}

// try decodes text as f's value would be, and leaves f untouched.
func try(f *flag, text string) error {
	scratch := reflect.New(f.Target.Type()).Elem()
	scan := kong.Scan().PushTyped(text, kong.FlagValueToken)
	return f.Mapper.Decode(&kong.DecodeContext{Value: f.Value, Scan: scan}, scratch)
}

// nearest returns the known name that a mistyped one probably meant: the one with the fewest single
// changes, if these are few for its length.
func nearest(name string, known []string) string {
	best, bestDistance := "", len(name)/4+1
	for _, candidate := range known {
		if d := distance(name, candidate); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance counts the bytes to insert, delete or replace between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
