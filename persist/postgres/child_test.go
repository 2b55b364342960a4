package postgres

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
)

const childVariable = "TWINSRV_POSTGRES_CHILD"

// runAsChild does what a test wants another process to do, if this is one.
func runAsChild() (code int, ok bool) {
	what, url, ok := strings.Cut(os.Getenv(childVariable), " ")
	if !ok {
		return 0, false
	}
	var err error
	switch what {
	case "write":
		err = writeForEver(url)
	case "migrate":
		var m Migrations
		if m, err = Migrate(ctx, url); err == nil {
			fmt.Println(len(m.Applied), m.Version)
		}
	}
	if err != nil {
		fmt.Println("error", err)
		return 1, true
	}
	return 0, true
}

// child makes a command of this program that does so.
func child(t testing.TB, what, url string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(path)
	c.Env = append(os.Environ(), childVariable+"="+what+" "+url)
	c.Stderr = os.Stderr
	return c
}

// writeForEver commits steps of two entities in one call each, and prints each
// revision once it is acknowledged.
func writeForEver(url string) error {
	s, err := Open(ctx, url, Config{})
	if err != nil {
		return err
	}
	var revision, life uint64
	if r, err := s.Load(ctx, rooms("a")); err == nil {
		revision, life = r.Revision, r.Life
	}
	for {
		text := fmt.Sprint(revision + 1)
		units := []persist.Unit{step(rooms("a"), life, revision, text), step(rooms("b"), life+1, revision, text)}
		if revision == 0 {
			units = []persist.Unit{create(rooms("a"), "1"), create(rooms("b"), "1")}
		}
		for i := range units {
			units[i].Rows = []persist.RowOp{{Kind: "outbox", ID: "last", Value: []byte(text)}}
		}
		o, err := s.Commit(ctx, units)
		if err != nil || o[0].Err != nil || o[1].Err != nil {
			return fmt.Errorf("%w: %v", err, o)
		}
		life = o[0].Life
		revision++
		fmt.Println(revision)
	}
}

// Whenever the writer's process is killed, everything that it acknowledged is
// there, nothing is there by half, and its successor gets the store at once.
func TestKilledWriterLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	kills := 30
	if n, err := strconv.Atoi(os.Getenv("TWINSRV_KILLS")); err == nil {
		kills = n
	}
	acknowledged := 0
	note := func(line string) {
		n, err := strconv.Atoi(strings.TrimSuffix(line, "\n"))
		require.NoError(t, err, "the writer said %q", line)
		acknowledged = n
	}
	for round := range kills {
		cmd := child(t, "write", url)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(out)
		for range 1 + round%7 {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			note(line)
		}
		require.NoError(t, cmd.Process.Kill())
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				break // what is cut short was not acknowledged
			}
			note(line)
		}
		_ = cmd.Wait()
		checkWritten(t, url, acknowledged)
	}
}

func checkWritten(t *testing.T, url string, acknowledged int) {
	s, err := Open(ctx, url, Config{})
	require.NoError(t, err)
	defer s.Close()
	a, err := s.Load(ctx, rooms("a"))
	require.NoError(t, err)
	b, err := s.Load(ctx, rooms("b"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, int(a.Revision), acknowledged)
	require.LessOrEqual(t, int(a.Revision), acknowledged+1, "at most the commit in flight is there beyond")
	require.Equal(t, a.Revision, b.Revision, "a commit is whole or absent")
	require.Equal(t, fmt.Sprint(a.Revision), string(a.State))
	c, err := s.Changes(ctx, rooms("a"), a.Life, 0, 1<<20)
	require.NoError(t, err)
	require.Len(t, c, int(a.Revision))
	rows, err := s.RowsOf(ctx, rooms("b"))
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, fmt.Sprint(a.Revision), string(rows[0].Value))
	p, err := s.Position(ctx)
	require.NoError(t, err)
	require.Equal(t, 2*a.Revision, p)
}
