package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal on which a command runs.
type terminal struct {
	*running
	hand *os.File // what is typed, and seen
}

// pty makes a terminal of so many columns: the side of whoever looks at it, and
// that of programs.
func pty(t *testing.T, columns uint16) (hand, tty *os.File) {
	t.Helper()
	hand, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("needs a pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { _ = hand.Close() })
	raw, err := hand.SyscallConn() // and not Fd, behind which no Close would end a Read
	require.NoError(t, err)
	var n int
	var failed error
	require.NoError(t, raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		if failed == nil {
			n, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
		if failed == nil {
			failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns})
		}
	}))
	require.NoError(t, failed)
	tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return hand, tty
}

// show starts a command on a terminal. Its output is all in stdout.
func show(t *testing.T, cmd *exec.Cmd, columns uint16) *terminal {
	t.Helper()
	hand, tty := pty(t, columns)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	return shown(t, cmd, hand, tty)
}

// shown starts a command some of whose files are a terminal.
func shown(t *testing.T, cmd *exec.Cmd, hand, tty *os.File) *terminal {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: cmd.Stdin == tty}
	r := &terminal{&running{t: t, cmd: cmd, ended: make(chan struct{})}, hand}
	require.NoError(t, cmd.Start())
	require.NoError(t, tty.Close())
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		b := make([]byte, 4096)
		for {
			n, err := hand.Read(b)
			_, _ = r.stdout.Write(b[:n])
			if err != nil {
				return // nobody has the other side open any more
			}
		}
	}()
	go func() {
		defer close(r.ended)
		r.err = cmd.Wait()
		<-seen
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = hand.Close() // others may have the other side open still
		<-r.ended
	})
	return r
}

// text waits for the end and returns what was to be seen.
func (r *terminal) text() string {
	r.t.Helper()
	require.Zero(r.t, r.code(), r.stdout.String())
	return strings.ReplaceAll(r.stdout.String(), "\r\n", "\n")
}

// On a terminal people get tables, cut at its width, and nothing that would do
// something to it.
func TestTerminal(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.must("import", "ndjson", writeFile(t, `{"pod":"docs","definition":{"type":"document"}}`))
	w.must("send", "docs", "evil\x1b]0;pwned\x07", "merge", "text=\u009b31m\u202e red", "long="+strings.Repeat("長い", 100))
	w.must("send", "docs", "plain", "merge", "a:=1")
	for _, args := range [][]string{
		{"ls", "docs"}, {"get", "docs", "evil\x1b]0;pwned\x07"}, {"history", "docs", "evil\x1b]0;pwned\x07", "--diff"},
		{"watch", "docs", "--from", "0", "--limit", "1"}, {"export", "docs"}, {"pods"}, {"ls", "docs", "-o", "json"}, {"ls", "docs", "-o", "yaml"},
	} {
		text := show(t, w.command(args...), 60).text()
		for _, bad := range []string{"\x1b", "\x07", "\u009b", "\u202e"} {
			require.NotContains(t, text, bad, "%q", args)
		}
	}
	text := show(t, w.command("ls", "docs"), 60).text()
	require.Regexp(t, `(?m)^NAME +REVISION +CHANGED +STATE\n`, text)
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, len([]rune(line)), 61, line)
	}
	require.Contains(t, text, "…\n")
	require.Contains(t, show(t, w.command("send", "docs", "plain", "merge", "a:=2"), 80).text(), "revision  2\n")
	require.Contains(t, show(t, w.command("rm", "docs", "plain"), 80).text(), "docs/plain is gone\n")
	require.Contains(t, show(t, w.command("quarantine", "list"), 80).text(), "no entity was found to be unreadable\n")
}

