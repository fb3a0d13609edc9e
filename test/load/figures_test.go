package load

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// figures are what is measured of one fleet.
type figures struct {
	phases             []phase
	status             []time.Duration // answers to the status of one attempt
	ready, back, heard time.Duration   // after the restart
}

// phase is what one phase cost the console.
type phase struct {
	name          string
	took          time.Duration
	cpu           float64 // seconds
	peak, written int64   // bytes
	wal           int64   // bytes of PostgreSQL's log, which writes apart
	rows          float64
	inventories   float64
	lag           histogram
}

// sample is what the console says of itself at one moment.
type sample struct {
	pid     int
	metrics map[string]float64
	written int64
	wal     int64
}

func (f *fleet) sample() sample {
	f.Helper()
	s := sample{pid: f.console.Process().PID()}
	var err error
	if s.metrics, err = f.console.Metrics(f.Context()); err != nil {
		f.Fatal(err)
	}
	if s.written, err = f.console.Process().Written(); err != nil {
		f.Fatal(err)
	}
	if f.postgres {
		s.wal = int64(f.db.Count(f.T, "SELECT (pg_current_wal_lsn() - '0/0')::bigint"))
	}
	return s
}

// phase runs what, and notes what it cost.
func (f *fleet) phase(name string, what func()) {
	f.Helper()
	before := f.sample()
	began := time.Now()
	what()
	p := phase{name: name, took: time.Since(began)}
	after := f.sample()
	if after.pid != before.pid { // it counts from the start of its process
		before = sample{wal: before.wal}
	}
	of := func(name string) float64 {
		value, ok := after.metrics[name]
		if !ok {
			f.Errorf("the console does not tell %s", name)
		}
		return value - before.metrics[name]
	}
	p.cpu = of("process_cpu_seconds_total")
	p.rows = of("proxima_console_inventory_rows_written_total")
	p.inventories = of("proxima_console_ingest_lag_seconds_count")
	p.lag = newHistogram("proxima_console_ingest_lag_seconds", after.metrics).minus(newHistogram("proxima_console_ingest_lag_seconds", before.metrics))
	p.written, p.wal = after.written-before.written, after.wal-before.wal
	var err error
	if p.peak, err = f.console.Process().PeakMemory(); err != nil {
		f.Fatal(err)
	}
	for name, value := range after.metrics {
		if strings.HasPrefix(name, "proxima_console_ingest_dropped_total") || strings.HasPrefix(name, "proxima_console_inventory_dropped_total") {
			if value > before.metrics[name] {
				f.Errorf("%s: %g in %s", name, value-before.metrics[name], p.name)
			}
		}
	}
	f.Logf("%s took %s", name, p.took.Round(time.Millisecond))
	f.figures.phases = append(f.figures.phases, p)
}

// histogram is how often a value was at most a bound.
type histogram map[float64]float64

func newHistogram(name string, metrics map[string]float64) histogram {
	h := histogram{}
	for key, count := range metrics {
		if rest, ok := strings.CutPrefix(key, name+`_bucket{le="`); ok {
			if bound, err := strconv.ParseFloat(strings.TrimSuffix(rest, `"}`), 64); err == nil {
				h[bound] = count
			}
		}
	}
	return h
}

func (h histogram) minus(earlier histogram) histogram {
	rest := histogram{}
	for bound, count := range h {
		rest[bound] = count - earlier[bound]
	}
	return rest
}

// below is the least bound that the share of all values is at most.
func (h histogram) below(share float64) time.Duration {
	total := h[math.Inf(1)]
	for _, bound := range slices.Sorted(maps.Keys(h)) {
		if h[bound] >= share*total && !math.IsInf(bound, 1) {
			return time.Duration(bound * float64(time.Second))
		}
	}
	return math.MaxInt64
}

// share is the value that the share of all is at most.
func share(of []time.Duration, part float64) time.Duration {
	sorted := slices.Clone(of)
	slices.SortFunc(sorted, cmp.Compare)
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

func (f *figures) table() string {
	var b strings.Builder
	row := func(name string, of func(phase) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, p := range f.phases {
			fmt.Fprintf(&b, " %s |", of(p))
		}
		b.WriteByte('\n')
	}
	row("", func(p phase) string { return p.name })
	row("---", func(phase) string { return "---:" })
	row("took", func(p phase) string { return p.took.Round(100 * time.Millisecond).String() })
	row("inventories", func(p phase) string { return fmt.Sprint(p.inventories) })
	row("rows written", func(p phase) string { return fmt.Sprint(p.rows) })
	row("lag p50, at most", func(p phase) string { return p.lag.below(0.5).Round(time.Millisecond).String() })
	row("lag p99, at most", func(p phase) string { return p.lag.below(0.99).Round(time.Millisecond).String() })
	row("CPU, share of one core", func(p phase) string { return fmt.Sprintf("%.0f %%", 100*p.cpu/p.took.Seconds()) })
	row("CPU", func(p phase) string { return fmt.Sprintf("%.1f s", p.cpu) })
	row("peak RSS", func(p phase) string { return mebibytes(p.peak) })
	row("written by console", func(p phase) string { return mebibytes(p.written) })
	row("PostgreSQL's log", func(p phase) string { return mebibytes(p.wal) })
	fmt.Fprintf(&b, "\nAfter the kill: ready %s, all agents connected %s, all heard %s after the start.\n", f.ready.Round(10*time.Millisecond), f.back.Round(100*time.Millisecond), f.heard.Round(100*time.Millisecond))
	fmt.Fprintf(&b, "Status of one attempt while the fleet works: p50 %s, p99 %s of %d.\n", share(f.status, 0.5).Round(100*time.Microsecond), share(f.status, 0.99).Round(100*time.Microsecond), len(f.status))
	return b.String()
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
