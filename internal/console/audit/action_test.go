package audit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/audit"
)

// Every constant of type Action has a line.
func TestEachActionHasASentence(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "action.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Action" {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			t.Fatalf("%s is not declared by a literal", spec.Names[0])
		}
		name, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		declared++
		if !audit.Action(name).Known() || audit.Action(name).Label() == name {
			t.Errorf("%s (%s) has no line in lines", spec.Names[0].Name, name)
		}
		return true
	})
	if all := audit.Actions(); declared != len(all) || declared < 30 {
		t.Errorf("%d actions are declared, %d have a line", declared, len(all))
	}
}

// Untyped text would pass for an Action, so no call may hold any.
func TestNoActionIsWrittenAsText(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			for _, argument := range call.Args {
				if text, ok := argument.(*ast.BasicLit); ok && text.Kind == token.STRING && isAct(call.Fun, text.Value) {
					t.Errorf("%s: %s is written as text; use the constant of package audit", set.Position(text.Pos()), text.Value)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// isAct tells whether a call that begins an event, or one of an act of the domain, is given an action's name.
func isAct(call ast.Expr, text string) bool {
	name := ""
	switch f := call.(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
	case *ast.Ident:
		name = f.Name
	}
	if name == "Did" {
		return true
	}
	plain, err := strconv.Unquote(text)
	return err == nil && (name == "act" || name == "change" || name == "event" || name == "System" || name == "Agent") && audit.Action(plain).Known()
}

func TestSentence(t *testing.T) {
	at := time.Date(2026, 12, 3, 12, 0, 0, 0, time.UTC)
	ann := func(a audit.Action) audit.Event {
		return audit.Event{At: at, ActorKind: audit.ActorUser, ActorID: "usr_a", ActorName: "ann@example.com", Action: a}
	}
	for want, e := range map[string]audit.Event{
		"ann@example.com gave the role Viewer to bob@example.com":                                        ann(audit.RoleAssigned).On("user", "usr_b", "bob@example.com").With("role", "Viewer"),
		"ann@example.com revoked the API token ci":                                                       ann(audit.APITokenRevoked).On("api_token", "apt", "ci"),
		"ann@example.com revoked the API token ci of bob@example.com":                                    ann(audit.APITokenRevoked).On("api_token", "apt", "ci").With("user", "bob@example.com"),
		"ann@example.com renamed the client Acme to Acme [new]":                                          ann(audit.ClientRenamed).On("client", "cli", "Acme").With("before", "Acme").With("after", "Acme [new]"),
		"Agent col-0 enrolled with the install token pit_abcd…":                                          audit.Agent(at, audit.AgentEnrolled, "agt", "col-0").On("agent", "agt", "col-0").With("token", "pit_abcd"),
		"Console made the first administrator, root@example.com":                                         audit.System(at, audit.AdministratorCreated).On("user", "usr", "root@example.com"),
		"Console refused a sign-in to bob@example.com; more within 15 minutes leave no row of their own": audit.System(at, audit.SignInFailed).On("user", "usr", "bob@example.com").With("account", "bob@example.com").With("window", "15"),
		"ann@example.com did of_tomorrow thing":                                                          ann("of_tomorrow").On("thing", "x", "thing"),
	} {
		if got := e.Sentence(); got != want {
			t.Errorf("the sentence is %q, want %q", got, want)
		}
	}
	for _, a := range audit.Actions() {
		if got := ann(a).On("thing", "t", "Thing").Sentence(); strings.ContainsAny(got, "{}[]") {
			t.Errorf("%s: %q", a, got)
		}
	}
}
