// Package natsauth owns who may do what on NATS: the keys of operator and accounts, the credentials of
// agents and of console itself, challenges, and revocations as account claims. It signs and checks; it
// opens no connection and stores nothing but its keys.
package natsauth

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/wire"
)

// DefaultTTL is how long an agent's credential lasts.
const DefaultTTL = 7 * 24 * time.Hour

// Template is the number of the permission template that new credentials get. It grows by one with
// each change of what a credential grants; the number is stored with the agent, so that console knows
// what each agent may do.
//
//	1: inventory, heartbeat, status, metrics, config, reply and the relay's subjects of the agent alone.
const Template = 1

// Authority issues credentials and account claims. It may be used from several goroutines.
type Authority struct {
	keys         *Keys
	ttl          time.Duration
	challengeKey []byte
}

// New makes an Authority; a ttl of zero means DefaultTTL. A ttl below one second is refused, since
// credentials count in seconds.
func New(keys *Keys, ttl time.Duration) (*Authority, error) {
	if ttl == 0 {
		ttl = DefaultTTL
	}
	if ttl < time.Second {
		return nil, fmt.Errorf("credential lifetime %v: use one second or more", ttl)
	}
	key, err := keys.challengeKey()
	if err != nil {
		return nil, err
	}
	return &Authority{keys: keys, ttl: ttl, challengeKey: key}, nil
}

// TTL is the lifetime of an agent's credential.
func (a *Authority) TTL() time.Duration { return a.ttl }

// AgentsAccount is the public key of the account in which agents and console meet.
func (a *Authority) AgentsAccount() string { return a.keys.agentsPublic }

// SystemAccount is the public key of the system account.
func (a *Authority) SystemAccount() string { return a.keys.systemPublic }

// maxSubscriptions bounds one connection of an agent, which needs a handful: each costs the server memory.
const maxSubscriptions = 256

// IssueCredential makes a credential for the key with the literal permissions of the present template:
// every subject names the agent, so it can neither read nor write under another's id. The key must be
// a user nkey. The JWT's own time of issue is the machine's, since the library reads it.
func (a *Authority) IssueCredential(agentID, publicKey string, now time.Time) (enrollment.Credential, error) {
	if !nkeys.IsValidPublicUserKey(publicKey) {
		return enrollment.Credential{}, fmt.Errorf("public key %q is not a user nkey: it starts with U and has 56 characters", publicKey)
	}
	if err := checkToken(agentID); err != nil {
		return enrollment.Credential{}, err
	}
	claims := jwt.NewUserClaims(publicKey)
	claims.Name = agentID
	claims.Expires = now.Add(a.ttl).Unix()
	claims.Pub.Allow.Add(
		wire.InventorySubject(agentID), wire.HeartbeatSubject(agentID), wire.StatusSubject(agentID),
		wire.MetricsSubject(agentID), wire.ConfigSubject(agentID), wire.ReplySubject(agentID), wire.RelayOutSubjects(agentID),
	)
	claims.Sub.Allow.Add(wire.InboxPrefix(agentID)+".>", wire.CommandSubject(agentID), wire.RelayInSubjects(agentID))
	claims.Subs, claims.Limits.Payload = maxSubscriptions, wire.MaxPayload
	claims.AllowedConnectionTypes.Add(jwt.ConnectionTypeStandard, jwt.ConnectionTypeWebsocket)
	token, err := claims.Encode(a.keys.agents)
	if err != nil {
		return enrollment.Credential{}, fmt.Errorf("sign the credential of agent %s: %w", agentID, err)
	}
	return enrollment.Credential{
		JWT: token, Template: Template, IssuedAt: now.Truncate(time.Second), ExpiresAt: time.Unix(claims.Expires, 0).UTC(),
	}, nil
}

// checkToken admits what can stand as one token of a subject and is no wildcard.
func checkToken(id string) error {
	if id == "" || len(id) > wire.MaxName {
		return fmt.Errorf("agent id %q: 1 to %d characters are allowed", id, wire.MaxName)
	}
	for _, r := range id {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
		default:
			return fmt.Errorf("agent id %q: only letters, digits, - and _ can stand in a subject", id)
		}
	}
	return nil
}

// User is a credential of console's own. Its key lives in this process alone, so it does not expire.
type User struct {
	JWT  string
	pair nkeys.KeyPair
}

// Sign signs the nonce of a NATS server.
func (u User) Sign(nonce []byte) ([]byte, error) { return u.pair.Sign(nonce) }

// ConsoleUser makes a user of the agents account that may use every subject.
func (a *Authority) ConsoleUser() (User, error) { return newUser("proxima-console", a.keys.agents) }

// SystemUser makes a user of the system account, which pushes account claims.
func (a *Authority) SystemUser() (User, error) {
	return newUser("proxima-console-system", a.keys.system)
}

func newUser(name string, account nkeys.KeyPair) (User, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return User{}, fmt.Errorf("make a key for user %s: %w", name, err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return User{}, fmt.Errorf("read the public key of user %s: %w", name, err)
	}
	claims := jwt.NewUserClaims(public)
	claims.Name = name
	token, err := claims.Encode(account)
	if err != nil {
		return User{}, fmt.Errorf("sign the credential of user %s: %w", name, err)
	}
	return User{JWT: token, pair: pair}, nil
}

// OperatorJWT makes the operator's claims, which every NATS server is given.
func (a *Authority) OperatorJWT() (string, error) {
	claims := jwt.NewOperatorClaims(a.keys.operatorPublic)
	claims.Name = "proxima"
	claims.SystemAccount = a.keys.systemPublic
	return a.sign(claims)
}

// SystemAccountJWT makes the claims of the system account.
func (a *Authority) SystemAccountJWT() (string, error) {
	claims := jwt.NewAccountClaims(a.keys.systemPublic)
	claims.Name = "system"
	return a.sign(claims)
}

// AccountJWT makes the claims of the agents account. A credential of a key in revocations is refused if
// it was issued in the second of the revocation or before. Revocations older than the TTL are left out:
// what they refuse has expired, and thousands of them make a JWT of a megabyte.
func (a *Authority) AccountJWT(revocations map[string]time.Time, now time.Time) (string, error) {
	claims := jwt.NewAccountClaims(a.keys.agentsPublic)
	claims.Name = "agents"
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
		MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
		MaxAckPending: jwt.NoLimit,
	}
	claims.Limits.DisallowBearer = true
	for key, at := range revocations {
		if now.Sub(at) <= a.ttl+time.Minute {
			claims.RevokeAt(key, at)
		}
	}
	return a.sign(claims)
}

func (a *Authority) sign(claims jwt.Claims) (string, error) {
	token, err := claims.Encode(a.keys.operator)
	if err != nil {
		return "", fmt.Errorf("sign claims of %s: %w", claims.Claims().Name, err)
	}
	return token, nil
}

// Revocations reads the revocations of account claims that AccountJWT made.
func (a *Authority) Revocations(token string) (map[string]time.Time, error) {
	claims, err := jwt.DecodeAccountClaims(token)
	if err != nil {
		return nil, fmt.Errorf("decode account claims: %w", err)
	}
	if claims.Issuer != a.keys.operatorPublic || claims.Subject != a.keys.agentsPublic {
		return nil, errors.New("account claims are of another operator: give NATS and console the same keys, from proxima-console nats-setup")
	}
	revoked := make(map[string]time.Time, len(claims.Revocations))
	for key, at := range claims.Revocations {
		revoked[key] = time.Unix(at, 0)
	}
	return revoked, nil
}