// Bars are on the standard error output, where that is a terminal, and nowhere
// else.
func TestBars(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.must("import", "ndjson", writeFile(t, `{"pod":"docs","definition":{"type":"document"}}
{"pod":"docs","name":"a","state":{"a":1}}`))
	file := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{{"export", "docs", "-o", "json", "-f", file}, {"ls", "docs", "--all"}, {"import", "ndjson", file}} {
		hand, tty := pty(t, 80)
		cmd := w.command(args...)
		var out output
		cmd.Stdout, cmd.Stderr = &out, tty
		text := shown(t, cmd, hand, tty).text()
		require.Contains(t, text, map[bool]string{true: "bytes", false: "entities"}[args[0] == "import"], "%q", args)
		require.NotContains(t, out.String(), "\x1b", "%q", args)
		require.NotContains(t, out.String(), "\r", "%q", args)
		r := w.run(append(args, map[bool][]string{true: {"--force"}, false: nil}[args[0] == "export"]...)...)
		require.Zero(t, r.code, r.stderr)
		require.Empty(t, r.stderr, "%q", args)
	}
}

// top draws again and again on a terminal, and Ctrl-C ends it.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	w := serve(t)
	top := show(t, w.command("top", "--interval", "100ms"), 100)
	top.until("it draws twice", func() bool { return strings.Count(top.stdout.String(), "\x1b[H") > 1 })
	_, err := top.hand.WriteString("\x03")
	require.NoError(t, err)
	require.Equal(t, 130, top.code())
	require.Equal(t, 1, strings.Count(top.stdout.String(), "\x1b[2J"))
}

// The shells complete commands, flags, and what the server has; names are typed
// as the shell wants them.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []struct {
		name, quoted string
		run          []string
		load         string
	}{
		{"bash", `a/b\ c`, []string{"--norc", "--noprofile", "-i"}, "PS1='> '; source <(twinsrv completion bash)\n"},
		{"zsh", `a/b\ c`, []string{"-f", "-i"}, "PS1='> '; autoload -U compinit; compinit -D; source <(twinsrv completion zsh)\n"},
		{"fish", `a/b\ c`, []string{"--no-config", "-i"}, "function fish_prompt; echo '> '; end; twinsrv completion fish | source\n"},
	} {
		t.Run(shell.name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell.name)
			if err != nil {
				t.Skipf("needs %s: it is not on the path", shell.name)
			}
			w := serve(t)
			w.must("import", "ndjson", writeFile(t, `{"pod":"machines","definition":{"type":"document"}}`))
			for _, name := range []string{"a/b c", "x:y", "it's $5", "größe"} {
				w.must("send", "machines", name, "merge", "is="+name)
			}
			cmd := exec.Command(path, shell.run...)
			cmd.Env = slices.Concat(w.env, []string{
				"PATH=" + filepath.Dir(program(t)) + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "HISTFILE=", "LC_ALL=C.UTF-8", "TWINSRV_COMPLETION_TIMEOUT=1m",
			})
			cmd.Dir = t.TempDir()
			s := show(t, cmd, 200)
			typed := 0
			// Each line writes into a file of its own, whose content is compared: what
			// shells draw differs.
			try := func(keys, want string) {
				t.Helper()
				typed++
				out := filepath.Join(cmd.Dir, strconv.Itoa(typed))
				_, err := s.hand.WriteString(keys + " > " + out + "; echo > " + out + ".end\r")
				require.NoError(t, err)
				s.until(keys, func() bool { _, err := os.Stat(out + ".end"); return err == nil })
				got, err := os.ReadFile(out)
				require.NoError(t, err)
				require.Contains(t, string(got), want, "%s: %s", keys, s.stdout.String())
			}
			_, err = s.hand.WriteString(shell.load)
			require.NoError(t, err)
			try("echo ready", "ready")
			try("echo twinsrv quar\t", "quar") // another command completes as it did
			try("twinsrv quar\tli\t", `"items": []`)
			try("twinsrv pods mach\t", `"name": "machines"`)
			try("twinsrv get mach\ta/\t", `"is": "a/b c"`)
			try("twinsrv get machines \"a/\t", `"is": "a/b c"`)
			try("twinsrv get machines x:\t", `"is": "x:y"`)
			try("twinsrv get machines it\t", `"is": "it's $5"`)
			try("twinsrv get machines gr\t--st\t", `"is": "größe"`)
			try("twinsrv send machines x:y rem\tpointer=/is", `"revision": 2`)
			try("twinsrv ls machines --outp\tya\t--limit 1", "items:")
			try("twinsrv ls machines --limit 1 --output=ya\t", "items:")
		})
	}
}
