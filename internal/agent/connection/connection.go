// Package connection owns an agent's NATS connection: it tries the addresses in console's order of
// preference, group by group, since one NATS client cannot mix kinds; it comes back by itself after
// every loss, and says what is wrong while it is not connected. What is published is not its matter.
package connection

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"prxm.uz/proxima/internal/agent/network"
	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/wire"
)

const (
	dialTimeout = 5 * time.Second
	// giveUp is how long one group of addresses may stay away before all groups are tried anew.
	giveUp       = 30 * time.Second
	firstBackoff = time.Second
	mostBackoff  = 30 * time.Second
)

// ErrNotConnected is answered where a connection is needed and there is none.
var ErrNotConnected = errors.New("not connected to NATS")

// Options say how to connect.
type Options struct {
	AgentID string
	URLs    []string // in order of preference
	Roots   *x509.CertPool
	Proxy   network.Proxy
	// JWT and Sign are called at every connect, twice for JWT: they must answer from memory.
	JWT  func() string
	Sign func(nonce []byte) ([]byte, error)
	// Subscribe is called on each new connection, before anybody else sees it.
	Subscribe func(*nats.Conn) error
	// Refused is called when the server refused the credential; it must not block.
	Refused func(error)
	Clock   clock.Clock
	Log     *slog.Logger
}

// Connection keeps one NATS connection alive. Its methods may be called from several goroutines.
type Connection struct {
	opts   Options
	groups [][]string

	mu      sync.Mutex
	nc      *nats.Conn
	why     string        // why there is no connection
	changed chan struct{} // closed and replaced whenever nc or its state changes
}

// New checks the addresses. Run connects.
func New(opts Options) (*Connection, error) {
	groups, err := group(opts.URLs)
	if err != nil {
		return nil, err
	}
	return &Connection{opts: opts, groups: groups, why: "connecting to NATS", changed: make(chan struct{})}, nil
}

// group joins neighbours of one scheme and path: only these can share a NATS client.
func group(urls []string) ([][]string, error) {
	var groups [][]string
	last := ""
	for _, s := range urls {
		u, err := url.Parse(s)
		if err != nil || u.Hostname() == "" {
			return nil, errors.New("a NATS address is not a URL: write it as tls://host:4222 or wss://host/path")
		}
		switch u.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			return nil, fmt.Errorf("NATS address with scheme %q: nats, tls, ws and wss are known", u.Scheme)
		}
		if kind := u.Scheme + " " + u.Path; kind == last {
			groups[len(groups)-1] = append(groups[len(groups)-1], s)
		} else {
			groups, last = append(groups, []string{s}), kind
		}
	}
	if len(groups) == 0 {
		return nil, errors.New("console named no NATS address: set PROXIMA_NATS_PUBLIC_URLS on console, or PROXIMA_NATS_URL on the agent")
	}
	return groups, nil
}

// Run keeps the connection until ctx ends, and closes it then.
func (c *Connection) Run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		nc := c.dialAny(ctx)
		if nc == nil {
			failures++
			_ = c.opts.Clock.Sleep(ctx, clock.Backoff(failures, firstBackoff, mostBackoff))
			continue
		}
		failures = 0
		c.set(nc, "")
		c.watch(ctx, nc)
		c.set(nil, "the NATS connection was given up, dialling anew")
		nc.Close()
	}
	c.set(nil, "stopping")
}

// dialAny tries group after group once.
func (c *Connection) dialAny(ctx context.Context) *nats.Conn {
	for _, urls := range c.groups {
		if ctx.Err() != nil {
			return nil
		}
		nc, err := c.dial(ctx, urls)
		if err == nil {
			c.opts.Log.InfoContext(ctx, "connected to NATS", "url", nc.ConnectedUrlRedacted(), "server", nc.ConnectedServerName())
			return nc
		}
		c.failed(ctx, redact(urls), err)
	}
	return nil
}

func (c *Connection) failed(ctx context.Context, where string, err error) {
	c.opts.Log.WarnContext(ctx, "nats cannot be reached", "url", where, "reason", err.Error(), "cure", cure(err))
	c.set(nil, "NATS at "+where+": "+err.Error())
	if refused(err) {
		c.opts.Refused(err)
	}
}

// cure says what to do where no server could be reached.
func cure(err error) string {
	if proxied, ok := errors.AsType[*network.ProxyRefusal](err); ok {
		return proxied.Cure()
	}
	if refused(err) {
		return "nothing, if it ends soon: the agent asks console for a fresh credential by itself; if it stays, see under Agents whether this one was revoked"
	}
	if cure, ok := network.TLSCure(err, "PROXIMA_NATS_CA_FILE or PROXIMA_CA_FILE"); ok {
		return cure
	}
	return "open this address in network policies and firewalls, or let console offer wss on 443 (PROXIMA_NATS_PUBLIC_URLS)"
}

