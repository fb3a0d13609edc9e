// Package cluster owns the cluster agent as a program: its configuration, the order in which its parts
// start and stop, who leads, and what is published when. What is read is collector's, how it travels is
// connection's.
//
// The life of the process, each step logged:
//
//	wait for PROXIMA_BACKEND_URL → lock the data directory, load state.json → self-check → enroll (once)
//	→ connect to NATS → elect → leader: epoch, sync at once and at every interval, heartbeat
//	                            standby: presence only
//
// It ends with an error, and the kubelet starts it anew with growing pauses, when a person must act:
// a refusal of console, a state file of another agent, a wrong value. Everything that may pass is
// retried in place.
package cluster

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"prxm.uz/proxima/internal/agent/enroll"
	"prxm.uz/proxima/internal/config"
	"prxm.uz/proxima/internal/slug"
)

// AgentType is the type under which collectors enroll (B-6).
const AgentType = "collector"

// Config is the agent's configuration; the tags are its reference.
type Config struct {
	ClusterName  string         `name:"cluster-name" env:"PROXIMA_CLUSTER_NAME" group:"Identity" help:"Display name of the cluster. Required once PROXIMA_BACKEND_URL is set."`
	ClusterSlug  string         `name:"cluster-slug" env:"PROXIMA_CLUSTER_SLUG" group:"Identity" help:"Slug by which console knows the cluster: 1 to 63 of a-z, 0-9 and hyphen. Derived from the name when empty."`
	BackendURL   config.BaseURL `name:"backend-url" env:"PROXIMA_BACKEND_URL" group:"Identity" help:"Address of console. While it is empty the agent waits and sends nothing."`
	InstallToken config.Secret  `name:"install-token" env:"PROXIMA_INSTALL_TOKEN" group:"Identity" help:"Install token of the wizard. Required until the agent is enrolled; white space around it is ignored."`
	DataDir      string         `name:"data-dir" env:"PROXIMA_AGENT_DATA_DIR" group:"Identity" default:"/var/lib/proxima-agent" help:"Directory of state.json. Never shared by two agents."`
	PodName      string         `name:"pod-name" env:"POD_NAME" group:"Identity" help:"Name under which the agent enrolls; the slug when empty. Without it there is no leader election."`
	PodNamespace string         `name:"pod-namespace" env:"POD_NAMESPACE" group:"Identity" help:"Namespace of the Lease proxima-cluster-agent by which replicas elect a leader."`

	SyncInterval      time.Duration `name:"sync-interval" env:"PROXIMA_K8S_SYNC_INTERVAL" group:"Collection" default:"5m" help:"Time between two full syncs, 1s to 24h. Set the same on console."`
	PodLimit          int           `name:"pod-limit" env:"PROXIMA_K8S_POD_LIMIT" group:"Collection" default:"5000" help:"Most pods in one sync, 1 to 100000. Beyond it pods that do not run are kept first, then those with the most restarts."`
	ExcludeNamespaces config.List   `name:"exclude-namespaces" env:"PROXIMA_K8S_EXCLUDE_NAMESPACES" group:"Collection" help:"Namespaces of which nothing is collected, separated by commas."`
	Kubeconfig        string        `name:"kubeconfig" env:"PROXIMA_KUBECONFIG,KUBECONFIG" group:"Collection" help:"Kubeconfig for a run outside of the cluster. Empty: the pod's service account."`

	HeartbeatInterval time.Duration   `name:"heartbeat-interval" env:"PROXIMA_HEARTBEAT_INTERVAL" group:"Connection" default:"30s" help:"Time between two heartbeats of the leader, 1s to 2m."`
	NATSURL           config.NATSURLs `name:"nats-url" env:"PROXIMA_NATS_URL" group:"Connection" help:"NATS addresses in order of preference, instead of those that console hands over."`
	NATSCAFile        string          `name:"nats-ca-file" env:"PROXIMA_NATS_CA_FILE" group:"Connection" help:"PEM file of the CA behind NATS, beside the system's."`
	CAFile            string          `name:"ca-file" env:"PROXIMA_CA_FILE" group:"Connection" help:"PEM file of a CA to trust for console and NATS alike, beside the system's."`
	HTTPSProxy        string          `name:"https-proxy" env:"HTTPS_PROXY,https_proxy" group:"Connection" help:"Proxy for https and wss. May hold a user and password; these are never printed."`
	HTTPProxy         string          `name:"http-proxy" env:"HTTP_PROXY,http_proxy" group:"Connection" help:"Proxy for http and ws."`
	NoProxy           string          `name:"no-proxy" env:"NO_PROXY,no_proxy" group:"Connection" help:"Hosts that are reached directly, separated by commas. The API server of the pod's own cluster always is."`

	MetricsAddr string `name:"metrics-addr" env:"PROXIMA_METRICS_ADDR" group:"Operation" default:":9090" help:"Address of /metrics, /healthz and /readyz."`
	LogLevel    string `name:"log-level" env:"PROXIMA_LOG_LEVEL" group:"Operation" enum:"debug,info,warn,error" default:"info" help:"Least severity that is logged."`
}

