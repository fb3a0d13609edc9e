//go:build !testclock

package clock

// Process returns the clock that a program should run on: always the machine's own. The lookup of
// environment variables is used only in builds for tests (build tag testclock), which can be shifted
// from outside; this build holds no code for that.
func Process(_ func(string) string) Clock { return System() }
