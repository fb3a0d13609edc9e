package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"prxm.uz/proxima/internal/console/access"
)

// list builds the statements that sqlc cannot: filters that may be absent, any of several sort orders.
// Every piece of SQL in it is a constant of this package; values from outside become arguments only.
type list struct {
	where []string
	args  []any
}

// arg adds an argument and returns its placeholder.
func (l *list) arg(v any) string {
	l.args = append(l.args, v)
	return "$" + strconv.Itoa(len(l.args))
}

// equal narrows to rows whose column holds v.
func (l *list) equal(column string, v any) {
	l.where = append(l.where, column+" = "+l.arg(v))
}

// equalIf narrows unless v is empty.
func (l *list) equalIf(column, v string) {
	if v != "" {
		l.equal(column, v)
	}
}

// fixed adds a condition without values.
func (l *list) fixed(condition string) { l.where = append(l.where, condition) }

// contains narrows to rows whose folded column contains the text; an empty text does not narrow.
func (l *list) contains(column, text string) {
	if text == "" {
		return
	}
	escaped := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(fold(text))
	l.where = append(l.where, column+" LIKE "+l.arg("%"+escaped+"%")+` ESCAPE '\'`)
}

// containsAny narrows to rows one of whose columns contains the text; the columns are in lower case, which
// is enough for what Kubernetes names. An empty text does not narrow.
func (l *list) containsAny(columns []string, text string) {
	if text == "" {
		return
	}
	inner := list{args: l.args}
	for _, column := range columns {
		inner.contains(column, text)
	}
	l.args = inner.args
	l.where = append(l.where, "("+strings.Join(inner.where, " OR ")+")")
}

// in writes column IN (…), false for no values.
func (l *list) in(column string, values []string) string {
	if len(values) == 0 {
		return "1 = 0"
	}
	marks := make([]string, len(values))
	for i, v := range values {
		marks[i] = l.arg(v)
	}
	return column + " IN (" + strings.Join(marks, ", ") + ")"
}

// reach narrows to the rows that the caller may see. A reach of nothing gives no rows.
func (l *list) reach(clientColumn, environmentColumn string, r access.Reach) {
	if r.All {
		return
	}
	var clients, parts []string
	for _, s := range r.Scopes {
		switch {
		case s.ClientID == "": // the whole console; a Reach says so by All, but a scope can too
			return
		case s.EnvironmentID == "":
			clients = append(clients, s.ClientID)
		}
	}
	parts = append(parts, l.in(clientColumn, clients))
	for _, s := range r.Scopes {
		if s.EnvironmentID != "" {
			parts = append(parts, "("+clientColumn+" = "+l.arg(s.ClientID)+" AND "+environmentColumn+" = "+l.arg(s.EnvironmentID)+")")
		}
	}
	l.where = append(l.where, "("+strings.Join(parts, " OR ")+")")
}

// touched narrows to the clients that the reach lies in, wholly or with an environment alone.
func (l *list) touched(clientColumn string, r access.Reach) {
	if r.All {
		return
	}
	ids := make([]string, len(r.Scopes))
	for i, s := range r.Scopes {
		ids[i] = s.ClientID
	}
	l.fixed(l.in(clientColumn, ids))
}

// condition returns the WHERE clause, or nothing.
func (l *list) condition() string {
	if len(l.where) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(l.where, " AND ")
}

// page returns the LIMIT clause. A limit outside 1 to most is cut to it, a negative offset to 0.
func (l *list) page(limit, most, offset int) string {
	return " LIMIT " + l.arg(int64(min(max(limit, 1), most))) + " OFFSET " + l.arg(int64(max(offset, 0)))
}

// sortColumn is what one sort key of a list stands for.
type sortColumn struct {
	sql string
	// nullable columns have their unknown values last either way. (Of others that is not said: it
	// would keep the engines from walking an index.)
	nullable bool
	// inverted keys grow while the column falls: an age, of a time.
	inverted bool
}

// sorting has the column of each sort key that a list offers.
type sorting map[string]sortColumn

// by returns the ORDER BY clause: the key's column, then the ties, all turned by desc, so that one
// index can serve both directions.
func (s sorting) by(key string, desc bool, ties ...string) (string, error) {
	column, ok := s[key]
	if !ok {
		return "", fmt.Errorf("no list is sorted by %q", key)
	}
	direction := func(desc bool) string {
		if desc {
			return " DESC"
		}
		return ""
	}
	clause := " ORDER BY " + column.sql + direction(desc != column.inverted)
	if column.nullable {
		clause += " NULLS LAST"
	}
	for _, tie := range ties {
		if tie != column.sql {
			clause += ", " + tie + direction(desc)
		}
	}
	return clause, nil
}

// rows runs a query and scans each row.
func rows[T any](ctx context.Context, raw querier, query string, args []any, scan func(*sql.Rows) (T, error)) ([]T, error) {
	found, err := raw.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var all []T
	for found.Next() {
		one, err := scan(found)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, found.Err()
}

// one runs a query for a single row; sql.ErrNoRows if there is none.
func one[T any](ctx context.Context, raw querier, query string, args []any, scan func(*sql.Rows) (T, error)) (T, error) {
	var zero T
	all, err := rows(ctx, raw, query, args, scan)
	switch {
	case err != nil:
		return zero, err
	case len(all) == 0:
		return zero, sql.ErrNoRows
	default:
		return all[0], nil
	}
}

// count counts the rows that a condition admits.
func count(ctx context.Context, raw querier, from string, l *list) (int, error) {
	query := "SELECT COUNT(*) FROM " + from + l.condition()
	n, err := one(ctx, raw, query, l.args, func(r *sql.Rows) (int, error) {
		var n int
		err := r.Scan(&n)
		return n, err
	})
	return n, err
}
