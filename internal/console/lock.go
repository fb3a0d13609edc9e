package console

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockDirectory keeps a second process out of the data directory. The lock ends with the process,
// however that ends.
func lockDirectory(dir string) (unlock func() error, err error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, dataDirError(dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		closed := f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another process holds %s: what is embedded serves one console. Stop that one, or set PROXIMA_DATABASE_URL and PROXIMA_NATS_URL to run several", path)
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), closed)
	}
	return f.Close, nil
}
