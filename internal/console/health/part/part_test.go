package part

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"prxm.uz/proxima/internal/console/onboarding/gate"
)

var update = flag.Bool("update", false, "write the golden file anew")

var noon = time.Date(2026, 12, 3, 12, 0, 0, 0, time.UTC)

const late = "nothing came within 3 s"

// facts are of a Console with everything inside, unless changed.
func facts(change func(*Facts)) Facts {
	disk := gate.Measured(Disk{Directory: "/var/lib/proxima", Free: 41 << 30, Total: 100 << 30}, noon)
	f := Facts{
		Engine: SQLite, Schema: 7, Embedded: true, SyncInterval: 5 * time.Minute, Disk: &disk,
		Database: gate.Measured(Database{Version: "3.50.4", Schema: 7, Took: 2 * time.Millisecond}, noon),
		Writes:   gate.Measured(true, noon),
		NATS:     gate.Measured(NATS{Connected: true, Server: "proxima-console", Version: "2.12.1"}, noon),
		Stream:   gate.Measured(Stream{Name: "INVENTORY", Bytes: 12 << 20, Limit: 8 << 30, Inventories: 31, Tried: true, Stores: true}, noon),
		Ingest:   gate.Measured(Ingest{StoredAt: noon.Add(-11 * time.Second), Lag: 40 * time.Millisecond}, noon),
	}
	if change != nil {
		change(&f)
	}
	return f
}

// external are of a Console with PostgreSQL, NATS and a certificate of its own.
func external(change func(*Facts)) func(*Facts) {
	return func(f *Facts) {
		f.Engine, f.Embedded, f.Disk = PostgreSQL, false, nil
		f.Database.Value = Database{Version: "17.6", Schema: 7, Took: 3 * time.Millisecond, HasClock: true, Ahead: 4 * time.Millisecond}
		f.NATS.Value = NATS{Connected: true, Server: "nats-0", Address: "10.0.0.5:4222", Version: "2.12.1"}
		f.Certificate = &Certificate{Names: []string{"console.example"}, NotBefore: noon.Add(-30 * 24 * time.Hour), NotEnd: noon.Add(60 * 24 * time.Hour)}
		if change != nil {
			change(f)
		}
	}
}

type story struct {
	name   string
	change func(*Facts)
	// parts are those that are shown; empty: all.
	parts string
}

func stories() []story {
	return []story{
		{"everything inside", nil, ""},
		{"everything outside", external(nil), ""},
		{"SQLite gives no answer", func(f *Facts) {
			f.Database, f.Writes = gate.CouldNotRead[Database]("the question failed", noon), gate.Measured(false, noon)
		}, "database writes schema"},
		{"PostgreSQL hangs", external(func(f *Facts) {
			f.Database, f.Writes = gate.CouldNotRead[Database](late, noon), gate.CouldNotRead[bool](late, noon)
		}), "database writes schema clock"},
		{"the file takes no writes", func(f *Facts) { f.Writes.Value = false }, "writes"},
		{"PostgreSQL takes no writes", external(func(f *Facts) { f.Writes.Value = false }), "writes"},
		{"writes hang", func(f *Facts) { f.Writes = gate.CouldNotRead[bool](late, noon) }, "writes"},
		{"nothing was measured", func(f *Facts) { *f = Facts{Engine: PostgreSQL, Disk: &gate.Reading[Disk]{}, SyncInterval: time.Minute} }, ""},
		{"a later schema", func(f *Facts) { f.Database.Value.Schema = 8 }, "schema"},
		{"an older schema", func(f *Facts) { f.Database.Value.Schema = 6 }, "schema"},
		{"the database's clock is ahead", external(func(f *Facts) { f.Database.Value.Ahead = 9 * time.Second }), "clock"},
		{"the database's clock is behind", external(func(f *Facts) { f.Database.Value.Ahead = -4 * time.Minute }), "clock"},
		{"a slow answer hides the clock", external(func(f *Facts) { f.Database.Value.Ahead, f.Database.Value.Took = 3*time.Second, 12*time.Second }), "clock"},
		{"a database without a clock", external(func(f *Facts) { f.Database.Value.HasClock = false }), "clock"},
		{"NATS inside ended", func(f *Facts) { f.NATS.Value = NATS{} }, "nats stream ingest"},
		{"NATS outside is away", external(func(f *Facts) { f.NATS.Value = NATS{} }), "nats stream ingest"},
		{"the stream is unread", func(f *Facts) { f.Stream = gate.CouldNotRead[Stream]("the question failed", noon) }, "stream"},
		{"the stream stores nothing", func(f *Facts) { f.Stream.Value.Stores = false }, "stream"},
		{"the stream outside stores nothing", external(func(f *Facts) { f.Stream.Value.Stores = false }), "stream"},
		{"the stream was not tried", func(f *Facts) { f.Stream.Value.Tried, f.Stream.Value.Stores = false, false }, "stream"},
		{"the stream is nearly full", func(f *Facts) { f.Stream.Value.Bytes = 7 << 30 }, "stream"},
		{"ingest is unread", func(f *Facts) { f.Ingest = gate.CouldNotRead[Ingest](late, noon) }, "ingest"},
		{"a fresh start", func(f *Facts) { f.Ingest.Value = Ingest{} }, "ingest"},
		{"some wait", func(f *Facts) { f.Ingest.Value.Waiting = 3 }, "ingest"},
		{"one waits, and none was stored", func(f *Facts) { f.Ingest.Value = Ingest{Waiting: 1} }, "ingest"},
		{"agents send faster than Console stores", func(f *Facts) { f.Ingest.Value.Waiting, f.Ingest.Value.Lag = 300, 6*time.Minute }, "ingest"},
		{"some failed before", func(f *Facts) { f.Ingest.Value.Waiting, f.Ingest.Value.Again = 4, 2 }, "ingest"},
		{"the disk is low", func(f *Facts) { f.Disk.Value.Free = DiskLow - 1<<20 }, "disk"},
		{"the disk is full", func(f *Facts) { f.Disk.Value.Free = 3000 }, "disk"},
		{"the disk is unread", func(f *Facts) { *f.Disk = gate.CouldNotRead[Disk](late, noon) }, "disk"},
		{"the certificate ends soon", external(func(f *Facts) { f.Certificate.NotEnd = noon.Add(13 * 24 * time.Hour) }), "certificate"},
		{"a certificate of six days in the middle of its life", external(func(f *Facts) {
			f.Certificate.NotBefore, f.Certificate.NotEnd = noon.Add(-3*24*time.Hour), noon.Add(3*24*time.Hour)
		}), "certificate"},
		{"the certificate ended", external(func(f *Facts) { f.Certificate.NotEnd = noon.Add(-26 * time.Minute) }), "certificate"},
		{"the certificate is of tomorrow", external(func(f *Facts) { f.Certificate.NotBefore = noon.Add(24 * time.Hour) }), "certificate"},
		{"a longer interval", func(f *Facts) { f.SyncInterval = 90 * time.Minute }, "sync"},
	}
}

