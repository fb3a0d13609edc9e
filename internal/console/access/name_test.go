package access_test

import (
	"testing"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/problem"
)

// TestNamesCanBeSeen: two names that look the same are one trap; joiners are spelling between letters only.
func TestNamesCanBeSeen(t *testing.T) {
	for name, code := range map[string]string{
		"Halden Energy": "", "O'Brien's": "", "日本語 🚀": "", "e\u0301": "", "⚙\uFE0F ops": "",
		"می\u200cخواهم":                  "", // Persian, ZWNJ between letters
		"क\u094d\u200dष":                 "", // Devanagari, ZWJ after a mark
		"acme\u200b":                     "name_invalid",
		"ac\u200bme":                     "name_invalid",
		"ac\u00adme":                     "name_invalid",
		"\ufeffacme":                     "name_invalid",
		"ac\u2060me":                     "name_invalid",
		"acme\U000E0041":                 "name_invalid",
		"acme\u200d":                     "name_invalid",
		"\u200cacme":                     "name_invalid",
		"acme \u200denergy":              "name_invalid",
		"ac\u200d\u200dme":               "name_invalid",
		"\u3164":                         "name_invalid", // the Hangul filler is a letter, and drawn as nothing
		"a\u202eb":                       "name_invalid",
		"a\nb":                           "name_invalid",
		"\U0001F469\u200d\U0001F4BB dev": "name_invalid",
	} {
		if err := access.CheckName("name", name, 100); problem.CodeOf(err) != code {
			t.Errorf("%+q: %v, want %q", name, err, code)
		}
	}
}
