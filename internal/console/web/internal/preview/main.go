// Command preview serves every page over invented data, to look at while a page is made:
//
//	go run ./internal/console/web/internal/preview -address 127.0.0.1:8088
//
// The first part of an address chooses the data and who looks: /full/, /empty/, /reader/, /nobody/,
// /broken/, /anonymous/; /dark/ before it the dark theme. It answers with a redirect that sets a cookie, so that links within pages work.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/console/web" //nolint:depguard // a program to look at the pages of this very package
	"prxm.uz/proxima/internal/console/web/internal/fake"
)

func main() {
	address := flag.String("address", "127.0.0.1:8088", "where to listen")
	flag.Parse()
	handler, err := scenes(clock.System(), slog.New(slog.NewTextHandler(os.Stderr, nil))) //nolint:forbidigo // a program
	if err == nil {
		server := &http.Server{Addr: *address, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		err = server.ListenAndServe()
	}
	fmt.Fprintln(os.Stderr, "preview:", err) //nolint:forbidigo // a program
	os.Exit(1)                               //nolint:forbidigo // a program
}

// scene is one world with one person before it.
type scene struct {
	handler http.Handler
	user    string
}

func scenes(c clock.Clock, logger *slog.Logger) (http.Handler, error) {
	broken := fake.Full(c.Now)
	broken.Broken = fake.ErrBroken
	full := fake.Full(c.Now)
	all := map[string]scene{}
	for name, s := range map[string]struct {
		world *fake.World
		user  string
	}{
		"full": {full, fake.Admin}, "empty": {fake.Empty(c.Now), fake.Admin}, "reader": {fake.Full(c.Now), fake.Reader},
		"nobody": {fake.Full(c.Now), fake.Nobody}, "broken": {broken, fake.Admin}, "anonymous": {fake.Full(c.Now), ""},
	} {
		handler, err := web.New(web.Config{
			Sessions: fake.Sessions{}, Access: fake.Access{World: s.world}, Tenancy: fake.Tenancy{World: s.world}, People: fake.People{World: s.world}, Onboarding: fake.Onboarding{World: s.world},
			Inventory: fake.Inventory{World: s.world}, Fleet: fake.Fleet{World: s.world}, Enrollment: fake.Enrollment{World: s.world}, Template: 1, Audit: fake.Audit{World: s.world}, Health: fake.Health{World: s.world}, Clock: c, Logger: logger, Version: "0.9.2", PublicURL: "http://" + "console.ostmark.example", SyncInterval: 5 * time.Minute,
		})
		if err != nil {
			return nil, err
		}
		all[name] = scene{handler, s.user}
	}
	var mu sync.Mutex
	sessions := map[string]*fake.Session{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if first == "dark" {
			http.SetCookie(w, &http.Cookie{Name: "proxima_theme", Value: "dark", Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
			first, rest, _ = strings.Cut(rest, "/")
		}
		if s, ok := all[first]; ok {
			mu.Lock()
			sessions[first] = &fake.Session{User: s.user}
			mu.Unlock()
			http.SetCookie(w, &http.Cookie{Name: "scene", Value: first, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
			target := "/" + rest
			if r.URL.RawQuery != "" {
				target += "?" + r.URL.RawQuery
			}
			http.Redirect(w, r, target, http.StatusSeeOther)
			return
		}
		if r.URL.Path == "/advance" { // the waiting attempt makes progress
			advance(full, c.Now())
			return
		}
		name := "full"
		if cookie, err := r.Cookie("scene"); err == nil {
			name = cookie.Value
		}
		s, ok := all[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		mu.Lock()
		session := sessions[name]
		if session == nil {
			session = &fake.Session{User: s.user}
			sessions[name] = session
		}
		mu.Unlock()
		s.handler.ServeHTTP(w, r.WithContext(fake.WithSession(r.Context(), session)))
	}), nil
}

// advance lets the next gate of the waiting attempt pass.
func advance(w *fake.World, now time.Time) {
	w.Lock()
	defer w.Unlock()
	status := w.Attempts["ob_waiting"]
	proved := fake.Passed(now)
	for i, g := range status.Inventory.Gates {
		if g.State != gate.Passed {
			status.Inventory.Gates[i] = proved.Gates[i]
			break
		}
	}
	status.Inventory.Done = status.Inventory.Passed() == len(status.Inventory.Gates)
	status.CheckedAt, status.ClusterID = now, "ck_halden"
	w.Attempts["ob_waiting"] = status
}
