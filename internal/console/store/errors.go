package store

import (
	"database/sql"
	"errors"
	"fmt"
)

// fault is what a failed statement means, whichever engine it failed on.
type fault int

const (
	faultOther fault = iota
	faultMissing
	faultTaken
	faultReferred // a foreign key: what is referred to is missing, or what is removed is referred to
	faultCheck
)

func faultOf(err error) fault {
	if errors.Is(err, sql.ErrNoRows) {
		return faultMissing
	}
	if code, ok := sqliteCode(err); ok {
		switch code {
		case sqliteUnique, sqlitePrimaryKey:
			return faultTaken
		case sqliteForeignKey, sqliteTriggerForeign:
			return faultReferred
		case sqliteCheck:
			return faultCheck
		}
		return faultOther
	}
	if code, ok := pgCode(err); ok {
		switch code {
		case pgUnique:
			return faultTaken
		case pgForeignKey, pgRestrict:
			return faultReferred
		case pgCheck:
			return faultCheck
		}
	}
	return faultOther
}

// collided tells whether the engine rolled a transaction back only because others ran beside it.
func collided(err error) bool {
	if code, ok := sqliteCode(err); ok {
		return code&sqliteBasicCodeBitmask == sqliteBusy
	}
	code, ok := pgCode(err)
	return ok && (code == pgSerialization || code == pgDeadlock)
}

// sentinels are the errors by which one domain package decides. A nil one is not decided by: the
// engine's error goes through.
type sentinels struct {
	missing error
	taken   error
	inUse   error
}

// translate turns an engine's error into a domain's, and says what was wanted. It is the one place
// that does. The engine's own text stays in the chain, for the log.
func (s sentinels) translate(err error, what string) error {
	if err == nil {
		return nil
	}
	var sentinel error
	switch faultOf(err) {
	case faultMissing:
		sentinel = s.missing
	case faultTaken:
		sentinel = s.taken
	case faultReferred:
		sentinel = s.inUse
	case faultCheck, faultOther:
	}
	switch {
	case sentinel == nil:
		return fmt.Errorf("%s: %w", what, unavailable(err))
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%s: %w", what, sentinel)
	default:
		return fmt.Errorf("%s: %w: %w", what, sentinel, err)
	}
}

// inserted judges an INSERT … ON CONFLICT DO NOTHING: no row means that a unique value is taken. (A
// violated constraint would abort the whole transaction on PostgreSQL.) A missing parent row is
// reported as missing.
func (s sentinels) inserted(rows int64, err error, what string) error {
	if err == nil && rows == 0 {
		if s.taken == nil {
			return fmt.Errorf("%s: a unique value is taken", what)
		}
		return fmt.Errorf("%s: %w", what, s.taken)
	}
	s.inUse = s.missing
	return s.translate(err, what)
}

// changed judges an UPDATE or DELETE of one row.
func (s sentinels) changed(rows int64, err error, what string) error {
	if err == nil && rows == 0 {
		err = sql.ErrNoRows
	}
	return s.translate(err, what)
}
