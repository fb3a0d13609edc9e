// Package dbtype owns the Go types of columns whose meaning SQL does not carry: times as integers, and
// text that is null when empty. Both engines then hand out and take the same values.
package dbtype

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// Time is a point in time, kept as microseconds UTC since 1970. The zero time is NULL, so that a NOT
// NULL column refuses it. What is finer than a microsecond is cut off.
type Time struct{ time.Time }

// At makes a Time.
func At(t time.Time) Time { return Time{t} }

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) {
	if t.IsZero() {
		return nil, nil
	}
	return t.UnixMicro(), nil
}

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		t.Time = time.Time{}
	case int64:
		t.Time = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time column holds %T, not an integer", src)
	}
	return nil
}

// Text is a text that is NULL when empty: an optional reference.
type Text string

// Value implements driver.Valuer.
func (t Text) Value() (driver.Value, error) {
	if t == "" {
		return nil, nil
	}
	return string(t), nil
}

// Scan implements sql.Scanner.
func (t *Text) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*t = ""
	case string:
		*t = Text(v)
	case []byte:
		*t = Text(v)
	default:
		return fmt.Errorf("a text column holds %T", src)
	}
	return nil
}
