// Package config owns how a program reads its configuration: one struct whose tags name each flag,
// environment variable, default and description (library: kong). It adds what kong leaves out: an
// explicit environment, empty variables that count as unset, errors that name the variable, warnings
// about variables that nobody knows, the [Secret] type and the reference page.
//
// It refuses to know any program's settings: those are declared beside the code that they steer. Every
// variable's name is written out in its env tag, since derived names break PROXIMA_K8S_….
//
//	type Config struct {
//		BackendURL config.BaseURL `name:"backend-url" env:"PROXIMA_BACKEND_URL" group:"Enrolment" required:"" help:"…"`
//		Token      config.Secret  `name:"install-token" env:"PROXIMA_INSTALL_TOKEN" group:"Enrolment" help:"…"`
//	}
//
// A struct's method Validate() error is called once all values are in place.
package config

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Prefix starts the name of every environment variable of ours, apart from those that Kubernetes'
// downward API customarily sets (POD_NAME, POD_NAMESPACE, NODE_NAME).
const Prefix = "PROXIMA_"

// ErrHelp is returned by [Parse] when help or the version was asked for and has been printed. The
// program should end with success.
var ErrHelp = errors.New("config: help was printed")

// ExitUsage is the exit code for a wrong flag, variable or command.
const ExitUsage = 2

// Program says what is being configured.
type Program struct {
	// Name is the program's file name.
	Name string
	// Description is the first sentence of its help.
	Description string
	// Version is printed by --version.
	Version string
	// KnownVariables are variables with our prefix that are read elsewhere, such as PROXIMA_TEST_CLOCK_FILE
	// in builds for tests. They cause no warning.
	KnownVariables []string
}

// Result is what [Parse] found beside the values.
type Result struct {
	// Command is the selected command with its parents ("admin reset-password"), empty where the
	// program has none.
	Command string
	// Warnings are sentences for the log, one for each variable with our prefix that the program does
	// not know. They hold names, never values.
	Warnings []string
	// Settings are what is in effect for the selected command, in the order of its struct.
	Settings []Setting
}

// Parse fills target, a pointer to a struct with kong tags, from args (without the program's name),
// environ ("NAME=value", as os.Environ returns it) and the defaults, in this order of precedence. A
// variable that is set but empty counts as unset. It never looks at the process's own environment.
//
// It returns [ErrHelp] after printing help or version to stdout, and an error fit for the user
// otherwise: it names the flag and the variable, and says what was expected. [ExitCode] maps both.
func Parse(program Program, target any, args, environ []string, stdout, stderr io.Writer) (result *Result, err error) {
	p, err := newParser(program, target, stdout, stderr)
	if err != nil {
		return nil, err
	}
	p.environment = environment(environ)

	defer func() {
		switch r := recover().(type) {
		case nil:
		case ended:
			result, err = nil, ErrHelp
		default:
			panic(r)
		}
	}()
	kctx, err := p.kong.Parse(args)
	if err != nil {
		return nil, usageError{p.explain(err)}
	}
	if err := p.missing(kctx); err != nil {
		return nil, usageError{err}
	}
	return &Result{Command: command(kctx), Warnings: p.unknown(program), Settings: p.inEffect(kctx)}, nil
}

// ExitCode returns 0 for nil and [ErrHelp], [ExitUsage] for an error of [Parse], and 1 for any other.
func ExitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, ErrHelp):
		return 0
	case errors.As(err, new(usageError)):
		return ExitUsage
	default:
		return 1
	}
}

// Report writes an error of [Parse] to stderr with a pointer to the help, nothing for [ErrHelp], and
// returns the exit code.
func Report(program Program, err error, stderr io.Writer) int {
	code := ExitCode(err)
	if code != 0 {
		fmt.Fprintf(stderr, "%s: %v\n", program.Name, err)
	}
	if code == ExitUsage {
		fmt.Fprintf(stderr, "Run %s --help for all flags and variables.\n", program.Name)
	}
	return code
}

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// ended is thrown where kong would end the process.
type ended struct{}

// parser is kong's parser with the environment taken out of its hands: kong would read the process's
// own, and let an empty variable override a default.
type parser struct {
	kong        *kong.Kong
	flags       []*flag
	environment map[string]string
}

type flag struct {
	*kong.Flag
	variables []string
	required  bool
	commands  string // the command that it belongs to, empty for the program
}

