package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"prxm.uz/proxima/internal/console/problem"
)

// retryAfterSeconds is how long a caller is asked to wait for a database that does not answer.
const retryAfterSeconds = 5

// unavailable makes an error of a database that cannot be used now a problem that callers may see. Its
// cause, which may name hosts and files, stays in the chain for the log.
func unavailable(err error) error {
	if err == nil || !down(err) {
		return err
	}
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return err
	}
	p := problem.New(problem.Unavailable, "database_unavailable", "Console’s database does not answer, or takes no writes now.").
		WithCure("Try again in some seconds. If it stays, whoever runs Console looks after the database: Console’s log names the reason.").Because(err)
	p.RetryAfterSeconds = retryAfterSeconds
	return p
}

func down(err error) bool {
	if errors.Is(err, context.Canceled) { // the caller left
		return false
	}
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	if code, ok := sqliteCode(err); ok {
		return sqliteDown(code)
	}
	return pgDown(err)
}
