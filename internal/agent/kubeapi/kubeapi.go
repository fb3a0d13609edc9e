// Package kubeapi owns an agent's client for the API server of its cluster: the clients of client-go for
// the groups that an agent reads, and no others. What is asked, and what an answer means, is not its
// matter.
//
// It stands in the place of [k8s.io/client-go/kubernetes.Clientset], which links the client of every
// group into the program: near 5 MiB more of it were in memory.
package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/version"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Client asks one API server. It may be used from several goroutines.
type Client struct {
	Core          *corev1.CoreV1Client
	Apps          *appsv1.AppsV1Client
	Authorization *authorizationv1.AuthorizationV1Client
	Coordination  *coordinationv1.CoordinationV1Client
}

// New makes a client whose groups share their connections, and the limit of requests that cfg states. It
// asks nothing yet.
func New(cfg *rest.Config) (*Client, error) {
	shared := rest.CopyConfig(cfg)
	if shared.RateLimiter == nil && shared.QPS > 0 {
		shared.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(shared.QPS, shared.Burst)
	}
	c, err := groups(shared)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	return c, nil
}

func groups(cfg *rest.Config) (*Client, error) {
	transport, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	c := &Client{}
	if c.Core, err = corev1.NewForConfigAndClient(cfg, transport); err != nil {
		return nil, err
	}
	if c.Apps, err = appsv1.NewForConfigAndClient(cfg, transport); err != nil {
		return nil, err
	}
	if c.Authorization, err = authorizationv1.NewForConfigAndClient(cfg, transport); err != nil {
		return nil, err
	}
	if c.Coordination, err = coordinationv1.NewForConfigAndClient(cfg, transport); err != nil {
		return nil, err
	}
	return c, nil
}

// Version asks for the API server's version. client-go's discovery client has this too, but its request
// cannot be cancelled.
func (c *Client) Version(ctx context.Context) (*version.Info, error) {
	body, err := c.Core.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	info := &version.Info{}
	if err := json.Unmarshal(body, info); err != nil {
		return nil, fmt.Errorf("the API server's version cannot be read: %w", err)
	}
	return info, nil
}
