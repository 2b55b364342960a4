package browsertest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

// built is what the tests run: the programs, without the race detector, and the
// data of a simulated day.
var built programs

type programs struct {
	make sync.Once
	err  error
	dir  string
}

const module = "github.com/twinsrv/twinsrv/"

// path returns where a program or the data of the day lies. The first call
// builds everything.
func (p *programs) path(t *testing.T, name string) string {
	t.Helper()
	p.make.Do(func() { p.err = p.build() })
	require.NoError(t, p.err)
	return filepath.Join(p.dir, name)
}

func (p *programs) build() (err error) {
	if p.dir, err = os.MkdirTemp("", "browsertest-"); err != nil {
		return err
	}
	out, err := exec.Command("go", "build", "-race=false", "-buildvcs=false", "-o", p.dir, module+"examples/buildings", module+"cmd/twinsrv").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the servers: %w: %s", err, out)
	}
	out, err = exec.Command(filepath.Join(p.dir, "buildings"), "--data", filepath.Join(p.dir, "day"), "--listen", "127.0.0.1:0", "--exit").CombinedOutput()
	if err != nil {
		return fmt.Errorf("simulate a day: %w: %s", err, out)
	}
	return nil
}

func (p *programs) remove() error {
	if p.dir == "" {
		return nil
	}
	return os.RemoveAll(p.dir)
}

// server is a server that a test has for itself. Killed and started again it has
// the same address and the same data.
type server struct {
	t       *testing.T
	program string
	args    []string
	address string
	url     string
	token   string // that the test's own client brings
	cmd     *exec.Cmd
	stderr  *bytes.Buffer
	read    chan struct{} // closed when all of stdout has been read
}

// buildings starts the example with a day behind it, after which nothing happens
// by itself.
func buildings(t *testing.T) *server {
	t.Helper()
	chromium(t) // whoever skips needs no server
	data := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.CopyFS(data, os.DirFS(built.path(t, "day"))))
	return newServer(t, "buildings", "--data", data)
}

// twinsrv starts the program with no pods in it.
func twinsrv(t *testing.T, flags ...string) *server {
	t.Helper()
	chromium(t)
	return newServer(t, "twinsrv", append([]string{"serve", "--data", filepath.Join(t.TempDir(), "data")}, flags...)...)
}

func newServer(t *testing.T, program string, args ...string) *server {
	t.Helper()
	s := &server{t: t, program: built.path(t, program), args: args}
	// A port that the system gives to nobody by itself, so that it is still free
	// when the server comes back.
	for s.cmd == nil {
		s.address = fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))
		l, err := net.Listen("tcp", s.address)
		if err != nil {
			continue
		}
		require.NoError(t, l.Close())
		s.url = "http://" + s.address
		s.start()
	}
	t.Cleanup(s.kill)
	return s
}

// start starts the server and waits until it serves.
func (s *server) start() {
	s.t.Helper()
	s.stderr, s.read = new(bytes.Buffer), make(chan struct{})
	s.cmd = exec.Command(s.program, append(s.args, "--listen", s.address)...)
	s.cmd.Stderr = s.stderr
	out, err := s.cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, s.cmd.Start())
	lines := bufio.NewScanner(out)
	serves := lines.Scan() && strings.HasPrefix(lines.Text(), "serving ")
	go func() {
		defer close(s.read)
		for lines.Scan() { // it must not wait for a reader
		}
	}()
	if !serves {
		s.kill()
		require.FailNow(s.t, "the server did not start", "%s", s.stderr)
	}
}

// kill ends the server as a crash does.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("kill the server: %v", err)
	}
	<-s.read
	_ = s.cmd.Wait() // the error is the signal
	s.cmd = nil
}

// api returns a client of the server.
func (s *server) api() *client.Client {
	s.t.Helper()
	c, err := client.New(s.url, client.Config{Token: s.token, MaxPause: time.Second})
	require.NoError(s.t, err)
	s.t.Cleanup(c.Close)
	return c
}

// ask sends a request with a body of JSON and returns the answer's.
func (s *server) ask(ctx context.Context, method, path, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}
