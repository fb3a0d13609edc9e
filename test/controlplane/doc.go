// Package controlplane pins the Kubernetes control plane that the tests run
// against: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
// kubectl, all as tools of this module, with the dependency versions that
// Kubernetes itself was released with. It holds no code. test/harness builds
// the tools into the user's cache directory and starts them.
//
// It is a module of its own so that the dependencies of the control plane never
// reach the product. Two neighbours are modules for the same reason: kwok, whose
// pins disagree with those of Kubernetes, and nats, the stand-alone NATS server.
package controlplane
