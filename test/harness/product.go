package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// TestClock is the build tag of programs whose clock a test can move.
const TestClock = "testclock"

// Product holds the paths of the product's own programs.
type Product struct {
	Console      string
	ClusterAgent string

	// dir is locked while a Product of it is reachable: an unlocked one is cleared away by others.
	dir *workDir
}

// builds remembers what this process has built, by tags.
var builds struct {
	sync.Mutex
	done map[string]Product
}

// BuildProduct builds the product's programs with the given build tags, once in the
// life of this process, and returns copies that nobody else replaces. Go's
// build cache makes a build without changes a matter of a second. log receives
// the time it took.
func BuildProduct(ctx context.Context, log io.Writer, tags ...string) (Product, error) {
	slices.Sort(tags)
	key := strings.Join(tags, ",")
	builds.Lock()
	defer builds.Unlock()
	if p, ok := builds.done[key]; ok {
		return p, nil
	}
	p, err := buildProduct(ctx, log, key)
	if err != nil {
		return Product{}, fmt.Errorf("build the product: %w", err)
	}
	if builds.done == nil {
		builds.done = map[string]Product{}
	}
	builds.done[key] = p
	return p, nil
}

func buildProduct(ctx context.Context, log io.Writer, tags string) (_ Product, err error) {
	began := time.Now()
	root, err := RepositoryRoot()
	if err != nil {
		return Product{}, err
	}
	base, err := cacheDir("product")
	if err != nil {
		return Product{}, err
	}
	// One directory for each set of tags, where go finds its last result and
	// need not link again.
	shared := filepath.Join(base, "last-"+strings.ReplaceAll(tags, ",", "-"))
	if err := os.MkdirAll(shared, 0o755); err != nil {
		return Product{}, err
	}
	held, err := lock(ctx, shared+".build", func() { fmt.Fprintln(log, "product: another process builds it, waiting") })
	if err != nil {
		return Product{}, err
	}
	defer held.Close()
	fmt.Fprintln(log, "product: building proxima-console, proxima-cluster-agent")
	err = goBuild(ctx, log, "product", root, []string{
		"build", "-v", "-trimpath", "-buildvcs=false", "-tags", tags,
		"-o", shared + string(filepath.Separator), "./cmd/proxima-console", "./cmd/proxima-cluster-agent",
	})
	if err != nil {
		return Product{}, err
	}
	// The next build replaces the files, perhaps of other sources: this process
	// takes them to a place of its own, which the next process clears away.
	own, err := newWorkDir(base, "run")
	if err != nil {
		return Product{}, err
	}
	p := Product{
		Console:      filepath.Join(own.Path, "proxima-console"),
		ClusterAgent: filepath.Join(own.Path, "proxima-cluster-agent"),
		dir:          own,
	}
	for _, path := range []string{p.Console, p.ClusterAgent} {
		if err := os.Link(filepath.Join(shared, filepath.Base(path)), path); err != nil {
			return Product{}, errors.Join(err, own.Remove())
		}
	}
	fmt.Fprintf(log, "product: built in %.1f s\n", time.Since(began).Seconds())
	return p, nil
}
