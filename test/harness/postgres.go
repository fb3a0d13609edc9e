package harness

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// postgresUser owns all databases; its password is made anew for each server.
const postgresUser = "proxima"

// Postgres is a PostgreSQL server on loopback for throwing away: it promises
// nothing after a crash of the machine, and is fast for it. Its methods may be
// called from several goroutines.
type Postgres struct {
	dir      *workDir
	port     *Port
	command  Command
	password string

	mu      sync.Mutex
	process *Process
	admin   *pgx.Conn // for CREATE and DROP DATABASE; nil when lost
	created int
	foreign bool // another process runs the server
}

// StartPostgres starts Debian's PostgreSQL, the newest that is installed, in a
// directory of its own. As root it runs as the user postgres, since the server
// refuses root. End it by [Postgres.Stop].
func StartPostgres(ctx context.Context) (*Postgres, error) {
	p := &Postgres{}
	if err := p.start(ctx); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", errors.Join(err, p.Stop()))
	}
	return p, nil
}

func (p *Postgres) start(ctx context.Context) error {
	bin, err := postgresPrograms()
	if err != nil {
		return err
	}
	owner, err := postgresOwner()
	if err != nil {
		return err
	}
	base, err := scratch()
	if err != nil {
		return err
	}
	if p.dir, err = newWorkDir(base, "postgres"); err != nil {
		return err
	}
	if p.port, err = ReservePort(); err != nil {
		return err
	}
	secret := make([]byte, 12)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	p.password = hex.EncodeToString(secret)
	data, passwordFile := filepath.Join(p.dir.Path, "data"), filepath.Join(p.dir.Path, "password")
	if err := os.WriteFile(passwordFile, []byte(p.password), 0o600); err != nil {
		return err
	}
	if owner != nil {
		uid, gid := int(owner.Uid), int(owner.Gid)
		if err := errors.Join(os.Chown(p.dir.Path, uid, gid), os.Chown(passwordFile, uid, gid)); err != nil {
			return err
		}
	}
	initdb, err := Start(Command{
		Name: "initdb", Path: filepath.Join(bin, "initdb"),
		Args: []string{
			"--pgdata=" + data, "--username=" + postgresUser, "--pwfile=" + passwordFile,
			// In the clear, on loopback: the stronger methods cost 5 ms a connection.
			"--auth=password", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions",
		},
		LogPath: filepath.Join(p.dir.Path, "initdb.log"), Credential: owner,
	})
	if err != nil {
		return err
	}
	if err := initdb.Wait(ctx); err != nil {
		return errors.Join(fmt.Errorf("initdb: %w; end of its log:\n%s", err, initdb.LogTail()), initdb.Kill())
	}
	p.command = Command{
		Name: "postgres", Path: filepath.Join(bin, "postgres"),
		Args: postgresArguments(data, p.port.Number), LogPath: filepath.Join(p.dir.Path, "postgres.log"), Credential: owner,
		// On SIGQUIT the server takes its own children along; after SIGKILL
		// they would linger.
		OnParentDeath: syscall.SIGQUIT,
	}
	return p.Restart(ctx)
}

func postgresArguments(data string, port int) []string {
	args := []string{"-D", data}
	for _, setting := range []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port), "unix_socket_directories=",
		"fsync=off", "full_page_writes=off", "autovacuum=off", // a kill loses nothing so; a power cut would
		"wal_level=minimal", "max_wal_senders=0", "max_connections=200", "shared_buffers=64MB",
		"log_line_prefix=%m [%p] %d ",
	} {
		args = append(args, "-c", setting)
	}
	return args
}

// postgresPrograms finds the newest installed server.
func postgresPrograms() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		if path, err := exec.LookPath("initdb"); err == nil {
			return filepath.Dir(path), nil
		}
		return "", errNotInstalled("PostgreSQL", "postgresql")
	}
	version := func(path string) int {
		n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		if err != nil {
			return 0
		}
		return n
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}