// TestSentences pins every sentence. Write the file anew with -update, and read the difference.
func TestSentences(t *testing.T) {
	var b strings.Builder
	for _, s := range stories() {
		fmt.Fprintf(&b, "# %s\n", s.name)
		for _, p := range Judge(facts(s.change), noon) {
			if s.parts != "" && !strings.Contains(" "+s.parts+" ", " "+p.ID+" ") {
				continue
			}
			fmt.Fprintf(&b, "%s | %s: %s\n  %s\n", p.ID, p.Title, p.State, p.Sentence)
			if p.Next != "" {
				fmt.Fprintf(&b, "  Next: %s\n", p.Next)
			}
			for _, fact := range p.Facts {
				fmt.Fprintf(&b, "  - %s: %s\n", fact.Label, fact.Value)
			}
		}
		b.WriteByte('\n')
	}
	path := filepath.Join("testdata", "parts.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWhatIsTrueOfAll: warning and failed name the next step, the others none; every part has its time and one
// sentence at least, and no id comes twice.
func TestWhatIsTrueOfAll(t *testing.T) {
	for _, s := range stories() {
		seen := map[string]bool{}
		for _, p := range Judge(facts(s.change), noon) {
			acts := p.State == gate.Failed || p.State == gate.Warning
			if acts != (p.Next != "") {
				t.Errorf("%s: %s is %s with the next step %q", s.name, p.ID, p.State, p.Next)
			}
			if seen[p.ID] || p.Title == "" || !strings.HasSuffix(p.Sentence, ".") || strings.Contains(p.Sentence, "%!") || !p.At.Equal(noon) {
				t.Errorf("%s: %+v", s.name, p)
			}
			seen[p.ID] = true
		}
	}
}

// TestWhatWasNotReadNeverPasses takes each fact away, alone.
func TestWhatWasNotReadNeverPasses(t *testing.T) {
	for name, take := range map[string]struct {
		parts  string
		change func(*Facts)
	}{
		"database": {"database schema clock", func(f *Facts) { f.Database = gate.Reading[Database]{} }},
		"writes":   {"writes", func(f *Facts) { f.Writes = gate.Reading[bool]{} }},
		"nats":     {"nats stream ingest", func(f *Facts) { f.NATS = gate.Reading[NATS]{} }},
		"stream":   {"stream", func(f *Facts) { f.Stream = gate.Reading[Stream]{} }},
		"ingest":   {"ingest", func(f *Facts) { f.Ingest = gate.Reading[Ingest]{} }},
		"disk":     {"disk", func(f *Facts) { f.Disk = &gate.Reading[Disk]{} }},
	} {
		judged := 0
		for _, p := range Judge(facts(external(take.change)), noon) {
			if !strings.Contains(" "+take.parts+" ", " "+p.ID+" ") {
				continue
			}
			judged++
			if p.State == gate.Passed || p.State == gate.Waiting {
				t.Errorf("without %s: %s is %s: %s", name, p.ID, p.State, p.Sentence)
			}
		}
		if judged != len(strings.Fields(take.parts)) {
			t.Errorf("without %s: %d parts", name, judged)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 8 << 30: "8 GiB", 1 << 50: "1024 TiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}
