package web

import (
	"net/http"

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

// route is one line of the table of pages.
type route struct {
	pattern string
	need    need
	serve   func(*visit) error
}

// routes is the whole table: every address, what it needs, and who answers. A test walks it.
func (s *server) routes() []route {
	read, write := need(access.HostsRead), need(access.HostsWrite)
	return []route{
		{"GET /static/{hash}/{path...}", needNothing, s.serveStatic},
		{"GET /favicon.ico", needNothing, s.favicon},

		{"GET /signin", needNothing, s.signInPage},
		{"POST /signin", needNothing, s.signIn},
		{"POST /signout", needNothing, s.signOut},
		{"POST /theme", needNothing, s.setTheme},

		{"GET /{$}", needSession, s.home},
		{"GET /profile", needSession, s.profile},
		{"POST /profile/password", needSession, s.changePassword},

		{"GET /start", need(access.ClientsWrite), s.startPage},
		{"POST /start", need(access.ClientsWrite), s.start},

		{"GET /clusters", read, s.clusters},
		{"GET /clusters/add", write, s.addPage},
		{"POST /clusters/add", write, s.add},
		{"GET /clusters/add/slug", write, s.slug},
		{"GET /clusters/add/{id}", read, s.status},
		{"GET /clusters/add/{id}/events", read, s.events},
		{"GET /clusters/add/{id}/install", read, s.installPage},
		{"POST /clusters/add/{id}/token", write, s.addToken},
		{"GET /clusters/add/{id}/abandon", write, s.abandonPage},
		{"POST /clusters/add/{id}/abandon", write, s.abandon},

		{"GET /clusters/{id}", read, s.cluster},
		{"GET /clusters/{id}/{section}", read, s.section},
		{"GET /clusters/{id}/{section}/object", read, s.object},
		{"GET /clusters/{id}/identity/accept", write, s.acceptPage},
		{"POST /clusters/{id}/identity/accept", write, s.accept},

		{"GET /clusters/{id}/record/remove", write, s.removePage},
		{"POST /clusters/{id}/record/remove", write, s.remove},

		{"GET /hosts", need(access.AgentsRead), s.hosts},
		{"GET /agents", need(access.AgentsRead), s.agents},
		{"GET /agents/{id}/{act}", need(access.AgentsWrite), s.agentActPage},
		{"POST /agents/{id}/{act}", need(access.AgentsWrite), s.agentAct},
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
