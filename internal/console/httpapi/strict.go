package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep a body may be nested.
const maxDepth = 32

// checkJSON refuses what Go's decoder lets pass and what two readers may take for different things:
// duplicate keys, bytes after the value, NUL, invalid UTF-8, and nesting beyond maxDepth. Its errors
// name no value, since a body may hold a secret.
func checkJSON(body []byte) error {
	if !utf8.Valid(body) {
		return errors.New("the body is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := checkValue(d, 0); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there are bytes after the JSON value")
	}
	return nil
}

func checkValue(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return syntax(err)
	}
	switch v := token.(type) {
	case string:
		return checkText(v)
	case json.Delim:
		if depth >= maxDepth {
			return fmt.Errorf("the body is nested deeper than %d levels", maxDepth)
		}
		if v == '{' {
			return checkObject(d, depth)
		}
		for d.More() {
			if err := checkValue(d, depth+1); err != nil {
				return err
			}
		}
		_, err := d.Token()
		return syntax(err)
	}
	return nil
}

func checkObject(d *json.Decoder, depth int) error {
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return syntax(err)
		}
		key, ok := token.(string)
		if !ok {
			return errors.New("the body is not JSON")
		}
		if err := checkText(key); err != nil {
			return err
		}
		if seen[key] {
			return errors.New("an object holds the same key twice")
		}
		seen[key] = true
		if err := checkValue(d, depth+1); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return syntax(err)
}

func checkText(s string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("a text holds the character NUL")
	}
	return nil
}

func syntax(err error) error {
	if err == nil {
		return nil
	}
	if at, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("the body is not JSON from byte %d on", at.Offset)
	}
	return errors.New("the body is not JSON, or it ends too early")
}
