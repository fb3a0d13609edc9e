package natsauth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/nats-io/nkeys"
)

// ChallengeTTL is how long a challenge may be answered.
const ChallengeTTL = 5 * time.Minute

const (
	challengeBody = 8 + 16 // seconds since 1970, random bytes
	challengeSize = challengeBody + sha256.Size
	// challengeSkew is how far ahead the clock of another replica may be.
	challengeSkew = time.Minute
)

// What CheckChallenge and VerifyProof answer.
var (
	ErrChallengeUnknown = errors.New("challenge was not issued by this console: ask for a new one")
	ErrChallengeExpired = errors.New("challenge is older than 5 minutes: ask for a new one")
	ErrProof            = errors.New("signature does not match the key and the text")
)

// NewChallenge makes a challenge that any replica with the same keys accepts until expiresAt; nothing
// is stored.
func (a *Authority) NewChallenge(now time.Time) (challenge string, expiresAt time.Time, err error) {
	raw := make([]byte, challengeBody, challengeSize)
	binary.BigEndian.PutUint64(raw, uint64(now.Unix()))
	if _, err := rand.Read(raw[8:]); err != nil {
		return "", time.Time{}, err
	}
	return base64.RawURLEncoding.EncodeToString(a.seal(raw)), now.Truncate(time.Second).Add(ChallengeTTL), nil
}

// CheckChallenge answers nil for a challenge that NewChallenge made within ChallengeTTL, else
// ErrChallengeUnknown or ErrChallengeExpired.
func (a *Authority) CheckChallenge(challenge string, now time.Time) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(challenge)
	// The decoder passes over line ends, which part the lines of what is signed.
	if err != nil || len(raw) != challengeSize || len(challenge) != base64.RawURLEncoding.EncodedLen(challengeSize) {
		return ErrChallengeUnknown
	}
	if !hmac.Equal(a.seal(raw[:challengeBody:challengeBody]), raw) {
		return ErrChallengeUnknown
	}
	age := now.Sub(time.Unix(int64(binary.BigEndian.Uint64(raw)), 0))
	if age > ChallengeTTL || age < -challengeSkew {
		return ErrChallengeExpired
	}
	return nil
}

// seal appends the code of authentication to body.
func (a *Authority) seal(body []byte) []byte {
	mac := hmac.New(sha256.New, a.challengeKey)
	mac.Write(body)
	return mac.Sum(body)
}

// VerifyProof checks that the holder of a user nkey signed text; signature is base64url without
// padding. It answers ErrProof where it did not.
func (a *Authority) VerifyProof(publicKey, signature string, text []byte) error {
	if !nkeys.IsValidPublicUserKey(publicKey) {
		return ErrProof
	}
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		return ErrProof
	}
	key, err := nkeys.FromPublicKey(publicKey)
	if err != nil {
		return ErrProof
	}
	// Base32 takes more characters than the key has: spelt otherwise it would be another agent's key.
	if spelt, err := key.PublicKey(); err != nil || spelt != publicKey {
		return ErrProof
	}
	if err := key.Verify(text, sig); err != nil {
		return ErrProof
	}
	return nil
}
