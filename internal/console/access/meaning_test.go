package access_test

import (
	"slices"
	"strings"
	"testing"

	"prxm.uz/proxima/internal/console/access"
)

// A permission that is added says what it lets one do.
func TestEveryPermissionHasItsSentence(t *testing.T) {
	var explained []access.Permission
	seen := map[string]bool{}
	for _, m := range access.Meanings() {
		explained = append(explained, m.Permission)
		if m.Part == "" || !strings.HasSuffix(m.Sentence, ".") || strings.Count(m.Sentence, ".") != 1 || seen[m.Sentence] {
			t.Errorf("%s: %q in %q", m.Permission, m.Sentence, m.Part)
		}
		seen[m.Sentence] = true
	}
	if !slices.Equal(explained, access.Permissions()) {
		t.Errorf("explained are %v, of %v", explained, access.Permissions())
	}
}
