package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The commands of the README's tour do what the README says, with a real server
// and curl.
func TestTheTourOfTheReadme(t *testing.T) {
	t.Parallel()
	needCurl(t)
	tour := blocksOf(t, "## A tour")
	s := &tourServer{program: buildServer(t), data: t.TempDir()}
	defer s.kill()
	starts, answers := 0, 0
	got := "" // the last command's answer, to be compared
	for _, b := range tour {
		switch {
		case b.kind == "json":
			require.JSONEq(t, undated(b.text), undated(got))
			got = ""
			answers++
		case got != "":
			t.Fatalf("the tour does not show the answer %s", got)
		case b.kind == "sh" && b.text == "go run ./cmd/twinsrv serve\n":
			s.kill()
			s.start(t)
			starts++
		case b.kind == "sh" && strings.HasPrefix(b.text, "curl "):
			got = s.curl(t, b.text)
		default:
			t.Fatalf("the tour has a block of kind %q that is not tried: %s", b.kind, b.text)
		}
	}
	require.Empty(t, got, "the tour does not show the last answer")
	require.Equal(t, 2, starts)
	require.Equal(t, 6, answers)
}

// The commands that the README has for beside the example print something once
// the simulated day is over.
func TestTheCommandsBesideTheExample(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	address, lines, ended := serving(ctx, t, "messages to send")
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	program, tried := buildServer(t), 0
	for line := range strings.Lines(blocksOf(t, "## Run it")[1].text) {
		arguments, is := strings.CutPrefix(line, "bin/twinsrv ")
		if !is {
			require.Equal(t, "go build -o bin/ ./cmd/twinsrv\n", line)
			continue
		}
		cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+program+" "+arguments)
		cmd.Env = append(os.Environ(), "TWINSRV_SERVER=http://"+address)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		first, err := bufio.NewReader(stdout).ReadString('\n')
		_ = cmd.Process.Kill() // a watch goes on
		_ = cmd.Wait()
		require.NoError(t, err, line)
		require.Equal(t, "{", first[:1], line)
		tried++
	}
	require.Equal(t, 3, tried)
	cancel()
	require.NoError(t, <-ended)
}

// buildServer returns the path of the program twinsrv.
func buildServer(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "twinsrv")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, "github.com/twinsrv/twinsrv/cmd/twinsrv").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

func needCurl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err == nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("TWINSRV_REQUIRE"), ","), "curl") {
		t.Fatal("needs curl: it is not on the path")
	}
	t.Skip("needs curl: it is not on the path")
}

// block is a fenced block of a page.
type block struct{ kind, text string }

// blocksOf returns the blocks of the README below a heading.
func blocksOf(t *testing.T, heading string) (blocks []block) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	_, text, found := strings.Cut(string(data), "\n"+heading)
	require.True(t, found)
	text, _, found = strings.Cut(text, "\n## ")
	require.True(t, found)
	for _, m := range regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, block{m[1], m[2]})
	}
	require.Equal(t, 2*len(blocks), strings.Count(text, "```"), "every fence is understood")
	return blocks
}

// undated puts the same time into every answer.
func undated(text string) string {
	return regexp.MustCompile(`"changed":\s*"[^"]*"`).ReplaceAllString(text, `"changed":""`)
}

// tourServer is the server of the tour, on a port of its own.
type tourServer struct {
	program, data, address string
	cmd                    *exec.Cmd
}

func (s *tourServer) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(s.program, "serve", "--data", s.data, "--listen", "127.0.0.1:0")
	stdout, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	_, address, found := strings.Cut(strings.TrimSpace(line), " on http://")
	require.True(t, found, line)
	s.address = address
}

func (s *tourServer) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

func (s *tourServer) curl(t *testing.T, line string) string {
	t.Helper()
	require.Contains(t, line, "http://127.0.0.1:8080/", "the tour's server listens there")
	out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, "127.0.0.1:8080", s.address)).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("%s%s", line, exit.Stderr)
	}
	require.NoError(t, err)
	require.True(t, json.Valid(out), "%s: %s", line, out)
	return string(out)
}
