package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpansionIsTheKubelets(t *testing.T) {
	t.Parallel()
	known := map[string]string{"A": "one", "EMPTY": ""}
	for value, want := range map[string]string{
		"plain": "plain", "$(A)": "one", "x$(A)y$(A)": "xoneyone", "$(EMPTY)|": "|", "$(B)": "$(B)", "$$(A)": "$(A)", "$$$(A)": "$one",
		"$$$$": "$$", "$": "$", "a$": "a$", "$x": "$x", "$(A": "$(A", "$()": "$()",
		"$(a$(A))": "$(a$(A))", "$(A)$(": "one$(",
	} {
		if got := expandKubelet(value, known); got != want {
			t.Errorf("%q becomes %q, want %q", value, got, want)
		}
	}
}

// TestContainerEnvironment reads each kind of entry back from a real API server.
func TestContainerEnvironment(t *testing.T) {
	t.Parallel()
	plane := New(t).LightControlPlane()
	manifests := `
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {token: "a $$ b"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {LEVEL: debug, COLOUR: red}
---
apiVersion: v1
kind: Pod
metadata: {name: agent-0, labels: {app: agent}}
spec: {containers: [{name: main, image: registry.example/agent:1}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
        - name: main
          image: registry.example/agent:1
          envFrom:
            - {prefix: CFG_, configMapRef: {name: settings}}
            - secretRef: {name: nowhere, optional: true}
          env:
            - {name: EARLY, value: "$(TOKEN)"}
            - {name: TOKEN, valueFrom: {secretKeyRef: {name: token, key: token}}}
            - {name: LATE, value: "$(TOKEN) $$(TOKEN) $(CFG_LEVEL)"}
            - {name: CFG_COLOUR, value: blue}
            - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
            - {name: MAYBE, valueFrom: {secretKeyRef: {name: token, key: none, optional: true}}}
            - {name: EMPTY}
`
	if _, err := plane.Kubectl(t.Context(), manifests, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	env, err := plane.ContainerEnvironment(t.Context(), "default", "agent")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"CFG_LEVEL": "debug", "CFG_COLOUR": "blue", "EARLY": "$(TOKEN)", "TOKEN": "a $$ b", "LATE": "a $$ b $(TOKEN) debug",
		"POD_NAME": "agent-0", "POD_NAMESPACE": "default", "EMPTY": "",
	}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Error(diff)
	}
}
