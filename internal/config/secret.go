package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// maxSecretFile bounds what is read for a secret: far above any key or token, far below what hurts.
const maxSecretFile = 1 << 20

// redacted is what every way of printing a secret shows.
const redacted = "***"

// Secret is a value that must not be printed. As flag or variable it is the value itself or
// "@/path/to/file", whose content is then taken without white space at its end; a value that itself
// begins with @ is written with two. Every way of formatting it, as JSON and in logs too, shows ***
// (nothing where it is not set). Its zero value is not set.
type Secret struct {
	value *string // a pointer, since %p would print a string's content; nil where not set
}

// NewSecret returns a secret that holds value as it is.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{&value}
}

// Reveal returns the value, empty where it is not set.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsSet reports whether there is a value.
func (s Secret) IsSet() bool { return s.value != nil }

// Equal reports whether both hold the same value. It takes a time that tells about the values: use it
// in tests, not to check what a client sent.
func (s Secret) Equal(other Secret) bool { return s.Reveal() == other.Reveal() }

// Decode implements [kong.MapperValue]. Its errors name the file, never the value.
func (s *Secret) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("secret", &text); err != nil {
		return errors.New("expected a value or @file")
	}
	v, err := readSecret(text)
	if err != nil {
		return err
	}
	*s = NewSecret(v)
	return nil
}

func readSecret(text string) (string, error) {
	path, isFile := strings.CutPrefix(text, "@")
	if !isFile || strings.HasPrefix(path, "@") {
		return path, nil // without @, or with one of two taken off
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the file after @ cannot be read: %w; write the value itself, or @ and the path of a file that this user may read", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", fmt.Errorf("the file after @ cannot be read: %w; write the value itself, or @ and the path of a file that this user may read", err)
	}
	if len(content) > maxSecretFile {
		return "", fmt.Errorf("the file %s is larger than 1 MiB, which no secret is", path)
	}
	value := strings.TrimRight(string(content), " \t\r\n")
	if value == "" {
		return "", fmt.Errorf("the file %s is empty; write the secret into it", path)
	}
	return value, nil
}

// String returns ***, or nothing where the secret is not set.
func (s Secret) String() string {
	if !s.IsSet() {
		return ""
	}
	return redacted
}

// Format implements [fmt.Formatter], so that no verb and no flag reveals the value.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// GoString returns what String returns.
func (s Secret) GoString() string { return s.String() }

// MarshalText returns what String returns; encoding/json uses it too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue implements [slog.LogValuer].
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
