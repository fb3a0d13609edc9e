package version

import (
	"fmt"
	"regexp"
	"testing"
)

// FuzzParse compares with a slow model, an expression. What is read is the same when it is written, and no older
// than itself; what is not is older than everything.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "0.9.0", "v0.9.0-dev+0123abc", "1.2", "01.2.3", "1.2.3-", "1.2.3+a..b", "4294967296.0.0", "+1.0.0", "1.2.3-rc.1-x+b-c", "vv1.2.3", "1.2.3\n"} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`\Av?(?:0|[1-9][0-9]{0,9})\.(?:0|[1-9][0-9]{0,9})\.(?:0|[1-9][0-9]{0,9})(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?\z`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Parse(text)
		if err != nil {
			if AtLeast(text, "0.0.0") {
				t.Errorf("%q is no version, and no older than 0.0.0", text)
			}
			return
		}
		if !form.MatchString(text) {
			t.Errorf("%q was read as %+v, the expression refuses it", text, v)
		}
		written := fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
		if v.Pre != "" {
			written += "-" + v.Pre
		}
		if v.Build != "" {
			written += "+" + v.Build
		}
		if back, err := Parse(written); err != nil || back != v || !AtLeast(text, written) || !AtLeast(written, text) {
			t.Errorf("%q was read as %+v, %q as %+v (%v)", text, v, written, back, err)
		}
	})
}
