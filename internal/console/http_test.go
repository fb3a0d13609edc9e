package console

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"prxm.uz/proxima/internal/config"
)

func TestForwarded(t *testing.T) {
	cfg := Config{TrustedProxies: config.List{"10.0.0.0/8", "192.0.2.7", "2001:db8::/32"}}
	proxies, err := cfg.trusted()
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		peer  string
		named []string
		want  string
	}{
		"a stranger names somebody":               {"198.51.100.9:4000", []string{"203.0.113.1"}, "198.51.100.9:4000"},
		"nobody is named":                         {"10.0.0.1:4000", nil, "10.0.0.1:4000"},
		"one proxy":                               {"10.0.0.1:4000", []string{"203.0.113.1"}, "203.0.113.1:0"},
		"a proxy that is an IPv4 address in IPv6": {"[::ffff:10.0.0.1]:4000", []string{"203.0.113.1"}, "203.0.113.1:0"},
		"what the caller wrote itself":            {"10.0.0.1:4000", []string{"127.0.0.1, 203.0.113.1"}, "203.0.113.1:0"},
		"in a header of its own":                  {"10.0.0.1:4000", []string{"127.0.0.1", "203.0.113.1"}, "203.0.113.1:0"},
		"two proxies":                             {"10.0.0.1:4000", []string{"203.0.113.1, 192.0.2.7"}, "203.0.113.1:0"},
		"proxies only":                            {"10.0.0.1:4000", []string{"10.9.9.9, 192.0.2.7"}, "10.9.9.9:0"},
		"an address of IPv6":                      {"[2001:db8::1]:4000", []string{"2001:db9::5"}, "[2001:db9::5]:0"},
		"not an address":                          {"10.0.0.1:4000", []string{"203.0.113.1, unknown"}, "10.0.0.1:4000"},
		"not an address behind a proxy":           {"10.0.0.1:4000", []string{"203.0.113.1, unknown, 192.0.2.7"}, "192.0.2.7:0"},
		"empty":                                   {"10.0.0.1:4000", []string{""}, "10.0.0.1:4000"},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			h := forwarded(proxies, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr }))
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			r.RemoteAddr = row.peer
			for _, v := range row.named {
				r.Header.Add("X-Forwarded-For", v)
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
			if got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
			if r.RemoteAddr != row.peer {
				t.Error("the request of the caller was changed")
			}
		})
	}
}

// TestAgentNATSURLs is X-33: what enrolment hands out.
func TestAgentNATSURLs(t *testing.T) {
	for name, row := range map[string]struct {
		cfg    Config
		public string
		want   []string
	}{
		"nothing set":                {Config{}, "http://127.0.0.1:8080", []string{"ws://127.0.0.1:8080/nats"}},
		"TLS files":                  {Config{TLSCertFile: "a", TLSKeyFile: "b"}, "https://console.example:8443", []string{"tls://console.example:4222", "wss://console.example:8443/nats"}},
		"a proxy ends TLS":           {Config{}, "https://console.example", []string{"wss://console.example/nats"}},
		"below a path":               {Config{}, "https://example.com/proxima", []string{"wss://example.com/proxima/nats"}},
		"own NATS":                   {Config{NATSURL: config.NATSURLs{"tls://nats:4222"}}, "https://console.example", []string{"tls://nats:4222"}},
		"own NATS with WebSocket":    {Config{NATSURL: config.NATSURLs{"tls://nats:4222"}, NATSWebSocketURL: "wss://nats:8443"}, "https://console.example", []string{"tls://nats:4222", "wss://console.example/nats"}},
		"other addresses for agents": {Config{NATSURL: config.NATSURLs{"tls://nats:4222"}, NATSPublicURLs: config.NATSURLs{"tls://nats.example:4222"}}, "https://console.example", []string{"tls://nats.example:4222"}},
	} {
		if got := row.cfg.agentNATSURLs(row.public, 4222); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

func TestPublicURL(t *testing.T) {
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 8080} }
	for name, row := range map[string]struct {
		cfg    Config
		listen net.Addr
		want   string
	}{
		"given":          {Config{PublicURL: "https://console.example"}, at("0.0.0.0"), "https://console.example"},
		"loopback":       {Config{}, at("127.0.0.1"), "http://127.0.0.1:8080"},
		"everywhere":     {Config{}, at("0.0.0.0"), "http://localhost:8080"},
		"everywhere, v6": {Config{TLSCertFile: "a"}, at("::"), "https://localhost:8080"},
		"IPv6":           {Config{}, at("::1"), "http://[::1]:8080"},
	} {
		if got := row.cfg.publicURL(row.listen); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// TestPublicURLIsRefused: what Console could not be reached at is refused before it starts.
func TestPublicURLIsRefused(t *testing.T) {
	for address, cure := range map[string]string{
		"https://console.example/proxima":     "write https://console.example",
		"https://console.example:8443/a/b/":   "write https://console.example:8443",
		"https://console.example/%2f":         "write https://console.example",
		"https://console.example?a=b":         "write it as https://host",
		"https://console.example/#top":        "write it as https://host",
		"https://ann:secret@console.example":  "write it as https://host",
		"https://ann:sec%ret@console.example": "write it as https://host",
		"https://:8443":                       "write it as https://host",
		"https://console.example:70000":       "write it as https://host",
		"ftp://console.example":               "write it as https://host",
		"console.example":                     "write it as https://host",
		"//console.example":                   "write it as https://host",
	} {
		_, err := config.Parse(config.Program{Name: "proxima-console"}, &Config{}, nil, []string{"PROXIMA_PUBLIC_URL=" + address}, io.Discard, io.Discard)
		if config.ExitCode(err) != config.ExitUsage {
			t.Errorf("%s: %v", address, err)
			continue
		}
		shown := address
		if user, rest, ok := strings.Cut(address, "@"); ok {
			shown = rest
			if strings.Contains(err.Error(), user) || strings.Contains(err.Error(), "sec") {
				t.Errorf("%s: the error shows the password: %v", address, err)
			}
		}
		for _, part := range []string{"PROXIMA_PUBLIC_URL", strings.TrimRight(shown, "/"), cure} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", address, err, part)
			}
		}
	}
	for _, address := range []string{"https://console.example", "https://console.example/", "http://[::1]:8080", "http://localhost:8080"} {
		if _, err := config.Parse(config.Program{Name: "proxima-console"}, &Config{}, nil, []string{"PROXIMA_PUBLIC_URL=" + address}, io.Discard, io.Discard); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	var log strings.Builder
	w := httptest.NewRecorder()
	recovered(slog.New(slog.NewTextHandler(&log, nil)), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a secret of the handler") })).
		ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/clusters", http.NoBody))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("the answer: %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "path=/clusters") || !strings.Contains(log.String(), "a secret of the handler") {
		t.Errorf("the log: %s", &log)
	}
}

// TestReadOnlyAddresses: a change is refused with the methods that the address takes, and is no page's to answer.
func TestReadOnlyAddresses(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusNotFound, "pages") })
	read(mux, "/install/cluster-agent/{file}", http.HandlerFunc((&console{cfg: &Config{}}).serveManifest))
	for method, want := range map[string]int{
		http.MethodGet: http.StatusOK, http.MethodHead: http.StatusOK,
		http.MethodPost: http.StatusMethodNotAllowed, http.MethodDelete: http.StatusMethodNotAllowed, http.MethodOptions: http.StatusMethodNotAllowed,
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(method, "/install/cluster-agent/role.yaml", http.NoBody))
		if w.Code != want {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
		if want == http.StatusMethodNotAllowed && (w.Header().Get("Allow") != "GET, HEAD" || !strings.Contains(w.Body.String(), "does not take "+method)) {
			t.Errorf("%s: Allow %q, %s", method, w.Header().Get("Allow"), w.Body)
		}
	}
}

