package guide

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 30 * time.Second
	look     = 20 * time.Millisecond
	address  = "127.0.0.1:8080" // where the guide has its server
)

// Each command of a guide answers what the guide shows below it, with a real
// server, bash and curl. A command that begins with twinsrv serve kills the
// server and starts another one on the same store; one that begins with curl -sN
// goes on beside the commands behind it, until it has said what is shown of it.
// What is shown as json eventually is asked for until it is like that.
func TestTheCommandsOfTheGuides(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	need(t, "curl")
	for _, name := range []string{httpGuide, cliGuide} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follow(t, name)
		})
	}
}

// follow does what a guide says.
func follow(t *testing.T, name string) {
	_, blocks := page(t, name)
	g := &reader{t: t, name: name, programs: t.TempDir(), folder: t.TempDir()}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", g.programs, "github.com/twinsrv/twinsrv/cmd/twinsrv").CombinedOutput()
	require.NoError(t, err, "%s", out)
	defer g.kill()
	shown := 0
	for _, b := range blocks {
		switch {
		case strings.HasPrefix(b.kind, "go"): // the client's examples
		case b.kind == "sh":
			g.do(b)
		default:
			g.compare(b)
			shown++
		}
	}
	g.settled("at its end")
	require.Greater(t, shown, 20, "answers that are shown")
}

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("TWINSRV_REQUIRE"), ","), program) {
		t.Fatalf("needs %s: it is not on the path", program)
	}
	t.Skipf("needs %s: it is not on the path", program)
}

// reader does what the guide says.
type reader struct {
	t                *testing.T
	name             string // of the guide
	programs, folder string
	address          string // of the server
	server, watching *exec.Cmd
	stream           *output // of watching
	command          string  // the last one that has ended
	said             string  // what it said, to be compared
	optional         bool    // it need not be
}

// do runs a command.
func (g *reader) do(b block) {
	g.t.Helper()
	if g.optional {
		g.said, g.optional = "", false
	}
	switch {
	case strings.HasPrefix(b.text, "twinsrv serve"):
		g.settled("before " + b.text)
		g.start(b)
	case strings.HasPrefix(b.text, "curl -sN "):
		g.settled("before " + b.text)
		g.watch(b)
	default:
		require.Empty(g.t, g.said, "%s:%d: what the command before says is not shown", g.name, b.line)
		g.command, g.said = b.text, g.run(b.text)
	}
}

// settled fails unless everything that was said has been compared.
func (g *reader) settled(when string) {
	g.t.Helper()
	require.Empty(g.t, g.said, "%s: the last command's answer is not shown", when)
	require.Nil(g.t, g.watching, "%s: what the watch says is not shown", when)
}

// here is a command as it reaches the test's own server.
func (g *reader) here(text string) string { return strings.ReplaceAll(text, address, g.address) }

func (g *reader) prepare(ctx context.Context, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", g.here(text))
	cmd.Dir = g.folder
	cmd.Env = append(os.Environ(), "PATH="+g.programs+string(os.PathListSeparator)+os.Getenv("PATH"), "TWINSRV_LISTEN=127.0.0.1:0")
	if g.address != "" {
		cmd.Env = append(cmd.Env, "TWINSRV_SERVER=http://"+g.address)
	}
	return cmd
}

func (g *reader) run(text string) string {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	cmd := g.prepare(ctx, text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(g.t, err, "%s%s", text, &stderr)
	return strings.ReplaceAll(string(out), g.address, address)
}

// start kills the server, if there is one, and starts another.
func (g *reader) start(b block) {
	g.t.Helper()
	g.kill()
	g.server = g.prepare(context.Background(), "exec "+b.text)
	stdout, err := g.server.StdoutPipe()
	require.NoError(g.t, err)
	var stderr bytes.Buffer
	g.server.Stderr = &stderr
	require.NoError(g.t, g.server.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = g.server.Wait()
		g.server = nil
		g.t.Fatalf("%s:%d: %s%s", g.name, b.line, b.text, &stderr)
	}
	_, at, found := strings.Cut(strings.TrimSpace(line), " on http://")
	require.True(g.t, found, line)
	g.address = at
	g.command, g.said = "", strings.ReplaceAll(line, at, address)
	g.optional = true // the guide shows it once
}

func (g *reader) kill() {
	for _, cmd := range []*exec.Cmd{g.watching, g.server} {
		if cmd != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	g.watching, g.server = nil, nil
}

// watch begins a command that goes on, and waits until the server has begun to
// answer.
func (g *reader) watch(b block) {
	g.t.Helper()
	g.stream = new(output)
	g.watching = g.prepare(context.Background(), "exec "+b.text)
	g.watching.Stdout = g.stream
	require.NoError(g.t, g.watching.Start())
	require.Eventually(g.t, func() bool { return g.stream.String() != "" }, patience, look, "%s:%d: %s", g.name, b.line, b.text)
}

// compare compares what was said with what the guide shows.
func (g *reader) compare(b block) {
	g.t.Helper()
	switch {
	case b.kind == "text" && g.said == "" && g.watching != nil:
		err := eventually(func() error { return likeText(b.text, g.stream.String(), true) })
		require.NoError(g.t, err, "%s:%d", g.name, b.line)
		_ = g.watching.Process.Kill()
		_ = g.watching.Wait()
		g.watching = nil
	case b.kind == "text":
		require.NoError(g.t, likeText(b.text, g.said, false), "%s:%d", g.name, b.line)
	case b.kind == "json":
		require.NoError(g.t, likeJSON(b.text, g.said), "%s:%d", g.name, b.line)
	case b.kind == "json eventually":
		require.NoError(g.t, eventually(func() error { return likeJSON(b.text, g.run(g.command)) }), "%s:%d", g.name, b.line)
	default:
		g.t.Fatalf("%s:%d: a block of the kind %q is not tried", g.name, b.line, b.kind)
	}
	g.said, g.optional = "", false
}

// eventually asks until there is no error, and returns the last one.
func eventually(ask func() error) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		if err := ask(); err == nil || time.Since(begun) > patience {
			return err
		}
	}
}

// output is what a command has said so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
