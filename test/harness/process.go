package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// awaitLimit bounds a wait whose context has no deadline.
	awaitLimit = 90 * time.Second
	// pollEvery is the pause between two looks at a condition. Short, since it
	// is added to the start of every process; long enough to cost nothing.
	pollEvery = 25 * time.Millisecond
	// stopGrace is how long a process may take to end after SIGTERM.
	stopGrace = 15 * time.Second
	// pauseLimit bounds the wait for threads to stand still.
	pauseLimit = 5 * time.Second
	// tailLines is how much of a log an error carries.
	tailLines = 25
)

// Command says how a [Process] is started.
type Command struct {
	// Name is used in errors and for the log file.
	Name string
	// Path is the program; it is not looked up in PATH.
	Path string
	Args []string
	// Env is all that the program sees beside PATH and HOME, which it inherits
	// unless they are given here.
	Env map[string]string
	// Dir is the working directory; empty means the directory of the log file.
	Dir string
	// LogPath is the file to which standard output and standard error are
	// appended.
	LogPath string
	// Output receives a copy of what is logged; nil means none.
	Output io.Writer
	// OnParentDeath is sent by the kernel when this process dies; zero means
	// SIGKILL.
	OnParentDeath syscall.Signal
	// Credential is the user to run as; nil means the user of this process.
	Credential *syscall.Credential
}

// Process is a program that was started. Its methods may be called from several
// goroutines. It ends by [Process.Stop], [Process.Kill], by itself, or with the
// process that started it; never by a context.
type Process struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	done    chan struct{}
	exit    error // of cmd.Wait; to be read after done
}

// Start runs the command. The program is not waited for: follow with
// [Process.AwaitReady] or [Process.AwaitLog].
func Start(c Command) (*Process, error) {
	file, err := os.OpenFile(c.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", c.Name, err)
	}
	defer file.Close()
	//nolint:noctx // a process is ended by its owner, not by a context
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = environment(c.Env)
	cmd.Dir = c.Dir
	if cmd.Dir == "" {
		cmd.Dir = filepath.Dir(c.LogPath)
	}
	cmd.WaitDelay = time.Second
	// The plain file is handed to the child itself: a test process that hangs
	// then never blocks the child's writes. Only a copy needs a pipe.
	var logfile *os.File
	if c.Output == nil {
		cmd.Stdout, cmd.Stderr = file, file
	} else {
		logfile, err = os.OpenFile(c.LogPath, os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("start %s: open its log: %w", c.Name, err)
		}
		both := io.MultiWriter(logfile, c.Output)
		cmd.Stdout, cmd.Stderr = both, both
	}
	cmd.SysProcAttr = childAttributes(c)
	if err := startOnLastingThread(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, errors.Join(err, closeFile(logfile)))
	}
	p := &Process{name: c.Name, logPath: c.LogPath, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.exit = errors.Join(cmd.Wait(), closeFile(logfile))
		close(p.done)
	}()
	return p, nil
}

func closeFile(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// environment returns the variables as exec wants them, sorted.
func environment(env map[string]string) []string {
	all := map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME")}
	maps.Copy(all, env)
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}

// lastingThread runs what it is sent on one OS thread that lives as long as the
// process.
var lastingThread = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// startOnLastingThread starts cmd from a thread that never exits: the kernel
// sends a child's parent-death signal when the thread that made it ends, and Go
// ends idle threads as it likes.
func startOnLastingThread(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	lastingThread() <- func() { started <- cmd.Start() }
	return <-started
}

// Name is the name given in the [Command].
func (p *Process) Name() string { return p.name }

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// LogPath is the file that holds the output.
func (p *Process) LogPath() string { return p.logPath }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait blocks until the process has ended, and returns how: nil for exit code 0,
// an [*exec.ExitError] otherwise, or the context's error when that ends first.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.exit
	case <-ctx.Done():
		return fmt.Errorf("%s still runs: %w", p.name, ctx.Err())
	}
}

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends sig. A process that has ended already gets nothing, and that is no
// error.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to %s: %w", sig, p.name, err)
	}
	return nil
}

// Pause freezes the process (SIGSTOP) and returns once each of its threads stands still: until then one of
// them may go on and answer.
func (p *Process) Pause() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for deadline := time.Now().Add(pauseLimit); ; time.Sleep(time.Millisecond) {
		stopped, err := p.stopped()
		switch {
		case err != nil:
			return fmt.Errorf("pause %s: %w", p.name, err)
		case stopped:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("pause %s: its threads still run after %v", p.name, pauseLimit)
		}
	}
}

