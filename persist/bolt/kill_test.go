package bolt

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
)

// writeForEver commits steps of two entities in one call each, and prints each
// revision once it is acknowledged.
func writeForEver(s *Store) {
	var a, b uint64
	if r, err := s.Load(ctx, rooms("a")); err == nil {
		a = r.Revision
		b = r.Life
	}
	for {
		units := []persist.Unit{step(rooms("a"), b, a, fmt.Sprint(a+1)), step(rooms("b"), b+1, a, fmt.Sprint(a+1))}
		if a == 0 {
			units = []persist.Unit{create(rooms("a"), "1"), create(rooms("b"), "1")}
		}
		o, err := s.Commit(ctx, units)
		if err != nil || o[0].Err != nil || o[1].Err != nil {
			fmt.Println("error", err, o)
			return
		}
		b = o[0].Life
		a++
		fmt.Println(a)
	}
}

// compactForEver compacts the file between the commits of writeForEver.
func compactForEver(s *Store) {
	for s.Compact(ctx) == nil {
	}
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	for _, verb := range []string{"write", "compact"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			killAndLook(t, verb)
		})
	}
}

func killAndLook(t *testing.T, verb string) {
	path := filepath.Join(t.TempDir(), "test.db")
	acknowledged := 0
	rounds := map[string]int{"write": 40, "compact": 20}[verb]
	for round := range rounds {
		cmd := process(t, verb, path)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(out)
		steps := 1 + round
		if verb == "compact" {
			steps = 3 + round/2 // each waits for a whole compaction
		}
		for range steps {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			acknowledged, err = strconv.Atoi(strings.TrimSpace(line))
			require.NoError(t, err)
		}
		require.NoError(t, cmd.Process.Kill())
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		for _, line := range strings.Split(string(rest), "\n") {
			if n, err := strconv.Atoi(line); err == nil && strings.Contains(string(rest), line+"\n") {
				acknowledged = n
			}
		}
		_ = cmd.Wait()

		s := mustOpen(t, path, Config{})
		a, err := s.Load(ctx, rooms("a"))
		require.NoError(t, err)
		b, err := s.Load(ctx, rooms("b"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, int(a.Revision), acknowledged)
		require.LessOrEqual(t, int(a.Revision), acknowledged+1)
		require.Equal(t, a.Revision, b.Revision, "a commit is whole or absent")
		require.Equal(t, fmt.Sprint(a.Revision), string(a.State))
		c, err := s.Changes(ctx, rooms("a"), a.Life, 0, 1<<20)
		require.NoError(t, err)
		require.Len(t, c, int(a.Revision))
		require.NoError(t, s.Close())
		requireAlone(t, path)
	}
}
