package natsapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/natsauth"
)

const (
	requestTimeout = 5 * time.Second
	// reconcileEvery is how often each replica looks whether the servers know every revocation.
	reconcileEvery = 30 * time.Second
)

// RevocationStore lists the revoked keys; fleet.Store has it.
type RevocationStore interface {
	// Revoked lists the public keys revoked since then, each with its time.
	Revoked(ctx context.Context, since time.Time) (map[string]time.Time, error)
}

// ConnectConfig says how console reaches NATS: Embedded, or URLs of an external one.
type ConnectConfig struct {
	Embedded *Embedded
	URLs     []string
	// TLS is for external servers; nil uses the machine's roots where the URL asks for TLS.
	TLS         *tls.Config
	Authority   *natsauth.Authority
	Revocations RevocationStore
	Clock       clock.Clock
	Logger      *slog.Logger
}

// Connection is console's own connection in the agents account, and the one in the system account that
// pushes claims. Both come back by themselves for ever.
type Connection struct {
	Conn      *nats.Conn
	JetStream jetstream.JetStream

	config ConnectConfig
	system *nats.Conn
	claims sync.Mutex    // one push at a time, so that none undoes another
	kick   chan struct{} // asks for a look at the claims
	came   chan struct{} // tells that servers is not empty

	arrived sync.Mutex
	servers map[string]bool // to which agents connected since the last look

	stop context.CancelFunc
	done chan struct{}
}

