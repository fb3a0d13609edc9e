package identity

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// FuzzLoad: a state file is a whole identity of this agent, or an error that says what to do; it is never
// changed by looking at it.
func FuzzLoad(f *testing.F) {
	whole, err := NewPending("collector", "prod", "prod")
	if err != nil {
		f.Fatal(err)
	}
	s, err := Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	if err := s.Save(whole); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(s.Path())
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{text, text[:len(text)/2], append(bytes.Clone(text), '{'), bytes.Replace(text, []byte("collector"), []byte("host"), 1), []byte("null"), []byte("[]"), {}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(s.Path(), content, 0o600); err != nil {
			t.Fatal(err)
		}
		state, err := s.Load("collector")
		switch {
		case err == nil:
			if _, err := state.Key(); err != nil {
				t.Errorf("an identity without a key: %v", err)
			}
			if err := s.Save(state); err != nil {
				t.Errorf("what was read cannot be written: %v", err)
			}
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrWrongType):
			t.Errorf("refused as %v", err)
		default:
			if left, readErr := os.ReadFile(s.Path()); readErr != nil || !bytes.Equal(left, content) {
				t.Errorf("the file was changed (%v)", readErr)
			}
		}
	})
}
