package infra_test

import (
	"bytes"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"prxm.uz/proxima/infra"
)

const (
	namespace = "proxima-system"
	agent     = "proxima-cluster-agent"
)

// read returns the documents of a manifest.
func read(t *testing.T, name string) [][]byte {
	t.Helper()
	content, err := fs.ReadFile(infra.ClusterAgent(), name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(content, []byte("\n---\n"))
}

// load parses the n-th document of a manifest and refuses fields that the API does not have.
func load[T any](t *testing.T, name string, n int) T {
	t.Helper()
	var object T
	if err := yaml.UnmarshalStrict(read(t, name)[n], &object); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return object
}

// grants spells rules out, one line per verb on a resource, sorted.
func grants(rules []rbacv1.PolicyRule) []string {
	var list []string
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					line := verb + " " + resource + "." + group
					if len(r.ResourceNames) > 0 {
						line += " named " + strings.Join(r.ResourceNames, ",")
					}
					list = append(list, line)
				}
			}
		}
		for _, url := range r.NonResourceURLs {
			list = append(list, "url "+url)
		}
	}
	slices.Sort(list)
	return list
}

func read3(group string, resources ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}}}
}

// The list of B-78 to B-87, written here a second time: the role must hold these and nothing else.
func TestClusterRoleIsExactlyTheList(t *testing.T) {
	role := load[rbacv1.ClusterRole](t, "clusterrole.yaml", 0)
	if role.Name != agent || role.AggregationRule != nil {
		t.Errorf("%+v", role.ObjectMeta)
	}
	want := grants(slices.Concat(
		read3("", "nodes", "namespaces", "pods", "services", "endpoints", "resourcequotas", "events"),
		read3("apps", "deployments", "statefulsets", "daemonsets", "replicasets"),
		read3("batch", "jobs", "cronjobs"),
		read3("networking.k8s.io", "ingresses", "networkpolicies"),
		read3("", "persistentvolumeclaims"),
		read3("autoscaling", "horizontalpodautoscalers"),
		read3("discovery.k8s.io", "endpointslices"),
		[]rbacv1.PolicyRule{
			{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"nodes"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{"argoproj.io"}, Resources: []string{"rollouts", "applications"}, Verbs: []string{"list"}},
		},
	))
	if diff := cmp.Diff(want, grants(role.Rules)); diff != "" {
		t.Error(diff)
	}
	for _, g := range grants(role.Rules) {
		if !regexp.MustCompile(`^(get|list|watch) `).MatchString(g) || strings.Contains(g, "secret") || strings.Contains(g, "configmap") || strings.Contains(g, "*") {
			t.Errorf("grants %q", g)
		}
	}
}

func TestLeaseRoleIsExactlyTheLease(t *testing.T) {
	role := load[rbacv1.Role](t, "role.yaml", 0)
	want := []string{
		"create leases.coordination.k8s.io",
		"get leases.coordination.k8s.io named " + agent,
		"update leases.coordination.k8s.io named " + agent,
	}
	if diff := cmp.Diff(want, grants(role.Rules)); diff != "" || role.Namespace != namespace {
		t.Error(role.Namespace, diff)
	}
}

func TestBindings(t *testing.T) {
	account := load[corev1.ServiceAccount](t, "serviceaccount.yaml", 0)
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
	cluster := load[rbacv1.ClusterRoleBinding](t, "clusterrolebinding.yaml", 0)
	lease := load[rbacv1.RoleBinding](t, "rolebinding.yaml", 0)
	if diff := cmp.Diff(subjects, cluster.Subjects); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(subjects, lease.Subjects); diff != "" || lease.Namespace != namespace {
		t.Error(lease.Namespace, diff)
	}
	if cluster.RoleRef != (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: agent}) {
		t.Errorf("%+v", cluster.RoleRef)
	}
	if lease.RoleRef != (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: agent}) {
		t.Errorf("%+v", lease.RoleRef)
	}
}

