package natsauth_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/internal/console/natsauth"
	"prxm.uz/proxima/internal/wire"
)

// FuzzProof: of all challenges, keys, signatures and texts only those that were issued and signed pass.
func FuzzProof(f *testing.F) {
	a, now := authority(f, f.TempDir()), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	issued, _, err := a.NewChallenge(now)
	if err != nil {
		f.Fatal(err)
	}
	key, err := nkeys.CreateUser()
	if err != nil {
		f.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		f.Fatal(err)
	}
	text := wire.RenewProof(issued, "agt_a")
	signed, err := key.Sign(text)
	if err != nil {
		f.Fatal(err)
	}
	signature := base64.RawURLEncoding.EncodeToString(signed)
	// Each input is laid over what is genuine from a byte on, so that most of it stays sound.
	f.Add(uint8(0), "")
	f.Add(uint8(10), "A")
	f.Add(uint8(42), "=")
	f.Add(uint8(200), strings.Repeat("A", 90))
	f.Add(uint8(0), "\x00\xff\n")
	f.Fuzz(func(t *testing.T, from uint8, patch string) {
		lay := func(genuine string) string {
			at := min(int(from), len(genuine))
			return genuine[:at] + patch + genuine[min(at+len(patch), len(genuine)):]
		}
		if c := lay(issued); c != issued && !errors.Is(a.CheckChallenge(c, now), natsauth.ErrChallengeUnknown) {
			t.Errorf("the challenge %q passes for %q: %v", c, issued, a.CheckChallenge(c, now))
		}
		if k := lay(public); k != public && !errors.Is(a.VerifyProof(k, signature, text), natsauth.ErrProof) {
			t.Errorf("the key %q passes for %q", k, public)
		}
		if w := lay(string(text)); w != string(text) && !errors.Is(a.VerifyProof(public, signature, []byte(w)), natsauth.ErrProof) {
			t.Errorf("the text %q passes for %q", w, text)
		}
		s := lay(signature)
		if raw, err := base64.RawURLEncoding.DecodeString(s); (err != nil || string(raw) != string(signed)) && !errors.Is(a.VerifyProof(public, s, text), natsauth.ErrProof) {
			t.Errorf("the signature %q passes for %q", s, signature)
		}
		if err := errors.Join(a.CheckChallenge(issued, now), a.VerifyProof(public, signature, text)); err != nil {
			t.Errorf("what is genuine is refused: %v", err)
		}
	})
}
