package natsauth_test

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/natsauth"
	"prxm.uz/proxima/internal/wire"
)

var _ enrollment.Authority = (*natsauth.Authority)(nil)

func authority(t testing.TB, dir string) *natsauth.Authority {
	t.Helper()
	keys, err := natsauth.LoadOrCreate(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, err := natsauth.New(keys, 0)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestKeysAreMadeOnceAndPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	var group sync.WaitGroup
	accounts := make([]string, 8)
	for i := range accounts {
		group.Go(func() {
			if keys, err := natsauth.LoadOrCreate(dir); err == nil {
				if a, err := natsauth.New(keys, 0); err == nil {
					accounts[i] = a.AgentsAccount()
				}
			}
		})
	}
	group.Wait()
	for _, account := range accounts {
		if account == "" || account != accounts[0] {
			t.Errorf("accounts %v", accounts)
		}
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, natsauth.KeysFile): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := os.Chmod(filepath.Join(dir, natsauth.KeysFile), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := natsauth.Load(dir); err == nil {
		t.Error("keys that everybody reads were taken")
	}
}

func TestChallenge(t *testing.T) {
	dir := t.TempDir()
	a, replica, stranger := authority(t, dir), authority(t, dir), authority(t, t.TempDir())
	now := time.Now()
	c, expires, err := a.NewChallenge(now)
	if err != nil {
		t.Fatal(err)
	}
	if d := expires.Sub(now); d > natsauth.ChallengeTTL || d < natsauth.ChallengeTTL-time.Second {
		t.Errorf("expires after %v", d)
	}
	altered := []byte(c)
	altered[15] ^= 1
	for name, tc := range map[string]struct {
		a    *natsauth.Authority
		c    string
		now  time.Time
		want error
	}{
		"fresh, on a replica": {replica, c, now, nil},
		"at its end":          {a, c, expires, nil},
		"late":                {a, c, expires.Add(2 * time.Second), natsauth.ErrChallengeExpired},
		"from the future":     {a, c, now.Add(-time.Hour), natsauth.ErrChallengeExpired},
		"other console":       {stranger, c, now, natsauth.ErrChallengeUnknown},
		"altered":             {a, string(altered), now, natsauth.ErrChallengeUnknown},
		"empty":               {a, "", now, natsauth.ErrChallengeUnknown},
		"with a line end":     {a, c + "\n", now, natsauth.ErrChallengeUnknown},
		"padded":              {a, c + "=", now, natsauth.ErrChallengeUnknown},
	} {
		if err := tc.a.CheckChallenge(tc.c, tc.now); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

func TestProof(t *testing.T) {
	a := authority(t, t.TempDir())
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	text := wire.RenewProof("c", "agt_a")
	sig, err := key.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	signature := base64.RawURLEncoding.EncodeToString(sig)
	if err := a.VerifyProof(public, signature, text); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"other text":          a.VerifyProof(public, signature, wire.RenewProof("c", "agt_b")),
		"key spelt otherwise": a.VerifyProof(public+"2", signature, text),
		"account key":         a.VerifyProof(a.AgentsAccount(), signature, text),
		"no base64":           a.VerifyProof(public, "!", text),
		"empty":               a.VerifyProof("", "", text),
	} {
		if !errors.Is(err, natsauth.ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []string{"", "*", ">", "a.b", "a b", "ä"} {
		if _, err := a.IssueCredential(id, public, time.Now()); err == nil {
			t.Errorf("agent id %q got a credential", id)
		}
	}
	if _, err := a.IssueCredential("agt_a", a.AgentsAccount(), time.Now()); err == nil {
		t.Error("an account key got a credential")
	}
}

func TestRevocationsArePrunedAndCoverTheirSecond(t *testing.T) {
	a := authority(t, t.TempDir())
	now := time.Now()
	token, err := a.AccountJWT(map[string]time.Time{"UOLD": now.Add(-8 * 24 * time.Hour), "UNEW": now}, now)
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.Revocations(token)
	if err != nil || len(got) != 1 {
		t.Fatalf("revocations %v, %v", got, err)
	}
	claims, err := jwt.DecodeAccountClaims(token)
	if err != nil {
		t.Fatal(err)
	}
	if !claims.Revocations.IsRevoked("UNEW", now) || claims.Revocations.IsRevoked("UNEW", now.Add(time.Second)) {
		t.Error("a revocation covers its own second, and nothing after it")
	}
	if _, err := authority(t, t.TempDir()).Revocations(token); err == nil {
		t.Error("claims of another operator were taken")
	}
}
