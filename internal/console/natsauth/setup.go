package natsauth

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The files that Setup writes beside the keys.
const (
	// AccountsFile names operator, accounts and resolver; ServerFile includes it.
	AccountsFile = "accounts.conf"
	// ServerFile is the configuration of one NATS server, for people to complete.
	ServerFile = "nats-server.conf"
	// OperatorFile holds the operator's JWT alone, for tools such as nsc.
	OperatorFile = "operator.jwt"
)

// Options of Setup; zero fields take their defaults.
type Options struct {
	// KeysDir is where the keys go, later PROXIMA_NATS_KEYS_DIR of console; default: keys under dir.
	KeysDir string
	// DataDir is where the server keeps JetStream and accounts; default /var/lib/nats.
	DataDir string
	// CertFile and KeyFile are the server's TLS files; default /etc/nats/tls/tls.crt and tls.key.
	// NoTLS leaves TLS out: for servers on loopback or behind a proxy only.
	CertFile, KeyFile string
	NoTLS             bool
	// Port and WebSocketPort listen for agents; default 4222 and 8443, -1 takes a free one.
	Port, WebSocketPort int
	Now                 time.Time
}

// ErrOtherKeys is what Setup answers rather than make a running NATS lose its agents.
var ErrOtherKeys = errors.New("a configuration with other keys is there")

// Setup writes into dir what an external NATS needs in operator mode: the keys for console, the
// operator's JWT, accounts.conf, and a nats-server.conf that includes it. A second run keeps the keys
// and an edited nats-server.conf, and writes the rest anew; where accounts.conf was made from other
// keys it answers ErrOtherKeys and changes nothing. It returns the paths written.
func Setup(dir string, o Options) ([]string, error) {
	o = o.withDefaults(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory %s: %w", dir, err)
	}
	accountsPath := filepath.Join(dir, AccountsFile)
	before, err := os.ReadFile(accountsPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w", accountsPath, err)
	}
	load := LoadOrCreate
	if before != nil {
		load = Load // new keys could not be those of the file
	}
	keys, err := load(o.KeysDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s exists, its keys are not in %s; restore them, or name another directory", ErrOtherKeys, accountsPath, o.KeysDir)
	}
	if err != nil {
		return nil, err
	}
	if before != nil && (!bytes.Contains(before, []byte(keys.systemPublic)) || !bytes.Contains(before, []byte(keys.agentsPublic))) {
		return nil, fmt.Errorf("%w: %s was not made from the keys in %s; name another directory", ErrOtherKeys, accountsPath, o.KeysDir)
	}
	authority, err := New(keys, 0)
	if err != nil {
		return nil, err
	}
	operator, accounts, err := authority.accountsConf(o)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		path    string
		content string
	}{{filepath.Join(dir, OperatorFile), operator + "\n"}, {accountsPath, accounts}} {
		if err := replaceFile(f.path, []byte(f.content)); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.path, err)
		}
	}
	server := filepath.Join(dir, ServerFile)
	if err := createFile(server, []byte(serverConf(o))); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("write %s: %w", server, err)
	}
	return []string{filepath.Join(o.KeysDir, KeysFile), filepath.Join(dir, OperatorFile), accountsPath, server}, nil
}

func (o Options) withDefaults(dir string) Options {
	set := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	set(&o.KeysDir, filepath.Join(dir, "keys"))
	set(&o.DataDir, "/var/lib/nats")
	set(&o.CertFile, "/etc/nats/tls/tls.crt")
	set(&o.KeyFile, "/etc/nats/tls/tls.key")
	if o.Port == 0 {
		o.Port = 4222
	}
	if o.WebSocketPort == 0 {
		o.WebSocketPort = 8443
	}
	return o
}

func (a *Authority) accountsConf(o Options) (operator, conf string, err error) {
	operator, err = a.OperatorJWT()
	if err != nil {
		return "", "", err
	}
	system, err := a.SystemAccountJWT()
	if err != nil {
		return "", "", err
	}
	agents, err := a.AccountJWT(nil, o.Now)
	if err != nil {
		return "", "", err
	}
	return operator, `# Written by proxima-console nats-setup; do not edit. No secret is in here.
operator: ` + operator + `
system_account: ` + a.SystemAccount() + `

# The full resolver lets console push a revocation. A server that was down accepts a revoked credential
# until its next look at the others, at most this interval after it came back.
resolver {
  type: full
  dir: ` + strconv.Quote(filepath.Join(o.DataDir, "accounts")) + `
  allow_delete: false
  interval: "30s"
}
resolver_preload {
  ` + a.SystemAccount() + `: ` + system + `
  ` + a.AgentsAccount() + `: ` + agents + `
}
`, nil
}

func serverConf(o Options) string {
	tls, websocketTLS := "", "  no_tls: true\n"
	if !o.NoTLS {
		files := "cert_file: " + strconv.Quote(o.CertFile) + "\n  key_file: " + strconv.Quote(o.KeyFile) + "\n"
		tls = "tls {\n  " + files + "}\n\n"
		websocketTLS = "  tls {\n  " + files + "  }\n"
	}
	listen := ""
	websocketHost := ""
	if o.NoTLS { // without TLS, nobody but this machine may come
		listen, websocketHost = "host: 127.0.0.1\n", "  host: 127.0.0.1\n"
	}
	return `# One server of an external NATS for Proxima Console, from proxima-console nats-setup. It is yours to
# edit; a second run leaves it as it is. infra/nats/README.md says what must stay.
server_name: proxima-nats-1 # different on every server
` + listen + `port: ` + strconv.Itoa(o.Port) + `

# The inventory of a whole cluster is one message, and headers count too.
max_payload: 8MB
# Room for a console that lags, and for live access.
max_pending: 128MB
write_deadline: "30s"

` + tls + `# Agents that may leave on 443 alone come by WebSocket: PROXIMA_NATS_WEBSOCKET_URL.
websocket {
` + websocketHost + `  port: ` + strconv.Itoa(o.WebSocketPort) + `
` + websocketTLS + `}

# Inventories wait here while console is down.
jetstream {
  store_dir: ` + strconv.Quote(filepath.Join(o.DataDir, "jetstream")) + `
  max_file_store: 10GB
}

# Three servers survive the loss of one: uncomment, with the others' addresses.
# cluster {
#   name: proxima
#   port: 6222
#   routes: [ "nats://other-server:6222" ]
# }

include ` + strconv.Quote(AccountsFile) + `
`
}
