// Package console is the wiring of proxima-console: its configuration, which parts stand on which, and
// the order in which they start and stop. It decides nothing about clusters or people.
package console

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"prxm.uz/proxima/internal/config"
)

// Config is console's configuration; the tags are its reference. Its zero value with the defaults is a
// whole console on loopback: SQLite, NATS inside, data in one directory.
type Config struct {
	DataDir    string         `name:"data-dir" env:"PROXIMA_DATA_DIR" group:"Addresses" default:"proxima-data" help:"Directory of what is embedded: the SQLite file, NATS and its keys. It belongs to one process at a time."`
	ListenAddr string         `name:"listen-addr" env:"PROXIMA_LISTEN_ADDR" group:"Addresses" default:"127.0.0.1:8080" help:"Address of pages, API and NATS over WebSocket, as host:port."`
	PublicURL  config.BaseURL `name:"public-url" env:"PROXIMA_PUBLIC_URL" group:"Addresses" help:"Address at which people and clusters reach this console, without a path; commands print it. Empty: made of the listen address."`
	// TrustedProxies are those whose X-Forwarded-For is believed.
	TrustedProxies config.List `name:"trusted-proxies" env:"PROXIMA_TRUSTED_PROXIES" group:"Addresses" help:"Addresses or networks (CIDR) of reverse proxies, separated by commas. Only they are believed when they name the caller."`
	TLSCertFile    string      `name:"tls-cert-file" env:"PROXIMA_TLS_CERT_FILE" group:"Addresses" help:"PEM file of the certificate and its chain. With it pages, API and NATS speak TLS."`
	TLSKeyFile     string      `name:"tls-key-file" env:"PROXIMA_TLS_KEY_FILE" group:"Addresses" help:"PEM file of the certificate's key."`
	MetricsAddr    string      `name:"metrics-addr" env:"PROXIMA_METRICS_ADDR" group:"Addresses" help:"Address of a listener for /metrics alone. Empty: /metrics stands beside the pages and asks for an API token with settings:read."`

	DatabaseURL    config.Secret `name:"database-url" env:"PROXIMA_DATABASE_URL" group:"Storage" help:"PostgreSQL to use in place of the embedded SQLite: postgres://user:password@host:5432/name."`
	AuditRetention time.Duration `name:"audit-retention" env:"PROXIMA_AUDIT_RETENTION" group:"Storage" default:"8760h" help:"How long rows of the audit log are kept, 24h or more."`

	NATSURL          config.NATSURLs `name:"nats-url" env:"PROXIMA_NATS_URL" group:"NATS" help:"Servers of a NATS of your own, in place of the embedded one. nats-setup writes its keys and configuration."`
	NATSPublicURLs   config.NATSURLs `name:"nats-public-urls" env:"PROXIMA_NATS_PUBLIC_URLS" group:"NATS" help:"Addresses of NATS that agents are told, in order of preference. Empty: the NATS port where console has a certificate, then WebSocket on the public URL."`
	NATSWebSocketURL string          `name:"nats-websocket-url" env:"PROXIMA_NATS_WEBSOCKET_URL" group:"NATS" help:"WebSocket address of a NATS of your own, such as wss://nats.internal:8443. Console then passes /nats on to it."`
	NATSPort         int             `name:"nats-port" env:"PROXIMA_NATS_PORT" group:"NATS" default:"4222" help:"Port of the embedded NATS. Without a certificate it listens on loopback only."`
	NATSKeysDir      string          `name:"nats-keys-dir" env:"PROXIMA_NATS_KEYS_DIR" group:"NATS" help:"Directory of the NATS keys. Empty: nats-keys in the data directory."`
	NATSCAFile       string          `name:"nats-ca-file" env:"PROXIMA_NATS_CA_FILE" group:"NATS" help:"PEM file of the CA behind NATS; agents are told it too."`
	CredentialTTL    time.Duration   `name:"credential-ttl" env:"PROXIMA_CREDENTIAL_TTL" group:"NATS" default:"168h" help:"Lifetime of an agent's NATS credential, 10s to 720h; agents renew it at half of that."`

	AdminEmail    string        `name:"admin-email" env:"PROXIMA_ADMIN_EMAIL" group:"First start" default:"admin@localhost" help:"E-mail address of the first administrator, made where there is no user yet."`
	AdminPassword config.Secret `name:"admin-password" env:"PROXIMA_ADMIN_PASSWORD" group:"First start" help:"Password of the first administrator, 12 characters or more. Empty: one is made and printed once."`

	SyncInterval  time.Duration `name:"sync-interval" env:"PROXIMA_K8S_SYNC_INTERVAL" group:"Clusters" default:"5m" help:"Time between two full syncs that the gates reckon with, 1s to 24h. Set the same on cluster agents."`
	ImageRegistry string        `name:"image-registry" env:"PROXIMA_IMAGE_REGISTRY" group:"Clusters" default:"registry.prxm.uz/proxima" help:"Registry and path of the agents' images in the manifests that console serves."`

	LogLevel  string `name:"log-level" env:"PROXIMA_LOG_LEVEL" group:"Operation" enum:"debug,info,warn,error" default:"info" help:"Least severity that is logged."`
	LogFormat string `name:"log-format" env:"PROXIMA_LOG_FORMAT" group:"Operation" enum:"text,json" default:"text" help:"Form of log lines."`
}

