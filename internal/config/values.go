package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// BaseURL is an http or https address to which paths are appended. It holds no user, query, fragment
// or slash at the end; its zero value is not set.
type BaseURL string

// UnmarshalText reads and checks the address.
func (u *BaseURL) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	if s == "" {
		*u = ""
		return nil
	}
	parsed, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("%q is not a URL: write it as https://host or https://host:port", WithoutUser(s))
	}
	switch {
	case parsed.User != nil:
		return fmt.Errorf("the URL %q holds a user or password: remove everything before and with the @, and write it as https://host or https://host:port", WithoutUser(s))
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return fmt.Errorf("%q does not begin with https:// or http://: write it as https://host or https://host:port", WithoutUser(s))
	case parsed.Hostname() == "":
		return fmt.Errorf("%q names no host: write it as https://host or https://host:port", s)
	case !validPort(parsed.Port()):
		return fmt.Errorf("%q names the port %s: ports go from 1 to 65535; write it as https://host:port", s, parsed.Port())
	case parsed.RawQuery != "" || parsed.ForceQuery || strings.Contains(s, "#"):
		return fmt.Errorf("%q has a query or fragment: remove everything from the ? or # on, and write it as https://host or https://host:port", s)
	}
	*u = BaseURL(strings.TrimRight(parsed.String(), "/"))
	return nil
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || (err == nil && n > 0)
}

// Join returns the URL of a path below the address.
func (u BaseURL) Join(path string) string { return string(u) + "/" + strings.TrimLeft(path, "/") }

// IsSet reports whether there is an address.
func (u BaseURL) IsSet() bool { return u != "" }

// Host returns the host without port, brackets or scheme; it is empty when u is not set.
func (u BaseURL) Host() string {
	parsed, err := url.Parse(string(u))
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// natsSchemes are the ways in which a NATS client can reach a server.
func natsSchemes() []string { return []string{"nats", "tls", "ws", "wss"} }

// NATSURLs is a list of NATS addresses, separated by commas, in order of preference.
type NATSURLs []string

// UnmarshalText reads and checks the addresses.
func (u *NATSURLs) UnmarshalText(text []byte) error {
	var list List
	if err := list.UnmarshalText(text); err != nil {
		return err
	}
	for _, s := range list {
		parsed, err := url.Parse(s)
		if err != nil || !slices.Contains(natsSchemes(), parsed.Scheme) || parsed.Hostname() == "" {
			return fmt.Errorf("%q is not a NATS address: write it as nats://host:4222, tls://host:4222, ws://host/path or wss://host/path", WithoutUser(s))
		}
	}
	*u = NATSURLs(list)
	return nil
}

// WithoutUser cuts what stands before the last @, so that an error never shows a password.
func WithoutUser(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return "…" + s[i:]
	}
	return s
}

// List is a list of texts separated by commas. White space around each and empty entries are dropped.
type List []string

// UnmarshalText splits the text. It never fails.
func (l *List) UnmarshalText(text []byte) error {
	*l = nil
	for _, s := range strings.Split(string(text), ",") {
		if s = strings.TrimSpace(s); s != "" {
			*l = append(*l, s)
		}
	}
	return nil
}

// HostPort returns an error that names the variable, the value and the form unless address is host:port, with
// or without the host. It is meant for Validate methods.
func HostPort(variable, address string) error {
	_, port, err := net.SplitHostPort(address)
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil {
		return fmt.Errorf("%s is %q; write it as host:port, such as 0.0.0.0:8080", variable, address)
	}
	return nil
}

// Within returns an error that names the variable, the value and the range unless low ≤ value ≤ high.
// It is meant for Validate methods.
func Within[T cmp.Ordered](variable string, value, low, high T) error {
	if value < low || value > high {
		return fmt.Errorf("%s is %v; it must lie between %v and %v", variable, value, low, high)
	}
	return nil
}
