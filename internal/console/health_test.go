package console

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"prxm.uz/proxima/internal/console/health/part"
)

// noNATS is not connected.
type noNATS struct{}

func (noNATS) Connection() part.NATS { return part.NATS{} }

func (noNATS) Stream(context.Context) (part.Stream, error) {
	return part.Stream{}, errors.New("asked without a connection")
}

func (noNATS) Ingest(context.Context) (part.Ingest, error) {
	return part.Ingest{}, errors.New("asked without a connection")
}

func TestMeasureDisk(t *testing.T) {
	dir := t.TempDir()
	if d, err := measureDisk(dir); err != nil || d.Directory != dir || d.Total <= 0 || d.Free > d.Total {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := measureDisk(filepath.Join(dir, "nothing")); err == nil {
		t.Error("a directory that is not there was measured")
	}
}
