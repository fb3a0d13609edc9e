package faults

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// troubleshooting is docs/troubleshooting.md.
func troubleshooting(table []seen) string {
	var b strings.Builder
	b.WriteString("# Troubleshooting\n\nWhat the gates say about each fault, as a test saw them say it against real servers, and beside them what\nthe pod’s log or Console itself says. Names, ages and addresses are examples.\n")
	section := ""
	for _, r := range table {
		if r.section != section {
			section = r.section
			fmt.Fprintf(&b, "\n## %s\n", section)
		}
		fmt.Fprintf(&b, "\n### %s\n\nGate %d, %s: %s\n", r.name, r.gate, r.state, r.sentence)
		if r.action != "" {
			fmt.Fprintf(&b, "\nDo: %s\n", r.action)
		}
		if r.command != "" {
			fmt.Fprintf(&b, "\n```sh\n%s\n```\n", r.command)
		}
		for _, t := range r.told {
			fmt.Fprintf(&b, "\n%s: %s\n", t.who, t.text)
			if t.cure != "" {
				fmt.Fprintf(&b, "\nDo: %s\n", t.cure)
			}
		}
	}
	return b.String()
}

// plain replaces what differs between two runs by an example of it.
func (s *scene) plain(text string) string {
	for _, plane := range []string{s.plane.Server(), s.second.Server()} {
		text = strings.ReplaceAll(text, strings.TrimPrefix(plane, "https://"), "kubernetes.example:6443")
	}
	for _, p := range s.proxies {
		text = strings.ReplaceAll(text, p, "proxy.example:3128")
	}
	return steady(strings.ReplaceAll(text, s.namespace(), "proxima-system"))
}

// uid is how a cluster's fingerprint looks.
var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// uids gives each fingerprint an example of its own.
func uids(text string) string {
	seen := map[string]string{}
	return uid.ReplaceAllStringFunc(text, func(found string) string {
		if seen[found] == "" {
			seen[found] = fmt.Sprintf("5f0c0b6e-6c39-4d2a-9a53-1f1c7a9b2d%02d", 44+len(seen))
		}
		return seen[found]
	})
}

// steady is plain for what does not depend on the scene.
func steady(text string) string {
	for _, r := range []struct{ pattern, by string }{
		{`\b\d+ (s|min|h|d) ago`, "some time ago"},
		{`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "2026-12-01T09:00:00Z"},
		{`\b\d{4}-\d\d-\d\d \d\d:\d\d UTC`, "2026-12-01 09:05 UTC"},
		{`\b\d\d:\d\d UTC`, "09:05 UTC"},
		{`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`, "2026-12-01 09:00:00 UTC"},
		{regexp.QuoteMeta(os.TempDir()) + `/[^ :]*/(state\.[a-z]+)`, "/var/lib/proxima-agent/$1"},
		{regexp.QuoteMeta(os.TempDir()) + `/[^ :]*`, "/var/lib/proxima-agent"},
		{`(127\.0\.0\.1|0\.0\.0\.0|localhost|console\.example):\d+`, "console.example"},
		{`\b\d+ namespaces`, "4 namespaces"},
		{`(nats connection lost): .*`, "$1"},
		{`\(\d+ bytes\)`, "(1208 bytes)"},
		{`\b(59m\d+s|1h0m\d+s)\b`, "1h0m0s"},
		{`from 127\.0\.0\.1\b`, "from 203.0.113.7"},
		{`(cannot be resolved): [^;]*`, "$1"},
		{`pit_[A-Za-z0-9]{4}`, "pit_AB12"},
		{`another \d+ h\b`, "another 23 h"},
		{`[0-9a-f]{2}(:[0-9a-f]{2}){31}|\b[0-9a-f]{64}\b`, "3f…"},
		{`\b(err|agt|onb)_[A-Za-z0-9]+`, "${1}_5f0c"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.by)
	}
	return uids(text)
}

func TestSteady(t *testing.T) {
	for said, want := range map[string]string{
		"Seen 3 min ago from 127.0.0.1 at 127.0.0.1:4711.":            "Seen some time ago from 203.0.113.7 at console.example.",
		"expired at 2031-02-28 23:59 UTC, due by 00:01 UTC":           "expired at 2026-12-01 09:05 UTC, due by 09:05 UTC",
		"valid to 2031-02-28T23:59:59Z, read 2031-02-28 23:59:59 UTC": "valid to 2026-12-01T09:00:00Z, read 2026-12-01 09:00:00 UTC",
	} {
		if got := steady(said); got != want {
			t.Errorf("%s: %s", said, got)
		}
	}
}

// attribute is one of a log line: a value is quoted where it has spaces.
var attribute = regexp.MustCompile(`([a-z_]+)=("(?:[^"\\]|\\.)*"|\S*)`)

// parseLine takes from a line of the agent's log what a person reads in it.
func parseLine(line string) (told, bool) {
	values := map[string]string{}
	for _, m := range attribute.FindAllStringSubmatch(line, -1) {
		value := m[2]
		if text, err := strconv.Unquote(value); err == nil {
			value = text
		}
		values[m[1]] = value
	}
	t := told{who: "The pod’s log", cure: values["cure"], text: values["msg"]}
	for _, name := range []string{"check", "code", "dependency", "finding", "detail", "reason"} {
		if v := values[name]; v != "" {
			t.text += ": " + v
		}
	}
	return t, values["msg"] != ""
}

func TestParseLine(t *testing.T) {
	got, ok := parseLine(`time=2026-12-01T09:00:00Z level=WARN msg=self-check check=backend.dns status=failed finding="x says \"no\"" cure="correct the name"`)
	if want := (told{"The pod’s log", `self-check: backend.dns: x says "no"`, "correct the name"}); !ok || got != want {
		t.Errorf("%+v", got)
	}
	if _, ok := parseLine("waited 3 s in vain"); ok {
		t.Error("a line without a message")
	}
}
