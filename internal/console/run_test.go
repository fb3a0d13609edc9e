package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prxm.uz/proxima/internal/console/natsauth"
)

// TestDamagedKeysAreNotMadeAnew: of keys that are there nobody is told to make others, which would lock every agent
// out; of those that are not, how to get them.
func TestDamagedKeysAreNotMadeAnew(t *testing.T) {
	dir := t.TempDir()
	if _, err := natsauth.LoadOrCreate(dir); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v: %v", files, err)
	}
	for what, damage := range map[string]func() error{
		"is cut short":          func() error { return os.Truncate(files[0], 10) },
		"is readable by others": func() error { return os.Chmod(files[0], 0o644) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		for _, external := range []bool{false, true} {
			_, err := natsauth.Load(dir)
			if err == nil || cureOfKeys(err, external) != "" || strings.Contains(err.Error(), "nats-setup") {
				t.Errorf("a file that %s: %v%s", what, err, cureOfKeys(err, external))
			}
		}
	}
	_, err = natsauth.Load(filepath.Join(dir, "elsewhere"))
	if err == nil || !strings.Contains(cureOfKeys(err, true), "nats-setup") || strings.Contains(cureOfKeys(err, false), "nats-setup") {
		t.Errorf("no file: %v", err)
	}
}
