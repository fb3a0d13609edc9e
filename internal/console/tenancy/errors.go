package tenancy

import "errors"

// What a Store answers beside its rows.
var (
	// ErrNotFound: no such row.
	ErrNotFound = errors.New("not found")
	// ErrTaken: a unique name is held by another row.
	ErrTaken = errors.New("name is taken")
	// ErrInUse: other rows still refer to the row.
	ErrInUse = errors.New("still in use")
)