// TestApart: whatever leads below /api is the API's to answer, however it is written. A mux would redirect
// it, and a program that follows would repeat a change elsewhere.
func TestApart(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "pages") })
	h := apart(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusNotFound, "api") }), mux)
	for path, want := range map[string]string{
		"/api":                         "api",
		"/api/":                        "api",
		"/api/v1/clients":              "api",
		"/api/v1/users//assignments/x": "api",
		"/api/v1/users/../clients":     "api",
		"/api/v1/./clients":            "api",
		"/api/v1/clients/..":           "api",
		"//api/v1/clients":             "api",
		"/./api/v1/clients":            "api",
		"/clusters/../api/v1/clients":  "api",
		"/api/../clusters":             "api",
		"/api/v1/users/%2e%2e/clients": "api",
		"/":                            "pages",
		"/apis":                        "pages",
		"/clusters":                    "pages",
		"/static/582c0454586f4bc2/api/tokens.css": "pages",
	} {
		r := httptest.NewRequest(http.MethodDelete, "http://console.example"+path, http.NoBody)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := strings.TrimSpace(w.Body.String()); got != want {
			t.Errorf("%s: %d %q, want %s", path, w.Code, got, want)
		}
	}
}

// FuzzForwarded: whatever a caller claims, behind a trusted proxy it is at the address that the proxy appended,
// and without one at its own.
func FuzzForwarded(f *testing.F) {
	cfg := Config{TrustedProxies: config.List{"10.0.0.0/8", "192.0.2.7", "2001:db8::/32"}}
	proxies, err := cfg.trusted()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "127.0.0.1", "10.0.0.1, 192.0.2.7", "unknown", "2001:db8::1%eth0", "::ffff:10.0.0.1", ",,,", "203.0.113.9:80", "\x00\xff", strings.Repeat("10.0.0.1,", 300)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, claimed string) {
		at := func(peer string, named ...string) (got string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
			r.RemoteAddr, r.Header["X-Forwarded-For"] = peer, named
			forwarded(proxies, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr })).ServeHTTP(httptest.NewRecorder(), r)
			return got
		}
		for got, want := range map[string]string{
			at("198.51.100.9:4000", claimed):                         "198.51.100.9:4000",
			at("10.0.0.1:4000", claimed+", 203.0.113.1"):             "203.0.113.1:0",
			at("10.0.0.2:4000", claimed, "203.0.113.2"):              "203.0.113.2:0",
			at("10.0.0.3:4000", claimed, "203.0.113.3", "192.0.2.7"): "203.0.113.3:0",
			at("10.0.0.4:4000", claimed+",203.0.113.4,2001:db8::1 "): "203.0.113.4:0",
		} {
			if got != want {
				t.Errorf("a caller who claims %q is at %s, want %s", claimed, got, want)
			}
		}
		if got := at("10.0.0.1:4000", claimed); net.ParseIP(hostOf(got)) == nil {
			t.Errorf("a proxy that says %q alone makes the address %q", claimed, got)
		}
	})
}

func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	return host
}