func newParser(program Program, target any, stdout, stderr io.Writer) (*parser, error) {
	p := &parser{}
	var builtIn struct {
		Version kong.VersionFlag `name:"version" help:"Print the version and exit."`
	}
	k, err := kong.New(target, append(mappers(),
		kong.Name(program.Name),
		kong.Description(program.Description),
		kong.Vars{"version": program.Version},
		kong.Embed(&builtIn),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { panic(ended{}) }),
		kong.PostBuild(p.takeOver),
		kong.Resolvers(kong.ResolverFunc(p.resolve)),
		kong.ValueFormatter(p.help),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)...)
	if err != nil {
		return nil, fmt.Errorf("config: the struct %T cannot be configured: %w", target, err)
	}
	p.kong = k
	return p, nil
}

// takeOver notes each flag's variables and whether it is required, and makes kong forget both.
func (p *parser) takeOver(k *kong.Kong) error {
	return kong.Visit(k.Model.Node, func(node kong.Visitable, next kong.Next) error {
		if f, ok := node.(*kong.Flag); ok {
			p.flags = append(p.flags, &flag{Flag: f, variables: f.Tag.Envs, required: f.Required})
			f.Tag.Envs, f.Envs, f.Required = nil, nil, false
		}
		if n, ok := node.(*kong.Node); ok && n.Type == kong.CommandNode {
			before := len(p.flags)
			err := next(nil)
			for _, f := range p.flags[before:] {
				if f.commands == "" {
					f.commands = n.Path()
				}
			}
			return err
		}
		return next(nil)
	})
}

func (p *parser) flag(value *kong.Value) *flag {
	for _, f := range p.flags {
		if f.Value == value {
			return f
		}
	}
	return nil
}

// resolve gives kong the value of a flag's first variable that is set to something.
func (p *parser) resolve(_ *kong.Context, _ *kong.Path, kf *kong.Flag) (any, error) {
	f := p.flag(kf.Value)
	if f == nil {
		return nil, nil //nolint:nilnil // kong's way to say that there is no value
	}
	for _, variable := range f.variables {
		text := p.environment[variable]
		if text == "" {
			continue
		}
		// A trial with a value of its own, so that the error can name the variable and not the flag.
		if err := try(f, text); err != nil {
			return nil, variableError{fmt.Errorf("%s: %w", variable, err)}
		}
		return text, nil
	}
	return nil, nil //nolint:nilnil // as above
}

// missing reports the required flags that were given no value, all at once.
func (p *parser) missing(kctx *kong.Context) error {
	selected := kctx.Flags()
	var list []string
	for _, f := range p.flags {
		if f.required && !f.Set && slices.Contains(selected, f.Flag) {
			list = append(list, fmt.Sprintf("%s is not set: %s", f.title(), f.Help))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return errors.New(strings.Join(list, "\n"))
}

// title names a flag as a user may set it.
func (f *flag) title() string {
	if len(f.variables) == 0 {
		return "--" + f.Name
	}
	return fmt.Sprintf("%s (flag --%s)", f.variables[0], f.Name)
}

func (p *parser) help(value *kong.Value) string {
	f := p.flag(value)
	if f == nil || len(f.variables) == 0 {
		return value.Help
	}
	return strings.TrimSuffix(value.Help, ".") + " ($" + strings.Join(f.variables, ", $") + ")."
}

// unknown warns of every variable with our prefix that no flag of the program reads.
func (p *parser) unknown(program Program) []string {
	known := slices.Clone(program.KnownVariables)
	for _, f := range p.flags {
		known = append(known, f.variables...)
	}
	var warnings []string
	for variable := range p.environment {
		if !strings.HasPrefix(variable, Prefix) || slices.Contains(known, variable) {
			continue
		}
		warning := fmt.Sprintf("environment variable %s is not known to %s and has no effect", variable, program.Name)
		if near := nearest(variable, known); near != "" {
			warning += "; did you mean " + near + "?"
		}
		warnings = append(warnings, warning)
	}
	slices.Sort(warnings)
	return warnings
}

// command is the selected command's path without the names of positional arguments.
func command(kctx *kong.Context) string {
	var names []string
	for _, step := range kctx.Path {
		if step.Command != nil {
			names = append(names, step.Command.Name)
		}
	}
	return strings.Join(names, " ")
}

// environment splits "NAME=value" entries. The last of several wins, as in a shell.
func environment(environ []string) map[string]string {
	m := make(map[string]string, len(environ))
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			m[name] = value
		}
	}
	return m
}
