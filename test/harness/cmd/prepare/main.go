// Prepare makes ready what tests, demo and benchmarks need beyond Go, so that they start
// without a long silence: Debian packages, where it runs as root, and the
// programs of the test control plane and of the product. It prints what it does and the time of each
// step, and does nothing where all is there.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"prxm.uz/proxima/test/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	began := time.Now()
	step := func(name string, do func() error) error {
		began := time.Now()
		if err := do(); err != nil {
			return err
		}
		fmt.Fprintf(out, "%-22s ready %6.1f s\n", name, time.Since(began).Seconds())
		return nil
	}
	err := step("Debian packages", func() error {
		return harness.EnsureDebianPackages(ctx, out, harness.DebianPackages()...)
	})
	if err != nil {
		return err
	}
	err = step("test control plane", func() error {
		_, err := harness.Binaries(ctx, out)
		return err
	})
	if err != nil {
		return err
	}
	// Linked anew by each test process, from what is compiled here.
	err = step("product", func() error {
		_, err := harness.BuildProduct(ctx, out, harness.TestClock)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-22s       %6.1f s\n", "total", time.Since(began).Seconds())
	return nil
}
