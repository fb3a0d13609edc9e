package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"prxm.uz/proxima/internal/agent/kubeapi"
	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/wire"
)

// server answers empty lists, and what answers says for a path.
type server struct {
	mu      sync.Mutex
	answers map[string][]string // path → status and body, in order; the last one stays
	asked   map[string]int
	queries map[string][]string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	s.asked[r.URL.Path]++
	s.queries[r.URL.Path] = append(s.queries[r.URL.Path], r.URL.RawQuery)
	if list := s.answers[r.URL.Path]; len(list) > 0 {
		if len(list) > 1 {
			s.answers[r.URL.Path] = list[1:]
		}
		status, body, _ := strings.Cut(list[0], " ")
		var code int
		if _, err := fmt.Sscan(status, &code); err != nil {
			panic(err)
		}
		w.WriteHeader(code)
		fmt.Fprint(w, body)
		return
	}
	switch r.URL.Path {
	case "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.36.3","platform":"linux/amd64"}`)
	case "/api/v1/namespaces/kube-system":
		fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u-1"}}`)
	default:
		last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		kind := map[string]string{
			"nodes": "NodeList", "namespaces": "NamespaceList", "pods": "PodList", "services": "ServiceList", "events": "EventList",
			"deployments": "DeploymentList", "statefulsets": "StatefulSetList", "daemonsets": "DaemonSetList",
		}[last]
		version := "v1"
		if strings.HasPrefix(r.URL.Path, "/apis/apps/") {
			version = "apps/v1"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": kind, "apiVersion": version, "metadata": map[string]string{"resourceVersion": "1"}, "items": []any{}})
	}
}

// hasty does not wait between tries.
type hasty struct{ clock.Clock }

func (hasty) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func against(t *testing.T, answers map[string][]string) (*Collector, *server) {
	t.Helper()
	s := &server{answers: answers, asked: map[string]int{}, queries: map[string][]string{}}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	client, err := kubeapi.New(&rest.Config{Host: ts.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Client: client, PodLimit: 5000, ClusterName: "C", ClusterSlug: "c", Clock: hasty{clock.System()}, Log: slog.New(slog.DiscardHandler)}), s
}

const (
	firstPage = `200 {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"100","continue":"T1","remainingItemCount":3},"items":[{"metadata":{"name":"p1","namespace":"a","uid":"1"}},{"metadata":{"name":"p2","namespace":"a","uid":"2"}}]}`
	gone      = `410 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"continue token expired","metadata":{"continue":"T1-inconsistent"}}`
	anew      = `200 {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"140"},"items":[{"metadata":{"name":"p2","namespace":"a","uid":"2"}},{"metadata":{"name":"p3","namespace":"a","uid":"3"}},{"metadata":{"name":"p4","namespace":"a","uid":"4"}}]}`
	forbidden = `403 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"services is forbidden"}`
	missing   = `404 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"the server could not find the requested resource"}`
	broken    = `500 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcd is away"}`
)

func report(inv *wire.Inventory, kind wire.Kind) wire.KindReport {
	for _, k := range inv.Kinds {
		if k.Kind == kind {
			return k
		}
	}
	return wire.KindReport{}
}

// net-01 A: the list begins anew, and nothing of its first page is kept.
func TestExpiredContinueTokenRestartsTheList(t *testing.T) {
	c, _ := against(t, map[string][]string{"/api/v1/pods": {firstPage, gone, anew}})
	inv, err := c.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range inv.Pods {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"p2", "p3", "p4"}, names); diff != "" {
		t.Error(diff)
	}
	if r := report(inv, wire.KindPods); r.Kept != 3 || r.Total != 3 || inv.ClusterUID != "u-1" || inv.Cluster.Version != "v1.36.3" {
		t.Errorf("%+v %+v", r, inv.Cluster)
	}
}

// net-01 B: a 410 that persists fails the sync, after a few tries.
func TestPersistentExpiryFailsTheSync(t *testing.T) {
	c, s := against(t, map[string][]string{"/api/v1/pods": {firstPage, gone}})
	inv, err := c.Collect(t.Context())
	if err == nil || inv != nil {
		t.Fatalf("published %+v", inv)
	}
	if n := s.asked["/api/v1/pods"]; n > 6 {
		t.Errorf("asked %d times", n)
	}
}

// lasting reasons mark the kind, passing ones fail the sync three times, events never do.
func TestPartialInventories(t *testing.T) {
	c, _ := against(t, map[string][]string{
		"/api/v1/services": {forbidden}, "/apis/apps/v1/daemonsets": {missing}, "/api/v1/events": {broken}, "/api/v1/nodes": {broken},
	})
	for i := range 3 {
		if _, err := c.Collect(t.Context()); err == nil {
			t.Fatalf("sync %d did not fail", i+1)
		}
	}
	inv, err := c.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[wire.Kind]wire.UnreadReason{
		wire.KindServices: wire.UnreadForbidden, wire.KindDaemonSets: wire.UnreadNotServed, wire.KindEvents: wire.UnreadUnavailable,
		wire.KindNodes: wire.UnreadUnavailable, wire.KindPods: "", wire.KindDeployments: "", wire.KindNamespaces: "", wire.KindStatefulSets: "",
	} {
		if got := report(inv, kind); got.Unread != want || (want != "") != (got.Message != "") {
			t.Errorf("%s: %+v, want %q", kind, got, want)
		}
	}
}

func TestWithoutFingerprintNothingIsPublished(t *testing.T) {
	c, _ := against(t, map[string][]string{"/api/v1/namespaces/kube-system": {forbidden}})
	if _, err := c.Collect(t.Context()); err == nil || !strings.Contains(err.Error(), "grant get on namespaces") {
		t.Error(err)
	}
}
