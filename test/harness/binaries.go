package harness

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Bin holds the paths of the programs that the harness starts beside the
// product's own.
type Bin struct {
	Etcd                  string
	KubeAPIServer         string
	KubeControllerManager string
	KubeScheduler         string
	Kubectl               string
	Kwok                  string
	// KwokStages is the directory of kwok's stages: how its nodes and pods
	// behave.
	KwokStages string
	NATSServer string
	// Dir holds the programs of Kubernetes, kubectl among them: a PATH for
	// scripts.
	Dir string
}

// toolset is a group of programs that are built together out of one module.
type toolset struct {
	name     string // of the directory in the cache, before the version
	title    string // in progress lines
	module   string // directory of the module, below the repository's root
	required string // the module path whose version names the set
	programs []program
	ldflags  func(version string) []string
	files    []string // copied out of the required module, below its root
}

// program is one package main.
type program struct {
	pkg   string
	built string // what go build calls it, where that is not the name
	name  string
}

func kubernetesTools() toolset {
	return toolset{
		name: "kubernetes", title: "control plane", module: "test/controlplane", required: "k8s.io/kubernetes",
		programs: []program{
			{pkg: "go.etcd.io/etcd/server/v3", built: "server", name: "etcd"},
			{pkg: "k8s.io/kubernetes/cmd/kube-apiserver", name: "kube-apiserver"},
			{pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", name: "kube-controller-manager"},
			{pkg: "k8s.io/kubernetes/cmd/kube-scheduler", name: "kube-scheduler"},
			{pkg: "k8s.io/kubernetes/cmd/kubectl", name: "kubectl"},
		},
		// Without these the API server calls itself v0.0.0-master, and agents
		// that check its version refuse it.
		ldflags: func(version string) []string {
			minor, _, _ := strings.Cut(strings.TrimPrefix(version, "v1."), ".")
			var flags []string
			for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
				for _, v := range []string{
					"gitVersion=" + version, "gitMajor=1", "gitMinor=" + minor, "gitTreeState=clean",
					"gitCommit=module-" + version, "buildDate=2026-01-01T00:00:00Z",
				} {
					flags = append(flags, "-X", pkg+"."+v)
				}
			}
			return flags
		},
	}
}

func kwokTools() toolset {
	return toolset{
		name: "kwok", title: "kwok", module: "test/controlplane/kwok", required: "sigs.k8s.io/kwok",
		programs: []program{{pkg: "sigs.k8s.io/kwok/cmd/kwok", name: "kwok"}},
		ldflags: func(version string) []string {
			return []string{"-X", "sigs.k8s.io/kwok/pkg/consts.Version=" + version}
		},
		files: []string{
			"kustomize/stage/node/fast/node-initialize.yaml",
			"kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
			"kustomize/stage/pod/fast/pod-ready.yaml",
			"kustomize/stage/pod/fast/pod-complete.yaml",
			"kustomize/stage/pod/fast/pod-delete.yaml",
		},
	}
}

func natsTools() toolset {
	return toolset{
		name: "nats-server", title: "NATS server", module: "test/controlplane/nats", required: "github.com/nats-io/nats-server/v2",
		programs: []program{{pkg: "github.com/nats-io/nats-server/v2", name: "nats-server"}},
		ldflags:  func(string) []string { return nil },
	}
}

// Binaries makes sure that all programs are built, and returns their paths. They
// lie in the user's cache directory under names that contain their versions; a
// set that is there is used as it is. Building takes some seven minutes on two
// cores with an empty Go cache, some 30 s with a warm one; log receives what is being
// done and how long it took. Several processes may call it at once: one builds,
// the others wait. PROXIMA_TEST_CACHE names another cache directory.
func Binaries(ctx context.Context, log io.Writer) (Bin, error) {
	var dirs [3]string
	for i, set := range []toolset{kubernetesTools(), kwokTools(), natsTools()} {
		dir, err := set.ensure(ctx, log)
		if err != nil {
			return Bin{}, fmt.Errorf("build %s: %w", set.title, err)
		}
		dirs[i] = dir
	}
	k8s, kwok, nats := dirs[0], dirs[1], dirs[2]
	return Bin{
		Etcd:                  filepath.Join(k8s, "etcd"),
		KubeAPIServer:         filepath.Join(k8s, "kube-apiserver"),
		KubeControllerManager: filepath.Join(k8s, "kube-controller-manager"),
		KubeScheduler:         filepath.Join(k8s, "kube-scheduler"),
		Kubectl:               filepath.Join(k8s, "kubectl"),
		Kwok:                  filepath.Join(kwok, "kwok"),
		KwokStages:            filepath.Join(kwok, "stages"),
		NATSServer:            filepath.Join(nats, "nats-server"),
		Dir:                   k8s,
	}, nil
}

// RepositoryRoot returns the directory of the module prxm.uz/proxima that holds the
// working directory.
func RepositoryRoot() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.Contains(text, []byte("module prxm.uz/proxima\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod of prxm.uz/proxima above %s: run this inside the repository", wd)
		}
	}
}

// cacheDir returns a directory of the harness's cache, made if needed.
func cacheDir(name string) (string, error) {
	base := os.Getenv("PROXIMA_TEST_CACHE")
	if base == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the cache directory (PROXIMA_TEST_CACHE may name one): %w", err)
		}
		base = filepath.Join(user, "proxima")
	}
	dir, err := filepath.Abs(filepath.Join(base, name))
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache directory: %w", err)
	}
	return dir, nil
}

