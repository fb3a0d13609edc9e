package console

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// connections bounds the open connections of an HTTP server. Where one comes too many, another is closed: the
// one that is quiet longest, between two requests or before its first. Where those who are not quiet hold more
// than their share, it is one of them: whose body is waited for longest, and where none is, who is served
// longest. Event streams are among these, and their pages connect anew.
type connections struct {
	most int

	mu    sync.Mutex
	open  map[net.Conn]*connection
	ranks [3]list.List // of *connection: quiet, sending, served; each the longest in front
}

// quietShare of the connections is for those that are quiet: a newcomer whose request is not read yet would
// else be closed for the next one.
const quietShare = 4

// The ranks of connections.
const (
	quiet = iota
	sending
	served
)

// connection is an open one. Its fields are guarded by the mutex of connections.
type connection struct {
	conn   net.Conn
	active bool
	bodies int // that are waited for: with HTTP/2 there may be several
	period int // counts how often it became idle: bodies of an earlier period are not among those
	rank   int
	place  *list.Element
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]*connection{}}
}

type connectionKey struct{}

// remember is for [http.Server.ConnContext]: a request finds its connection.
func (*connections) remember(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// observe is for [http.Server.ConnState].
func (c *connections) observe(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateNew {
		o := &connection{conn: conn}
		o.place = c.ranks[quiet].PushBack(o)
		c.open[conn] = o
		if len(c.open) > c.most {
			c.closeOne(o)
		}
		return
	}
	o := c.open[conn]
	if o == nil { // closed by closeOne, and its server does not know yet
		return
	}
	switch state {
	case http.StateActive:
		o.active = true
		c.arrange(o)
	case http.StateIdle:
		o.active, o.bodies = false, 0
		o.period++
		c.arrange(o)
	case http.StateHijacked, http.StateClosed:
		c.forget(o)
	}
}

// awaiting counts a body that is waited for on the connection of a request, until came is called; call it once.
func (c *connections) awaiting(ctx context.Context) (came func()) {
	conn, _ := ctx.Value(connectionKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.open[conn]
	if o == nil {
		return func() {}
	}
	o.bodies++
	c.arrange(o)
	period := o.period
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open[conn] == o && o.period == period {
			o.bodies--
			c.arrange(o)
		}
	}
}

// arrange puts a connection into its rank, last. One that has its rank keeps its place: a further body does not
// make the first one waited for less long.
func (c *connections) arrange(o *connection) {
	rank := served
	switch {
	case !o.active:
		rank = quiet
	case o.bodies > 0:
		rank = sending
	}
	if rank == o.rank {
		return
	}
	c.ranks[o.rank].Remove(o.place)
	o.rank, o.place = rank, c.ranks[rank].PushBack(o)
}

func (c *connections) forget(o *connection) {
	c.ranks[o.rank].Remove(o.place)
	delete(c.open, o.conn)
}

// closeOne closes any but the newcomer.
func (c *connections) closeOne(newcomer *connection) {
	order := []int{quiet, sending, served}
	if c.ranks[quiet].Len() <= c.most/quietShare {
		order = []int{sending, served, quiet}
	}
	for _, rank := range order {
		e := c.ranks[rank].Front()
		if e == nil || e.Value == newcomer {
			continue
		}
		o, _ := e.Value.(*connection)
		c.forget(o)
		closeNow(o.conn) // its server notices
		return
	}
}

// closeNow closes without the farewell of TLS, for which a peer that reads nothing could keep us waiting.
func closeNow(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	_ = conn.Close() // there is nobody to tell
}

// Shares of the process's descriptors: HTTP may take a quarter, NATS a half (three each for a sixth), and the
// rest is for files and the database.
const (
	httpShare = 4
	natsShare = 6
)

// usualDescriptors is the limit of descriptors where it cannot be read.
const usualDescriptors = 1024

// maxConnections is how many connections a share stands for.
func maxConnections(share uint64) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return connectionsWithin(usualDescriptors, share)
	}
	return connectionsWithin(limit.Cur, share)
}

// connectionsWithin is at least one, since NATS takes zero for no bound.
func connectionsWithin(descriptors, share uint64) int {
	return int(min(64<<10, max(1, descriptors/share)))
}
