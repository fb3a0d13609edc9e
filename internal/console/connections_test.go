package console

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// crowd is a server with few connections. It answers 204 to whoever sends their body: at /slow and /read as
// soon as done is closed, at /read after the body.
type crowd struct {
	*testing.T

	address string
	secure  *tls.Config // nil: plain HTTP
	serving chan string // the paths, as they begin to be served
	done    chan struct{}
	idle    chan struct{} // has one for each connection that became idle
}

func newCrowd(t *testing.T, most int, secure bool) *crowd {
	t.Helper()
	c := &crowd{T: t, serving: make(chan string, 100), done: make(chan struct{}), idle: make(chan struct{}, 100)}
	s := newServer(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.serving <- r.URL.Path
		switch r.URL.Path {
		case "/slow":
			<-c.done
		case "/unread":
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if r.URL.Path == "/read" {
			c.serving <- "/read, whole"
			<-c.done
		}
		w.WriteHeader(http.StatusNoContent)
	}), slog.New(slog.DiscardHandler), most)
	observe := s.server.ConnState
	s.server.ConnState = func(conn net.Conn, state http.ConnState) {
		observe(conn, state)
		if state == http.StateIdle {
			c.idle <- struct{}{}
		}
	}
	l, err := listen(t.Context(), "PROXIMA_LISTEN_ADDR", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve := func() error { return s.server.Serve(l) }
	if secure {
		example := httptest.NewTLSServer(http.NotFoundHandler()) // has a certificate
		example.Close()
		s.server.TLSConfig = &tls.Config{Certificates: example.TLS.Certificates, MinVersion: tls.VersionTLS12}
		c.secure = &tls.Config{InsecureSkipVerify: true}
		serve = func() error { return s.server.ServeTLS(l, "", "") }
	}
	c.address = l.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- serve() }()
	t.Cleanup(func() {
		if err := errors.Join(s.server.Close(), ignoreServerClosed(<-ended)); err != nil {
			t.Error(err)
		}
	})
	return c
}

// send opens a connection, writes on it, and waits until its request is served, where it holds one.
func (c *crowd) send(text string) (net.Conn, *bufio.Reader) {
	c.Helper()
	conn, err := (&net.Dialer{}).DialContext(c.Context(), "tcp", c.address)
	if err != nil {
		c.Fatal(err)
	}
	if c.secure != nil {
		conn = tls.Client(conn, c.secure)
	}
	c.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		c.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		c.Fatal(err)
	}
	if text != "" {
		<-c.serving
	}
	return conn, bufio.NewReader(conn)
}

func (c *crowd) get(path string) *bufio.Reader {
	c.Helper()
	_, r := c.send("GET " + path + " HTTP/1.1\r\nHost: console\r\n\r\n")
	return r
}

func (c *crowd) answered(r *bufio.Reader) {
	c.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		c.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusNoContent {
		c.Errorf("status %d, %v", res.StatusCode, err)
	}
}

// Of three connections where two may be, the one that was quiet longest is closed, and never one whose
// request is served.
func TestConnectionsAreBounded(t *testing.T) {
	c := newCrowd(t, 2, false)
	slow := c.get("/slow")
	idle := c.get("/")
	c.answered(idle)
	<-c.idle
	third := c.get("/")
	c.answered(third)
	if _, err := idle.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection: %v", err)
	}
	close(c.done)
	c.answered(slow)
}

// Many who announce a body and send none shut nobody out, and those who came first make room. Who is
// signed in and looks at a stream keeps it.
func TestSlowBodiesShutNobodyOut(t *testing.T) {
	for name, secure := range map[string]bool{"HTTP": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			const most, many = 8, 60
			c := newCrowd(t, most, secure)
			stream := c.get("/slow")
			var waiting []net.Conn
			for i := range many {
				conn, _ := c.send(fmt.Sprintf("POST /sign-in HTTP/1.1\r\nHost: console\r\nContent-Length: %d\r\n\r\n", 100+i))
				waiting = append(waiting, conn)
				if i%10 == 0 {
					c.answered(c.get("/healthz"))
				}
			}
			c.answered(c.get("/healthz"))
			if _, err := waiting[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the first slow body still has its connection: %v", err)
			}
			close(c.done)
			c.answered(stream)
		})
	}
}

// TestSlowBodiesOfHTTP2: one connection carries several requests, and makes room while any body of it is waited
// for. What was answered without its body is waited for no longer.
func TestSlowBodiesOfHTTP2(t *testing.T) {
	c := newCrowd(t, 3, true)
	var ended []chan error
	open := func(path string, body io.Reader) *http.Client {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: c.secure.Clone(), ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		client := &http.Client{Transport: transport}
		ended = append(ended, c.over(client, path, body))
		<-c.serving
		return client
	}
	stream := open("/slow", nil)
	ended = append(ended, c.over(stream, "/unread", strings.NewReader("body")))
	<-c.serving
	if err := <-ended[1]; err != nil {
		t.Error(err)
	}
	for range 5 {
		silent, writer := io.Pipe()
		t.Cleanup(func() { _ = writer.Close() })
		open("/", silent)
	}
	for i, end := range ended[2:4] {
		if err := <-end; err == nil {
			t.Errorf("slow body %d was answered", i)
		}
	}
	close(c.done)
	if err := <-ended[0]; err != nil {
		t.Errorf("the stream: %v", err)
	}
}

