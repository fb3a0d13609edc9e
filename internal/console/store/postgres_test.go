package store

import (
	"strings"
	"testing"
	"unicode"
)

// TestNoErrorShowsThePassword tries passwords that are not written as they should be, in each form, where nothing
// listens.
func TestNoErrorShowsThePassword(t *testing.T) {
	const cure = "what is neither letter nor digit in the password as % and two hexadecimal digits"
	forms := map[string]string{
		"URL":             "postgres://user:PASSWORD@127.0.0.1:1/name",
		"other scheme":    "postgresql://user:PASSWORD@127.0.0.1:1/name?sslmode=disable",
		"no port":         "postgres://user:PASSWORD@localhost/name?sslmode=maybe",
		"bad port":        "postgres://user:PASSWORD@127.0.0.1:99999/name",
		"one slash":       "postgres:/user:PASSWORD@127.0.0.1:1/name",
		"no scheme":       "user:PASSWORD@127.0.0.1:1/name",
		"key=value":       "host=127.0.0.1 port=1 password=PASSWORD user=user dbname=name",
		"key=value, last": "host=127.0.0.1 port=1 user=user dbname=name sslmode=disable password=PASSWORD",
	}
	passwords := []string{
		"9876secretive", "9876/54secretive", "9876?54secretive", "9876#54secretive", "secretive/54", "secretive?54=hidden", "secretive#54",
		"secretive hidden@x", "secretive hidden", "secretive@hidden", "9876/secretive@hidden", "secretive%zzhidden", "secretive:hidden", "9876[hidden]",
		"secretive\\hidden", "'secretive' hidden", "'secretive", "secretive=hidden", "secretive hidden =", "9876/54?secretive@hidden",
	}
	for name, form := range forms {
		for _, password := range passwords {
			text := strings.ReplaceAll(form, "PASSWORD", password)
			db, err := Open(t.Context(), Config{URL: text})
			if err == nil {
				t.Errorf("%s: %s was opened", name, text)
				_ = db.Close()
				continue
			}
			said := err.Error()
			for _, part := range strings.FieldsFunc(password, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
				if len(part) > 2 && strings.Contains(said, part) {
					t.Errorf("%s: %s: the error shows %q: %s", name, text, part, said)
				}
			}
			if !strings.HasPrefix(said, "reach PostgreSQL at ") && !strings.HasSuffix(said, cure) {
				t.Errorf("%s: %s: the error brings no cure: %s", name, text, said)
			}
		}
	}
}

func TestMisplacedAtIsRefused(t *testing.T) {
	const want = "the URL holds more than one @, or one behind its first /, ? or #, so that a part of the password would be taken for the host or the database; " +
		"write it as postgres://user:password@host:5432/name, and what is neither letter nor digit in the password as % and two hexadecimal digits"
	for _, password := range []string{"12/34secret", "12?34secret", "12#34secret"} {
		_, err := Open(t.Context(), Config{URL: "postgres://user:" + password + "@127.0.0.1:1/name"})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", password, err)
		}
	}
	conf, err := parsePostgres("postgres://user:12%2F34%40secret@127.0.0.1:1/a%40b")
	if err != nil || conf.Password != "12/34@secret" || conf.Database != "a@b" || conf.Host != "127.0.0.1" {
		t.Errorf("with what it should be: %+v, %v", conf, err)
	}
}