// Validate checks what each value must hold on its own. Name and slug are checked when they are needed,
// since the agent may be installed before they are set.
func (c *Config) Validate() error {
	errs := []error{
		config.Within("PROXIMA_K8S_POD_LIMIT", c.PodLimit, 1, 100_000),
		config.Within("PROXIMA_K8S_SYNC_INTERVAL", c.SyncInterval, time.Second, 24*time.Hour),
		heartbeatBound(c.HeartbeatInterval),
	}
	if c.ClusterSlug != "" && !slug.Valid(c.ClusterSlug) {
		errs = append(errs, fmt.Errorf("PROXIMA_CLUSTER_SLUG is %q; it must be 1 to 63 characters of a-z, 0-9 and hyphen, without a hyphen at the ends: copy it from the wizard", c.ClusterSlug))
	}
	for _, namespace := range c.ExcludeNamespaces {
		if !slug.Valid(namespace) {
			errs = append(errs, fmt.Errorf("PROXIMA_K8S_EXCLUDE_NAMESPACES holds %q, which is no name of a namespace; write names of a-z, 0-9 and hyphen, separated by commas, such as kube-system,monitoring", namespace))
		}
	}
	if c.PodNamespace != "" && !slug.Valid(c.PodNamespace) {
		errs = append(errs, fmt.Errorf("POD_NAMESPACE is %q, which is no name of a namespace; set it by the downward API (fieldPath: metadata.namespace), or to a name such as proxima", c.PodNamespace))
	}
	if c.MetricsAddr != "" {
		errs = append(errs, config.HostPort("PROXIMA_METRICS_ADDR", c.MetricsAddr))
	}
	errs = append(errs, proxyError("HTTPS_PROXY", c.HTTPSProxy), proxyError("HTTP_PROXY", c.HTTPProxy))
	if c.PodName != "" && c.PodNamespace == "" {
		errs = append(errs, errors.New("POD_NAME is set and POD_NAMESPACE is not; set both by the downward API, or neither"))
	}
	return errors.Join(errs...)
}

// proxyError names a proxy that is neither the URL of one nor host:port.
func proxyError(variable, proxy string) error {
	address := proxy
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if proxy == "" || (err == nil && u.Hostname() != "" && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)) {
		return nil
	}
	return fmt.Errorf("%s is %q, which is no proxy's URL; write it as http://host:port", variable, config.WithoutUser(proxy))
}

// longestHeartbeat lets two heartbeats fall into the 5 minutes after which console calls an agent silent
// so that one that is lost is no fault.
const longestHeartbeat = 2 * time.Minute

func heartbeatBound(interval time.Duration) error {
	if err := config.Within("PROXIMA_HEARTBEAT_INTERVAL", interval, time.Second, longestHeartbeat); err != nil {
		return fmt.Errorf("%w, so that two heartbeats fall into the 5 minutes after which Console calls an agent silent; without it, it is 30s", err)
	}
	return nil
}

// elects reports whether replicas elect a leader (B-75).
func (c *Config) elects() bool { return c.PodName != "" && c.PodNamespace != "" }

// request says who the agent is; the error names what is missing.
func (c *Config) request(version string) (enroll.Request, error) {
	if strings.TrimSpace(c.ClusterName) == "" {
		return enroll.Request{}, errors.New("PROXIMA_CLUSTER_NAME is not set: set it to the display name of the cluster, as the wizard prints it")
	}
	r := enroll.Request{AgentType: AgentType, Name: c.PodName, ClusterSlug: c.ClusterSlug, ClusterName: c.ClusterName, Version: version}
	if r.ClusterSlug == "" {
		r.ClusterSlug = slug.Make(c.ClusterName)
	}
	if r.ClusterSlug == "" {
		return enroll.Request{}, fmt.Errorf("no slug can be derived from PROXIMA_CLUSTER_NAME %q: set PROXIMA_CLUSTER_SLUG", c.ClusterName)
	}
	if r.Name == "" {
		r.Name = r.ClusterSlug
	}
	return r, nil
}
