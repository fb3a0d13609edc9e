// Package kwok pins kwok, which plays the kubelets of nodes that do not exist.
// It holds no code; test/harness builds the tool and takes the stages, that is
// the description of how nodes and pods behave, out of the same module.
package kwok
