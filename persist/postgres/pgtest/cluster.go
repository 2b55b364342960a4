package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options tune a Cluster. The zero value is a server that keeps what it
// acknowledges.
type Options struct {
	// NoSync makes the server not wait for the disk. It survives kill -9 all the
	// same, but not the power's loss; tests that are not about that are faster.
	NoSync bool
	// Settings are further lines of postgresql.conf.
	Settings map[string]string
}

// Cluster is a running server. Its methods are safe for concurrent use, but for
// Kill, Down, Up and Stop among each other.
type Cluster struct {
	dir  string // temporary; holds data and log
	bin  string
	port int

	mu     sync.Mutex
	pid    int
	exited chan struct{}

	databases atomic.Int64
}

const (
	superuser = "twinsrv"
	patience  = 60 * time.Second
)

// Start makes a cluster and starts its server. The caller stops it.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if why := Missing(); why != "" {
		return nil, errors.New(why)
	}
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "twinsrv-postgres-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, bin: bin}
	if err := c.create(o); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.Up(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) create(o Options) error {
	initdb := command(c.bin, "initdb", "--pgdata="+c.data(), "--username="+superuser, "--auth=trust",
		"--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	if err := own(c.dir, initdb); err != nil {
		return err
	}
	if err := run(initdb); err != nil {
		return fmt.Errorf("make a cluster (a folder of TMPDIR that every user can reach is needed when running as root): %w", err)
	}
	settings := map[string]string{
		"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "100",
		"shared_buffers": "64MB", "max_wal_size": "256MB", "timezone": "UTC", "log_timezone": "UTC",
	}
	if o.NoSync {
		settings["fsync"], settings["full_page_writes"] = "off", "off"
	}
	for name, value := range o.Settings {
		settings[name] = value
	}
	var conf strings.Builder
	for name, value := range settings {
		fmt.Fprintf(&conf, "%s = '%s'\n", name, value)
	}
	f, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(conf.String())
	return errors.Join(err, f.Close())
}

// Up starts the server, on the port that it had before if it had one, and
// returns once it answers.
func (c *Cluster) Up(ctx context.Context) (err error) {
	begin := time.Now()
	for try := 1; ; try++ {
		if c.port == 0 {
			if c.port, err = freePort(); err != nil {
				return err
			}
		}
		started := c.databases.Load() > 0 // urls that name the port are out there
		if err = c.start(ctx); err == nil || ctx.Err() != nil {
			return err
		}
		switch {
		case started && time.Since(begin) < patience:
			// Processes of a killed server may still have to end: what they share
			// keeps the next one out.
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return err
			}
		case started || try == 5:
			return err
		default:
			c.port = 0 // somebody may have taken it
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func (c *Cluster) start(ctx context.Context) error {
	server := command(c.bin, "postgres", "-D", c.data(), "-p", fmt.Sprint(c.port))
	if err := own(c.dir, server); err != nil {
		return err
	}
	dieWithUs(server)
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	server.Stdout, server.Stderr = log, log
	exited, begun := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(exited)
		runtime.LockOSThread() // for dieWithUs
		defer runtime.UnlockOSThread()
		err := server.Start()
		begun <- errors.Join(err, log.Close())
		if err == nil {
			_ = server.Wait()
		}
	}()
	if err := <-begun; err != nil {
		return err
	}
	c.mu.Lock()
	c.pid, c.exited = server.Process.Pid, exited
	c.mu.Unlock()
	return c.answer(ctx)
}

// answer waits until the server takes connections.
func (c *Cluster) answer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.url("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-c.exited:
			return fmt.Errorf("the server has ended; it said: %s", c.Log())
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w; it said: %s", err, c.Log())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Log returns the end of what the server has written.
func (c *Cluster) Log() string {
	b, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4000):])
}

// Kill kills every process of the server with SIGKILL. Up starts it again.
func (c *Cluster) Kill() { c.end(killAll) }

// Down ends the server, and with it all connections. Up starts it again.
func (c *Cluster) Down() { c.end(interrupt) }

// Restart ends the server in good order and starts it again.
func (c *Cluster) Restart(ctx context.Context) error {
	c.Down()
	return c.Up(ctx)
}

func (c *Cluster) end(how func(pid int)) {
	c.mu.Lock()
	pid, exited := c.pid, c.exited
	c.pid = 0
	c.mu.Unlock()
	if pid == 0 {
		return
	}
	how(pid)
	select {
	case <-exited:
	case <-time.After(patience):
		killAll(pid)
		<-exited
	}
}

// Stop ends the server and removes the cluster.
func (c *Cluster) Stop() error {
	c.Down()
	return os.RemoveAll(c.dir)
}

// Address is where the server listens: host:port.
func (c *Cluster) Address() string { return fmt.Sprintf("127.0.0.1:%d", c.port) }

func (c *Cluster) url(database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", superuser, c.Address(), database)
}

// Database makes a new database and returns its URL. How it is made, other than
// as the server does, is said in SQL behind CREATE DATABASE.
func (c *Cluster) Database(ctx context.Context, how string) (string, error) {
	name := fmt.Sprintf("test%d", c.databases.Add(1))
	conn, err := pgx.Connect(ctx, c.url("postgres"))
	if err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+name+" "+how)
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return "", err
	}
	return c.url(name), nil
}

// Through returns a URL with another address, a Proxy's for example.
func Through(address, at string) (string, error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	u.Host = address
	return u.String(), nil
}

// WithSchema returns a URL that names the schema of a store.
func WithSchema(at, schema string) string { return at + "&schema=" + url.QueryEscape(schema) }
