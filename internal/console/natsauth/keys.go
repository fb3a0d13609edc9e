package natsauth

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"
)

// KeysFile is the name of the file that holds the seeds, inside of the keys' directory. One file, so
// that a kill at any instant leaves all keys or none.
const KeysFile = "nats-keys.json"

// Keys are the identities that sign: whoever holds them may do anything on NATS.
type Keys struct {
	operator, system, agents                   nkeys.KeyPair
	operatorPublic, systemPublic, agentsPublic string
}

type keysFile struct {
	Operator string `json:"operator"`
	System   string `json:"system"`
	Agents   string `json:"agents"`
}

// Load reads the keys that Setup or LoadOrCreate wrote into dir. A file that others may read is
// refused unless it is readable by the group alone, as mounted secrets are.
func Load(dir string) (*Keys, error) {
	path := filepath.Join(dir, KeysFile)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read NATS keys: %w; make them with proxima-console nats-setup", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("NATS keys in %s have mode %04o: everybody can read them, run chmod 600", path, info.Mode().Perm())
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read NATS keys: %w", err)
	}
	var f keysFile
	if err := json.Unmarshal(content, &f); err != nil {
		return nil, fmt.Errorf("NATS keys in %s are no JSON: restore the file from a backup", path)
	}
	k, err := f.keys()
	if err != nil {
		return nil, fmt.Errorf("NATS keys in %s: %w; restore the file from a backup", path, err)
	}
	return k, nil
}

// LoadOrCreate reads the keys in dir, and makes them where there are none. Of several processes that
// do so at once, all end with the same keys.
func LoadOrCreate(dir string) (*Keys, error) {
	k, err := Load(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for NATS keys: %w", err)
	}
	content, err := newKeysFile()
	if err != nil {
		return nil, err
	}
	if err := createFile(filepath.Join(dir, KeysFile), content); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("write NATS keys: %w", err)
	}
	return Load(dir)
}

func newKeysFile() ([]byte, error) {
	var f keysFile
	for _, k := range []struct {
		prefix nkeys.PrefixByte
		seed   *string
	}{{nkeys.PrefixByteOperator, &f.Operator}, {nkeys.PrefixByteAccount, &f.System}, {nkeys.PrefixByteAccount, &f.Agents}} {
		pair, err := nkeys.CreatePair(k.prefix)
		if err != nil {
			return nil, fmt.Errorf("make a NATS key: %w", err)
		}
		seed, err := pair.Seed()
		if err != nil {
			return nil, fmt.Errorf("read the seed of a NATS key: %w", err)
		}
		*k.seed = string(seed)
	}
	return json.MarshalIndent(f, "", "  ")
}

func (f keysFile) keys() (*Keys, error) {
	k := &Keys{}
	for _, s := range []struct {
		name   string
		seed   string
		prefix nkeys.PrefixByte
		pair   *nkeys.KeyPair
		public *string
	}{
		{"operator", f.Operator, nkeys.PrefixByteOperator, &k.operator, &k.operatorPublic},
		{"system", f.System, nkeys.PrefixByteAccount, &k.system, &k.systemPublic},
		{"agents", f.Agents, nkeys.PrefixByteAccount, &k.agents, &k.agentsPublic},
	} {
		prefix, _, err := nkeys.DecodeSeed([]byte(s.seed))
		if err != nil || prefix != s.prefix {
			return nil, fmt.Errorf("the seed of %q is not one", s.name)
		}
		if *s.pair, err = nkeys.FromSeed([]byte(s.seed)); err != nil {
			return nil, fmt.Errorf("the seed of %q is not one", s.name)
		}
		if *s.public, err = (*s.pair).PublicKey(); err != nil {
			return nil, fmt.Errorf("public key of %q: %w", s.name, err)
		}
	}
	if k.systemPublic == k.agentsPublic {
		return nil, errors.New("system and agents have one key: agents could manage the server")
	}
	return k, nil
}

func (k *Keys) challengeKey() ([]byte, error) {
	seed, err := k.agents.Seed()
	if err != nil {
		return nil, fmt.Errorf("read the seed of the agents account: %w", err)
	}
	return hkdf.Key(sha256.New, seed, nil, "proxima enrolment challenge 1", sha256.Size)
}

// createFile writes a file of mode 0600 that is there whole or not at all; it answers fs.ErrExist
// where there is one.
func createFile(path string, content []byte) error {
	temporary, err := writeTemporary(path, content)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary) }()
	return os.Link(temporary, path)
}

// replaceFile writes a file of mode 0600 in place of the one that may be there.
func replaceFile(path string, content []byte) error {
	temporary, err := writeTemporary(path, content)
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return nil
}

func writeTemporary(path string, content []byte) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
