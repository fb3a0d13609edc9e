package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzCheckJSON compares with a slow model: what passes is what encoding/json reads, in UTF-8, with each key once,
// without NUL and halves of surrogate pairs, and no deeper than the limit.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a"}`, `{"a":1,"a":2}`, `{"a":{"b":[1,2,{"c":null}]}}`, `"\u0000"`, `[[[[`, `{} {}`, "\xff", `{"a":`, `1e999`, ` `, `{"a" "b"}`,
		strings.Repeat("[", 33) + strings.Repeat("]", 33), `{"\ud800":1,"\ud801":2}`, `{"a":1,"\u0061":2}`, `["\\u0000","\ud83d\ude80","\\ud800"]`,
	} {
		f.Add([]byte(seed))
	}
	// A pair, a half, or any other escape.
	escapes := regexp.MustCompile(`(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(\\ud[89a-f][0-9a-f]{2})|\\.`)
	half := func(m [][]byte) bool { return m[1] != nil }
	f.Fuzz(func(t *testing.T, body []byte) {
		err := checkJSON(body)
		if err != nil && len(err.Error()) > 100 {
			t.Errorf("the error repeats the input: %v", err)
		}
		if want := json.Valid(body) && utf8.Valid(body) && sound(body) && !slices.ContainsFunc(escapes.FindAllSubmatch(body, -1), half); want != (err == nil) {
			t.Errorf("%q: %v, the model says %v", body, err, want)
		}
	})
}

// sound walks valid JSON token by token.
func sound(body []byte) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	type level struct {
		keys  map[string]bool // nil in an array
		value bool            // a value comes next, not a key
	}
	var levels []level
	for {
		token, err := d.Token()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		if text, ok := token.(string); ok && strings.ContainsRune(text, 0) {
			return false
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels); n > 0 && levels[n-1].keys != nil {
			if top := &levels[n-1]; !top.value {
				key, _ := token.(string) // the decoder refuses any other
				if top.keys[key] {
					return false
				}
				top.keys[key], top.value = true, true
				continue
			}
			levels[n-1].value = false
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{keys: map[string]bool{}})
		case json.Delim('['):
			levels = append(levels, level{})
		}
		if len(levels) > maxDepth {
			return false
		}
	}
}

func TestCheckJSON(t *testing.T) {
	for body, says := range map[string]string{
		`{"a":"b"}`: "", ` "a" `: "", `{"a":"\ud83d\ude80"}`: "",
		``: "ends too early", ` `: "ends too early", `{"a":`: "ends too early", `{"a"`: "ends too early",
		`{"a":1}{"b":2}`: "bytes after", `{} x`: "from byte 3", `{"a":1,"a":2}`: "same key twice", `{"a":1,"\u0061":2}`: "same key twice",
		`{"a":"\u0000"}`: "NUL", `{"\u0000":1}`: "NUL", "\xff": "from byte 0", "{\"a\":\"\xff\"}": "from byte", `{"a":"\ud800"}`: "from byte", `{'a':1}`: "from byte 1",
	} {
		err := checkJSON([]byte(body))
		if says == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", body, err, says)
		}
	}
}

func TestDepthLimit(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := checkJSON(nested(maxDepth)); err != nil {
		t.Errorf("%d levels: %v", maxDepth, err)
	}
	if err := checkJSON(nested(maxDepth + 1)); err == nil {
		t.Errorf("%d levels pass", maxDepth+1)
	}
}
