package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const patience = 20 * time.Second

func TestMain(m *testing.M) {
	code := m.Run()
	if err := postgresServer.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop PostgreSQL:", err)
		code = 1
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	_ = os.RemoveAll(buildDir)
	os.Exit(code)
}

// built returns the path of the real program, built once for all tests.
func built(t *testing.T) string {
	t.Helper()
	path, err := buildOnce()
	require.NoError(t, err)
	return path
}

var buildDir string // what buildOnce made

var buildOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "twinsrv-test-")
	if err != nil {
		return "", err
	}
	buildDir = dir
	path := filepath.Join(dir, "twinsrv")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "github.com/twinsrv/twinsrv/cmd/twinsrv").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build twinsrv: %w: %s", err, out)
	}
	return path, nil
})

// process is a running twinsrv.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	client *http.Client
	url    string
	served string // what it said then
	stderr output
	exited chan error
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

// start starts the program on a data folder and waits until it serves.
func start(t *testing.T, data string) *process {
	t.Helper()
	return startWith(t, "--data", data)
}

// startWith is start with flags.
func startWith(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, client: &http.Client{Transport: &http.Transport{}}, exited: make(chan error, 1)}
	p.cmd = exec.Command(built(t), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, p.stderr.String())
	p.served = line
	_, p.url, _ = strings.Cut(strings.TrimSpace(line), " on ")
	require.Regexp(t, `^serving .* on http://127\.0\.0\.1:[1-9][0-9]*\n$`, line)
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		p.exited <- p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		_ = p.cmd.Process.Kill()
		_, _ = p.wait()
	})
	return p
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// wait waits for the process to end and returns its error, and how long it
// took.
func (p *process) wait() (time.Duration, error) {
	began := time.Now()
	select {
	case err := <-p.exited:
		p.exited <- err
		return time.Since(began), err
	case <-time.After(patience):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		return patience, fmt.Errorf("it does not end: %s", p.stderr.String())
	}
}

// terminate ends the process by SIGTERM and expects a clean end.
func (p *process) terminate() {
	p.t.Helper()
	p.client.CloseIdleConnections()
	p.signal(syscall.SIGTERM)
	took, err := p.wait()
	require.NoError(p.t, err, p.stderr.String())
	require.Less(p.t, took, 10*time.Second)
	require.Contains(p.t, p.stderr.String(), "msg=stopped")
}

// kill ends the process as a power cut does for it.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	_, _ = p.wait()
}

// ask sends a request; the error is that of a connection.
func (p *process) ask(method, path, body string, headers ...string) (status int, text string, err error) {
	status, text, _, err = p.send(method, path, body, headers...)
	return status, text, err
}

// send is ask that also returns the answer's headers.
func (p *process) send(method, path, body string, headers ...string) (status int, text string, h http.Header, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), resp.Header, err
}

func (p *process) must(want int, method, path, body string, headers ...string) string {
	p.t.Helper()
	status, text, err := p.ask(method, path, body, headers...)
	require.NoError(p.t, err, p.stderr.String())
	require.Equal(p.t, want, status, "%s %s: %s", method, path, text)
	return text
}

// fails runs the program, which must fail with a clear error: one line, no
// trace.
func fails(t *testing.T, args ...string) string {
	t.Helper()
	code, _, stderr := command(t, args...)
	require.Positive(t, code, stderr)
	return stderr
}

// succeeds runs the program, which must end well, and returns what it printed.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := command(t, args...)
	require.Zero(t, code, "%v: %s%s", args, stdout, stderr)
	return stdout
}

// command runs the program to its end. If it fails, then with one clear line.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	program := built(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit, said.String())
	}
	code = cmd.ProcessState.ExitCode()
	require.Contains(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, code, "it ends by itself: %s", said.String())
	for _, text := range []string{out.String(), said.String()} {
		require.NotContains(t, text, "goroutine")
		require.NotContains(t, text, "panic")
	}
	if code != 0 {
		require.Regexp(t, `(?m)^twinsrv: error: .+\n\z`, said.String())
	}
	return code, out.String(), said.String()
}