// Validate checks what the values must hold alone and together; each error names the variable and the
// cure.
func (c *Config) Validate() error {
	errs := []error{
		config.Within("PROXIMA_K8S_SYNC_INTERVAL", c.SyncInterval, time.Second, 24*time.Hour),
		config.Within("PROXIMA_CREDENTIAL_TTL", c.CredentialTTL, 10*time.Second, 30*24*time.Hour),
		config.Within("PROXIMA_AUDIT_RETENTION", c.AuditRetention, 24*time.Hour, 100*365*24*time.Hour),
		config.Within("PROXIMA_NATS_PORT", c.NATSPort, 0, 65535),
		c.validateAddresses(),
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		errs = append(errs, errors.New("PROXIMA_TLS_CERT_FILE and PROXIMA_TLS_KEY_FILE go together; one of them is not set"))
	}
	if c.NATSWebSocketURL != "" {
		u, err := url.Parse(c.NATSWebSocketURL)
		switch {
		case err != nil || u.Host == "" || u.User != nil || (u.Scheme != "ws" && u.Scheme != "wss"):
			errs = append(errs, fmt.Errorf("PROXIMA_NATS_WEBSOCKET_URL is %q; write it as wss://host:port or ws://host:port", config.WithoutUser(c.NATSWebSocketURL)))
		case len(c.NATSURL) == 0:
			errs = append(errs, errors.New("PROXIMA_NATS_WEBSOCKET_URL is set and PROXIMA_NATS_URL is not; the embedded NATS has its WebSocket at /nats by itself: remove the first or set the second"))
		}
	}
	if url := c.DatabaseURL.Reveal(); url != "" && !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		errs = append(errs, errors.New("PROXIMA_DATABASE_URL does not begin with postgres://; write it as postgres://user:password@host:5432/name"))
	}
	if n := len(c.AdminPassword.Reveal()); n > 0 && n < 12 {
		errs = append(errs, fmt.Errorf("PROXIMA_ADMIN_PASSWORD has %d characters; choose 12 or more, or leave it empty to have one made", n))
	}
	return errors.Join(errs...)
}

func (c *Config) validateAddresses() error {
	var errs []error
	for variable, address := range map[string]string{"PROXIMA_LISTEN_ADDR": c.ListenAddr, "PROXIMA_METRICS_ADDR": c.MetricsAddr} {
		if address == "" && variable == "PROXIMA_METRICS_ADDR" {
			continue
		}
		errs = append(errs, config.HostPort(variable, address))
	}
	if _, err := c.trusted(); err != nil {
		errs = append(errs, err)
	}
	if u, err := url.Parse(string(c.PublicURL)); err == nil && u.Path != "" {
		errs = append(errs, fmt.Errorf("PROXIMA_PUBLIC_URL is %q; Console answers at the root of a host and not below a path: give it a host name of its own and write %s://%s", c.PublicURL, u.Scheme, u.Host))
	}
	return errors.Join(errs...)
}

// trusted parses the networks of the trusted proxies.
func (c *Config) trusted() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range c.TrustedProxies {
		if address, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("PROXIMA_TRUSTED_PROXIES holds %q, which is neither an address nor a network such as 10.0.0.0/8", text)
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// tls tells whether console ends TLS itself.
func (c *Config) tls() bool { return c.TLSCertFile != "" }

// embeds tells whether anything is kept in the data directory beside keys.
func (c *Config) embeds() bool { return !c.DatabaseURL.IsSet() || len(c.NATSURL) == 0 }

func (c *Config) keysDir() string {
	if c.NATSKeysDir != "" {
		return c.NATSKeysDir
	}
	return filepath.Join(c.DataDir, "nats-keys")
}

// publicURL is the address that commands print, where listening is at the given address.
func (c *Config) publicURL(listening net.Addr) string {
	if c.PublicURL.IsSet() {
		return string(c.PublicURL)
	}
	scheme := "http"
	if c.tls() {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(listening.String())
	if err != nil {
		return scheme + "://" + listening.String()
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// agentNATSURLs are the addresses that enrolment hands out, in order of preference. natsPort is
// that of the embedded server.
func (c *Config) agentNATSURLs(publicURL string, natsPort int) []string {
	if len(c.NATSPublicURLs) > 0 {
		return c.NATSPublicURLs
	}
	if len(c.NATSURL) > 0 && c.NATSWebSocketURL == "" {
		return c.NATSURL
	}
	u, err := url.Parse(publicURL)
	if err != nil {
		return c.NATSURL
	}
	socket := url.URL{Scheme: "ws", Host: u.Host, Path: strings.TrimRight(u.Path, "/") + "/nats"}
	if u.Scheme == "https" {
		socket.Scheme = "wss"
	}
	var out []string
	switch {
	case len(c.NATSURL) > 0:
		out = append(out, c.NATSURL...)
	case c.tls():
		out = append(out, "tls://"+net.JoinHostPort(u.Hostname(), strconv.Itoa(natsPort)))
	}
	return append(out, socket.String())
}
