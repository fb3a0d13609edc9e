package httpapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"

	api "prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/console/access"
)

// What x-permission may hold beside the name of a permission.
const (
	permissionPublic       = "public"
	permissionInstallToken = "install-token"
	permissionAgent        = "agent"
	permissionSession      = "session"
)

// The values of x-scope.
const (
	scopeConsole = "console"
	scopeClient  = "client"
	scopeRow     = "row"
	scopeList    = "list"
)

// Rule is one row of the access matrix.
type Rule struct {
	OperationID string
	Method      string
	Path        string
	// Permission is public, install-token, agent, session, or the name of a permission.
	Permission string
	// Scope is console, client, row or list; "" where Permission names none.
	Scope string
}

// Matrix derives the access matrix from the contract, by path and method. It fails where an
// operation does not say who may call it.
func Matrix() ([]Rule, error) {
	operations, err := readContract()
	if err != nil {
		return nil, err
	}
	var rules []Rule
	for _, o := range operations {
		rules = append(rules, o.Rule)
	}
	slices.SortFunc(rules, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return rules, nil
}

// operation is one operation of the contract with what the guard needs of it.
type operation struct {
	Rule
	route *routers.Route
	// query holds the names of the query parameters.
	query map[string]bool
	path  []string // names of the path parameters
	body  bool
}

// readContract reads the embedded document; the keys are patterns of http.ServeMux.
func readContract() (map[string]*operation, error) {
	document, err := api.GetSpec()
	if err != nil {
		return nil, fmt.Errorf("read the API's contract: %w", err)
	}
	document.Servers = nil
	operations := map[string]*operation{}
	for path, item := range document.Paths.Map() {
		for method, o := range item.Operations() {
			op, err := newOperation(document, path, item, method, o)
			if err != nil {
				return nil, err
			}
			operations[method+" "+path] = op
		}
	}
	return operations, nil
}

func newOperation(document *openapi3.T, path string, item *openapi3.PathItem, method string, o *openapi3.Operation) (*operation, error) {
	op := &operation{
		Rule:  Rule{OperationID: contractName(o.OperationID), Method: method, Path: path},
		route: &routers.Route{Spec: document, Path: path, PathItem: item, Method: method, Operation: o},
		query: map[string]bool{},
		body:  o.RequestBody != nil,
	}
	op.Permission, _ = o.Extensions["x-permission"].(string)
	op.Scope, _ = o.Extensions["x-scope"].(string)
	for _, p := range slices.Concat(item.Parameters, o.Parameters) {
		switch p.Value.In {
		case openapi3.ParameterInQuery:
			op.query[p.Value.Name] = true
		case openapi3.ParameterInPath:
			op.path = append(op.path, p.Value.Name)
		}
	}
	return op, op.check()
}

// contractName undoes the generator's spelling, which begins operation ids with a capital.
func contractName(operationID string) string {
	if operationID == "" {
		return ""
	}
	return strings.ToLower(operationID[:1]) + operationID[1:]
}

func (o *operation) check() error {
	where := "operation " + o.OperationID + " (" + o.Method + " " + o.Path + ")"
	switch o.Permission {
	case permissionPublic, permissionInstallToken, permissionAgent, permissionSession:
		if o.Scope != "" {
			return fmt.Errorf("%s: x-scope %q goes with a permission alone, not with %q", where, o.Scope, o.Permission)
		}
		return nil
	case "":
		return fmt.Errorf("%s has no x-permission: say who may call it", where)
	}
	if !access.Permission(o.Permission).Known() {
		return fmt.Errorf("%s: x-permission %q is no permission", where, o.Permission)
	}
	switch o.Scope {
	case scopeConsole, scopeRow, scopeList:
		return nil
	case scopeClient:
		if strings.Contains(o.Path, "{clientID}") {
			return nil
		}
		return fmt.Errorf("%s: x-scope client needs {clientID} in the path", where)
	}
	return fmt.Errorf("%s: x-scope %q is none of console, client, row, list", where, o.Scope)
}
