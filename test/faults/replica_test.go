package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/slug"
	"prxm.uz/proxima/test/harness"
)

// replicaRows are what happens to replicas that elect a leader.
func replicaRows() []row {
	const section = "Replicas"
	return []row{
		{
			section: section, name: "The leader of three is killed", gate: 3, state: passed, says: []string{"collector-1 sent a heartbeat", "It leads"},
			arrange: func(s *scene) {
				s.attempt()
				var three []*harness.Agent
				for i := range 3 {
					three = append(three, s.replica(fmt.Sprintf("collector-%d", i), ""))
					s.present(i + 1)
				}
				s.await(4, passed)
				if err := three[2].Process().Pause(); err != nil { // so that it is known who follows
					s.Fatal(err)
				}
				s.kill(three[0])
				s.logged(three[1], "leading: this replica collects")
				if err := three[2].Process().Resume(); err != nil {
					s.Fatal(err)
				}
				s.syncedAfter(time.Now())
			},
		},
		{
			section: section, name: "The Lease is deleted, and made again", gate: 4, state: passed,
			arrange: func(s *scene) {
				s.attempt()
				s.replica("collector-0", "")
				s.await(4, passed)
				leases := s.plane.Client().CoordinationV1().Leases(s.namespace())
				if err := leases.Delete(s.Context(), "proxima-cluster-agent", metav1.DeleteOptions{}); err != nil {
					s.Fatal(err)
				}
				s.syncedAfter(time.Now())
				lease, err := leases.Get(s.Context(), "proxima-cluster-agent", metav1.GetOptions{})
				if err != nil || *lease.Spec.HolderIdentity != "collector-0" {
					s.Errorf("the Lease: %v, %v", lease, err)
				}
			},
		},
		{
			section: section, name: "A pod that is gone holds the Lease", gate: 4, state: passed,
			arrange: func(s *scene) {
				s.attempt()
				if err := s.plane.AddNamespace(s.Context(), s.namespace()); err != nil {
					s.Fatal(err)
				}
				now, seconds, holder := metav1.NowMicro(), int32(3), "gone-0"
				lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "proxima-cluster-agent"}, Spec: coordinationv1.LeaseSpec{
					HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now,
				}}
				if _, err := s.plane.Client().CoordinationV1().Leases(s.namespace()).Create(s.Context(), lease, metav1.CreateOptions{}); err != nil {
					s.Fatal(err)
				}
				s.logged(s.replica("collector-0", ""), "another collector holds leadership")
			},
		},
		{
			section: section, name: "The Role for the Lease is missing", gate: 3, state: failed,
			says: []string{"presence", "no replica leads"}, cure: []string{"Role", "Lease proxima-cluster-agent"},
			arrange: func(s *scene) {
				s.attempt()
				a := s.replica("collector-0", s.serviceAccount(map[string]string{"role.yaml": ""}))
				s.logged(a, "kubernetes.create.leases")
				s.await(2, passed)
				s.later(6 * time.Minute)
			},
		},
	}
}

// replica starts a collector that elects in a namespace of the row's own; with the rights of the cluster's
// administrator where kubeconfig is empty.
func (s *scene) replica(name, kubeconfig string) *harness.Agent {
	s.Helper()
	if err := s.plane.AddNamespace(s.Context(), s.namespace()); err != nil {
		s.Fatal(err)
	}
	env := map[string]string{"POD_NAME": name, "POD_NAMESPACE": s.namespace()}
	if kubeconfig != "" {
		env["PROXIMA_KUBECONFIG"] = kubeconfig
	}
	return s.agent(env)
}

// namespace is the row's own: rows share the cluster.
func (s *scene) namespace() string {
	return slug.Make(s.Name()[strings.LastIndex(s.Name(), "/")+1:])
}

// present waits until so many collectors were heard.
func (s *scene) present(n int) {
	s.Helper()
	err := s.console.Process().Await(s.h.Context(), fmt.Sprintf("%d collectors to be heard", n), func(ctx context.Context) error {
		var list console.AgentList
		if _, err := s.console.Do(ctx, http.MethodGet, "/api/v1/fleet/agents", nil, &list); err != nil {
			return err
		}
		heard := 0
		for i := range list.Items {
			if list.Items[i].PresenceAt != nil {
				heard++
			}
		}
		if heard < n {
			return fmt.Errorf("%d are", heard)
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}