// Connect returns at once even if an external NATS is away: Conn then connects as soon as it is there.
// Close ends what it started.
func Connect(ctx context.Context, c ConnectConfig) (*Connection, error) {
	consoleUser, err := c.Authority.ConsoleUser()
	if err != nil {
		return nil, err
	}
	systemUser, err := c.Authority.SystemUser()
	if err != nil {
		return nil, err
	}
	n := &Connection{config: c, kick: make(chan struct{}, 1), came: make(chan struct{}, 1), servers: map[string]bool{}, done: make(chan struct{})}
	if n.Conn, err = c.dial("proxima-console", consoleUser, nil); err != nil {
		return nil, err
	}
	if n.system, err = c.dial("proxima-console system", systemUser, n.look); err != nil {
		n.Conn.Close()
		return nil, err
	}
	if n.JetStream, err = jetstream.New(n.Conn); err != nil {
		n.Conn.Close()
		n.system.Close()
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	if err := n.listenForArrivals(); err != nil {
		n.Conn.Close()
		n.system.Close()
		return nil, err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	n.look()
	go n.reconcile(run)
	return n, nil
}

func (c ConnectConfig) dial(name string, user natsauth.User, connected func()) (*nats.Conn, error) {
	log := c.Logger.With("connection", name)
	up := func(nc *nats.Conn) {
		log.Info("connected to NATS", "url", nc.ConnectedUrlRedacted())
		if connected != nil {
			connected()
		}
	}
	options := []nats.Option{
		nats.Name(name),
		nats.UserJWT(func() (string, error) { return user.JWT, nil }, user.Sign),
		nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(), nats.RetryOnFailedConnect(true),
		nats.CustomReconnectDelay(func(n int) time.Duration { return clock.Backoff(max(n, 1), 250*time.Millisecond, 5*time.Second) }),
		nats.Timeout(requestTimeout), nats.PingInterval(20 * time.Second), nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(up), nats.ReconnectHandler(up),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("nats connection lost", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Error("nats reported an error", "subject", subject, "error", err)
		}),
	}
	address := strings.Join(c.URLs, ",")
	if c.Embedded != nil {
		address = ""
		options = append(options, nats.InProcessServer(c.Embedded.server))
	} else if c.TLS != nil {
		options = append(options, func(o *nats.Options) error { o.TLSConfig = c.TLS.Clone(); return nil })
	}
	nc, err := nats.Connect(address, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return nc, nil
}

// Close ends both connections, after what was published is sent.
func (n *Connection) Close() {
	n.stop()
	<-n.done
	if n.Conn.IsConnected() {
		_ = n.Conn.FlushTimeout(time.Second) // a dead server has nothing to take
	}
	n.Conn.Close()
	n.system.Close()
}

func (n *Connection) look() {
	select {
	case n.kick <- struct{}{}:
	default: // one look is due already
	}
}

// reconcile makes the servers know every revocation: at start, after each reconnect, and from time to
// time, since a push of another replica or an older copy on a returning server may lack some.
func (n *Connection) reconcile(ctx context.Context) {
	defer close(n.done)
	ticker := n.config.Clock.NewTicker(reconcileEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		case <-n.kick:
		}
		if !n.system.IsConnected() {
			continue // its connect handler asks again
		}
		if err := n.push(ctx, nil); err != nil && ctx.Err() == nil {
			n.config.Logger.WarnContext(ctx, "revocations could not be pushed, trying again", "error", err)
		}
	}
}

// Revoke refuses every credential of the key that was issued until now, and drops its connections
// before it returns. It implements fleet.Revoker.
func (n *Connection) Revoke(ctx context.Context, publicKey string) error {
	return n.push(ctx, map[string]time.Time{publicKey: n.config.Clock.Now()})
}

// push stores account claims with the revocations of the database, of the servers, and the given ones;
// without anything new it pushes nothing.
func (n *Connection) push(ctx context.Context, more map[string]time.Time) error {
	n.claims.Lock()
	defer n.claims.Unlock()
	authority, now := n.config.Authority, n.config.Clock.Now()
	wanted, err := n.config.Revocations.Revoked(ctx, now.Add(-authority.TTL()))
	if err != nil {
		if more == nil {
			return fmt.Errorf("list revoked keys: %w", err)
		}
		n.config.Logger.WarnContext(ctx, "revoked keys could not be listed", "error", err)
	}
	wanted = union(wanted, more)
	known, found, err := n.serverRevocations(ctx)
	if err != nil {
		return err
	}
	if found && covers(known, wanted) {
		return nil
	}
	token, err := authority.AccountJWT(union(known, wanted), now)
	if err != nil {
		return err
	}
	answer, err := n.systemRequest(ctx, "$SYS.REQ.CLAIMS.UPDATE", []byte(token))
	if err != nil {
		return fmt.Errorf("push account claims: %w", err)
	}
	var reply struct {
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return fmt.Errorf("push account claims: the answer is no JSON: %w", err)
	}
	if reply.Error != nil {
		return fmt.Errorf("push account claims: NATS refused them: %s", reply.Error.Description)
	}
	return nil
}

// serverRevocations reads what the servers know.
func (n *Connection) serverRevocations(ctx context.Context) (revoked map[string]time.Time, found bool, err error) {
	token, err := n.systemRequest(ctx, "$SYS.REQ.ACCOUNT."+n.config.Authority.AgentsAccount()+".CLAIMS.LOOKUP", nil)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("look up account claims: %w", err)
	case len(token) == 0:
		return nil, false, nil
	}
	revoked, err = n.config.Authority.Revocations(string(token))
	return revoked, err == nil, err
}

func (n *Connection) systemRequest(ctx context.Context, subject string, data []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := n.system.RequestWithContext(ctx, subject, data)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// union keeps the later time of each key.
func union(a, b map[string]time.Time) map[string]time.Time {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]time.Time{}
	}
	for key, at := range b {
		if at.After(all[key]) {
			all[key] = at
		}
	}
	return all
}

// covers tells whether known refuses all that wanted refuses; NATS counts in seconds.
func covers(known, wanted map[string]time.Time) bool {
	for key, at := range wanted {
		if known[key].Unix() < at.Unix() {
			return false
		}
	}
	return true
}

// up answers nil while the connection is up.
func up(nc *nats.Conn) error {
	if nc.IsConnected() {
		return nil
	}
	if err := nc.LastError(); err != nil {
		return fmt.Errorf("NATS is not connected: %w", err)
	}
	return errors.New("NATS is not connected")
}
