package web

import "strings"

// Rule is one row of the access matrix of the pages.
type Rule struct {
	Method string
	// Path is a pattern of http.ServeMux without its method.
	Path string
	// Permission is public, session, or the name of a permission.
	Permission string
	// Scope is console, client, row or list; "" where Permission names none.
	Scope string
}

// Matrix lists who may open each address, in the order of the table of routes.
func Matrix() []Rule {
	var rules []Rule
	for _, rt := range (&server{}).routes() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		rules = append(rules, Rule{Method: method, Path: path, Permission: string(rt.need), Scope: string(rt.at)})
	}
	return rules
}
