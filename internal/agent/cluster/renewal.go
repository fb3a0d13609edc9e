package cluster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"prxm.uz/proxima/internal/agent/enroll"
	"prxm.uz/proxima/internal/agent/identity"
	"prxm.uz/proxima/internal/clock"
)

// storeAgain is how soon a state file that could not be written is tried again.
const storeAgain = 30 * time.Second

// credentials keeps the NATS credential fresh. The NATS client reads it at every connect.
type credentials struct {
	mu        sync.Mutex
	state     identity.State
	unrenewed error // of the last renewal
	unstored  error // why the state file is older than the credential in use
}

func (c *credentials) get() identity.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *credentials) set(state identity.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
}

func (c *credentials) setUnrenewed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unrenewed = err
}

func (c *credentials) setUnstored(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unstored = err
}

// troubles says what is wrong with the credential, for /readyz; nothing while all is well.
func (c *credentials) troubles() (found []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unrenewed != nil {
		found = append(found, "the NATS credential was not renewed: "+c.unrenewed.Error())
	}
	if c.unstored != nil {
		found = append(found, "the renewed NATS credential is in use, but could not be stored: "+c.unstored.Error())
	}
	return found
}

// renewal is the goroutine that keeps the credential fresh.
type renewal struct {
	*agent

	failures int       // of renewals, in a row
	next     time.Time // of the next renewal that nobody asks for
	unstored bool      // the state file is older than the credential in use
}

// renewals renews under half of the lifetime, at once when NATS refused the credential or it has
// expired, and on console's command.
func (a *agent) renewals(ctx context.Context) {
	r := renewal{agent: a, next: a.creds.get().Credential.RenewAt()}
	for {
		at := r.wakeAt()
		timer := a.clock.NewTimer(max(0, at.Sub(a.clock.Now())))
		var reply chan error
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case reply = <-a.renewNow:
		case <-a.refused:
			if r.failures > 0 {
				timer.Stop()
				continue // console was asked already, and will be again when it is time
			}
			r.awaitRefusal(ctx)
		case <-timer.C():
			if at.Before(r.next) {
				r.store(ctx, a.creds.get(), slog.LevelDebug)
				continue
			}
		}
		timer.Stop()
		err := r.renew(ctx)
		if reply != nil {
			reply <- err
		}
		if ctx.Err() != nil {
			return
		}
		r.note(ctx, err)
	}
}

// wakeAt is when something is to be done: the next renewal, or before it another try to store.
func (r *renewal) wakeAt() time.Time {
	if again := r.clock.Now().Add(storeAgain); r.unstored && again.Before(r.next) {
		return again
	}
	return r.next
}

// awaitRefusal waits before a refusal that a fresh credential did not cure is asked about, lest that be a
// tight loop.
func (r *renewal) awaitRefusal(ctx context.Context) {
	c, now := r.creds.get().Credential, r.clock.Now()
	if age := now.Sub(c.ReceivedAt); age < retryMost && age >= 0 && !c.Expired(now) {
		_ = r.clock.Sleep(ctx, min(retryMost, max(retryBase, age)))
	}
}

func (r *renewal) note(ctx context.Context, err error) {
	r.creds.setUnrenewed(err)
	if err == nil {
		r.failures, r.next = 0, r.creds.get().Credential.RenewAt()
		return
	}
	r.failures++
	var asked time.Duration
	if refused, ok := enroll.AsRefusal(err); ok {
		asked = refused.RetryAfter
		if refused.Permanent() {
			r.failures = max(r.failures, 7) // console decided; look again at the slowest pace
		}
	}
	r.next = r.clock.Now().Add(max(asked, clock.Backoff(r.failures, retryBase, retryMost)))
	r.log.ErrorContext(ctx, "the NATS credential was not renewed", "dependency", dependency(err), "reason", err.Error(), "expires_at", r.creds.get().Credential.ExpiresAt.Format(time.RFC3339))
}

// renew takes a fresh credential into use, whether it can be stored or not: the one that is stored ends
// soon, and its key can always ask for another.
func (r *renewal) renew(ctx context.Context) error {
	state := r.creds.get()
	key, err := state.Key()
	if err != nil {
		return err
	}
	defer key.Wipe()
	fresh, err := r.api.Renew(ctx, state.AgentID, r.request.Version, key)
	if err != nil {
		return err
	}
	state.Credential = credential(fresh, r.clock.Now().UTC())
	r.creds.set(state)
	r.log.InfoContext(ctx, "NATS credential renewed", "template", state.Credential.Template, "expires_at", state.Credential.ExpiresAt.Format(time.RFC3339))
	r.store(ctx, state, slog.LevelWarn)
	if r.connection != nil {
		r.connection.Reconnect()
	}
	return nil
}

// store writes the credential in use. A failure is logged at level: further tries need not be as loud as
// the first.
func (r *renewal) store(ctx context.Context, state identity.State, level slog.Level) {
	err := r.agent.store.Save(state)
	if err != nil {
		r.log.Log(ctx, level, "the renewed credential is in use, but could not be stored; it will be tried again", "dependency", "data directory", "reason", err.Error(),
			"cure", "make the directory writable for the agent, and free space on its volume: after a restart the agent begins with the older credential, and has to renew it first")
	} else if r.unstored {
		r.log.InfoContext(ctx, "the renewed credential is stored now", "file", r.agent.store.Path())
	}
	r.unstored = err != nil
	r.creds.setUnstored(err)
}
