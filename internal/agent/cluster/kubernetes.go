package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"prxm.uz/proxima/internal/agent/kubeapi"
	"prxm.uz/proxima/internal/agent/network"
	"prxm.uz/proxima/internal/version"
)

// kubernetesClient makes the client for the cluster's API: by the kubeconfig where one is named, else
// by the pod's service account. The API server of the own cluster is never reached through a proxy.
func kubernetesClient(c *Config, proxy network.Proxy) (*kubeapi.Client, error) {
	cfg, err := restConfig(c.Kubeconfig, proxy)
	if err != nil {
		return nil, err
	}
	cfg.UserAgent = "proxima-cluster-agent/" + version.String()
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	cfg.Timeout = kubeapi.Timeout
	cfg.QPS, cfg.Burst = 20, 40
	return kubeapi.New(cfg)
}

func restConfig(kubeconfig string, proxy network.Proxy) (*rest.Config, error) {
	if kubeconfig == "" {
		cfg, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("not in a cluster and no kubeconfig: set KUBECONFIG or PROXIMA_KUBECONFIG to run outside of one")
		}
		if err != nil {
			return nil, fmt.Errorf("the pod's service account cannot be used: %w", err)
		}
		cfg.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // net/http's way to say: directly
		return cfg, nil
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(kubeconfig)}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("PROXIMA_KUBECONFIG or KUBECONFIG %s cannot be used: %w: give a kubeconfig that the agent's user may read, such as ~/.kube/config", kubeconfig, err)
	}
	if cfg.Proxy == nil {
		cfg.Proxy = func(r *http.Request) (*url.URL, error) { return proxy.For(r.URL) }
	}
	return cfg, nil
}
