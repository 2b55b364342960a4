package killtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if config := os.Getenv(childEnv); config != "" {
		if err := runChild(config); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if err := errors.Join(server.stop(), goleak.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	fmt.Printf("%d processes killed\n", killed.Load())
	os.Exit(code)
}

const root = "../.."

// build builds twinsrv. The edits, if any, are made to a copy of one source
// file, which the build takes in its place.
func build(t *testing.T, file string, edits ...[2]string) string {
	t.Helper()
	return compile(t, []string{"build"}, "./cmd/twinsrv", file, edits)
}

// compile runs a command of go that makes a program of a package.
func compile(t *testing.T, command []string, pkg, file string, edits [][2]string) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	args := slices.Concat(command, []string{"-o", program})
	if file != "" {
		args = append(args, "-overlay", overlay(t, dir, file, edits))
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

func overlay(t *testing.T, dir, file string, edits [][2]string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, file))
	require.NoError(t, err)
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	text := string(source)
	for _, e := range edits {
		require.Equal(t, 1, strings.Count(text, e[0]), "the text to be replaced in %s: %s", file, e[0])
		text = strings.Replace(text, e[0], e[1], 1)
	}
	changed := filepath.Join(dir, "changed.go")
	require.NoError(t, os.WriteFile(changed, []byte(text), 0o600))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	require.NoError(t, err)
	where := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(where, list, 0o600))
	return where
}

// process is a running server.
type process struct {
	cmd *exec.Cmd
	url string
}

var serving = regexp.MustCompile(`^serving .* on (http://\S+)`)

func start(t *testing.T, binary, data string, flags ...string) *process {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, flags...)...)
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := serving.FindStringSubmatch(lines.Text()); m != nil {
			return &process{cmd: cmd, url: m[1]}
		}
	}
	err = cmd.Wait()
	require.FailNow(t, "the server did not start", "%v: %s", err, stderr)
	return nil
}

// kill ends the process as a crash does and waits until it is gone.
func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGKILL))
	_ = p.cmd.Wait() // the error is the signal
}

func (p *process) entity(name string) string {
	return fmt.Sprintf("%s/v1/pods/docs/entities/%s", p.url, name)
}
