package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"prxm.uz/proxima/api/console"
)

// Where the printed command installs the cluster agent.
const (
	AgentNamespace      = "proxima-system"
	AgentDeployment     = "proxima-cluster-agent"
	AgentServiceAccount = "proxima-cluster-agent"
)

// ContainerEnvironment is the environment that the kubelet would give the first container of a Deployment,
// by the kubelet's rules: envFrom first, then the entries in their order, $(NAME) replaced by what stands
// before, $$ by $, Secrets and ConfigMaps looked up. What names a field of the pod is read from the newest
// pod of the Deployment, and is an error where there is none. Variables of Services are left out.
func (c *ControlPlane) ContainerEnvironment(ctx context.Context, namespace, deployment string) (map[string]string, error) {
	d, err := c.client.AppsV1().Deployments(namespace).Get(ctx, deployment, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("environment of deployment %s/%s: %w", namespace, deployment, err)
	}
	k := kubelet{client: c.client, deployment: d}
	env := map[string]string{}
	for _, source := range d.Spec.Template.Spec.Containers[0].EnvFrom {
		if err := k.addAll(ctx, env, source); err != nil {
			return nil, fmt.Errorf("environment of deployment %s/%s: envFrom: %w", namespace, deployment, err)
		}
	}
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		value, known := expandKubelet(e.Value, env), true
		if e.ValueFrom != nil {
			if value, known, err = k.value(ctx, e.ValueFrom); err != nil {
				return nil, fmt.Errorf("environment of deployment %s/%s: %s: %w", namespace, deployment, e.Name, err)
			}
		}
		if known {
			env[e.Name] = value
		}
	}
	return env, nil
}

// kubelet looks up where variables come from.
type kubelet struct {
	client     kubernetes.Interface
	deployment *appsv1.Deployment
}

// addAll adds the keys of a Secret or ConfigMap.
func (k kubelet) addAll(ctx context.Context, env map[string]string, source corev1.EnvFromSource) error {
	var (
		data map[string]string
		err  error
	)
	switch {
	case source.SecretRef != nil:
		data, err = k.secret(ctx, source.SecretRef.Name, source.SecretRef.Optional)
	case source.ConfigMapRef != nil:
		data, err = k.configMap(ctx, source.ConfigMapRef.Name, source.ConfigMapRef.Optional)
	}
	for key, value := range data {
		env[source.Prefix+key] = value
	}
	return err
}

// value returns false where the source is optional and missing: then there is no such variable.
func (k kubelet) value(ctx context.Context, from *corev1.EnvVarSource) (value string, known bool, err error) {
	var (
		data     map[string]string
		key      string
		optional *bool
	)
	switch {
	case from.FieldRef != nil:
		value, err := k.field(ctx, from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.SecretKeyRef != nil:
		key, optional = from.SecretKeyRef.Key, from.SecretKeyRef.Optional
		data, err = k.secret(ctx, from.SecretKeyRef.Name, optional)
	case from.ConfigMapKeyRef != nil:
		key, optional = from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional
		data, err = k.configMap(ctx, from.ConfigMapKeyRef.Name, optional)
	default:
		return "", false, errors.New("it comes neither from a Secret, a ConfigMap nor a field of the pod")
	}
	if err != nil {
		return "", false, err
	}
	if value, known = data[key]; !known && !isTrue(optional) {
		return "", false, fmt.Errorf("there is no key %s", key)
	}
	return value, known, nil
}

func (k kubelet) secret(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	secret, err := k.client.CoreV1().Secrets(k.deployment.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, ignoreMissing(err, optional)
	}
	data := map[string]string{}
	for key, value := range secret.Data {
		data[key] = string(value)
	}
	return data, nil
}

func (k kubelet) configMap(ctx context.Context, name string, optional *bool) (map[string]string, error) {
	object, err := k.client.CoreV1().ConfigMaps(k.deployment.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, ignoreMissing(err, optional)
	}
	return object.Data, nil
}

func isTrue(b *bool) bool { return b != nil && *b }

func ignoreMissing(err error, optional *bool) error {
	if isTrue(optional) && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (k kubelet) field(ctx context.Context, path string) (string, error) {
	if path == "metadata.namespace" {
		return k.deployment.Namespace, nil
	}
	pod, err := k.pod(ctx)
	if err != nil {
		return "", err
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP":
		return pod.Status.PodIP, nil
	case "status.hostIP":
		return pod.Status.HostIP, nil
	}
	return "", fmt.Errorf("the field %s is not known here", path)
}

// pod is the newest pod of the Deployment that is not on its way out.
func (k kubelet) pod(ctx context.Context) (corev1.Pod, error) {
	selector := metav1.FormatLabelSelector(k.deployment.Spec.Selector)
	pods, err := k.client.CoreV1().Pods(k.deployment.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return corev1.Pod{}, err
	}
	stay := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if len(stay) == 0 {
		return corev1.Pod{}, fmt.Errorf("no pod has the labels %s yet", selector)
	}
	return slices.MaxFunc(stay, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }), nil
}

// expandKubelet replaces references as Kubernetes documents it for environment values: $(NAME) by a known
// variable, and left as it is where the variable is not known; $$ by $.
func expandKubelet(value string, known map[string]string) string {
	var out strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] != '$' || i+1 == len(value) {
			out.WriteByte(value[i])
			continue
		}
		switch value[i+1] {
		case '$':
			out.WriteByte('$')
			i++
		case '(':
			name, _, closed := strings.Cut(value[i+2:], ")")
			if !closed {
				out.WriteByte('$')
				continue
			}
			if replacement, ok := known[name]; ok {
				out.WriteString(replacement)
			} else {
				out.WriteString("$(" + name + ")") // as a whole: what looks like a reference within it is none
			}
			i += len(name) + 2
		default:
			out.WriteByte('$')
		}
	}
	return out.String()
}

