package console

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
)

// statements notes what SQL a database is sent.
type statements struct {
	mu   sync.Mutex
	sent []string
}

// around is for store.Config.
func (s *statements) around(c driver.Connector) driver.Connector { return &listening{c, s} }

func (s *statements) add(query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, query)
}

// taken answers what was sent since it was asked last.
func (s *statements) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent
	s.sent = nil
	return sent
}

type listening struct {
	driver.Connector
	to *statements
}

func (l *listening) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := l.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	whole, ok := c.(wholeConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%T cannot be listened to", c), c.Close())
	}
	return &heardConn{whole, l.to}, nil
}

// wholeConn is what the connections of both drivers can do.
type wholeConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ConnBeginTx
	driver.QueryerContext
	driver.ExecerContext
	driver.Pinger
	driver.SessionResetter
}

type wholeStmt interface {
	driver.Stmt
	driver.StmtQueryContext
	driver.StmtExecContext
}

type heardConn struct {
	wholeConn
	to *statements
}

func (c *heardConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.wholeConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	whole, ok := s.(wholeStmt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%T cannot be listened to", s), s.Close())
	}
	return &heardStmt{whole, c.to, query}, nil
}

func (c *heardConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.to.add(query)
	return c.wholeConn.QueryContext(ctx, query, args)
}

func (c *heardConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.to.add(query)
	return c.wholeConn.ExecContext(ctx, query, args)
}

func (c *heardConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.wholeConn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

type heardStmt struct {
	wholeStmt
	to    *statements
	query string
}

func (s *heardStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.to.add(s.query)
	return s.wholeStmt.QueryContext(ctx, args)
}

func (s *heardStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.to.add(s.query)
	return s.wholeStmt.ExecContext(ctx, args)
}
