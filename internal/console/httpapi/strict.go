package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds how deep a body may be nested.
const maxDepth = 32

// checkJSON refuses what encoding/json lets pass and what two readers may take for different things:
// duplicate keys, bytes after the value, NUL, invalid UTF-8, halves of surrogate pairs, and nesting
// beyond maxDepth (RFC 7493, I-JSON, section 2, is stricter than JSON in the same places). Its errors name
// no value, since a body may hold a secret.
func checkJSON(body []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for values := 0; ; {
		token, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF) && values == 1:
			return nil
		case err != nil:
			return malformed(err)
		case values == 1:
			return errors.New("there are bytes after the JSON value")
		case d.StackDepth() > maxDepth:
			return fmt.Errorf("the body is nested deeper than %d levels", maxDepth)
		case token.Kind() == '"' && strings.ContainsRune(token.String(), 0):
			return errors.New("a text holds the character NUL")
		}
		if d.StackDepth() == 0 {
			values++
		}
	}
}

func malformed(err error) error {
	at, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("an object holds the same key twice")
	case !ok, errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the body is not JSON, or it ends too early")
	}
	return fmt.Errorf("the body is not JSON in UTF-8 from byte %d on", at.ByteOffset)
}
