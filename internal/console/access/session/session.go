// Package session owns the cookie of a signed-in browser: proxima_session, whose value is known to the
// browser alone; the store keeps a hash. It refuses to know what a user may do: package access does.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/id"
)

// CookieName is the name of the cookie.
const CookieName = "proxima_session"

// How long a session lives: without a request, and at most.
const (
	IdleTimeout = 24 * time.Hour
	Lifetime    = 7 * 24 * time.Hour
)

// extendEvery is how long ago a session must have been seen before a request writes it anew: reading pages
// costs no write.
const extendEvery = 5 * time.Minute

// Store is what this package needs of the database; access.Store has it.
type Store interface {
	// InsertSession keeps a new session.
	InsertSession(ctx context.Context, s access.Session) error
	// UpdateSession answers access.ErrNotFound for one that was ended meanwhile.
	UpdateSession(ctx context.Context, s access.Session) error
	// Session answers access.ErrNotFound for one that has ended.
	Session(ctx context.Context, tokenHash string, now time.Time) (access.Session, error)
	// DeleteSession is no error where there is none.
	DeleteSession(ctx context.Context, tokenHash string) error
}

// Options shape the cookie.
type Options struct {
	// Secure marks the cookie for https alone; set it where the public URL is https.
	Secure bool
	Clock  clock.Clock
	Logger *slog.Logger
}

// Manager loads and saves sessions. It may be used from several goroutines.
type Manager struct {
	sessions *scs.SessionManager
	store    Store
	clock    clock.Clock
}

const (
	userKey  = "user"
	sinceKey = "since"
)

// New makes a Manager. Times are judged by the clock of the options, not by the machine's.
func New(store Store, o Options) *Manager {
	s := scs.New()
	s.Store = &adapter{store: store, clock: o.Clock, logger: o.Logger}
	s.Codec = codec{}
	s.HashTokenInStore = true
	s.IdleTimeout, s.Lifetime = IdleTimeout, Lifetime
	s.Cookie.Name, s.Cookie.Path = CookieName, "/"
	s.Cookie.HttpOnly, s.Cookie.Secure, s.Cookie.SameSite = true, o.Secure, http.SameSiteLaxMode
	s.ErrorFunc = func(_ http.ResponseWriter, r *http.Request, err error) {
		if r.Context().Err() == nil {
			o.Logger.ErrorContext(r.Context(), "cannot load or save a session", "error", err)
		}
		if l, ok := r.Context().Value(loadedKey{}).(*loaded); ok {
			l.answer.refuse(l.refuse, r, err)
		}
	}
	return &Manager{sessions: s, store: store, clock: o.Clock}
}

// Refuse answers a request whose session cannot be loaded or saved.
type Refuse func(w http.ResponseWriter, r *http.Request, err error)

// Middleware loads the session of a request and saves what the handler changed, at the first byte of
// the answer. Streaming works through it by http.ResponseController.
func (m *Manager) Middleware(next http.Handler, refuse Refuse) http.Handler {
	inner := m.sessions.LoadAndSave(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w, before: w.Header().Clone()}
		l := &loaded{refuse: refuse, answer: a, remoteAddr: addressOf(r), userAgent: browserOf(r)}
		inner.ServeHTTP(a, r.WithContext(context.WithValue(r.Context(), loadedKey{}, l)))
	})
}

// SignIn makes the session that of the user, under a new token (against fixation).
func (m *Manager) SignIn(ctx context.Context, userID string) error {
	if err := m.sessions.RenewToken(ctx); err != nil {
		return fmt.Errorf("renew the session: %w", err)
	}
	m.sessions.Put(ctx, userKey, userID)
	m.sessions.Put(ctx, sinceKey, m.clock.Now().UTC().Format(time.RFC3339Nano))
	return nil
}

// SignOut ends the session.
func (m *Manager) SignOut(ctx context.Context) error {
	if err := m.sessions.Destroy(ctx); err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	return nil
}

// UserID answers who is signed in, or "". Without Middleware nobody is.
func (m *Manager) UserID(ctx context.Context) string {
	if _, ok := ctx.Value(loadedKey{}).(*loaded); !ok {
		return ""
	}
	return m.sessions.GetString(ctx, userKey)
}

// ID names the session that the request came with, or "".
func (m *Manager) ID(ctx context.Context) string {
	l, ok := ctx.Value(loadedKey{}).(*loaded)
	if !ok {
		return ""
	}
	return l.session.ID
}

// Alive tells whether the session that the request came with still is, for requests that last.
func (m *Manager) Alive(ctx context.Context) (bool, error) {
	l, ok := ctx.Value(loadedKey{}).(*loaded)
	if !ok || l.session.TokenHash == "" {
		return false, nil
	}
	_, err := m.store.Session(ctx, l.session.TokenHash, m.clock.Now())
	if errors.Is(err, access.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read a session: %w", err)
	}
	return true, nil
}

// Put keeps a small text in the session, such as a message for the next page.
func (m *Manager) Put(ctx context.Context, name, value string) {
	m.sessions.Put(ctx, "x-"+name, value)
}

