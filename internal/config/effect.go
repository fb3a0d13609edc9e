package config

import (
	"encoding"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Source says where a setting's value came from.
type Source string

// The sources.
const (
	FromDefault     Source = "default"
	FromEnvironment Source = "environment"
	FromFlag        Source = "flag"
)

// Setting is one setting as it is in effect. It holds nothing that must not be printed.
type Setting struct {
	// Variable is "" where only the flag sets it.
	Variable string
	// Flag is the flag's name without dashes.
	Flag  string
	Group string
	// Value is the value as text: "set" or "not set" for a secret, and *** in place of the user, the password
	// and the query of a URL.
	Value  string
	Secret bool
	Source Source
	Help   string
}

// inEffect lists the settings of the selected command, in the order of the struct.
func (p *parser) inEffect(kctx *kong.Context) []Setting {
	sources := map[*kong.Flag]Source{}
	for _, step := range kctx.Path {
		switch {
		case step.Flag == nil:
		case step.Resolved:
			sources[step.Flag] = FromEnvironment
		default:
			sources[step.Flag] = FromFlag
		}
	}
	selected := map[*kong.Flag]bool{}
	for _, f := range kctx.Flags() {
		selected[f] = true
	}
	var list []Setting
	for _, f := range p.flags {
		if !selected[f.Flag] || f.Hidden || f.builtIn() {
			continue
		}
		s := Setting{Flag: f.Name, Group: f.group(), Source: FromDefault, Help: f.Help}
		if from, ok := sources[f.Flag]; ok {
			s.Source = from
		}
		s.Variable = f.variable(p.environment)
		s.Value, s.Secret = shown(f.Target)
		list = append(list, s)
	}
	return list
}

func (f *flag) builtIn() bool {
	return len(f.variables) == 0 && (f.Name == "version" || f.Name == "help")
}

func (f *flag) group() string {
	if f.Group == nil {
		return "General"
	}
	return f.Group.Title
}

// variable is the one that is set, or the first.
func (f *flag) variable(environment map[string]string) string {
	for _, name := range f.variables {
		if environment[name] != "" {
			return name
		}
	}
	if len(f.variables) > 0 {
		return f.variables[0]
	}
	return ""
}

// shown words a value so that it may be printed.
func shown(v reflect.Value) (text string, secret bool) {
	switch value := v.Interface().(type) {
	case Secret:
		if value.IsSet() {
			return "set", true
		}
		return "not set", true
	case time.Duration:
		return Duration(value), false
	case List:
		return masked(value), false
	case NATSURLs:
		return masked(value), false
	case encoding.TextMarshaler:
		b, err := value.MarshalText()
		if err != nil {
			return "", false
		}
		return Masked(string(b)), false
	}
	return Masked(fmt.Sprint(v.Interface())), false
}

func masked(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Masked(s)
	}
	return strings.Join(out, ", ")
}

// Masked replaces the user and the password of a URL by ***, and its query and fragment too. Text that is no
// URL comes back as it is.
func Masked(s string) string {
	scheme, _, isURL := strings.Cut(s, "://")
	if !isURL {
		return s
	}
	u, err := url.Parse(s)
	if err != nil { // nobody can tell which part the password is
		return scheme + "://" + redacted
	}
	out := scheme + "://"
	if u.User != nil {
		out += redacted + "@"
	}
	out += u.Host + u.EscapedPath()
	if u.RawQuery != "" || u.Fragment != "" {
		out += "?" + redacted
	}
	return out
}

// Duration writes a duration as a variable takes it, without units that are zero: 5m, 168h, 1h30m.
func Duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
