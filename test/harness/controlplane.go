package harness

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// serviceCIDR is the range of the cluster's service addresses; the first is the
// API server's own.
const (
	serviceCIDR  = "10.96.0.0/16"
	firstService = "10.96.0.1"
)

// ControlPlaneOptions choose what [StartControlPlane] starts. The zero value is
// a whole control plane.
type ControlPlaneOptions struct {
	// Light leaves out controller-manager, scheduler and kwok: objects are stored
	// and watched, permissions are checked, and nothing else happens to them.
	// It starts in half the time. Nodes are added as Ready; pods stay as they
	// are written.
	Light bool
	// Log receives progress where programs are built first; nil means nobody.
	Log io.Writer
	// APIServerArgs are added to kube-apiserver's command line.
	APIServerArgs []string
}

// ControlPlane is a Kubernetes cluster on loopback whose nodes are simulated. Its
// methods may be called from several goroutines.
type ControlPlane struct {
	bin    Bin
	dir    *workDir
	ports  []*Port
	light  bool
	tokens map[string]string // bearer token by user name
	config *rest.Config
	client kubernetes.Interface

	etcdPort, etcdPeerPort, apiPort, controllerPort, schedulerPort, kwokPort *Port

	mu         sync.Mutex
	components map[string]*Process // by name
	apiserver  Command
	nodes      int // added so far
}

// Users known to the API server by a token of their own.
const (
	adminUser      = "admin"
	kwokUser       = "kwok"
	controllerUser = "system:kube-controller-manager"
	schedulerUser  = "system:kube-scheduler"
)

// StartControlPlane starts etcd, kube-apiserver (with RBAC),
// kube-controller-manager, kube-scheduler and kwok on free loopback ports, with
// state in a directory of their own, and returns when pods can be created. What
// is not built yet is built first. Several may run at once. End it by
// [ControlPlane.Stop].
func StartControlPlane(ctx context.Context, o ControlPlaneOptions) (*ControlPlane, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	bin, err := Binaries(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{bin: bin, light: o.Light, components: map[string]*Process{}}
	if err := c.start(ctx, o); err != nil {
		return nil, fmt.Errorf("start a control plane: %w", errors.Join(err, c.Stop()))
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, o ControlPlaneOptions) error {
	base, err := scratch()
	if err != nil {
		return err
	}
	if c.dir, err = newWorkDir(base, "cluster"); err != nil {
		return err
	}
	if c.ports, err = reservePorts(6); err != nil {
		return err
	}
	c.etcdPort, c.etcdPeerPort, c.apiPort = c.ports[0], c.ports[1], c.ports[2]
	c.controllerPort, c.schedulerPort, c.kwokPort = c.ports[3], c.ports[4], c.ports[5]
	if err := c.writeFiles(); err != nil {
		return err
	}
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return err
	}
	c.config.QPS = -1 // a test has no reason to be polite
	if c.client, err = kubernetes.NewForConfig(protobuf(c.config)); err != nil {
		return err
	}
	c.apiserver = c.apiServerCommand(o)
	if err := c.launch(c.etcdCommand()); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if c.light {
		return c.awaitDefaultNamespace(ctx)
	}
	// Only now: a controller-manager that starts before the first roles are
	// written exits.
	kwok, err := c.kwokCommand()
	if err != nil {
		return err
	}
	for _, command := range []Command{c.controllerCommand(), c.schedulerCommand(), kwok} {
		if err := c.launch(command); err != nil {
			return err
		}
	}
	return c.awaitControllers(ctx)
}

func protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = config.ContentType + ",application/json"
	return config
}

func (c *ControlPlane) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir.Path}, parts...)...)
}