// InstalledAgentOptions are the options of an agent as its Deployment in the cluster describes it, with
// the rights of its service account and nothing else. The image's place is taken by the program.
func (c *ControlPlane) InstalledAgentOptions(ctx context.Context) (AgentOptions, error) {
	env, err := c.ContainerEnvironment(ctx, AgentNamespace, AgentDeployment)
	if err != nil {
		return AgentOptions{}, err
	}
	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, AgentNamespace, AgentServiceAccount)
	if err != nil {
		return AgentOptions{}, err
	}
	env["PROXIMA_KUBECONFIG"] = kubeconfig
	return AgentOptions{Env: env}, nil
}

// Place is a client with one environment, in which clusters are recorded.
type Place struct{ ClientID, EnvironmentID string }

// NewPlace makes a client and an environment, as the administrator.
func (c *Console) NewPlace(ctx context.Context, client, environment string) (Place, error) {
	var made console.TenantClient
	if _, err := c.Do(ctx, http.MethodPost, "/api/v1/clients", console.ClientInput{Name: client}, &made); err != nil {
		return Place{}, err
	}
	var env console.Environment
	path := "/api/v1/clients/" + url.PathEscape(made.ID) + "/environments"
	if _, err := c.Do(ctx, http.MethodPost, path, console.EnvironmentInput{Name: environment}, &env); err != nil {
		return Place{}, err
	}
	return Place{ClientID: made.ID, EnvironmentID: env.ID}, nil
}

// Record records an attempt, as the administrator.
func (c *Console) Record(ctx context.Context, p Place, displayName string) (console.OnboardingRecorded, error) {
	var recorded console.OnboardingRecorded
	_, err := c.Do(ctx, http.MethodPost, "/api/v1/clients/"+url.PathEscape(p.ClientID)+"/cluster-onboarding",
		console.OnboardingInput{EnvironmentID: p.EnvironmentID, DisplayName: displayName}, &recorded)
	return recorded, err
}

// DirectAgent are the options of an agent that is configured by hand, without manifests: it acts as the
// cluster's administrator.
func (c *ControlPlane) DirectAgent(on *Console, recorded console.OnboardingRecorded, env map[string]string) AgentOptions {
	all := map[string]string{
		"PROXIMA_CLUSTER_NAME": recorded.Onboarding.DisplayName, "PROXIMA_CLUSTER_SLUG": recorded.Onboarding.Slug,
		"PROXIMA_BACKEND_URL": on.URL, "PROXIMA_KUBECONFIG": c.Kubeconfig(),
	}
	if recorded.InstallToken != nil {
		all["PROXIMA_INSTALL_TOKEN"] = *recorded.InstallToken
	}
	maps.Copy(all, env)
	return AgentOptions{Env: all}
}
