package problem_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryProblemHasItsCure reads the console's source: whoever makes a problem also says what to do.
func TestEveryProblemHasItsCure(t *testing.T) {
	made := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/internal/") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		cured := map[ast.Node]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			switch {
			case !ok:
			case isNew(method):
				if made++; !cured[call] {
					t.Errorf("%s: the problem has no cure", files.Position(call.Pos()))
				}
			case method.Sel.Name == "WithCure" || cured[call]:
				cured[method.X] = true // down the chain of calls to the one that made it
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if made < 50 {
		t.Errorf("found %d problems only: the search finds nothing any more", made)
	}
}

func isNew(s *ast.SelectorExpr) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "problem" && s.Sel.Name == "New"
}
