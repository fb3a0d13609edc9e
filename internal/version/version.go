// Package version owns which version this build is, and how two versions compare.
package version

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
)

// next is the release that the source leads to. A build that was not given a release reports it with
// the suffix -dev.
const next = "0.9.0"

// release and commit are set by the linker in release builds and by make:
//
//	-X prxm.uz/proxima/internal/version.release=0.9.0
//	-X prxm.uz/proxima/internal/version.commit=0123abcd
var (
	release string //nolint:gochecknoglobals // the linker's -X can set only a package variable; nothing writes it at run time
	commit  string //nolint:gochecknoglobals // as release
)

// String returns this build's version: "0.9.0" for a release, "0.9.0-dev+<commit>" between tags, and
// "0.9.0-dev" where the commit is unknown.
func String() string {
	var settings []debug.BuildSetting
	if info, ok := debug.ReadBuildInfo(); ok {
		settings = info.Settings
	}
	return describe(release, commit, settings)
}

func describe(release, commit string, settings []debug.BuildSetting) string {
	if release != "" {
		return strings.TrimPrefix(release, "v")
	}
	for _, s := range settings {
		if s.Key == "vcs.revision" && commit == "" {
			commit = s.Value
		}
	}
	if commit == "" {
		return next + "-dev"
	}
	return next + "-dev+" + commit[:min(len(commit), 12)]
}

// Version is a parsed version: three numbers and a mark. Its zero value is 0.0.0.
type Version struct {
	Major, Minor, Patch uint64
	// Pre is what stands behind the hyphen ("dev", "rc.1"), empty for a release.
	Pre string
	// Build is what stands behind the plus sign. It plays no part in comparisons.
	Build string
}

// Parse reads "0.9.0", "v0.9.0" or "0.9.0-dev+0123abc". Each number must be there, without sign or
// leading zero.
func Parse(s string) (Version, error) {
	refuse := func() (Version, error) {
		return Version{}, fmt.Errorf("version %q is not of the form 1.2.3 or 1.2.3-mark+build", s)
	}
	var v Version
	rest, build, hasBuild := strings.Cut(strings.TrimPrefix(s, "v"), "+")
	rest, pre, hasPre := strings.Cut(rest, "-")
	if hasBuild && !marks(build) || hasPre && !marks(pre) {
		return refuse()
	}
	v.Pre, v.Build = pre, build
	numbers := strings.Split(rest, ".")
	if len(numbers) != 3 {
		return refuse()
	}
	for i, target := range []*uint64{&v.Major, &v.Minor, &v.Patch} {
		n, err := strconv.ParseUint(numbers[i], 10, 32)
		if err != nil || strconv.FormatUint(n, 10) != numbers[i] {
			return refuse()
		}
		*target = n
	}
	return v, nil
}

// marks reports whether s consists of dot-separated identifiers, none empty.
func marks(s string) bool {
	for _, part := range strings.Split(s, ".") {
		if part == "" {
			return false
		}
		for _, r := range part {
			if r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
				return false
			}
		}
	}
	return true
}

// Compare returns -1, 0 or 1 as v is older than, as old as or newer than w. Only the three numbers
// count: a build between tags is named after the release that it leads to and already knows what
// that release knows, so 0.9.0-dev is as old as 0.9.0.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

// AtLeast reports whether the version have is no older than want. A version that cannot be parsed
// counts as older than everything.
func AtLeast(have, want string) bool {
	h, err := Parse(have)
	if err != nil {
		return false
	}
	w, err := Parse(want)
	return err == nil && h.Compare(w) >= 0
}
