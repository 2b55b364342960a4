package jsonfile

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
)

// The test binary runs itself as another process: with this variable set it
// does what the first word says to the folder named by the rest.
const childVariable = "JSONFILE_TEST_CHILD"

// runAsChild plays the other process, if this is one.
func runAsChild() (code int, ok bool) {
	verb, dir, ok := strings.Cut(os.Getenv(childVariable), " ")
	if !ok {
		return 0, false
	}
	s, err := Open(dir, Config{Flush: 2 * time.Millisecond, segment: 4000})
	if err != nil {
		fmt.Println(err)
		return 1, true
	}
	if verb == "write" { // until killed: says each revision that is durable
		writeForEver(s)
	}
	_ = s.Close()
	return 0, true
}

func process(t *testing.T, verb, dir string) *exec.Cmd {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childVariable+"="+verb+" "+dir)
	return cmd
}

func TestAnotherStoreIsRefusedAtOnce(t *testing.T) {
	s := tempStore(t)
	out, err := process(t, "open", s.Path()).Output()
	require.Error(t, err, "a second process opened the folder")
	require.Contains(t, string(out), s.Path())
	require.Contains(t, string(out), ErrLocked.Error())
	_, err = Open(s.Path(), Config{})
	require.ErrorIs(t, err, ErrLocked, "nor may the same process")
	require.ErrorContains(t, err, "stop that process")
	require.NoError(t, s.Close())
	out, err = process(t, "open", s.Path()).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// writeForEver commits steps of two entities in one call each, one with a row,
// and prints each revision once it is acknowledged.
func writeForEver(s *Store) {
	var n uint64
	lives := [2]uint64{}
	for i, name := range []string{"a", "b"} {
		if r, err := s.Load(ctx, rooms(name)); err == nil {
			n, lives[i] = r.Revision, r.Life
		}
	}
	for {
		n++
		units := []persist.Unit{step(rooms("a"), lives[0], n-1, fmt.Sprint(n)), step(rooms("b"), lives[1], n-1, fmt.Sprint(n))}
		units[1].Rows = []persist.RowOp{{Kind: "outbox", ID: fmt.Sprint(n % 3), Value: []byte(fmt.Sprint(n))}}
		o, err := s.Commit(ctx, units)
		if err != nil || o[0].Err != nil || o[1].Err != nil {
			fmt.Println("error", err, o)
			return
		}
		lives = [2]uint64{o[0].Life, o[1].Life}
		fmt.Println(n)
		if n%7 == 0 {
			if _, err := s.Trim(ctx, 0, o[1].Position-20, 1000); err != nil {
				fmt.Println("error", err)
				return
			}
		}
	}
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	acknowledged := 0
	for round := range int(long(50, 300)) {
		cmd := process(t, "write", dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(out)
		for range 1 + round*5%17 {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			acknowledged, err = strconv.Atoi(strings.TrimSpace(line))
			require.NoError(t, err, "%s", line)
		}
		require.NoError(t, cmd.Process.Kill())
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		whole, _, _ := strings.Cut(string(rest)+"\n", "\n\n")
		for _, line := range strings.Split(whole, "\n") {
			if n, err := strconv.Atoi(line); err == nil && strings.Contains(string(rest), line+"\n") {
				acknowledged = n
			}
		}
		_ = cmd.Wait()

		s := mustOpen(t, dir, Config{Flush: -1})
		a, err := s.Load(ctx, rooms("a"))
		require.NoError(t, err)
		b, err := s.Load(ctx, rooms("b"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, int(a.Revision), acknowledged)
		require.LessOrEqual(t, int(a.Revision), acknowledged+1)
		require.Equal(t, a.Revision, b.Revision, "a process that is killed leaves a call whole or absent")
		require.Equal(t, fmt.Sprint(a.Revision), string(a.State))
		rows, err := s.RowsOf(ctx, rooms("b"))
		require.NoError(t, err)
		require.Len(t, rows, int(min(b.Revision, 3)))
		found := false
		for _, r := range rows {
			found = found || string(r.Value) == fmt.Sprint(b.Revision)
		}
		require.True(t, found, "the newest row is there")
		require.NoError(t, s.Close())
	}
}
