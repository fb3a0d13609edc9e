package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// DebianPackages are the packages that the tests need beside Go: PostgreSQL's
// server and a browser.
func DebianPackages() []string { return []string{"postgresql", "chromium"} }

// EnsureDebianPackages installs those of the packages that are missing. It needs
// root for that; where nothing is missing it needs nothing. On a system without
// Debian's package tools, and for a user other than root, the error says what to
// install.
func EnsureDebianPackages(ctx context.Context, log io.Writer, packages ...string) error {
	var missing []string
	for _, p := range packages {
		if !debianPackageInstalled(ctx, p) {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("not installed: %s (Debian's names), and there is no apt-get to install them", list)
	}
	if os.Getuid() != 0 {
		return fmt.Errorf("not installed: %s; run: sudo apt-get install --no-install-recommends %s", list, list)
	}
	began := time.Now()
	fmt.Fprintf(log, "Debian packages: installing %s\n", list)
	for _, args := range [][]string{
		{"update"},
		append([]string{"install", "--yes", "--no-install-recommends"}, missing...),
	} {
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-o", "DPkg::Lock::Timeout=300"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
			return fmt.Errorf("apt-get %s: %w; it said:\n%s", args[0], err, strings.Join(lines[max(0, len(lines)-tailLines):], "\n"))
		}
	}
	fmt.Fprintf(log, "Debian packages: installed in %.1f s\n", time.Since(began).Seconds())
	return nil
}

func debianPackageInstalled(ctx context.Context, name string) bool {
	out, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat", "${db:Status-Status}", name).Output()
	return err == nil && string(out) == "installed"
}

// errNotInstalled says how to get what is missing.
func errNotInstalled(what, debianPackage string) error {
	return errors.New(what + " is not installed: run `go run ./test/harness/cmd/prepare` as root, or install Debian's package " + debianPackage)
}