// TestFurtherBodySparesNobody: whose body is waited for longest makes room, also where another body came on the
// same connection since.
func TestFurtherBodySparesNobody(t *testing.T) {
	c := newCrowd(t, 2, true)
	var clients [2]*http.Client
	var ended [2]chan error
	for i := range clients {
		transport := &http.Transport{TLSClientConfig: c.secure.Clone(), ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		silent, writer := io.Pipe()
		t.Cleanup(func() { _ = writer.Close() })
		clients[i] = &http.Client{Transport: transport}
		ended[i] = c.over(clients[i], "/", silent)
		<-c.serving
	}
	further := c.over(clients[0], "/", strings.NewReader("body"))
	<-c.serving
	if err := <-further; err != nil {
		t.Fatal(err)
	}
	c.answered(c.get("/"))
	select {
	case err := <-ended[0]:
		if err == nil {
			t.Error("the body that never came was answered")
		}
	case err := <-ended[1]:
		t.Errorf("the one that waited less long made room: %v", err)
	}
}

// TestBodyOfAnEarlierPeriod: a request that was taken back, and whose handler ends late, hides no body that is
// waited for since.
func TestBodyOfAnEarlierPeriod(t *testing.T) {
	c := newConnections(2)
	sender, other := net.Pipe()
	newcomer, peer := net.Pipe()
	for _, conn := range []net.Conn{sender, other, newcomer, peer} {
		t.Cleanup(func() { _ = conn.Close() })
	}
	c.observe(other, http.StateNew)
	c.observe(other, http.StateActive)
	c.observe(sender, http.StateNew)
	ctx := c.remember(t.Context(), sender)
	c.observe(sender, http.StateActive)
	late := c.awaiting(ctx)
	c.observe(sender, http.StateIdle)
	c.observe(sender, http.StateActive)
	came := c.awaiting(ctx)
	late()
	c.observe(newcomer, http.StateNew)
	if c.open[sender] != nil || c.open[other] == nil {
		t.Error("the connection whose body is waited for did not make room")
	}
	came()
	if len(c.open) != 2 || c.ranks[served].Len() != 1 || c.ranks[sending].Len() != 0 {
		t.Error("a closed connection came back")
	}
}

// over asks by a client, and tells how that ended.
func (c *crowd) over(client *http.Client, path string, body io.Reader) chan error {
	c.Helper()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(c.Context(), method, "https://"+c.address+path, body)
	if err != nil {
		c.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		res, err := client.Do(r)
		if err == nil && res.ProtoMajor != 2 {
			err = errors.New("not HTTP/2")
		}
		if err == nil {
			err = res.Body.Close()
		}
		ended <- err
	}()
	return ended
}

// Where all are served and nothing else could be closed, the one that is served longest makes room.
func TestNewcomerIsServed(t *testing.T) {
	c := newCrowd(t, 2, false)
	first, second := c.get("/slow"), c.get("/slow")
	third := c.get("/")
	c.answered(third)
	if _, err := first.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the one served longest: %v", err)
	}
	close(c.done)
	c.answered(second)
}

// TestNewcomersWait: where all others are served, newcomers whose requests are not read yet have their share
// and are not closed for each other.
func TestNewcomersWait(t *testing.T) {
	const most = 8
	c := newCrowd(t, most, false)
	var slow []*bufio.Reader
	for range most {
		slow = append(slow, c.get("/slow"))
	}
	patient, reader := c.send("")
	_, _ = c.send("")
	if _, err := io.WriteString(patient, "GET / HTTP/1.1\r\nHost: console\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	c.answered(reader)
	for i, r := range slow[:2] {
		if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("number %d of those served longest: %v", i, err)
		}
	}
	close(c.done)
	c.answered(slow[2])
}

// A body that came is waited for no longer: another makes room, though it is waited for less long.
func TestBodyThatCame(t *testing.T) {
	c := newCrowd(t, 2, false)
	_, came := c.send("POST /read HTTP/1.1\r\nHost: console\r\nContent-Length: 2\r\n\r\nab")
	<-c.serving
	_, waiting := c.send("POST / HTTP/1.1\r\nHost: console\r\nContent-Length: 2\r\n\r\na")
	c.answered(c.get("/"))
	if _, err := waiting.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the body that is waited for: %v", err)
	}
	close(c.done)
	c.answered(came)
}

// TestShares: under any limit a quarter of the descriptors is left for files and the database.
func TestShares(t *testing.T) {
	for limit, want := range map[uint64][2]int{
		1: {1, 1}, 256: {64, 42}, 1024: {256, 170}, 20000: {5000, 3333}, 1 << 63: {64 << 10, 64 << 10},
	} {
		web, nats := connectionsWithin(limit, httpShare), connectionsWithin(limit, natsShare)
		if got := [2]int{web, nats}; got != want {
			t.Errorf("of %d descriptors: HTTP and NATS get %d, want %d", limit, got, want)
		}
		if taken := uint64(web + 3*nats); limit >= natsShare && taken > limit/4*3 {
			t.Errorf("of %d descriptors %d are taken", limit, taken)
		}
	}
}

func TestBodyAllowance(t *testing.T) {
	for came, want := range map[int64]time.Duration{
		0: 10 * time.Second, bodyRate - 1: 10 * time.Second, 20 * bodyRate: 30 * time.Second, 1 << 20: time.Minute, 1 << 60: time.Minute,
	} {
		if got := bodyAllowance(came); got != want {
			t.Errorf("%d bytes: %s, want %s", came, got, want)
		}
	}
}

func ignoreServerClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
