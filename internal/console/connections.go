package console

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// connections bounds the open connections of an HTTP server. Where one comes too many, the one that was quiet
// longest is closed: it is between two requests or has sent none, and its caller connects anew for the next.
type connections struct {
	most int

	mu    sync.Mutex
	open  map[net.Conn]*list.Element // nil while a request is served
	quiet list.List                  // of net.Conn, the one quiet longest in front
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]*list.Element{}}
}

// observe is for [http.Server.ConnState].
func (c *connections) observe(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.open[conn]; e != nil {
		c.quiet.Remove(e)
	}
	switch state {
	case http.StateNew, http.StateIdle:
		c.open[conn] = c.quiet.PushBack(conn)
	case http.StateActive:
		c.open[conn] = nil
	case http.StateHijacked, http.StateClosed:
		delete(c.open, conn)
	}
	for len(c.open) > c.most && c.quiet.Len() > 0 {
		first, _ := c.quiet.Remove(c.quiet.Front()).(net.Conn)
		delete(c.open, first)
		_ = first.Close() // the server notices, and says so as StateClosed
	}
}

// Shares of the process's descriptors: HTTP may take a quarter, NATS a half (three each for a sixth), and the
// rest is for files and the database.
const (
	httpShare = 4
	natsShare = 6
)

// maxConnections is how many connections a share stands for.
func maxConnections(share uint64) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 4 << 10
	}
	return int(min(64<<10, max(256, limit.Cur/share)))
}
