package harness_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"prxm.uz/proxima/test/harness"
)

// childOfKilled is set in a process that this test runs of itself: it starts a
// child and waits to be killed.
const childOfKilled = "HARNESS_TEST_CHILD_OF_KILLED"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childOfKilled); dir != "" {
		startAndHang(dir)
	}
	os.Exit(m.Run())
}

func startAndHang(dir string) {
	p, err := harness.Start(shell(dir, "sleep 600"))
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	select {}
}

func shell(dir, script string) harness.Command {
	return harness.Command{Name: "script", Path: "/bin/sh", Args: []string{"-c", "exec 2>&1; " + script}, LogPath: filepath.Join(dir, "script.log")}
}

func start(t *testing.T, c harness.Command) *harness.Process {
	t.Helper()
	p, err := harness.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Who waits for a process that has died learns at once how, and what it said last.
func TestProcessEndsEarly(t *testing.T) {
	t.Parallel()
	p := start(t, shell(t.TempDir(), "echo the disk is full; exit 7"))
	err := p.AwaitLog(t.Context(), "ready")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"script ended by itself", "exit status 7", "the disk is full"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

// A wait that ends by its deadline tells what was missing.
func TestProcessIsNotReadyInTime(t *testing.T) {
	t.Parallel()
	p := start(t, shell(t.TempDir(), "echo thinking; sleep 600"))
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	err := p.AwaitReady(ctx, "http://127.0.0.1:1/readyz")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "127.0.0.1:1/readyz") {
		t.Errorf("the error is %v", err)
	}
}

func TestProcessSeesOnlyItsEnvironment(t *testing.T) {
	t.Setenv("PROXIMA_STRAY", "1")
	var copied bytes.Buffer
	c := shell(t.TempDir(), "env; echo done")
	c.Env = map[string]string{"PROXIMA_WANTED": "2"}
	c.Output = &copied
	p := start(t, c)
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := copied.String()
	if !strings.Contains(out, "PROXIMA_WANTED=2\n") || strings.Contains(out, "PROXIMA_STRAY") || !strings.Contains(out, "\nPATH=") && !strings.HasPrefix(out, "PATH=") {
		t.Errorf("the environment is:\n%s", out)
	}
	if logged, err := os.ReadFile(p.LogPath()); err != nil || string(logged) != out {
		t.Errorf("the log holds %q (%v), the copy %q", logged, err, out)
	}
}

func TestProcessStops(t *testing.T) {
	t.Parallel()
	p := start(t, shell(t.TempDir(), "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done"))
	if err := p.AwaitLog(t.Context(), "up"); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(t.Context()); err != nil || !strings.Contains(p.LogTail(), "bye") {
		t.Errorf("it ended with %v, having said %q", err, p.LogTail())
	}
}

// When the process that started others is killed, they die with it.
func TestChildrenDieWithTheirParent(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), childOfKilled+"="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := parent.Wait(); err == nil {
		t.Error("the killed parent ended in order")
	}
	err = harness.Await(t.Context(), "the child to be gone", func(context.Context) error {
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !bytes.Contains(state, []byte(") Z ")) {
			return fmt.Errorf("process %d: %s", pid, state)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Nobody gets a port twice while it is reserved.
func TestPortsAreReserved(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 200 {
		p, err := harness.ReservePort()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Release(); err != nil {
				t.Error(err)
			}
		})
		if seen[p.Number] {
			t.Fatalf("port %d came twice", p.Number)
		}
		seen[p.Number] = true
		if _, port, err := net.SplitHostPort(p.Addr()); err != nil || port != strconv.Itoa(p.Number) {
			t.Errorf("address %s of port %d", p.Addr(), p.Number)
		}
	}
}