func (c *Connection) dial(ctx context.Context, urls []string) (*nats.Conn, error) {
	scheme := urls[0][:strings.Index(urls[0], "://")]
	dial := &dialer{proxy: c.opts.Proxy, roots: c.opts.Roots, scheme: scheme}
	options := []nats.Option{
		nats.Name("proxima-agent " + c.opts.AgentID),
		nats.UserJWT(func() (string, error) { return c.opts.JWT(), nil }, c.opts.Sign),
		nats.CustomInboxPrefix(wire.InboxPrefix(c.opts.AgentID)),
		nats.IgnoreAuthErrorAbort(), nats.MaxReconnects(-1), nats.IgnoreDiscoveredServers(), nats.DontRandomize(),
		nats.CustomReconnectDelay(func(n int) time.Duration { return clock.Backoff(n, firstBackoff, 10*time.Second) }),
		nats.Timeout(dialTimeout), nats.PingInterval(20 * time.Second), nats.MaxPingsOutstanding(2),
		nats.SkipHostLookup(),
		nats.SetCustomDialer(dial),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.lost(ctx, err) }),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			c.opts.Log.InfoContext(ctx, "connected to NATS again", "url", nc.ConnectedUrlRedacted())
			c.touch("")
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.lost(ctx, err) }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) { c.async(ctx, sub, err) }),
	}
	if scheme != "ws" { // with a TLS configuration the client would speak TLS on ws too
		options = append(options, func(o *nats.Options) error { o.TLSConfig = network.TLS(c.opts.Roots); return nil })
	}
	nc, err := nats.Connect(strings.Join(urls, ","), options...)
	if err != nil && errors.Is(err, nats.ErrNoServers) && dial.failed() != nil {
		return nil, dial.failed() // the client says of a refused connection only that it has no server
	}
	if err != nil {
		return nil, err
	}
	if err := c.opts.Subscribe(nc); err != nil {
		nc.Close()
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	return nc, nil
}

// watch returns when ctx ends, the connection is closed, or it stayed away for so long that the other
// groups deserve a try.
func (c *Connection) watch(ctx context.Context, nc *nats.Conn) {
	ticker := c.opts.Clock.NewTicker(time.Second)
	defer ticker.Stop()
	away := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C():
			switch {
			case nc.IsClosed():
				return
			case nc.IsConnected():
				away = time.Time{}
			case away.IsZero():
				away = now
			case now.Sub(away) > giveUp:
				return
			}
		}
	}
}

// async is the only witness of a denied subscription or publish.
func (c *Connection) async(ctx context.Context, sub *nats.Subscription, err error) {
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	c.opts.Log.ErrorContext(ctx, "nats reported an error", "subject", subject, "reason", err.Error())
	if refused(err) {
		c.opts.Refused(err)
	}
}

func (c *Connection) lost(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		c.touch("reconnecting to NATS")
		return
	}
	c.opts.Log.WarnContext(ctx, "nats connection lost", "reason", err.Error())
	c.touch("NATS connection lost: " + err.Error())
	if refused(err) {
		c.opts.Refused(err)
	}
}

func refused(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) ||
		strings.Contains(strings.ToLower(err.Error()), "authorization violation")
}

func (c *Connection) set(nc *nats.Conn, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc, c.why = nc, why
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Connection) touch(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = why
	close(c.changed)
	c.changed = make(chan struct{})
}

// Conn returns the connection while it is up, else ErrNotConnected with the reason.
func (c *Connection) Conn() (*nats.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nc == nil || !c.nc.IsConnected() {
		return nil, fmt.Errorf("%w: %s", ErrNotConnected, c.why)
	}
	return c.nc, nil
}

// Await returns the connection as soon as it is up, or the context's error.
func (c *Connection) Await(ctx context.Context) (*nats.Conn, error) {
	for {
		c.mu.Lock()
		nc, changed := c.nc, c.changed
		c.mu.Unlock()
		if nc != nil && nc.IsConnected() {
			return nc, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

// Reconnect makes the client connect once more, with the credential of now.
func (c *Connection) Reconnect() {
	c.mu.Lock()
	nc := c.nc
	c.mu.Unlock()
	if nc == nil {
		return
	}
	_ = nc.FlushTimeout(time.Second) // answers under way; a dead connection has nothing to lose
	if err := nc.ForceReconnect(); err != nil {
		c.opts.Log.Debug("nothing to reconnect", "reason", err.Error())
	}
}

func redact(urls []string) string {
	shown := make([]string, len(urls))
	for i, s := range urls {
		shown[i] = s
		if u, err := url.Parse(s); err == nil {
			shown[i] = u.Redacted()
		}
	}
	return strings.Join(shown, ", ")
}

// dialer adapts network.Dialer to the NATS client, which hands over host:port alone.
type dialer struct {
	proxy  network.Proxy
	roots  *x509.CertPool
	scheme string

	mu   sync.Mutex
	last error // of the last dial; nil where it succeeded
}

// Dial implements [nats.CustomDialer].
func (d *dialer) Dial(_, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*dialTimeout)
	defer cancel()
	conn, err := network.Dialer{Proxy: d.proxy, Roots: d.roots, Timeout: dialTimeout}.Dial(ctx, &url.URL{Scheme: d.scheme, Host: address})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = err
	return conn, err
}

func (d *dialer) failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}
