package access

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"

	"prxm.uz/proxima/internal/console/problem"
)

// The bounds of a password, in characters.
const (
	MinPassword = 12
	MaxPassword = 200
)

// Cost is what one password hash costs.
type Cost struct {
	MemoryKiB   uint32
	Iterations  uint32
	Parallelism uint8
}

// DefaultCost is 19 MiB, two passes, one lane: about 20 ms on one core.
func DefaultCost() Cost { return Cost{MemoryKiB: 19 * 1024, Iterations: 2, Parallelism: 1} }

// hashesAtOnce bounds the memory that sign-ins take together.
const hashesAtOnce = 4

// Hasher hashes passwords with argon2id, a few at a time. It may be used from several goroutines.
type Hasher struct {
	params argon2id.Params
	decoy  string
	slots  chan struct{}
}

// NewHasher makes a Hasher; tests give a small cost.
func NewHasher(cost Cost) (*Hasher, error) {
	h := &Hasher{
		params: argon2id.Params{
			Memory: cost.MemoryKiB, Iterations: cost.Iterations, Parallelism: cost.Parallelism, SaltLength: 16, KeyLength: 32,
		},
		slots: make(chan struct{}, hashesAtOnce),
	}
	var err error
	if h.decoy, err = argon2id.CreateHash("", &h.params); err != nil {
		return nil, fmt.Errorf("prepare password hashing: %w", err)
	}
	return h, nil
}

// Hash checks the rules of a password and hashes it.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	if err := CheckPassword(password); err != nil {
		return "", err
	}
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer h.leave()
	hash, err := argon2id.CreateHash(password, &h.params)
	if err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return hash, nil
}

// Matches compares a password with a hash. An empty hash matches nothing and takes as long as another,
// so that the answer to an unknown user is no faster.
func (h *Hasher) Matches(ctx context.Context, password, hash string) (bool, error) {
	if utf8.RuneCountInString(password) > MaxPassword {
		return false, nil // says nothing about the account, since no password is that long
	}
	known := hash != ""
	if !known {
		hash = h.decoy
	}
	if err := h.enter(ctx); err != nil {
		return false, err
	}
	defer h.leave()
	match, err := argon2id.ComparePasswordAndHash(password, hash)
	if err != nil {
		return false, fmt.Errorf("compare a password with its hash: %w", err)
	}
	return match && known, nil
}

func (h *Hasher) enter(ctx context.Context) error {
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Hasher) leave() { <-h.slots }

// MakePassword makes a password for somebody else to begin with: 100 random bits in groups that can be read out.
func MakePassword() string {
	text := strings.ToLower(rand.Text())
	return text[:5] + "-" + text[5:10] + "-" + text[10:15] + "-" + text[15:20]
}

// CheckPassword holds the rules: valid UTF-8 of 12 to 200 characters that are not all spaces.
func CheckPassword(password string) error {
	n := utf8.RuneCountInString(password)
	switch {
	case !utf8.ValidString(password), strings.ContainsRune(password, 0):
		return problem.New(problem.Invalid, "password_invalid", "The password is not valid text.").
			WithCure("Type it anew, without the character NUL.").InField("password")
	case n < MinPassword, n > MaxPassword, strings.TrimSpace(password) == "":
		return problem.New(problem.Invalid, "password_invalid",
			fmt.Sprintf("The password has %d characters.", n)).
			WithCure(fmt.Sprintf("Choose %d to %d characters; several words do well.", MinPassword, MaxPassword)).InField("password")
	}
	return nil
}