// Pop takes a text out of the session, or "".
func (m *Manager) Pop(ctx context.Context, name string) string {
	return m.sessions.PopString(ctx, "x-"+name)
}

// codec writes the values as JSON: they are texts alone. The deadline is scs's own and unused; the
// lifetime is judged by our clock.
type codec struct{}

// Encode implements scs.Codec.
func (codec) Encode(_ time.Time, values map[string]any) ([]byte, error) { return json.Marshal(values) }

// Decode implements scs.Codec.
func (codec) Decode(b []byte) (time.Time, map[string]any, error) {
	var values map[string]string
	if err := json.Unmarshal(b, &values); err != nil {
		return time.Time{}, nil, fmt.Errorf("stored session: %w", err)
	}
	out := make(map[string]any, len(values))
	for name, value := range values {
		out[name] = value
	}
	return time.Unix(1<<40, 0), out, nil
}

type loadedKey struct{}

// loaded remembers what the request found, so that an unchanged session is not written again, and who answers
// where that fails.
type loaded struct {
	session    access.Session
	refuse     Refuse
	answer     *answer
	remoteAddr string
	userAgent  string
}

// maxUserAgent bounds what is kept of what a browser calls itself, in bytes.
const maxUserAgent = 300

func browserOf(r *http.Request) string {
	name := r.UserAgent()
	return strings.ToValidUTF8(strings.ReplaceAll(name[:min(len(name), maxUserAgent)], "\x00", ""), "")
}

func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// answer takes nothing more of the handler once a session could not be saved: that is noticed at the handler's
// first byte, and was answered then.
type answer struct {
	http.ResponseWriter
	before  http.Header // what was set ahead of the handler
	refused bool
}

// refuse answers in the place of the handler, without the headers that this one set for its own answer.
func (a *answer) refuse(refuse Refuse, r *http.Request, err error) {
	header := a.Header()
	for name := range header {
		if name != "Vary" {
			delete(header, name)
		}
	}
	maps.Copy(header, a.before)
	refuse(a.ResponseWriter, r, err)
	a.refused = true
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if !a.refused {
		a.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	if a.refused {
		return len(b), nil
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

type adapter struct {
	store  Store
	clock  clock.Clock
	logger *slog.Logger
}

var (
	_ scs.CtxStore = (*adapter)(nil)
	_ scs.Codec    = codec{}
)

var errNeedsContext = errors.New("the session store needs a context")

// FindCtx implements scs.CtxStore.
func (a *adapter) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	found, err := a.store.Session(ctx, token, a.clock.Now())
	if errors.Is(err, access.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read a session: %w", err)
	}
	if l, ok := ctx.Value(loadedKey{}).(*loaded); ok {
		l.session = found
	}
	return found.Data, true, nil
}

// CommitCtx implements scs.CtxStore. It passes over scs's expiry and counts by our clock.
func (a *adapter) CommitCtx(ctx context.Context, token string, b []byte, _ time.Time) error {
	var values map[string]string
	if err := json.Unmarshal(b, &values); err != nil {
		return fmt.Errorf("session to store: %w", err)
	}
	expires := a.clock.Now().Add(IdleTimeout)
	if since, err := time.Parse(time.RFC3339Nano, values[sinceKey]); err == nil && since.Add(Lifetime).Before(expires) {
		expires = since.Add(Lifetime)
	}
	now := a.clock.Now()
	s := access.Session{TokenHash: token, UserID: values[userKey], Data: b, SeenAt: now, ExpiresAt: expires}
	l, ok := ctx.Value(loadedKey{}).(*loaded)
	if ok {
		s.RemoteAddr, s.UserAgent = l.remoteAddr, l.userAgent
	}
	if !ok || l.session.TokenHash != token {
		s.ID, s.CreatedAt = id.New("ses"), now
		if err := a.store.InsertSession(ctx, s); err != nil {
			return fmt.Errorf("write a session: %w", err)
		}
		return nil
	}
	unchanged := string(l.session.Data) == string(b)
	if unchanged && now.Sub(l.session.SeenAt) < extendEvery {
		return nil
	}
	err := a.store.UpdateSession(ctx, s)
	switch {
	case err == nil, errors.Is(err, access.ErrNotFound): // ended elsewhere while this request ran: it stays so
		return nil
	case !unchanged:
		return fmt.Errorf("write a session: %w", err)
	case ctx.Err() == nil:
		a.logger.WarnContext(ctx, "a session could not be extended, and stays valid until it ends", "error", err)
	}
	return nil
}

// DeleteCtx implements scs.CtxStore.
func (a *adapter) DeleteCtx(ctx context.Context, token string) error {
	return a.store.DeleteSession(ctx, token)
}

// Find implements scs.Store and is never called.
func (*adapter) Find(string) ([]byte, bool, error) { return nil, false, errNeedsContext }

// Commit implements scs.Store and is never called.
func (*adapter) Commit(string, []byte, time.Time) error { return errNeedsContext }

// Delete implements scs.Store and is never called.
func (*adapter) Delete(string) error { return errNeedsContext }
