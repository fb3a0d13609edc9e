package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzCheckJSON: what passes is JSON that both of Go's readings agree on, and nothing panics.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a"}`, `{"a":1,"a":2}`, `{"a":{"b":[1,2,{"c":null}]}}`, `"\u0000"`, `[[[[`, `{} {}`, "\xff", `{"a":`, `1e999`, ` `, `{"a" "b"}`,
		strings.Repeat("[", 33) + strings.Repeat("]", 33), `{"\ud800":1,"\ud801":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		err := checkJSON(body)
		if err == nil && !json.Valid(body) {
			t.Errorf("passed %q, which is not JSON", body)
		}
		if err != nil && len(err.Error()) > 100 {
			t.Errorf("the error repeats the input: %v", err)
		}
		if err == nil && strings.Contains(string(body), `\u0000`) && !strings.Contains(string(body), `\\u0000`) {
			t.Errorf("passed %q, which holds NUL", body)
		}
	})
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
