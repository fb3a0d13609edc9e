// Package identity owns state.json, the file that makes an agent the same agent after a restart: its
// nkey seed, the id that console gave it, its credential and where NATS is. It writes the file so that
// a kill at any instant leaves either the old or the new content, and it refuses a file that it cannot
// trust. It never deletes what it found (D-25).
//
// The seed is written before the first enrolment is sent ("pending"), so that a retry after a lost
// answer presents the same key and gets the same identity back.
package identity

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nkeys"
)

// formatVersion is the version of state.json that this build writes and reads.
const formatVersion = 1

// What Load and Open may refuse; the text beside each names the file and the cure.
var (
	// ErrNone: there is no state file, so the agent never enrolled from this directory.
	ErrNone = errors.New("no state file")
	// ErrDamaged: the file is cut short, not ours, or from a newer version.
	ErrDamaged = errors.New("state file cannot be used")
	// ErrWrongType: the file belongs to an agent of another type (D-25).
	ErrWrongType = errors.New("state file belongs to another type of agent")
	// ErrLocked: another process uses the directory (D-22).
	ErrLocked = errors.New("data directory is in use")
)

// State is the content of state.json. Seed and JWT are secrets: print neither.
type State struct {
	Version   int    `json:"version"`
	AgentType string `json:"agent_type"`
	// Name and ClusterSlug are those under which the agent enrolls, or enrolled.
	Name        string `json:"name"`
	ClusterSlug string `json:"cluster_slug"`
	// Seed is the nkey user seed. It never leaves the agent.
	Seed string `json:"nkey_seed"`

	// The rest is empty while the enrolment is pending.
	AgentID     string      `json:"agent_id,omitempty"`
	ClientID    string      `json:"client_id,omitempty"`
	Environment Environment `json:"environment,omitzero"`
	Credential  Credential  `json:"credential,omitzero"`
	// NATSURLs are in console's order of preference.
	NATSURLs []string `json:"nats_urls,omitempty"`
	// NATSCA is the PEM of the CA behind them, empty for public ones (B-113).
	NATSCA     string    `json:"nats_ca,omitempty"`
	EnrolledAt time.Time `json:"enrolled_at,omitzero"`
}

// Environment is where the agent was enrolled.
type Environment struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Credential is the NATS user JWT with its lifetime as console stated it.
type Credential struct {
	JWT       string    `json:"jwt"`
	Template  int       `json:"template"`
	IssuedAt  time.Time `json:"issued_at"`
	ExpiresAt time.Time `json:"expires_at"`
	// ReceivedAt is when it arrived by this machine's clock. Renewal counts from here, so that a
	// skewed clock does not shorten the lifetime.
	ReceivedAt time.Time `json:"received_at"`
}

// RenewAt is when under half of the lifetime remains.
func (c Credential) RenewAt() time.Time { return c.ReceivedAt.Add(c.lifetime() / 2) }

// Expired reports whether the lifetime is over by this machine's clock.
func (c Credential) Expired(now time.Time) bool { return !now.Before(c.ReceivedAt.Add(c.lifetime())) }

func (c Credential) lifetime() time.Duration { return c.ExpiresAt.Sub(c.IssuedAt) }

// NewPending makes the state of an agent that is about to enroll, with a fresh key.
func NewPending(agentType, name, clusterSlug string) (State, error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return State{}, fmt.Errorf("make an nkey: %w", err)
	}
	defer key.Wipe()
	seed, err := key.Seed()
	if err != nil {
		return State{}, fmt.Errorf("make an nkey: %w", err)
	}
	return State{Version: formatVersion, AgentType: agentType, Name: name, ClusterSlug: clusterSlug, Seed: string(seed)}, nil
}

// Enrolled reports whether console gave the agent an identity.
func (s State) Enrolled() bool { return s.AgentID != "" }

// Key returns the key pair of the seed.
func (s State) Key() (nkeys.KeyPair, error) {
	key, err := nkeys.FromSeed([]byte(s.Seed))
	if err != nil {
		return nil, fmt.Errorf("nkey_seed: %w", err)
	}
	return key, nil
}

// check says what makes the state unusable; its text holds no secret.
func (s State) check() error {
	if s.Version != formatVersion {
		return fmt.Errorf("version is %d, this build reads %d", s.Version, formatVersion)
	}
	if s.AgentType == "" || s.Name == "" {
		return errors.New("agent_type or name is missing")
	}
	key, err := s.Key()
	if err != nil {
		return err
	}
	public, err := key.PublicKey()
	if err != nil || !nkeys.IsValidPublicUserKey(public) {
		return errors.New("nkey_seed is not a user seed")
	}
	if !s.Enrolled() {
		return nil
	}
	switch {
	case strings.ContainsAny(s.AgentID, ".*> \t\r\n"):
		return errors.New("agent_id cannot be part of a subject")
	case s.Credential.JWT == "":
		return errors.New("agent_id is there, but no credential")
	case !s.Credential.ExpiresAt.After(s.Credential.IssuedAt):
		return errors.New("the credential's lifetime is not positive")
	}
	return nil
}
