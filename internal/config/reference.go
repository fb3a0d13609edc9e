package config

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// Reference returns the Markdown reference of target's settings: for each group a heading and a table
// of variable, flag, default and description. The groups keep the order of the struct.
func Reference(program Program, target any) (string, error) {
	p, err := newParser(program, target, io.Discard, io.Discard)
	if err != nil {
		return "", err
	}
	var groups []string
	rows := map[string][]string{}
	for _, f := range p.flags {
		if f.Hidden || f.builtIn() {
			continue
		}
		group := f.group()
		if f.commands != "" {
			group = "Command `" + program.Name + " " + f.commands + "`"
		}
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
		rows[group] = append(rows[group], f.row())
	}

	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n", program.Name, program.Description)
	for _, group := range groups {
		fmt.Fprintf(&b, "\n### %s\n\n| Variable | Flag | Default | Description |\n|---|---|---|---|\n", group)
		for _, row := range rows[group] {
			b.WriteString(row)
		}
	}
	return b.String(), nil
}

// Variables returns the names of all environment variables that target reads, sorted.
func Variables(target any) ([]string, error) {
	p, err := newParser(Program{Name: "program"}, target, io.Discard, io.Discard)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range p.flags {
		names = append(names, f.variables...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (f *flag) row() string {
	variable, preset := "–", "–"
	if len(f.variables) > 0 {
		variable = "`" + strings.Join(f.variables, "`, `") + "`"
	}
	switch {
	case f.required:
		preset = "required"
	case f.HasDefault && f.Default != "":
		preset = "`" + cell(f.Default) + "`"
	}
	help := cell(f.Help)
	if f.Enum != "" {
		help += " One of `" + strings.ReplaceAll(cell(f.Enum), ",", "`, `") + "`."
	}
	if f.Target.Type() == reflect.TypeFor[Secret]() {
		help += " **Secret**: never printed; `@/path/to/file` reads it from a file."
	}
	return fmt.Sprintf("| %s | `--%s` | %s | %s |\n", variable, f.Name, preset, help)
}

// cell keeps a text inside its table cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(strings.TrimSpace(s))
}
