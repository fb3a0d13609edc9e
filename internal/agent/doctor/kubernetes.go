package doctor

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// need is one permission that the collector uses.
type need struct{ group, resource, verb, namespace, name string }

func needs(leaseNamespace, leaseName string) []need {
	list := []need{
		{"", "namespaces", "get", "", "kube-system"},
		{"", "nodes", "list", "", ""},
		{"", "namespaces", "list", "", ""},
		{"apps", "deployments", "list", "", ""},
		{"apps", "statefulsets", "list", "", ""},
		{"apps", "daemonsets", "list", "", ""},
		{"", "pods", "list", "", ""},
		{"", "services", "list", "", ""},
		{"", "events", "list", "", ""},
	}
	if leaseNamespace != "" {
		const group, resource = "coordination.k8s.io", "leases"
		list = append(list,
			need{group, resource, "create", leaseNamespace, ""}, // which cannot be granted by name (B-89)
			need{group, resource, "get", leaseNamespace, leaseName},
			need{group, resource, "update", leaseNamespace, leaseName},
		)
	}
	return list
}

// kubernetes asks the API server for its version, and whether the agent may do what it will do.
func (Subject) kubernetes(ctx context.Context, s Subject) []Finding {
	if s.Kubernetes == nil {
		why := "no client"
		if s.KubernetesError != nil {
			why = s.KubernetesError.Error()
		}
		return []Finding{{Check: "kubernetes.api", Status: Failed, Message: why, Cure: "run inside a cluster with a service account, or set KUBECONFIG"}}
	}
	version, err := s.Kubernetes.Version(ctx)
	if apierrors.IsUnauthorized(err) {
		return []Finding{{
			Check: "kubernetes.api", Status: Failed, Message: "the Kubernetes API answers, and does not accept this agent's token (401)",
			Cure: "restart the pod, which gives it a new token; if it stays, see that the service account proxima-cluster-agent exists and was not made anew under a running pod, or mend the kubeconfig where one is set",
		}}
	}
	if err != nil {
		return []Finding{{
			Check: "kubernetes.api", Status: Failed, Message: fmt.Sprintf("the Kubernetes API cannot be reached: %v", err),
			Cure: "check network policies, and that NO_PROXY covers the API server",
		}}
	}
	findings := []Finding{{Check: "kubernetes.api", Status: OK, Message: "the Kubernetes API answers, version " + version.GitVersion}}
	denied := 0
	for _, n := range needs(s.LeaseNamespace, s.LeaseName) {
		f, bad := s.permission(ctx, n)
		if bad {
			denied++
			findings = append(findings, f)
		}
	}
	if denied == 0 {
		findings = append(findings, Finding{Check: "kubernetes.permissions", Status: OK, Message: "all kinds that are collected may be listed"})
	}
	return findings
}

// permission reports a missing permission; bad is false where it is granted.
func (s Subject) permission(ctx context.Context, n need) (f Finding, bad bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	check := "kubernetes." + n.verb + "." + n.resource
	review, err := s.Kubernetes.Authorization.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: n.group, Resource: n.resource, Verb: n.verb, Namespace: n.namespace, Name: n.name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return Finding{Check: check, Status: Warning, Message: fmt.Sprintf("the API server did not say whether %s on %s is allowed: %v", n.verb, n.resource, err), Cure: "check the service account's token"}, true
	}
	if review.Status.Allowed {
		return Finding{}, false
	}
	kind, status := "ClusterRole", Failed
	if n.namespace != "" {
		kind = "Role in " + n.namespace
	}
	object, named := n.resource, ""
	if n.name != "" {
		object, named = n.resource+" "+n.name, fmt.Sprintf(", resourceNames: [%q]", n.name)
	}
	return Finding{
		Check: check, Status: status, Message: fmt.Sprintf("the agent may not %s %s", n.verb, object),
		Cure: fmt.Sprintf("apply the %s of this version; the missing rule is apiGroups: [%q], resources: [%q]%s, verbs: [%q]", kind, n.group, n.resource, named, n.verb),
	}, true
}
