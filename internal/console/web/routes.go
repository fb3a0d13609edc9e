package web

import (
	"net/http"
	"slices"

	"prxm.uz/proxima/internal/console/access"
)

// need is what a route asks of the caller: a permission that is held somewhere, or one of the two
// constants below. Whether it is held on the very row is decided by the domain, which answers "not
// found" where it is not.
type need string

const (
	needNothing need = "public"
	needSession need = "session"
)

// scope is where the permission of a route is asked for. Only onConsole is decided before the domain is asked.
type scope string

const (
	nowhere   scope = ""        // the route asks for no permission
	onConsole scope = "console" // held on the whole console
	onClient  scope = "client"  // held on the client that the address names; to read it, on one of its environments
	onRow     scope = "row"     // held where the row lives that the address or the form names
	onList    scope = "list"    // held anywhere; the page shows what lies there
)

// route is one line of the table of pages.
type route struct {
	pattern string
	need    need
	at      scope
	serve   func(*visit) error
}

// routes is the whole table: every address, what it needs, and who answers. A test walks it.
func (s *server) routes() []route {
	return slices.Concat(s.plainRoutes(), s.personRoutes(), s.clusterRoutes(), s.agentRoutes(), s.tokenRoutes(), s.clientRoutes(), s.peopleRoutes(), s.roleRoutes(), s.administrationRoutes())
}

// plainRoutes are of everybody.
func (s *server) plainRoutes() []route {
	return []route{
		{"GET /static/{hash}/{path...}", needNothing, nowhere, s.serveStatic},
		{"GET /favicon.ico", needNothing, nowhere, s.favicon},
		{"GET /signin", needNothing, nowhere, s.signInPage},
		{"POST /signin", needNothing, nowhere, s.signIn},
		{"POST /signout", needNothing, nowhere, s.signOut},
		{"POST /theme", needNothing, nowhere, s.setTheme},
	}
}

// personRoutes are about whoever is signed in.
func (s *server) personRoutes() []route {
	return []route{
		{"GET /{$}", needSession, nowhere, s.home},
		{"GET /profile", needSession, nowhere, s.profile},
		{"POST /profile/password", needSession, nowhere, s.changePassword},
		{"POST /profile/tokens", needSession, nowhere, s.mintOwnToken},
		{"GET /profile/tokens/{token}/revoke", needSession, nowhere, s.ownTokenPage},
		{"POST /profile/tokens/{token}/revoke", needSession, nowhere, s.revokeOwnToken},
		{"POST /profile/sessions/end-others", needSession, nowhere, s.endOtherSessions},
		{"POST /profile/sessions/{session}/end", needSession, nowhere, s.endSession},
	}
}

func (s *server) clusterRoutes() []route {
	read, write := need(access.HostsRead), need(access.HostsWrite)
	return []route{
		{"GET /start", need(access.ClientsWrite), onConsole, s.startPage},
		{"POST /start", need(access.ClientsWrite), onConsole, s.start},
		{"GET /clusters", read, onList, s.clusters},
		{"GET /clusters/add", write, onList, s.addPage},
		{"POST /clusters/add", write, onRow, s.add},
		{"GET /clusters/add/slug", write, onList, s.slug},
		{"GET /clusters/add/{id}", read, onRow, s.status},
		{"GET /clusters/add/{id}/events", read, onRow, s.events},
		{"GET /clusters/add/{id}/install", read, onRow, s.installPage},
		{"POST /clusters/add/{id}/token", write, onRow, s.addToken},
		{"GET /clusters/add/{id}/abandon", write, onRow, s.abandonPage},
		{"POST /clusters/add/{id}/abandon", write, onRow, s.abandon},
		{"GET /clusters/{id}", read, onRow, s.cluster},
		{"GET /clusters/{id}/{section}", read, onRow, s.section},
		{"GET /clusters/{id}/{section}/object", read, onRow, s.object},
		{"GET /clusters/{id}/identity/accept", write, onRow, s.acceptPage},
		{"POST /clusters/{id}/identity/accept", write, onRow, s.accept},
		{"GET /clusters/{id}/record/remove", write, onRow, s.removePage},
		{"POST /clusters/{id}/record/remove", write, onRow, s.remove},
	}
}

func (s *server) agentRoutes() []route {
	read, write := need(access.AgentsRead), need(access.AgentsWrite)
	return []route{
		{"GET /hosts", read, onList, s.hosts},
		{"GET /agents", read, onList, s.agents},
		{"GET /agents/{id}", read, onRow, s.agent},
		{"GET /agents/{id}/{act}", write, onRow, s.agentActPage},
		{"POST /agents/{id}/{act}", write, onRow, s.agentAct},
	}
}

