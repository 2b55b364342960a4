package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// caller runs the program, which talks to a server.
type caller struct {
	t   *testing.T
	env []string
	url string // of the server
}

// calling returns one for the server at a URL.
func calling(t *testing.T, url string) caller {
	return caller{t, append(os.Environ(), "TWINSRV_SERVER="+url, "TWINSRV_TOKEN=", "TWINSRV_TOKEN_FILE=", "TZ=UTC", "NO_COLOR=1", "TERM=dumb"), url}
}

// world is a server process behind an address that stays the same when the
// server is killed and started again.
type world struct {
	caller
	args []string

	mu     sync.Mutex
	server *exec.Cmd
	at     string // its own address; empty while there is none
	stderr output
}

// serve starts a server of its own, with a folder and flags.
func serve(t *testing.T, flags ...string) *world {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &world{
		caller: calling(t, "http://"+listener.Addr().String()),
		args:   append([]string{"serve", "--listen", "127.0.0.1:0", "--data", t.TempDir()}, flags...),
	}
	var passing sync.WaitGroup
	passing.Go(func() { w.pass(listener, &passing) })
	t.Cleanup(func() {
		_ = listener.Close()
		w.kill()
		passing.Wait()
	})
	w.start()
	return w
}

// pass hands connections on to the server.
func (w *world) pass(listener net.Listener, passing *sync.WaitGroup) {
	for {
		outside, err := listener.Accept()
		if err != nil {
			return
		}
		inside, err := net.Dial("tcp", w.address())
		if err != nil {
			_ = outside.Close()
			continue
		}
		passing.Go(func() { carry(inside, outside) })
		passing.Go(func() { carry(outside, inside) })
	}
}

func carry(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

func (w *world) address() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// start starts the server and waits until it serves.
func (w *world) start() {
	w.t.Helper()
	cmd := exec.Command(os.Args[0], w.args...)
	cmd.Env = append(os.Environ(), serves+"=1")
	cmd.Stderr = &w.stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		require.NoError(w.t, err, w.stderr.String())
	}
	_, at, found := strings.Cut(strings.TrimSpace(line), " on http://")
	require.True(w.t, found, line)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server, w.at = cmd, at
}

// kill ends the server as a loss of power does.
func (w *world) kill() {
	w.mu.Lock()
	cmd := w.server
	w.server, w.at = nil, "127.0.0.1:1"
	w.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// output collects what a process writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// command makes a command of the program.
func (c *caller) command(args ...string) *exec.Cmd {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	c.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program(c.t), args...)
	cmd.Env = c.env
	cmd.Dir = c.t.TempDir()
	return cmd
}

// result is what a command came to.
type result struct {
	code           int
	stdout, stderr string
}

// run runs the program to its end.
func (c *caller) run(args ...string) result {
	c.t.Helper()
	return c.feed("", args...)
}

// feed is run with a standard input.
func (c *caller) feed(stdin string, args ...string) result {
	c.t.Helper()
	cmd := c.command(args...)
	return c.finish(cmd, stdin)
}

func (c *caller) finish(cmd *exec.Cmd, stdin string) result {
	c.t.Helper()
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(c.t, err)
	}
	r := result{cmd.ProcessState.ExitCode(), out.String(), said.String()}
	require.NotContains(c.t, r.stdout+r.stderr, "goroutine ", "it panicked")
	return r
}

// must runs the program, which must end well, and returns what it printed.
func (c *caller) must(args ...string) string {
	c.t.Helper()
	r := c.run(args...)
	require.Zero(c.t, r.code, "%q: %s%s", args, r.stdout, r.stderr)
	return r.stdout
}

// fails runs the program, which must end with a code and one line about why.
func (c *caller) fails(code int, args ...string) string {
	c.t.Helper()
	r := c.run(args...)
	require.Equal(c.t, code, r.code, "%q: %s%s", args, r.stdout, r.stderr)
	require.Regexp(c.t, `(?m)^twinsrv: error: .+\n\z`, r.stderr)
	return r.stderr
}

// running is a command that goes on.
type running struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr output
	ended          chan struct{}
	err            error
}

// begin starts a command that goes on until it is ended.
func (c *caller) begin(args ...string) *running {
	c.t.Helper()
	return start(c.t, c.command(args...))
}

// start starts a command.
func start(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{t: t, cmd: cmd, ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	require.NoError(t, r.cmd.Start())
	go func() {
		defer close(r.ended)
		r.err = r.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.ended
	})
	return r
}

// until waits until what it has said holds.
func (r *running) until(what string, holds func() bool) {
	r.t.Helper()
	require.Eventually(r.t, holds, patience, tick, "%s: %s%s", what, &r.stdout, &r.stderr)
}

// interrupt sends what Ctrl-C does, and returns the exit code.
func (r *running) interrupt() int {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Process.Signal(syscall.SIGINT))
	return r.code()
}

// code waits for the end and returns the exit code.
func (r *running) code() int {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		require.Fail(r.t, "it does not end", "%s%s", &r.stdout, &r.stderr)
	}
	return r.cmd.ProcessState.ExitCode()
}

// lines are those that it has printed whole.
func (r *running) lines() []string {
	text := r.stdout.String()
	end := strings.LastIndexByte(text, '\n')
	if end < 0 {
		return nil
	}
	return strings.Split(text[:end], "\n")
}

// writeFile makes a file and returns its path.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
