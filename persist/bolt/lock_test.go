package bolt

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The test binary runs itself as another process: with this variable set it
// does what the first word says to the file named by the rest.
const childVariable = "BOLT_TEST_CHILD"

// runAsChild plays the other process, if this is one.
func runAsChild() (code int, ok bool) {
	what := os.Getenv(childVariable)
	if what == "" {
		return 0, false
	}
	var verb, path string
	if _, err := fmt.Sscanf(what, "%s %s", &verb, &path); err != nil {
		fmt.Println(err)
		return 2, true
	}
	if play, ok := plays()[verb]; ok { // see the tests that use them
		if err := play(path); err != nil {
			fmt.Println(err)
			return 1, true
		}
		return 0, true
	}
	s, err := Open(path, Config{})
	if err != nil {
		fmt.Println(err)
		return 1, true
	}
	switch verb {
	case "hold": // until standard input ends
		fmt.Println("holding")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "write": // until killed: says each revision that is durable
		writeForEver(s)
	case "compact": // likewise, and compacts the file at the same time
		go compactForEver(s)
		writeForEver(s)
	}
	_ = s.Close()
	return 0, true
}

func process(t *testing.T, verb, path string) *exec.Cmd {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childVariable+"="+verb+" "+path)
	return cmd
}

func TestAnotherProcessIsRefusedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	out, err := process(t, "open", path).Output()
	require.Error(t, err, "a second process opened the file")
	require.Contains(t, string(out), path)
	require.Contains(t, string(out), ErrLocked.Error())
	require.NoError(t, s.Close())
	out, err = process(t, "open", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestAnotherProcessHoldsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	cmd := process(t, "hold", path)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "holding\n", line)

	before, err := os.Stat(path)
	require.NoError(t, err)
	begun := time.Now()
	_, err = Open(path, Config{})
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, path)
	require.Less(t, time.Since(begun), time.Second)
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime(), "nothing is written to a file that another process holds")

	opened := make(chan error, 1)
	go func() {
		s, err := Open(path, Config{LockTimeout: time.Minute})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	require.NoError(t, in.Close())
	require.NoError(t, <-opened, "with a timeout, Open waits for the other process")
	require.NoError(t, cmd.Wait())
}

func TestTheSameProcessIsRefusedToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	_, err := Open(path, Config{})
	require.ErrorIs(t, err, ErrLocked)
	mustCommit(t, s, create(rooms("a"), "A"))
	require.NoError(t, s.Close())
	s = mustOpen(t, path, Config{})
	require.Equal(t, "A", state(t, s, rooms("a")))
	require.NoError(t, s.Close())
}
