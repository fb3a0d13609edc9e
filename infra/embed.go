// Package infra holds the manifests that people apply to their clusters, so that console can serve
// those of its own version. It knows nothing but the files.
package infra

import (
	"embed"
	"io/fs"
)

//go:embed k8s/cluster-agent/*.yaml
var files embed.FS

// ClusterAgent returns the manifests of the cluster agent, each at the root under its file's name.
func ClusterAgent() fs.FS {
	sub, err := fs.Sub(files, "k8s/cluster-agent")
	if err != nil {
		panic("infra: " + err.Error()) // the path is a constant that fs.Sub accepts
	}
	return sub
}
