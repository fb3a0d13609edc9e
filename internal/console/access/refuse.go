package access

import "prxm.uz/proxima/internal/console/problem"

// Refuse is the problem of a principal who knows of a thing and lacks a permission on it.
func Refuse(perm Permission) *problem.Error {
	return problem.New(problem.Forbidden, "permission_missing", "This needs the permission "+string(perm)+", which your roles do not give you here.").
		WithCure("Ask somebody with roles:write for a role that carries " + string(perm) + ".")
}