func (s *server) tokenRoutes() []route {
	write := need(access.HostsWrite)
	return []route{
		{"GET /install-tokens", write, onList, s.tokens},
		{"GET /install-tokens/mint", write, onList, s.mintPage},
		{"POST /install-tokens/mint", write, onRow, s.mint},
		{"GET /install-tokens/{id}/revoke", write, onRow, s.revokeTokenPage},
		{"POST /install-tokens/{id}/revoke", write, onRow, s.revokeToken},
	}
}

// administrationRoutes are about Console itself.
func (s *server) administrationRoutes() []route {
	return []route{
		{"GET /audit", need(access.AuditRead), onList, s.audit},
		{"GET /settings", need(access.SettingsRead), onConsole, s.settings},
	}
}

func (s *server) peopleRoutes() []route {
	read, write, roles := need(access.UsersRead), need(access.UsersWrite), need(access.RolesWrite)
	return []route{
		{"GET /users", read, onConsole, s.users},
		{"GET /users/invite", write, onConsole, s.invitePage},
		{"POST /users/invite", write, onConsole, s.invite},
		{"GET /users/service-account", write, onConsole, s.addServiceAccountPage},
		{"POST /users/service-account", write, onConsole, s.addServiceAccount},
		{"GET /users/{id}", read, onConsole, s.user},
		{"POST /users/{id}/name", write, onConsole, s.renameUser},
		{"POST /users/{id}/roles", roles, onConsole, s.assignRole},
		{"POST /users/{id}/roles/{assignment}/remove", roles, onConsole, s.unassignRole},
		{"POST /users/{id}/tokens", write, onConsole, s.mintUserToken},
		{"GET /users/{id}/tokens/{token}/revoke", write, onConsole, s.userTokenPage},
		{"POST /users/{id}/tokens/{token}/revoke", write, onConsole, s.revokeUserToken},
		{"GET /users/{id}/{act}", write, onConsole, s.userActPage},
		{"POST /users/{id}/{act}", write, onConsole, s.userAct},
	}
}

func (s *server) roleRoutes() []route {
	read, write := need(access.RolesRead), need(access.RolesWrite)
	return []route{
		{"GET /roles", read, onConsole, s.roles},
		{"GET /roles/add", write, onConsole, s.addRolePage},
		{"POST /roles/add", write, onConsole, s.addRole},
		{"GET /roles/{id}", read, onConsole, s.role},
		{"POST /roles/{id}", write, onConsole, s.changeRole},
		{"GET /roles/{id}/delete", write, onConsole, s.deleteRolePage},
		{"POST /roles/{id}/delete", write, onConsole, s.deleteRole},
	}
}

func (s *server) clientRoutes() []route {
	read, write := need(access.ClientsRead), need(access.ClientsWrite)
	return []route{
		{"GET /clients", read, onList, s.clients},
		{"GET /clients/add", write, onConsole, s.addClientPage},
		{"POST /clients/add", write, onConsole, s.addClient},
		{"GET /clients/{id}", read, onClient, s.client},
		{"POST /clients/{id}/rename", write, onClient, s.renameClient},
		{"GET /clients/{id}/delete", write, onConsole, s.deleteClientPage},
		{"POST /clients/{id}/delete", write, onConsole, s.deleteClient},
		{"POST /clients/{id}/environments", write, onClient, s.addEnvironment},
		{"GET /clients/{id}/environments/{environment}", write, onRow, s.environmentPage},
		{"POST /clients/{id}/environments/{environment}", write, onRow, s.renameEnvironment},
		{"GET /clients/{id}/environments/{environment}/delete", write, onRow, s.deleteEnvironmentPage},
		{"POST /clients/{id}/environments/{environment}/delete", write, onRow, s.deleteEnvironment},
	}
}

// router serves the table. What it does not hold becomes a page too: not found, or a method that the
// address does not take.
func (s *server) router() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range s.routes() {
		mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) { s.visit(w, r, rt) }) //nolint:contextcheck // the request carries it
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h, pattern := mux.Handler(r); pattern == "" {
			s.refuse(w, r, h) //nolint:contextcheck // the request carries it
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// refuse shows what the multiplexer decided about an address that no route takes.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, h http.Handler) {
	told := verdict{header: http.Header{}}
	h.ServeHTTP(&told, r)
	err := error(errNoSuchPage)
	if told.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", told.header.Get("Allow"))
		err = errMethod
	}
	s.visit(w, r, route{need: needNothing, serve: func(*visit) error { return err }})
}

// verdict keeps the status and the headers of an answer and forgets its text.
type verdict struct {
	header http.Header
	status int
}

func (v *verdict) Header() http.Header         { return v.header }
func (v *verdict) Write(b []byte) (int, error) { return len(b), nil }
func (v *verdict) WriteHeader(status int)      { v.status = status }

// headers sets what every answer carries. The policy allows our own files and nothing else. The
// referrer stays within console, and is not suppressed there: without it a browser on plain HTTP
// sends "Origin: null" with forms, and the check against cross-origin requests would refuse them.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
			"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
