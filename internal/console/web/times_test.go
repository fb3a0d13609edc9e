package web

import (
	"testing"
	"time"

	"prxm.uz/proxima/internal/console/inventory"
)

func TestAge(t *testing.T) {
	now := start()
	for d, want := range map[time.Duration]string{
		0: "now", 999 * time.Millisecond: "now", time.Second: "1 s ago", 59 * time.Second: "59 s ago", time.Minute: "1 min ago",
		59*time.Minute + 59*time.Second: "59 min ago", time.Hour: "1 h ago", 23*time.Hour + 59*time.Minute: "23 h ago", 24 * time.Hour: "1 d ago",
		201 * 24 * time.Hour: "201 d ago", -500 * time.Millisecond: "now", -time.Second: "in 1 s", -23 * time.Hour: "in 23 h",
	} {
		if got := age(now, now.Add(-d)); got != want {
			t.Errorf("age of %v: %q, want %q", d, got, want)
		}
	}
	if got := exact(now.In(time.FixedZone("", 7200))); got != "2026-11-30 14:32:08 UTC" {
		t.Error(got)
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 512 << 20: "512Mi", 62 << 30: "62.0Gi", 1 << 10: "1Ki", 1: "1", 9 << 30: "9216Mi"} {
		if got := memory(n); got != want {
			t.Errorf("memory(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{250: "250m", 2000: "2", 15890: "15890m"} {
		if got := cpu(n); got != want {
			t.Errorf("cpu(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestPager(t *testing.T) {
	l := list{Path: "/x", Size: 10, Page: 5}
	if p := l.pager(10, 95); p.From != 41 || p.To != 50 || p.Pages != 10 {
		t.Errorf("%+v", p)
	}
	got := l.pager(10, 95).around()
	want := []int{1, 0, 4, 5, 6, 0, 10}
	if len(got) != len(want) {
		t.Fatalf("around: %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("around: %v, want %v", got, want)
		}
	}
}

func TestAnOldDropIsNotTold(t *testing.T) {
	now := start()
	for name, row := range map[string]struct {
		dropped, synced time.Time
		want            bool
	}{
		"never":                     {time.Time{}, now, false},
		"just now":                  {now.Add(-2 * time.Minute), now.Add(-time.Minute), true},
		"yesterday, others since":   {now.Add(-24 * time.Hour), now.Add(-time.Minute), false},
		"yesterday, and none since": {now.Add(-24 * time.Hour), now.Add(-25 * time.Hour), true},
	} {
		if got := dropping(inventory.Cluster{DroppedAt: row.dropped, LastSyncAt: row.synced}, now); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