// postgresOwner returns the user to run the server as, or nil for the present one.
func postgresOwner() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user postgres: %w", err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user postgres: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// url of a database.
func (p *Postgres) url(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(postgresUser, p.password),
		Host: p.port.Addr(), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Restart starts the server again, on the same port and with what it knew, and
// returns when it takes connections. A server that still runs is killed first.
func (p *Postgres) Restart(ctx context.Context) error {
	if err := p.Kill(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	process, err := Start(p.command)
	if err != nil {
		return err
	}
	p.process = process
	return process.Await(ctx, "PostgreSQL to take connections", func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, p.url("postgres"))
		if err != nil {
			return err
		}
		p.admin = conn
		return nil
	})
}

// Kill ends the server as a crash would: connections break, nothing is written
// any more. [Postgres.Restart] brings it back.
func (p *Postgres) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return nil
	}
	var err error
	if p.admin != nil {
		// Its server goes away: no farewell, only the socket.
		err = p.admin.PgConn().Conn().Close()
		p.admin = nil
	}
	err = errors.Join(err, p.process.stopBy(syscall.SIGQUIT))
	p.process = nil
	return err
}

// Stop ends the server and removes its files.
func (p *Postgres) Stop() error {
	err := p.Kill()
	if p.dir != nil {
		err = errors.Join(err, p.dir.Remove())
		p.dir = nil
	}
	if p.port != nil {
		err = errors.Join(err, p.port.Release())
		p.port = nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Processes returns the server, unless it was killed.
func (p *Postgres) Processes() []*Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return nil
	}
	return []*Process{p.process}
}

// NewDatabase makes an empty database and returns its URL. Drop removes it, and
// throws out whoever is connected.
func (p *Postgres) NewDatabase(ctx context.Context) (url string, drop func(context.Context) error, err error) {
	return p.create(ctx, "template0")
}

// create copies a template, file by file: 15 to 30 ms for 30 tables, half of what
// the default strategy takes.
func (p *Postgres) create(ctx context.Context, template string) (url string, drop func(context.Context) error, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.created++
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), p.created)
	if err := p.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template+" STRATEGY FILE_COPY"); err != nil {
		return "", nil, fmt.Errorf("make a database: %w", err)
	}
	drop = func(ctx context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err := p.exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			return fmt.Errorf("drop a database: %w", err)
		}
		return nil
	}
	return p.url(name), drop, nil
}

// exec runs a statement on the one administrative connection; mu is held.
func (p *Postgres) exec(ctx context.Context, statement string) error {
	if p.process == nil && !p.foreign {
		return errors.New("the server was killed: Restart first")
	}
	if p.admin == nil || p.admin.IsClosed() {
		conn, err := pgx.Connect(ctx, p.url("postgres"))
		if err != nil {
			return err
		}
		p.admin = conn
	}
	_, err := p.admin.Exec(ctx, statement)
	return err
}

// PostgresTemplate is a database of which copies are made.
type PostgresTemplate struct {
	postgres *Postgres
	name     string
}

// NewTemplate makes a database and lets migrate fill it, once; each test then
// takes a copy. Migrate must close its connections: a database in use cannot be
// copied.
func (p *Postgres) NewTemplate(ctx context.Context, migrate func(ctx context.Context, url string) error) (*PostgresTemplate, error) {
	url, _, err := p.create(ctx, "template0")
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, url); err != nil {
		return nil, fmt.Errorf("fill the template database: %w", err)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	return &PostgresTemplate{postgres: p, name: config.Database}, nil
}

// NewDatabase makes a copy of the template, as [Postgres.NewDatabase] makes an
// empty database.
func (t *PostgresTemplate) NewDatabase(ctx context.Context) (url string, drop func(context.Context) error, err error) {
	return t.postgres.create(ctx, t.name)
}

// Address names the template to another process, for [TemplateAt].
func (t *PostgresTemplate) Address() string { return t.postgres.url(t.name) }

// TemplateAt finds a template that another process made, and keeps while this one takes copies.
func TemplateAt(address string) (*PostgresTemplate, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("address of a template: %w", err)
	}
	server := &Postgres{port: &Port{Number: int(config.Port)}, password: config.Password, foreign: true}
	return &PostgresTemplate{postgres: server, name: config.Database}, nil
}