// writeFiles makes certificates, tokens and kubeconfigs.
func (c *ControlPlane) writeFiles() error {
	for _, d := range []string{"pki", "log", "home", "kubecache", "flex", "etcd"} {
		if err := os.Mkdir(c.path(d), 0o700); err != nil {
			return err
		}
	}
	pki := c.path("pki")
	ca, err := NewAuthority(pki, "ca", "test cluster")
	if err != nil {
		return err
	}
	front, err := NewAuthority(pki, "front", "test cluster front proxy")
	if err != nil {
		return err
	}
	err = errors.Join(
		ca.issue("apiserver", pkix.Name{CommonName: "kube-apiserver"}, "127.0.0.1", firstService,
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
		ca.issue("kubelet-client", pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}}),
		ca.issue("kwok", pkix.Name{CommonName: kwokUser}, "127.0.0.1", "localhost"),
		front.issue("front-client", pkix.Name{CommonName: "front-proxy-client"}),
		newKeyPair(pki, "sa"),
	)
	if err != nil {
		return err
	}
	c.tokens = map[string]string{}
	var table strings.Builder
	for user, group := range map[string]string{adminUser: "system:masters", kwokUser: "system:masters", controllerUser: "", schedulerUser: ""} {
		secret := make([]byte, 16)
		if _, err := rand.Read(secret); err != nil {
			return err
		}
		c.tokens[user] = hex.EncodeToString(secret)
		fmt.Fprintf(&table, "%s,%s,%s", c.tokens[user], user, user)
		if group != "" {
			fmt.Fprintf(&table, ",%q", group)
		}
		table.WriteByte('\n')
		if err := c.WriteKubeconfig(c.kubeconfig(user), c.Server(), c.tokens[user]); err != nil {
			return err
		}
	}
	return os.WriteFile(c.path("tokens.csv"), []byte(table.String()), 0o600)
}

func (c *ControlPlane) kubeconfig(user string) string {
	return c.path(strings.ReplaceAll(user, ":", "-") + ".kubeconfig")
}

