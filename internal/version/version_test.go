package version

import (
	"runtime/debug"
	"testing"
)

func TestDescribe(t *testing.T) {
	vcs := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}}
	for _, c := range []struct {
		release, commit string
		settings        []debug.BuildSetting
		want            string
	}{
		{"", "", nil, "0.9.0-dev"},
		{"", "", vcs, "0.9.0-dev+0123456789ab"},
		{"", "feed", vcs, "0.9.0-dev+feed"},
		{"v0.9.0", "feed", vcs, "0.9.0"},
		{"0.9.1", "", nil, "0.9.1"},
	} {
		if got := describe(c.release, c.commit, c.settings); got != c.want {
			t.Errorf("describe(%q, %q, %v) = %q, want %q", c.release, c.commit, c.settings, got, c.want)
		}
	}
}

func TestStringParses(t *testing.T) {
	if _, err := Parse(String()); err != nil {
		t.Error(err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"", "v", "1", "1.2", "1.2.3.4", "1.2.x", "01.2.3", "+1.2.3", "-1.2.3", "1.2.3-", "1.2.3+", "1.2.3-a..b",
		"1.2.3-a b", "1.2.3\n", " 1.2.3", "1.2.99999999999", "1.2.3+é", "vv1.2.3",
	} {
		if v, err := Parse(s); err == nil {
			t.Errorf("Parse(%q) = %+v", s, v)
		}
	}
}

func TestAtLeast(t *testing.T) {
	for _, c := range []struct {
		have, want string
		ok         bool
	}{
		{"0.9.0", "0.9.0", true},
		{"v0.9.1", "0.9.0", true},
		{"0.10.0", "0.9.9", true},
		{"1.0.0", "0.99.99", true},
		{"0.9.0-dev+abc", "0.9.0", true},
		{"0.9.0", "0.9.0-dev+abc", true},
		{"0.8.9", "0.9.0", false},
		{"0.9.0", "0.9.1-dev", false},
		{"", "0.9.0", false},
		{"latest", "0.0.0", false},
	} {
		if got := AtLeast(c.have, c.want); got != c.ok {
			t.Errorf("AtLeast(%q, %q) = %v", c.have, c.want, got)
		}
	}
}