func TestDeployment(t *testing.T) {
	if ns := load[corev1.Namespace](t, "namespace.yaml", 0); ns.Name != namespace {
		t.Errorf("namespace %q", ns.Name)
	}
	d := load[appsv1.Deployment](t, "deployment.yaml", 0)
	pod := d.Spec.Template.Spec
	switch {
	case d.Name != agent || d.Namespace != namespace:
		t.Errorf("%s/%s", d.Namespace, d.Name)
	case *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType:
		t.Error("not one replica that is replaced by Recreate (X-51)")
	case pod.EnableServiceLinks == nil || *pod.EnableServiceLinks:
		t.Error("service links are on (X-51)")
	case pod.ServiceAccountName != load[corev1.ServiceAccount](t, "serviceaccount.yaml", 0).Name:
		t.Errorf("service account %q", pod.ServiceAccountName)
	case !cmp.Equal(d.Spec.Selector.MatchLabels, map[string]string{"app.kubernetes.io/name": agent}) || d.Spec.Template.Labels["app.kubernetes.io/name"] != agent:
		t.Error("the selector does not meet the pods")
	case len(pod.Containers) != 1 || len(pod.InitContainers) != 0:
		t.Error("more than one container: kubectl set env would set the values on all")
	}
	c := pod.Containers[0]
	want := []corev1.EnvVar{
		{Name: "PROXIMA_CLUSTER_NAME"},
		{Name: "PROXIMA_BACKEND_URL"},
		{Name: "PROXIMA_INSTALL_TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "proxima-install-token"}, Key: "token",
		}}},
	}
	if diff := cmp.Diff(want, c.Env); diff != "" {
		t.Errorf("environment, neither POD_NAME nor PROXIMA_CLUSTER_SLUG in it (A-34, X-19): %s", diff)
	}
	if len(c.Args)+len(c.Command)+len(c.EnvFrom) != 0 {
		t.Error("the image's own entry point is to be used")
	}
	if len(c.Ports) != 1 || c.Ports[0].ContainerPort != 9090 || c.Ports[0].HostPort != 0 {
		t.Errorf("ports %+v", c.Ports)
	}
	for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.String() != c.Ports[0].Name {
			t.Errorf("probe %s: %+v", path, probe)
		}
	}
	if pod.Volumes[0].EmptyDir == nil || c.VolumeMounts[0].Name != pod.Volumes[0].Name || c.VolumeMounts[0].MountPath != "/var/lib/proxima-agent" {
		t.Errorf("state: %+v %+v", pod.Volumes[0], c.VolumeMounts[0])
	}
	text := string(read(t, "deployment.yaml")[0])
	for _, part := range []string{"#   claimName: ", "# kind: PersistentVolumeClaim"} {
		if !strings.Contains(text, part) {
			t.Errorf("the commented claim lacks %q (B-116)", part)
		}
	}
}

// What the restricted Pod Security Standard asks for and B-76, B-77 name, read off the structure.
func TestDeploymentIsRestricted(t *testing.T) {
	pod := load[appsv1.Deployment](t, "deployment.yaml", 0).Spec.Template.Spec
	yes, no, nobody := true, false, int64(65534)
	if diff := cmp.Diff(&corev1.PodSecurityContext{
		RunAsNonRoot: &yes, RunAsUser: &nobody, FSGroup: &nobody,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}, pod.SecurityContext); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}, pod.Containers[0].SecurityContext); diff != "" {
		t.Error(diff)
	}
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("uses a namespace of the host")
	}
	for _, v := range pod.Volumes {
		if v.EmptyDir == nil && v.ConfigMap == nil {
			t.Errorf("volume %s is of a kind that the restricted standard does not know, or that the agent does not need", v.Name)
		}
	}
}

// the extra file grants the two groups what they are for, and the agent just these two.
func TestKubeAccess(t *testing.T) {
	roles := map[string][]string{}
	bound := map[string][]string{}
	for n := range read(t, "kube-access.yaml") {
		switch load[map[string]any](t, "kube-access.yaml", n)["kind"] {
		case "ClusterRole":
			r := load[rbacv1.ClusterRole](t, "kube-access.yaml", n)
			roles[r.Name] = grants(r.Rules)
		case "ClusterRoleBinding":
			b := load[rbacv1.ClusterRoleBinding](t, "kube-access.yaml", n)
			for _, s := range b.Subjects {
				bound[s.Kind+" "+s.Name] = append(bound[s.Kind+" "+s.Name], b.RoleRef.Name)
			}
		default:
			t.Errorf("document %d is neither role nor binding", n)
		}
	}
	if diff := cmp.Diff(map[string][]string{
		"ServiceAccount " + agent:     {"proxima-cluster-agent-impersonate"},
		"Group proxima:kube-readonly": {"view", "proxima-kube-readonly"},
		"Group proxima:kube-exec":     {"proxima-kube-exec"},
	}, bound); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]string{
		"proxima-cluster-agent-impersonate": {"impersonate groups. named proxima:kube-readonly,proxima:kube-exec", "impersonate users."},
		"proxima-kube-readonly": grants(slices.Concat(
			read3("", "nodes", "namespaces"), read3("metrics.k8s.io", "nodes", "pods"),
		)),
		"proxima-kube-exec": {
			"create pods/attach.", "create pods/exec.", "create pods/portforward.",
			"get pods/attach.", "get pods/exec.", "get pods/portforward.",
		},
	}, roles); diff != "" {
		t.Error(diff)
	}
}

func TestKustomizationListsTheDefaultInstall(t *testing.T) {
	k := load[struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Resources  []string `json:"resources"`
	}](t, "kustomization.yaml", 0)
	want := []string{"namespace.yaml", "serviceaccount.yaml", "clusterrole.yaml", "clusterrolebinding.yaml", "deployment.yaml"}
	if diff := cmp.Diff(want, k.Resources); diff != "" {
		t.Error(diff)
	}
}