// WriteKubeconfig writes one for a server that has the API server's certificate,
// such as the API server. It holds a token and no client certificate: with both,
// the certificate would win without a word, and `kubectl --token` would still be
// admin.
func (c *ControlPlane) WriteKubeconfig(path, server, token string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- {name: test, cluster: {server: %q, certificate-authority: %q}}
users:
- {name: test, user: {token: %q}}
contexts:
- {name: test, context: {cluster: test, user: test}}
current-context: test
`, server, c.CAFile(), token)
	return os.WriteFile(path, []byte(text), 0o600)
}

func (c *ControlPlane) command(name, path string, args ...string) Command {
	return Command{
		Name: name, Path: path, Args: args,
		Env:     map[string]string{"HOME": c.path("home")},
		Dir:     c.dir.Path,
		LogPath: c.path("log", name+".log"),
	}
}

func (c *ControlPlane) etcdCommand() Command {
	client, peer := "http://"+c.etcdPort.Addr(), "http://"+c.etcdPeerPort.Addr()
	return c.command("etcd", c.bin.Etcd,
		"--data-dir="+c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--quota-backend-bytes=4294967296", "--auto-compaction-mode=periodic", "--auto-compaction-retention=5m")
}

func (c *ControlPlane) apiServerCommand(o ControlPlaneOptions) Command {
	pki := func(name string) string { return c.path("pki", name) }
	args := []string{
		"--etcd-servers=http://" + c.etcdPort.Addr(),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.apiPort.Number),
		"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
		"--client-ca-file=" + pki("ca.crt"), "--token-auth-file=" + c.path("tokens.csv"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--endpoint-reconciler-type=none", // endpoints may not be loopback addresses
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + pki("sa.pub"), "--service-account-signing-key-file=" + pki("sa.key"),
		"--kubelet-certificate-authority=" + pki("ca.crt"),
		"--kubelet-client-certificate=" + pki("kubelet-client.crt"), "--kubelet-client-key=" + pki("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP,Hostname",
		"--requestheader-client-ca-file=" + pki("front.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pki("front-client.crt"), "--proxy-client-key-file=" + pki("front-client.key"),
		"--allow-privileged=true", "--profiling=false",
	}
	if o.Light {
		// Nobody makes the account that this plugin wants for each pod.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return c.command("kube-apiserver", c.bin.KubeAPIServer, append(args, o.APIServerArgs...)...)
}

// delegated are the flags with which a component checks its own callers at the
// API server.
func (c *ControlPlane) delegated(user string) []string {
	path := c.kubeconfig(user)
	return []string{
		"--kubeconfig=" + path, "--authentication-kubeconfig=" + path, "--authorization-kubeconfig=" + path,
		"--bind-address=127.0.0.1", "--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=2000",
	}
}

func (c *ControlPlane) controllerCommand() Command {
	pki := func(name string) string { return c.path("pki", name) }
	return c.command("kube-controller-manager", c.bin.KubeControllerManager, append(c.delegated(controllerUser),
		fmt.Sprintf("--secure-port=%d", c.controllerPort.Number),
		"--flex-volume-plugin-dir="+c.path("flex"), "--use-service-account-credentials=true",
		"--service-account-private-key-file="+pki("sa.key"), "--root-ca-file="+pki("ca.crt"),
		"--cluster-signing-cert-file="+pki("ca.crt"), "--cluster-signing-key-file="+pki("ca.key"),
		"--concurrent-deployment-syncs=10", "--concurrent-replicaset-syncs=20")...)
}

func (c *ControlPlane) schedulerCommand() Command {
	return c.command("kube-scheduler", c.bin.KubeScheduler, append(c.delegated(schedulerUser),
		fmt.Sprintf("--secure-port=%d", c.schedulerPort.Number))...)
}

// kwokCommand writes kwok's configuration: nodes with the label type=kwok become
// ready and keep their lease, their pods run, complete and vanish as told by kwok's
// own stages; every container's log holds the same two lines, and exec runs the
// command on this machine.
func (c *ControlPlane) kwokCommand() (Command, error) {
	stages, err := filepath.Glob(filepath.Join(c.bin.KwokStages, "*.yaml"))
	if err != nil || len(stages) == 0 {
		return Command{}, fmt.Errorf("no kwok stages in %s: %w", c.bin.KwokStages, err)
	}
	podLog := c.path("pod.log")
	if err := os.WriteFile(podLog, []byte("2026-01-01T00:00:00.000000000Z stdout F hello from a simulated pod\n2026-01-01T00:00:01.000000000Z stderr F and goodbye\n"), 0o600); err != nil {
		return Command{}, err
	}
	var config strings.Builder
	fmt.Fprintf(&config, `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  manageAllNodes: false
  manageNodesWithLabelSelector: type=kwok
  nodeIP: 127.0.0.1
  nodePort: %[1]d
  serverAddress: 127.0.0.1:%[1]d
  tlsCertFile: %[2]q
  tlsPrivateKeyFile: %[3]q
  cidr: 10.244.0.0/16
  enablePodsOnNodeSyncStreamWatch: true
  enableDebuggingHandlers: true
  nodeLeaseDurationSeconds: 40
  nodeLeaseParallelism: 4
  podPlayStageParallelism: 16
  nodePlayStageParallelism: 8
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata: {name: all}
spec: {logs: [{logsFile: %[4]q, follow: true}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterAttach
metadata: {name: all}
spec: {attaches: [{logsFile: %[4]q}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterExec
metadata: {name: all}
spec: {execs: [{local: {workDir: %[5]q}}]}
`, c.kwokPort.Number, c.path("pki", "kwok.crt"), c.path("pki", "kwok.key"), podLog, c.path("home"))
	for _, s := range stages {
		text, err := os.ReadFile(s)
		if err != nil {
			return Command{}, err
		}
		config.WriteString("---\n")
		config.Write(text)
	}
	path := c.path("kwok.yaml")
	if err := os.WriteFile(path, []byte(config.String()), 0o600); err != nil {
		return Command{}, err
	}
	return c.command("kwok", c.bin.Kwok, "--kubeconfig", c.kubeconfig(kwokUser), "--config", path), nil
}

// launch starts a component and remembers it.
func (c *ControlPlane) launch(command Command) error {
	p, err := Start(command)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.components[command.Name] = p
	return nil
}

// Component returns the running component of that name ("etcd", "kube-apiserver",
// "kube-controller-manager", "kube-scheduler", "kwok"), or nil.
func (c *ControlPlane) Component(name string) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.components[name]
}

// Processes returns all components.
func (c *ControlPlane) Processes() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*Process
	for _, name := range []string{"kwok", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"} {
		if p := c.components[name]; p != nil {
			all = append(all, p)
		}
	}
	return all
}

// await is [Await] that also ends when a component does.
func (c *ControlPlane) await(ctx context.Context, what string, check func(context.Context) error) error {
	return awaitWith(ctx, pollEvery, what, check, c.Processes()...)
}

// awaitDefaultNamespace waits for what the API server itself creates.
func (c *ControlPlane) awaitDefaultNamespace(ctx context.Context) error {
	return c.await(ctx, "the namespace default", func(ctx context.Context) error {
		_, err := c.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

// awaitControllers waits until pods can be created in the namespace default, and
// kwok watches nodes.
func (c *ControlPlane) awaitControllers(ctx context.Context) error {
	err := c.await(ctx, "the service account default/default", func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	// The config carries the admin's token, which kwok does not look at.
	return c.await(ctx, "kwok's health", func(ctx context.Context) error {
		return getOK(ctx, client, "https://"+c.kwokPort.Addr()+"/healthz")
	})
}

// Server is the API server's URL.
func (c *ControlPlane) Server() string { return "https://" + c.apiPort.Addr() }

// CAFile is the path of the certificate by which the API server is verified.
func (c *ControlPlane) CAFile() string { return c.path("pki", "ca.crt") }

// Kubeconfig is the path of the administrator's kubeconfig. It holds a token and no
// client certificate, so that `kubectl --token` and `--as` do what they say.
func (c *ControlPlane) Kubeconfig() string { return c.kubeconfig(adminUser) }

// RESTConfig is the administrator's configuration for client-go, without a rate
// limit. The caller owns it.
func (c *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Client is the administrator's client.
func (c *ControlPlane) Client() kubernetes.Interface { return c.client }

// Env is the whole environment of a shell in which kubectl talks to this cluster
// as its administrator.
func (c *ControlPlane) Env() []string {
	return environment(map[string]string{
		"PATH":       c.bin.Dir + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME":       c.path("home"),
		"KUBECONFIG": c.Kubeconfig(),
		// kubectl remembers what a server offers by address and port, and ports
		// come again: each cluster has a memory of its own.
		"KUBECACHEDIR": c.path("kubecache"),
	})
}

// Kubectl runs kubectl as the administrator, with stdin if that is not empty, and
// returns its standard output. The error of a command that failed holds what it
// wrote to standard error.
func (c *ControlPlane) Kubectl(ctx context.Context, stdin string, args ...string) (stdout string, err error) {
	return c.run(ctx, stdin, c.bin.Kubectl, args...)
}

// Shell runs a script by sh(1) in the environment [ControlPlane.Env] and returns
// its standard output.
func (c *ControlPlane) Shell(ctx context.Context, script string) (stdout string, err error) {
	return c.run(ctx, script, "/bin/sh", "-s")
}

func (c *ControlPlane) run(ctx context.Context, stdin, path string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = c.Env()
	cmd.Dir = c.path("home")
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(path), strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// Pause freezes the API server (SIGSTOP): connections stay open and nothing is
// answered.
func (c *ControlPlane) Pause() error {
	return c.withAPIServer((*Process).Pause)
}

// Resume lets a paused API server go on.
func (c *ControlPlane) Resume() error {
	return c.withAPIServer((*Process).Resume)
}

func (c *ControlPlane) withAPIServer(act func(*Process) error) error {
	p := c.Component("kube-apiserver")
	if p == nil {
		return errors.New("the API server does not run: StartAPIServer first")
	}
	return act(p)
}

// StopAPIServer ends the API server at once, as a crash would: connections break,
// the port refuses. The other components wait for it to come back.
func (c *ControlPlane) StopAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.components["kube-apiserver"]
	if p == nil {
		return nil
	}
	delete(c.components, "kube-apiserver")
	return p.Kill()
}

// StartAPIServer starts the API server on the port that it had, and returns when
// it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	if c.Component("kube-apiserver") != nil {
		return errors.New("the API server runs already")
	}
	if err := c.launch(c.apiserver); err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return c.await(ctx, "the API server", func(ctx context.Context) error {
		return getOK(ctx, client, c.Server()+"/readyz")
	})
}

// Stop ends all components and removes their directory. Nothing is saved, so
// nothing is waited for. A second call does nothing.
func (c *ControlPlane) Stop() error {
	all := c.Processes()
	var err error
	for _, p := range all { // all at once, then the waiting
		err = errors.Join(err, p.Signal(syscall.SIGKILL))
	}
	for _, p := range all {
		err = errors.Join(err, p.Kill())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.components)
	if c.dir != nil {
		err = errors.Join(err, c.dir.Remove())
		c.dir = nil
	}
	err = errors.Join(err, releaseAll(c.ports))
	c.ports = nil
	return err
}

// Directory is where the cluster keeps its files, logs among them.
func (c *ControlPlane) Directory() string { return c.dir.Path }

// ignoreExists takes an "already exists" for success.
func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
