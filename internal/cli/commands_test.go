package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each exit code that scripts may look at.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.must("send", "gauges", "oil", "add", "n:=1")
	w.fails(1, "send", "gauges", "oil", "boom")
	w.fails(2, "get", "gauges")
	w.fails(2, "ls", "gauges", "--filter", "state.")
	w.fails(2, "send", "gauges", "oil", "add", "n=many")
	w.fails(3, "get", "gauges", "water")
	w.fails(4, "send", "gauges", "oil", "add", "n:=1", "--condition", "state.total > 5")
	w.fails(5, "send", "gauges", "oil", "take", "n:=5")
	require.Equal(t, 8, w.feed("nonsense\n", "import", "ndjson", "-").code)
	help := w.must("--help")
	for _, code := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "130"} {
		require.Regexp(t, `(?s)Exit codes:.*\b`+code+`\s`, help)
	}
}

// answering is a server that is none of ours, or one that does badly.
func answering(t *testing.T, answer http.HandlerFunc) *caller {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	c := calling(t, srv.URL)
	return &c
}

// Where nothing answers, or not as it should, the message says what to do, and
// the code whether another try may help.
func TestServersThatAreNotThere(t *testing.T) {
	t.Parallel()
	w := calling(t, "http://127.0.0.1:1")
	require.Contains(t, w.fails(6, "pods"), "no server answers at http://127.0.0.1:1")
	require.Contains(t, w.fails(6, "pods", "--server", "http://me:hunter2@127.0.0.1:1"), "http://me:xxxxx@127.0.0.1:1")
	for _, args := range [][]string{
		{"ls", "rooms"}, {"get", "rooms", "a"}, {"send", "rooms", "a", "merge", "a:=1"}, {"patch", "rooms", "a", "a:=1"}, {"rm", "rooms", "a"},
		{"watch"}, {"watch", "rooms"}, {"history", "rooms", "a"}, {"answer", "x"}, {"export"}, {"import", "ndjson", os.DevNull}, {"top", "--once"}, {"quarantine", "list"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			c := calling(t, w.url)
			require.Contains(t, c.fails(6, args...), "start it, or say where it is with --server")
		})
	}
	for _, bad := range []string{"127.0.0.1:8080", "ftp://x", "http://", "http://h/?q=1"} {
		require.Contains(t, w.fails(2, "pods", "--server", bad), "such as http://127.0.0.1:8080")
	}

	page := answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>\x1b[31mhello") })
	require.Contains(t, page.fails(1, "pods"), "is the address right?")
	teapot := answering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	require.Contains(t, teapot.fails(1, "get", "rooms", "a"), "answered 418 I'm a teapot")

	problem := func(status int, code, detail string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "detail": detail})
		}
	}
	full := answering(t, problem(429, "mailbox_full", "too many"))
	require.Contains(t, full.fails(6, "send", "rooms", "a", "merge", "--timeout", "30s"), "try again in a moment")
	unknown := answering(t, problem(504, "outcome_unknown", "no answer in time"))
	require.Contains(t, unknown.fails(7, "send", "rooms", "a", "merge", "--timeout", "30s"), "the same --id")
	control := answering(t, problem(422, "rejected", "red \x1b[31m alert"))
	require.NotContains(t, control.fails(5, "send", "rooms", "a", "merge"), "\x1b")
}

// A server that takes a request and says nothing: a change may have been made,
// a read may be tried again.
func TestServersThatSayNothing(t *testing.T) {
	t.Parallel()
	w := calling(t, "http://127.0.0.1:1")
	listener, err := net.Listen("tcp", "127.0.0.1:0") // whose connections nobody takes
	require.NoError(t, err)
	defer listener.Close()
	at := "http://" + listener.Addr().String()
	for _, args := range [][]string{{"get", "rooms", "a"}, {"ls", "rooms"}, {"pods"}, {"watch", "rooms"}, {"export"}, {"history", "rooms", "a"}} {
		said := w.fails(6, append(args, "--server", at, "--timeout", "200ms")...)
		require.Contains(t, said, "--timeout", "%q", args)
	}
	require.Contains(t, w.fails(7, "send", "rooms", "a", "merge", "--server", at, "--timeout", "2s"), "may or may not have been done")
	require.Contains(t, w.fails(7, "rm", "rooms", "a", "--server", at, "--timeout", "2s"), "may or may not have been done")
}

