// Demo is the product in front of you: a console, a real API server with simulated nodes and pods, and a
// cluster agent that was installed by the text of the printed command. It watches the gates of the attempt
// pass, prints where to sign in, writes .demo/demo.json, and stays up until it is interrupted.
//
// DEMO_EXIT=1 ends it once the gates have passed, DEMO_DIR names another directory than .demo. Exit codes: 0 after an interruption or with DEMO_EXIT,
// 1 where something failed, 130 where it was interrupted before everything was up.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"prxm.uz/proxima/test/harness"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // a second signal ends the demo at once, and the kernel its children
	// Whoever read the output may be gone first; what was started is ended in order all the same.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, end := context.WithCancel(ctx)
	go endWithParent(end)
	code := run(ctx, os.Getenv("DEMO_DIR"), os.Getenv("DEMO_EXIT") == "1")
	stop()
	os.Exit(code)
}

// endWithParent calls end when the process that started the demo is gone: go run passes no SIGTERM on.
func endWithParent(end func()) {
	parent := os.Getppid()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for os.Getppid() == parent {
		<-ticker.C
	}
	end()
}

func run(ctx context.Context, dir string, leave bool) int {
	if dir == "" {
		root, err := harness.RepositoryRoot()
		if err != nil {
			fmt.Fprintln(os.Stderr, "demo:", err)
			return 1
		}
		dir = filepath.Join(root, ".demo")
	}
	d := &demo{out: os.Stdout, dir: dir, began: time.Now()}
	err := d.run(ctx, leave)
	interrupted := ctx.Err() != nil
	switch {
	case err == nil:
		return 0
	case interrupted && !d.up:
		fmt.Fprintln(os.Stderr, "demo: interrupted; what had been started is ended")
		return 130
	}
	fmt.Fprintln(os.Stderr, "demo:", err)
	if d.kept != "" {
		fmt.Fprintln(os.Stderr, "demo: the logs of everything that ran are in", d.kept)
	}
	return 1
}