// ensure returns the directory with the set's programs, built if needed.
func (s toolset) ensure(ctx context.Context, log io.Writer) (string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	version, key, err := s.identity(root)
	if err != nil {
		return "", err
	}
	cache, err := cacheDir("bin")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, fmt.Sprintf("%s-%s-%s", s.name, version, key))
	// The directory comes into being by a rename, once all is in it.
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	held, err := lock(ctx, filepath.Join(cache, s.name+".lock"), func() {
		fmt.Fprintf(log, "%s %s: another process builds it, waiting\n", s.title, version)
	})
	if err != nil {
		return "", err
	}
	defer held.Close()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, s.build(ctx, log, root, cache, version, dir)
}

// identity returns the version of the required module, and a hash of all that
// decides what is built.
func (s toolset) identity(root string) (version, key string, err error) {
	mod, err := os.ReadFile(filepath.Join(root, s.module, "go.mod"))
	if err != nil {
		return "", "", err
	}
	sum, err := os.ReadFile(filepath.Join(root, s.module, "go.sum"))
	if err != nil {
		return "", "", err
	}
	found := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(s.required) + ` (v\S+)`).FindSubmatch(mod)
	if found == nil {
		return "", "", fmt.Errorf("%s/go.mod does not require %s", s.module, s.required)
	}
	version = string(found[1])
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, s.arguments(version, "out"), s.programs, s.files)
	h.Write(mod)
	h.Write(sum)
	return version, hex.EncodeToString(h.Sum(nil))[:10], nil
}

// arguments are those of the one go build that makes all programs of the set.
func (s toolset) arguments(version, out string) []string {
	flags := append([]string{"-s", "-w"}, s.ldflags(version)...)
	args := []string{
		"build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-ldflags", strings.Join(flags, " "), "-o", out + string(filepath.Separator),
	}
	for _, p := range s.programs {
		args = append(args, p.pkg)
	}
	return args
}

// build makes the set in a directory of its own, and puts it in place when it is
// whole.
func (s toolset) build(ctx context.Context, log io.Writer, root, cache, version, dir string) (err error) {
	began := time.Now()
	names := make([]string, 0, len(s.programs))
	for _, p := range s.programs {
		names = append(names, p.name)
	}
	fmt.Fprintf(log, "%s %s: building %s (the first time takes minutes)\n", s.title, version, strings.Join(names, ", "))
	// The lock is held: what lies there is of a build that was killed.
	temp := filepath.Join(cache, ".building-"+s.name)
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return err
	}
	module := filepath.Join(root, s.module)
	if err := goBuild(ctx, log, s.title+" "+version, module, s.arguments(version, temp)); err != nil {
		return err
	}
	for _, p := range s.programs {
		if p.built == "" {
			continue
		}
		if err := os.Rename(filepath.Join(temp, p.built), filepath.Join(temp, p.name)); err != nil {
			return err
		}
	}
	if err := s.copyFiles(ctx, module, filepath.Join(temp, "stages")); err != nil {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		return err
	}
	fmt.Fprintf(log, "%s %s: built in %.1f s\n", s.title, version, time.Since(began).Seconds())
	return nil
}

// goBuild runs go build, whose arguments hold -v, and reports every 15 s how far it is. title stands at
// the head of each line.
func goBuild(ctx context.Context, log io.Writer, title, dir string, args []string) error {
	began := time.Now()
	cmd := goCommand(ctx, dir, args...)
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	// An interruption reaches go and its compilers alike, whether it comes from the terminal or from ctx.
	cmd.SysProcAttr = childAttributes(Command{OnParentDeath: syscall.SIGINT})
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	if err := startOnLastingThread(cmd); err != nil {
		return fmt.Errorf("start go: %w", err)
	}
	var compiled, downloaded atomic.Int64
	stop := make(chan struct{})
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		ticker := time.NewTicker(15 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				fmt.Fprintf(log, "%s: %d modules downloaded, %d packages compiled, %.0f s\n",
					title, downloaded.Load(), compiled.Load(), time.Since(began).Seconds())
			}
		}
	}()
	var tail []string
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			downloaded.Add(1)
		case !strings.ContainsAny(line, " :"): // a package's path
			compiled.Add(1)
		default:
			tail = append(tail, line)
		}
	}
	close(stop)
	<-reported
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		return fmt.Errorf("go build in %s: %w; it said:\n%s", dir, err, strings.Join(tail[max(0, len(tail)-tailLines):], "\n"))
	}
	return nil
}

// copyFiles takes the set's files out of the module cache, flat.
func (s toolset) copyFiles(ctx context.Context, module, into string) error {
	if len(s.files) == 0 {
		return nil
	}
	source, err := goCommand(ctx, module, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", s.required).Output()
	if err != nil {
		return fmt.Errorf("find the files of %s: %w", s.required, err)
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, f := range s.files {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(source)), f))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(into, filepath.Base(f)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// goCommand is the go tool as the harness runs it: static programs, no toolchain
// but the installed one, no settings of the user that would change the result.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
	// Interrupted, go removes its temporary files.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