// Tokens come from files and the environment, and never from files that
// everybody may read.
func TestTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	servers := file("tokens", "# ours\nread look-only\nwrite may-change\n", 0o600)
	w := serve(t, "--token-file", servers)
	for _, said := range []string{w.fails(2, "pods"), w.fails(2, "watch"), w.fails(2, "send", "gauges", "a", "add", "n:=1")} {
		require.Contains(t, said, "TWINSRV_TOKEN")
	}
	wrong := file("wrong", "nobody-knows-this\n", 0o600)
	said := w.fails(2, "pods", "--token-file", wrong)
	require.Contains(t, said, "(unauthorized)")
	require.NotContains(t, said, "nobody-knows-this")
	look := file("look", "look-only\n", 0o640)
	w.must("pods", "--token-file", look)
	require.Contains(t, w.fails(2, "send", "gauges", "a", "add", "n:=1", "--token-file", look), "a token that may write")
	w.must("send", "gauges", "a", "add", "n:=1", "--token-file", servers) // of a server's own file the one that may most
	w.env = append(w.env, "TWINSRV_TOKEN_FILE="+look)
	w.must("pods")
	w.must("send", "gauges", "a", "add", "n:=1", "--token-file", servers)
	w.env = append(w.env, "TWINSRV_TOKEN=may-change")
	w.must("send", "gauges", "a", "add", "n:=1")
	w.fails(2, "send", "gauges", "a", "add", "n:=1", "--token-file", wrong)
	for name, text := range map[string]string{"two": "a\nb\n", "none": "# nothing\n", "odd": "read a b\n", "other": "admin x\n"} {
		require.Contains(t, w.fails(2, "pods", "--token-file", file(name, text, 0o600)), "the file of the token cannot be used")
	}
	require.Contains(t, w.fails(2, "pods", "--token-file", file("open", "look-only\n", 0o644)), "chmod o=")
	require.Contains(t, w.fails(2, "pods", "--token-file", dir), "not a regular file")
	require.Contains(t, w.fails(2, "pods", "--token-file", filepath.Join(dir, "missing")), "no such file")
	backup := filepath.Join(dir, "backup")
	require.Contains(t, w.fails(2, "store", "backup", backup, "--server", w.url, "--token-file", wrong), "(unauthorized)")
	w.must("store", "backup", backup, "--server", w.url)
	require.FileExists(t, backup)
}

// A reader that goes away ends a command without a word.
func TestPipeThatIsClosed(t *testing.T) {
	t.Parallel()
	w := serve(t)
	var in strings.Builder
	in.WriteString(`{"pod":"docs","definition":{"type":"document"}}` + "\n")
	for i := range 3000 {
		fmt.Fprintf(&in, `{"pod":"docs","name":"n%04d","state":{"text":%q}}`+"\n", i, strings.Repeat("x", 100))
	}
	require.Zero(t, w.feed(in.String(), "import", "ndjson", "-").code)
	for _, args := range [][]string{{"ls", "docs", "--all"}, {"ls", "docs", "--all", "-o", "table"}, {"ls", "docs", "--all", "-o", "json"}, {"export"}, {"watch", "--from", "0"}} {
		cmd := w.command(args...)
		var said output
		cmd.Stderr = &said
		r, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = io.ReadFull(r, make([]byte, 100))
		require.NoError(t, err)
		require.NoError(t, r.Close())
		_ = cmd.Wait()
		status, is := cmd.ProcessState.Sys().(syscall.WaitStatus)
		require.True(t, is)
		require.True(t, status.Signaled() && status.Signal() == syscall.SIGPIPE, "%q: %v", args, cmd.ProcessState)
		require.Empty(t, said.String(), "%q", args)
	}
	// The same where the signal is ignored.
	deaf := exec.Command("sh", "-c", `trap "" PIPE; { `+program(t)+` ls docs --all; echo "code $?" >&2; } | head -n 1`)
	deaf.Env = w.env
	r := w.finish(deaf, "")
	require.Equal(t, 1, strings.Count(r.stdout, "\n"))
	require.Equal(t, "code 141\n", r.stderr)
	// All of it comes, page after page, and each once.
	seen := make(map[string]bool)
	for line := range strings.Lines(w.must("ls", "docs", "--all", "--select", "name")) {
		var l struct{ Name string }
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		seen[l.Name] = true
	}
	require.Len(t, seen, 3000)
	require.Equal(t, 1500, strings.Count(w.must("ls", "docs", "--limit", "1500"), "\n"))
}

// Help has examples that begin with the command, and a typo is answered with the
// command that is nearest.
func TestHelpAndTypos(t *testing.T) {
	t.Parallel()
	w := calling(t, "http://127.0.0.1:1")
	top := w.must("--help")
	for _, c := range []string{"pods", "ls", "get", "send", "answer", "patch", "rm", "watch", "history", "export", "import", "top", "completion", "quarantine list"} {
		require.Contains(t, top, "  "+c+" ")
		help := w.must(append(strings.Fields(c), "--help")...)
		require.Contains(t, help, "Examples:\n")
		require.Contains(t, help, "twinsrv "+c)
		require.NotRegexp(t, "(?m)^.{121,}$", help)
		said := w.fails(2, append(strings.Fields(c), "--bogus")...)
		require.Contains(t, said, "`twinsrv "+c+" --help`")
	}
	for typo, meant := range map[string]string{
		"gte": "get", "hist": "history", "wacth": "watch", "sned": "send", "serv": "serve", "quarantne": "quarantine", "expotr": "export",
		"store chek": "store check", "quarantine lst": "quarantine list",
	} {
		require.Contains(t, w.fails(2, strings.Fields(typo)...), fmt.Sprintf("did you mean %q?", meant))
	}
	require.NotContains(t, w.fails(2, "xyzzy"), "did you mean")
	require.Contains(t, w.fails(2, "ls", "rooms", "--filtre", "x"), `--filter`)
	require.Contains(t, w.fails(2, "--server", "http://127.0.0.1:1", "pods"), "flags stand behind the command: twinsrv pods --server")
	require.NotContains(t, w.fails(2, "--sever", "http://127.0.0.1:1"), "behind")
	require.NotContains(t, top, "__complete")
}
