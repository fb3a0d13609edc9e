package install

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"prxm.uz/proxima/infra"
)

// DefaultImageRegistry is where the images are that the manifests in the repository name.
const DefaultImageRegistry = "registry.prxm.uz/proxima"

const (
	deploymentFile = "deployment.yaml"
	imageName      = "proxima-cluster-agent"
)

// Image says which image the served Deployment names.
type Image struct {
	// Registry is the host and path before the image's name (PROXIMA_IMAGE_REGISTRY); where it is
	// empty, [DefaultImageRegistry] is taken.
	Registry string
	// Tag is the image's tag; see [Tag].
	Tag string
}

// Tag returns the image tag of a version. A tag has no plus sign, so 0.9.0-dev+abc is 0.9.0-dev_abc.
func Tag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// before returns the manifests that are applied ahead of the Secret, in order (B-50).
func before() []string {
	return []string{"namespace.yaml", "serviceaccount.yaml", "clusterrole.yaml", "clusterrolebinding.yaml"}
}

// Files returns the names of the manifests that console serves: those of the default install in their
// order, then those that are applied only where they are wanted.
func Files() []string {
	return append(before(), deploymentFile, "kustomization.yaml", "role.yaml", "rolebinding.yaml", "kube-access.yaml")
}

// File returns a manifest as console serves it: with its own image in place of the repository's. A name
// that is not in [Files] gives an error that is [fs.ErrNotExist]; an image that cannot stand in a
// manifest gives another.
func File(name string, image Image) ([]byte, error) {
	content, err := fs.ReadFile(infra.ClusterAgent(), name)
	if err != nil {
		return nil, fmt.Errorf("manifest %q: %w", name, err)
	}
	if name != deploymentFile {
		return content, nil
	}
	registry := strings.TrimRight(image.Registry, "/")
	if registry == "" {
		registry = DefaultImageRegistry
	}
	reference := registry + "/" + imageName + ":" + image.Tag
	if !regexp.MustCompile(`\A[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/` + imageName + `:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}\z`).MatchString(reference) {
		return nil, fmt.Errorf("%q is no image reference: the registry is a host, with a port if need be, and a path in lower case, such as %s; the tag letters, digits, dots, hyphens and underscores", reference, DefaultImageRegistry)
	}
	line := regexp.MustCompile(`(?m)^( +image: ).*$`)
	if len(line.FindAll(content, -1)) != 1 {
		return nil, fmt.Errorf("manifest %q: it does not name exactly one image", name)
	}
	return line.ReplaceAll(content, []byte("${1}"+reference)), nil // the reference holds no $
}
