package faults

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// kubernetesRows are what the cluster's API server does to the collector.
func kubernetesRows() []row {
	const section = "The cluster's API server"
	return []row{
		{
			section: section, name: "It is down", gate: 4, state: warning, says: []string{"longer ago", "reports that its last sync failed"}, cure: []string{"Mend what the collector reports"},
			arrange: func(s *scene) {
				s.plane = s.h.LightControlPlane() // others need theirs
				a := s.synced()
				if err := s.plane.StopAPIServer(); err != nil {
					s.Fatal(err)
				}
				s.endsBy(func() error { return s.plane.StartAPIServer(s.h.Context()) })
				s.logged(a, "sync failed")
			},
		},
		{
			section: section, name: "It hangs", gate: 4, state: warning, says: []string{"longer ago", "reports that its last sync failed"}, cure: []string{"Mend what the collector reports"},
			arrange: func(s *scene) {
				s.plane = s.h.LightControlPlane()
				a := s.synced()
				if err := s.plane.Pause(); err != nil {
					s.Fatal(err)
				}
				s.endsBy(s.plane.Resume)
				s.logged(a, "sync failed")
			},
		},
		{
			section: section, name: "It is slow", gate: 4, state: passed,
			arrange: func(s *scene) {
				s.attempt()
				wire := s.relay(strings.TrimPrefix(s.plane.Server(), "https://"), 250*time.Millisecond, nil)
				s.agent(map[string]string{"PROXIMA_KUBECONFIG": s.kubeconfig("https://"+wire.addr, s.plane.RESTConfig().BearerToken)})
			},
		},
		{
			section: section, name: "It does not accept the service account's token", gate: 4, state: failed, says: []string{"No inventory arrived", "reports that its last sync failed"}, cure: []string{"Mend what the collector reports"},
			arrange: func(s *scene) {
				s.attempt()
				s.logged(s.agent(map[string]string{"PROXIMA_KUBECONFIG": s.kubeconfig(s.plane.Server(), "not-a-token")}), "kubernetes.api")
			},
		},
		{
			section: section, name: "The collector has no rights at all", gate: 4, state: failed, says: []string{"No inventory arrived", "reports that its last sync failed"}, cure: []string{"Mend what the collector reports"},
			arrange: func(s *scene) {
				s.attempt()
				a := s.agent(map[string]string{"PROXIMA_KUBECONFIG": s.serviceAccount(map[string]string{"clusterrolebinding.yaml": ""})})
				s.logged(a, "sync failed")
			},
		},
		{
			section: section, name: "The collector may not read one kind", gate: 4, state: warning, says: []string{"not whole", "pods (the API server forbids it)"}, cure: []string{"ClusterRole"},
			arrange: func(s *scene) {
				s.attempt()
				role := strings.Replace(s.manifest("clusterrole.yaml"), " pods,", "", 1)
				s.logged(s.agent(map[string]string{"PROXIMA_KUBECONFIG": s.serviceAccount(map[string]string{"clusterrole.yaml": role})}), "kubernetes.list.pods")
			},
		},
	}
}

// manifest reads one that Console serves.
func (s *scene) manifest(file string) string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "infra", "k8s", "cluster-agent", file))
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// serviceAccount applies the manifests under names of the row's own, with some of them changed or, where they are
// empty, left out. It returns a kubeconfig of the service account.
func (s *scene) serviceAccount(changed map[string]string) (kubeconfig string) {
	s.Helper()
	namespace := s.namespace()
	if err := s.plane.AddNamespace(s.Context(), namespace); err != nil {
		s.Fatal(err)
	}
	for _, file := range []string{"serviceaccount.yaml", "role.yaml", "rolebinding.yaml", "clusterrole.yaml", "clusterrolebinding.yaml"} {
		text, ok := changed[file]
		if !ok {
			text = s.manifest(file)
		}
		if text == "" {
			continue
		}
		text = strings.ReplaceAll(text, "proxima-system", namespace)
		if strings.HasPrefix(file, "cluster") {
			text = strings.ReplaceAll(text, "\n  name: proxima-cluster-agent\n", "\n  name: "+namespace+"\n")
		}
		if _, err := s.plane.Kubectl(s.Context(), text, "apply", "-f", "-"); err != nil {
			s.Fatal(err)
		}
	}
	kubeconfig, err := s.plane.ServiceAccountKubeconfig(s.Context(), namespace, "proxima-cluster-agent")
	if err != nil {
		s.Fatal(err)
	}
	return kubeconfig
}

// kubeconfig writes one for a server that has the API server's certificate.
func (s *scene) kubeconfig(server, token string) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), "kubeconfig")
	if err := s.plane.WriteKubeconfig(path, server, token); err != nil {
		s.Fatal(err)
	}
	return path
}
