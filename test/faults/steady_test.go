package faults

import (
	"regexp"
	"testing"
)

// steady replaces what differs between two runs by an example of it.
func steady(text string) string {
	for _, r := range []struct{ pattern, by string }{
		{`\b\d+ (s|min|h) ago`, "some time ago"},
		{`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`, "2026-12-01 09:00:00 UTC"},
		{`\b\d\d:\d\d UTC`, "09:05 UTC"},
		{`127\.0\.0\.1:\d+`, "console.example"},
		{`from 127\.0\.0\.1\b`, "from 203.0.113.7"},
		{`pit_[A-Za-z0-9]{4}`, "pit_AB12"},
		{`\bagent-[a-z0-9]+\b`, "collector-0"},
		{`another \d+ h\b`, "another 23 h"},
		{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "5f0c0b6e-6c39-4d2a-9a53-1f1c7a9b2d44"},
		{`[0-9a-f]{2}(:[0-9a-f]{2}){31}|\b[0-9a-f]{64}\b`, "3f…"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.by)
	}
	return text
}

func TestSteady(t *testing.T) {
	if got := steady("Seen 3 min ago from 127.0.0.1 at 127.0.0.1:4711."); got != "Seen some time ago from 203.0.113.7 at console.example." {
		t.Error(got)
	}
}