// stopped reports whether every thread is stopped (proc(5), the third field of stat).
func (p *Process) stopped() (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID()))
	if err != nil || len(threads) == 0 {
		return false, errors.Join(err, p.ended())
	}
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		if !bytes.Contains(stat, []byte(") T ")) {
			return false, nil
		}
	}
	return true, nil
}

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// PeakMemory is the most resident memory that the process had so far, in bytes (VmHWM of proc(5)).
func (p *Process) PeakMemory() (int64, error) {
	kib, err := p.accounted("status", "VmHWM")
	return kib << 10, err
}

// Written is how many bytes the process caused to be written to disks so far (write_bytes of proc(5)).
func (p *Process) Written() (int64, error) { return p.accounted("io", "write_bytes") }

// accounted reads a number that the kernel keeps of the process, by its name in a file of proc(5).
func (p *Process) accounted(file, name string) (n int64, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.PID(), file))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut("\n"+string(content), "\n"+name+":")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		return 0, fmt.Errorf("%s of %s: %w", name, p.name, err)
	}
	return n, nil
}

// Kill ends the process by SIGKILL and waits until it is gone. Its exit status is
// not an error.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop asks the process to end by SIGTERM, and after 15 s by SIGKILL, which is an
// error. How it exits otherwise is for [Process.Wait] to tell.
func (p *Process) Stop() error { return p.stopBy(syscall.SIGTERM) }

func (p *Process) stopBy(sig syscall.Signal) error {
	if err := p.Signal(sig); err != nil {
		return err
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s did not end within %s of %v; end of its log:\n%s", p.name, stopGrace, sig, p.LogTail()), p.Kill())
	}
}

// LogTail returns the last lines of the output.
func (p *Process) LogTail() string { return fileTail(p.logPath, tailLines) }

// fileTail returns the last lines of a file, or a remark why there are none.
func fileTail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	text = bytes.TrimRight(text, "\n")
	if len(text) == 0 {
		return "(the log is empty)"
	}
	all := strings.Split(string(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// ended describes an exit that nobody asked for.
func (p *Process) ended() error {
	how := "exit code 0"
	if p.exit != nil {
		how = p.exit.Error()
	}
	return fmt.Errorf("%s ended by itself (%s); end of its log:\n%s", p.name, how, p.LogTail())
}

// Await polls until check returns nil. It fails at once when the process ends,
// and when ctx does (after 90 s, if ctx has no deadline), then with check's last
// error and the end of the log. What names the thing waited for.
func (p *Process) Await(ctx context.Context, what string, check func(context.Context) error) error {
	return awaitWith(ctx, pollEvery, what, check, p)
}

// AwaitReady polls until a GET of url answers 200.
func (p *Process) AwaitReady(ctx context.Context, url string) error {
	return p.awaitReady(ctx, http.DefaultClient, url)
}

func (p *Process) awaitReady(ctx context.Context, client *http.Client, url string) error {
	return p.Await(ctx, "200 from "+url, func(ctx context.Context) error { return getOK(ctx, client, url) })
}

// AwaitLog polls until the output holds the substring.
func (p *Process) AwaitLog(ctx context.Context, substring string) error {
	return p.Await(ctx, fmt.Sprintf("%q in its log", substring), func(context.Context) error {
		text, err := os.ReadFile(p.logPath)
		if err != nil {
			return err
		}
		if !bytes.Contains(text, []byte(substring)) {
			return errors.New("not there")
		}
		return nil
	})
}

// getOK reports an answer other than 200 as an error.
func getOK(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 4096))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", url, res.Status, bytes.TrimSpace(body))
	}
	return nil
}

// Await polls until check returns nil or ctx ends (after 90 s, if it has no
// deadline), then with check's last error. What names the thing waited for.
func Await(ctx context.Context, what string, check func(context.Context) error) error {
	return awaitWith(ctx, pollEvery, what, check)
}

// awaitWith is the one loop behind every wait.
func awaitWith(ctx context.Context, every time.Duration, what string, check func(context.Context) error, needed ...*Process) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, awaitLimit)
		defer cancel()
	}
	gone := func() error {
		for _, p := range needed {
			if !p.Running() {
				return fmt.Errorf("waiting for %s: %w", what, p.ended())
			}
		}
		return nil
	}
	began := time.Now()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		last := check(ctx)
		if last == nil {
			return nil
		}
		if err := gone(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			var logs strings.Builder
			for _, p := range needed {
				fmt.Fprintf(&logs, "\nend of the log of %s:\n%s", p.name, p.LogTail())
			}
			return fmt.Errorf("waited %s for %s in vain (%w): %w%s", time.Since(began).Round(time.Millisecond), what, ctx.Err(), last, &logs)
		case <-ticker.C:
		}
	}
}
