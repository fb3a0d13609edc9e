package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Ports are taken from below the range that Linux uses for outgoing connections,
// so that no client's socket sits on a port between its reservation and its use.
const (
	firstPort = 20000
	lastPort  = 31999
)

// scratch is the directory under which ports are reserved and processes keep
// their files: one for each user, whatever the test process.
func scratch() (string, error) {
	dir := filepath.Join(os.TempDir(), "proxima-harness-"+strconv.Itoa(os.Getuid()))
	// Others may pass through, since PostgreSQL runs as a user of its own, but
	// may not look.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", fmt.Errorf("make the harness directory: %w", err)
	}
	return dir, nil
}

// Port is a loopback TCP port that no other process of the harness gets until it
// is released, or until this process ends.
type Port struct {
	Number int
	lock   *os.File
}

// ReservePort finds a free port and reserves it.
func ReservePort() (*Port, error) {
	base, err := scratch()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(base, "ports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	count := lastPort - firstPort + 1
	start := rand.IntN(count)
	for i := range count {
		number := firstPort + (start+i)%count
		// The lock file stays: removing it would let two processes hold locks
		// on two files of one name.
		lock, err := tryLock(filepath.Join(dir, strconv.Itoa(number)))
		if err != nil {
			return nil, fmt.Errorf("reserve a port: %w", err)
		}
		if lock == nil {
			continue
		}
		if !portFree(number) {
			if err := lock.Close(); err != nil {
				return nil, fmt.Errorf("reserve a port: %w", err)
			}
			continue
		}
		return &Port{Number: number, lock: lock}, nil
	}
	return nil, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

func portFree(number int) bool {
	//nolint:noctx // binding a loopback port does not block
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(number)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Addr is the port as host:port.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)) }

// Release gives the port back.
func (p *Port) Release() error { return p.lock.Close() }

// releaseAll gives ports back; the locks end with the process in any case.
func releaseAll(ports []*Port) error {
	var err error
	for _, p := range ports {
		err = errors.Join(err, p.Release())
	}
	return err
}

// reservePorts reserves several ports or none.
func reservePorts(n int) ([]*Port, error) {
	ports := make([]*Port, 0, n)
	for range n {
		p, err := ReservePort()
		if err != nil {
			return nil, errors.Join(err, releaseAll(ports))
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// tryLock opens the file, makes it if needed, and locks it without waiting. It
// returns nil where somebody else holds the lock. Closing the file unlocks it.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, file.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return file, nil
}

// lock waits for the lock, and calls waiting once when it has to.
func lock(ctx context.Context, path string, waiting func()) (*os.File, error) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for first := true; ; first = false {
		file, err := tryLock(path)
		if err != nil || file != nil {
			return file, err
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock %s: %w", path, ctx.Err())
		case <-ticker.C:
		}
	}
}

// workDir is a directory of this process. A lock beside it tells others that its
// owner lives; what a killed process left is removed by the next that comes.
type workDir struct {
	Path string
	lock *os.File
}

// newWorkDir makes a directory under base whose name begins with prefix.
func newWorkDir(base, prefix string) (*workDir, error) {
	if err := sweep(base); err != nil {
		return nil, err
	}
	for {
		path := filepath.Join(base, fmt.Sprintf("%s-%08x", prefix, rand.Uint32()))
		file, err := tryLock(path + ".lock")
		if err != nil {
			return nil, fmt.Errorf("make a work directory: %w", err)
		}
		if file == nil {
			continue
		}
		// A sweeper may have removed the file before it was locked.
		if !stillThere(file, path+".lock") {
			if err := file.Close(); err != nil {
				return nil, fmt.Errorf("make a work directory: %w", err)
			}
			continue
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("make a work directory: %w", err), file.Close())
		}
		return &workDir{Path: path, lock: file}, nil
	}
}

func stillThere(file *os.File, path string) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(held, named)
}

// Remove deletes the directory and all in it.
func (w *workDir) Remove() error {
	return errors.Join(os.RemoveAll(w.Path), os.Remove(w.lock.Name()), w.lock.Close())
}

// sweep removes the work directories under base whose owner is dead.
func sweep(base string) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("sweep work directories: %w", err)
	}
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), ".lock")
		if !isLock {
			continue
		}
		path := filepath.Join(base, name)
		file, err := tryLock(path + ".lock")
		if err != nil {
			return fmt.Errorf("sweep work directories: %w", err)
		}
		if file == nil {
			continue
		}
		if !stillThere(file, path+".lock") {
			// Its owner removed it meanwhile.
			if err := file.Close(); err != nil {
				return fmt.Errorf("sweep work directories: %w", err)
			}
			continue
		}
		err = (&workDir{Path: path, lock: file}).Remove()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sweep work directories: %w", err)
		}
	}
	return nil
}
