package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The files in the data directory.
const (
	fileName = "state.json"
	newName  = "state.json.new" // being written; a leftover of a kill is overwritten
	lockName = "state.lock"
)

// maxFile bounds what is read, in bytes: a state with a large CA bundle stays far below.
const maxFile = 1 << 20

// Store is an agent's data directory, locked to this process until Close. Its methods may be called
// from one goroutine at a time.
type Store struct {
	dir  string
	lock *os.File
}

// Open makes the directory where it is missing and locks it. It answers ErrLocked while another
// process holds it (D-22); the lock ends with the process, however that ends.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be made (%w): mount a writable volume there, or set PROXIMA_AGENT_DATA_DIR", dir, err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written (%w): mount a volume that this user may write, or set PROXIMA_AGENT_DATA_DIR", dir, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = errors.Join(err, lock.Close())
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: another process holds %s: two agents never share one; stop it, or set PROXIMA_AGENT_DATA_DIR", ErrLocked, filepath.Join(dir, lockName))
		}
		return nil, fmt.Errorf("data directory %s cannot be locked: %w", dir, err)
	}
	return &Store{dir: dir, lock: lock}, nil
}

// Close unlocks the directory.
func (s *Store) Close() error { return s.lock.Close() }

// Path is the path of state.json.
func (s *Store) Path() string { return filepath.Join(s.dir, fileName) }

// Load reads the state of an agent of the given type. It answers ErrNone where there is no file,
// ErrDamaged for one that it cannot trust and ErrWrongType for another agent's; in both cases the file
// stays as it is.
func (s *Store) Load(agentType string) (State, error) {
	f, err := os.Open(s.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, ErrNone
	}
	if err != nil {
		return State{}, fmt.Errorf("%w: %w: make %s readable for the user that the agent runs as; the file was left as it is", ErrDamaged, err, s.Path())
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return State{}, s.damaged(err)
	}
	if len(content) > maxFile {
		return State{}, s.damaged(fmt.Errorf("larger than %d bytes", maxFile))
	}
	var state State
	dec := json.NewDecoder(bytes.NewReader(content))
	if err := dec.Decode(&state); err != nil {
		return State{}, s.damaged(fmt.Errorf("not whole JSON (%w)", err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return State{}, s.damaged(errors.New("bytes after the end"))
	}
	if err := state.check(); err != nil {
		return State{}, s.damaged(err)
	}
	if state.AgentType != agentType {
		return State{}, fmt.Errorf("%w: %s is of type %q, this agent is %q: give each agent a data directory of its own (PROXIMA_AGENT_DATA_DIR); the file was left as it is",
			ErrWrongType, s.Path(), state.AgentType, agentType)
	}
	return state, nil
}

func (s *Store) damaged(why error) error {
	return fmt.Errorf("%w: %s: %w: restore it from a backup, or move it away and release the agent's identity in console so that it can enroll again; the file was left as it is",
		ErrDamaged, s.Path(), why)
}

// Save replaces the state. When it returns nil, the new content survives a kill and a power cut; when
// the process dies before, the old content does.
func (s *Store) Save(state State) error {
	state.Version = formatVersion
	if err := state.check(); err != nil {
		return fmt.Errorf("refuse to write %s: %w", s.Path(), err)
	}
	content, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	if err := s.replace(append(content, '\n')); err != nil {
		return fmt.Errorf("write %s: %w: make the directory writable for the user that the agent runs as, and free space on its volume", s.Path(), err)
	}
	return nil
}

func (s *Store) replace(content []byte) error {
	path := filepath.Join(s.dir, newName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(0o600) // a leftover keeps the mode that it had
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path, s.Path()); err != nil {
		return err
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Read reads the state without locking the directory or making it, for those who only look.
func Read(dir, agentType string) (State, error) { return (&Store{dir: dir}).Load(agentType) }
