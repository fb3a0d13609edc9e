package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"prxm.uz/proxima/test/harness"
)

// limit bounds a demo whose programs are built.
const limit = 5 * time.Minute

// output is what a demo has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// started is a demo in a process group of its own, as a shell would start it.
type started struct {
	*exec.Cmd
	out output
	dir string
	end chan struct{} // closed when it has ended
}

// start starts `go run ./test/demo`.
func start(t *testing.T, env ...string) *started {
	t.Helper()
	root, err := harness.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	s := &started{dir: filepath.Join(t.TempDir(), "demo"), end: make(chan struct{})}
	s.Cmd = exec.CommandContext(t.Context(), "go", "run", "./test/demo")
	s.Dir, s.Env = root, append(append(os.Environ(), "DEMO_EXIT=", "DEMO_DIR="+s.dir), env...)
	s.Stdout, s.Stderr = &s.out, &s.out
	s.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.end)
		if err := s.Wait(); err != nil {
			t.Logf("the demo ended: %v", err)
		}
	}()
	t.Cleanup(func() {
		s.signalGroup(t, syscall.SIGTERM)
		<-s.end
		if t.Failed() {
			t.Logf("the demo wrote:\n%s", s.out.String())
		}
	})
	return s
}

// signalGroup sends a signal as the terminal does.
func (s *started) signalGroup(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(-s.Process.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}

// await waits for check, and fails when the demo ends first.
func (s *started) await(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	go func() {
		select {
		case <-s.end:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := harness.Await(ctx, what, check); err != nil {
		t.Fatal(err)
	}
}

// awaitEnd waits until the demo and everything in its process group is gone.
func (s *started) awaitEnd(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := harness.Await(ctx, "the demo's processes to end", func(context.Context) error {
		if err := syscall.Kill(-s.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			return errors.New("there are some")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-s.end
}

func (s *started) record(t *testing.T) record {
	t.Helper()
	path := filepath.Join(s.dir, recordName)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the record's mode is %o", mode)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r record
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// mustBeGone checks that nothing of a demo is left.
func mustBeGone(t *testing.T, r record) {
	t.Helper()
	if err := syscall.Kill(r.AgentPID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the agent, process %d, is still there: %v", r.AgentPID, err)
	}
	if _, err := os.Stat(r.Kubeconfig); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cluster's directory is still there: %v", err)
	}
	res, err := http.Get(r.URL + "/healthz")
	if err == nil {
		t.Errorf("the console still answers: %s", res.Status)
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDemoUntilTheGatesPassed is what DEMO_EXIT=1 make demo does.
func TestDemoUntilTheGatesPassed(t *testing.T) {
	t.Parallel()
	s := start(t, "DEMO_EXIT=1")
	s.awaitEnd(t)
	if code := s.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, line := range []string{"gate 1 passed", "gate 2 waiting", "gate 2 passed", "gate 3 passed", "gate 4 passed", "deployment.apps/proxima-cluster-agent env updated"} {
		if !strings.Contains(s.out.String(), line) {
			t.Errorf("the demo did not print %q", line)
		}
	}
	mustBeGone(t, s.record(t))
}

// TestDemoStaysUntilItsParentIsGone ends go run by SIGTERM, which it does not pass on.
func TestDemoStaysUntilItsParentIsGone(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.await(t, "the record", func(context.Context) error {
		_, err := os.Stat(filepath.Join(s.dir, recordName))
		return err
	})
	r := s.record(t)
	for _, path := range []string{"/api/v1/cluster-onboarding/" + r.OnboardingID + "/status", "/api/v1/clients/" + r.ClientID + "/environments"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+r.APIToken)
		res, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, res.Status)
		}
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := harness.SignIn(t.Context(), nil, r.URL, r.Username, r.Password); err != nil {
		t.Errorf("the record's username and password: %v", err)
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.awaitEnd(t)
	mustBeGone(t, r)
}

// TestNamesOfTheRecord pins the names by which other programs read the record.
func TestNamesOfTheRecord(t *testing.T) {
	t.Parallel()
	r := record{
		URL: "http://127.0.0.1:8080", Username: "a@example.com", Password: "p", APIToken: "pat_x", ClientID: "cli", EnvironmentID: "env",
		OnboardingID: "onb", ClusterSlug: "demo", Kubeconfig: "/k", AgentPID: 7,
	}
	dir := t.TempDir()
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "demo.json"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "url": "http://127.0.0.1:8080",
  "username": "a@example.com",
  "password": "p",
  "apiToken": "pat_x",
  "clientID": "cli",
  "environmentID": "env",
  "onboardingID": "onb",
  "clusterSlug": "demo",
  "kubeconfig": "/k",
  "agentPID": 7
}
`
	if string(got) != want {
		t.Errorf("the record:\n%s", got)
	}
}

// TestDemoInterruptedDuringTheFirstBuild presses Ctrl-C while compilers run.
func TestDemoInterruptedDuringTheFirstBuild(t *testing.T) {
	t.Parallel()
	s := start(t, "PROXIMA_TEST_CACHE="+t.TempDir())
	s.await(t, "the build to begin", func(context.Context) error {
		if !strings.Contains(s.out.String(), "building etcd") {
			return errors.New("not yet")
		}
		return nil
	})
	s.signalGroup(t, syscall.SIGINT)
	s.awaitEnd(t)
	if code := s.ProcessState.ExitCode(); code == 0 {
		t.Error("exit code 0, as if the demo had been up")
	}
	if text := s.out.String(); !strings.Contains(text, "interrupted") {
		t.Errorf("the demo wrote:\n%s", text)
	}
}
