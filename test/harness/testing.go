package harness

import (
	"context"
	"strings"
	"testing"
	"time"
)

// startLimit bounds each start in a test. It is far above what one takes, since
// tests share their machine.
const startLimit = 3 * time.Minute

// T starts things for one test: each verb ends the test where it fails, what was
// started ends with the test, and a failed test shows the end of every log.
type T struct {
	tb testing.TB
}

// New returns the verbs for a test.
func New(tb testing.TB) *T { return &T{tb: tb} }

// Context ends with the test or after three minutes, whichever comes first.
func (t *T) Context() context.Context {
	ctx, cancel := context.WithTimeout(t.tb.Context(), startLimit)
	t.tb.Cleanup(cancel)
	return ctx
}

// Write makes the test's log the place for progress.
func (t *T) Write(line []byte) (int, error) {
	t.tb.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

// must ends the test on an error.
func (t *T) must(err error) {
	t.tb.Helper()
	if err != nil {
		t.tb.Fatal(err)
	}
}

// endWith stops a thing at the end of the test, after the logs of a failed test
// were shown.
func (t *T) endWith(stop func() error, processes func() []*Process) {
	t.tb.Cleanup(func() {
		if t.tb.Failed() {
			for _, p := range processes() {
				t.tb.Logf("end of the log of %s:\n%s", p.Name(), p.LogTail())
			}
		}
		if err := stop(); err != nil {
			t.tb.Error(err)
		}
	})
}

// ControlPlane starts a whole control plane.
func (t *T) ControlPlane() *ControlPlane {
	t.tb.Helper()
	return t.controlPlane(ControlPlaneOptions{Log: t})
}

// LightControlPlane starts only etcd and the API server.
func (t *T) LightControlPlane() *ControlPlane {
	t.tb.Helper()
	return t.controlPlane(ControlPlaneOptions{Log: t, Light: true})
}

func (t *T) controlPlane(o ControlPlaneOptions) *ControlPlane {
	t.tb.Helper()
	c, err := StartControlPlane(t.Context(), o)
	t.must(err)
	t.endWith(c.Stop, c.Processes)
	return c
}
