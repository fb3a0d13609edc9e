package console

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"prxm.uz/proxima/internal/clock"
)

// A request's body may take bodyGrace, and as long again as bodyRate, in bytes a second, takes for what came of
// it; never longer than bodyTimeout.
const (
	bodyGrace   = 10 * time.Second
	bodyRate    = 16 << 10
	bodyTimeout = time.Minute
)

// bodyAllowance is how long a body may have taken of which so many bytes came.
func bodyAllowance(came int64) time.Duration {
	seconds := min(came/bodyRate, int64(bodyTimeout/time.Second))
	return min(bodyTimeout, bodyGrace+time.Duration(seconds)*time.Second)
}

// bounded keeps a slow sender, and one who accepts no answer, from holding a connection, and tells connections
// whose body is waited for.
func (c *connections) bounded(next http.Handler) http.Handler {
	machine := clock.System() // sockets compare with the machine's clock
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Not every writer has deadlines; those of net/http do.
		control := http.NewResponseController(w)
		if r.ContentLength != 0 {
			began, came := machine.Now(), c.awaiting(r.Context())
			b := &body{
				ReadCloser: r.Body,
				until:      func(d time.Duration) { _ = control.SetReadDeadline(began.Add(d)) },
				arrived: sync.OnceFunc(func() {
					_ = control.SetReadDeadline(time.Time{})
					came()
				}),
			}
			b.until(bodyAllowance(0))
			if r.ProtoMajor > 1 { // HTTP/1 reads the rest of a body after the answer, HTTP/2 lets it go
				defer b.arrived()
			}
			r.Body = b
		}
		_ = control.SetWriteDeadline(machine.Now().Add(answerTimeout))
		next.ServeHTTP(w, r)
	})
}

// body is a request's body under a deadline that moves with what comes.
type body struct {
	io.ReadCloser
	came    int64
	until   func(time.Duration) // sets the deadline, from the beginning on
	arrived func()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.came += int64(n)
	switch {
	case errors.Is(err, io.EOF):
		b.arrived()
	case err == nil:
		b.until(bodyAllowance(b.came))
	}
	return n, err
}
