package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// NATS is a NATS server as a process of its own.
type NATS struct {
	dir     *workDir
	command Command

	mu      sync.Mutex
	process *Process
	ports   natsPorts
}

// natsPorts is the file in which the server says where it listens.
type natsPorts struct {
	Client    []string `json:"nats"`
	WebSocket []string `json:"websocket"`
}

// StartNATS starts a NATS server with the given configuration file and returns
// when it greets clients. Where the file says port -1 the server takes a free
// one; a port from [ReservePort] stays the same over a restart. Programs that
// are not built yet are built first; log receives the progress. End it by
// [NATS.Stop].
func StartNATS(ctx context.Context, log io.Writer, configFile string) (*NATS, error) {
	bin, err := Binaries(ctx, log)
	if err != nil {
		return nil, err
	}
	base, err := scratch()
	if err != nil {
		return nil, err
	}
	dir, err := newWorkDir(base, "nats")
	if err != nil {
		return nil, err
	}
	n := &NATS{dir: dir, command: Command{
		Name: "nats-server", Path: bin.NATSServer,
		Args:    []string{"--config", configFile, "--ports_file_dir", dir.Path},
		Dir:     filepath.Dir(configFile),
		LogPath: filepath.Join(dir.Path, "nats-server.log"),
	}}
	if err := n.Restart(ctx); err != nil {
		return nil, fmt.Errorf("start a NATS server: %w", errors.Join(err, n.Stop()))
	}
	return n, nil
}

// Restart starts the server again, killing it first where it still runs, and
// returns when it greets clients.
func (n *NATS) Restart(ctx context.Context) error {
	if err := n.Kill(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	process, err := Start(n.command)
	if err != nil {
		return err
	}
	n.process = process
	portsFile := filepath.Join(n.dir.Path, fmt.Sprintf("nats-server_%d.ports", process.PID()))
	return process.Await(ctx, "the NATS server to greet", func(ctx context.Context) error {
		text, err := os.ReadFile(portsFile)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &n.ports); err != nil {
			return err
		}
		if len(n.ports.Client) == 0 {
			return errors.New("it listens to no clients")
		}
		return natsGreets(ctx, n.ports.Client[0])
	})
}

// natsGreets connects to the server and reads its INFO line. A server that talks
// TLS at once greets nobody else: there, the connection is enough.
func natsGreets(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if u.Scheme == "tls" {
		return nil
	}
	deadline, _ := ctx.Deadline()
	if err := conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "INFO ") {
		return fmt.Errorf("it greets with %q", line)
	}
	return nil
}

// URL is where clients connect, such as nats://127.0.0.1:20123.
func (n *NATS) URL() string { return n.firstPort(func(p natsPorts) []string { return p.Client }) }

// WebSocketURL is where clients connect over WebSocket, or empty.
func (n *NATS) WebSocketURL() string {
	return n.firstPort(func(p natsPorts) []string { return p.WebSocket })
}

func (n *NATS) firstPort(of func(natsPorts) []string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if urls := of(n.ports); len(urls) > 0 {
		return urls[0]
	}
	return ""
}

// Processes returns the server, unless it was killed.
func (n *NATS) Processes() []*Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return nil
	}
	return []*Process{n.process}
}

// Signal sends a signal to the server; SIGHUP makes it read its configuration
// again.
func (n *NATS) Signal(sig os.Signal) error {
	for _, p := range n.Processes() {
		return p.Signal(sig)
	}
	return errors.New("the NATS server does not run: Restart first")
}

// Kill ends the server by SIGKILL. [NATS.Restart] brings it back.
func (n *NATS) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return nil
	}
	err := n.process.Kill()
	n.process = nil
	return err
}

// Stop ends the server and removes its log. What its configuration stores
// elsewhere stays.
func (n *NATS) Stop() error {
	err := n.Kill()
	if n.dir != nil {
		err = errors.Join(err, n.dir.Remove())
		n.dir = nil
	}
	return err
}
