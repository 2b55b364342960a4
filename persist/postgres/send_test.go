package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
)

// transactWith runs work of two inserts of changes, each of which is put on its
// way at once; between is called when the first is and the second is to be made.
func transactWith(t *testing.T, s *Store, between func()) error {
	t.Helper()
	_, end, err := s.begin(ctx)
	require.NoError(t, err)
	defer end()
	change := func(n uint64) []persist.Change {
		return []persist.Change{{Position: s.next + n, Key: rooms("a"), Life: 1, Revision: n, Data: make([]byte, 2*flushBytes)}}
	}
	work := changeGroups(changeGroups(nil, changeStatement, change(0)), changeStatement, change(1))
	last := changeGroups(nil, changeStatement, change(2))
	made := work[1].parameters
	work[1].parameters = func() [][]byte {
		between()
		return made()
	}
	return s.transact(ctx, s.next+2, append(work, last...))
}

// The server has begun while the rest of a commit is made.
func TestTheServerBeginsWhileTheRestIsMade(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	s := mustOpen(t, url, Config{})
	pid := s.writer.PgConn().PID()
	require.NoError(t, transactWith(t, s, func() {
		require.Eventually(t, func() bool {
			return ask[bool](t, url, `SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND mode = 'RowExclusiveLock' AND relation = 'changes'::regclass)`, int64(pid))
		}, patience, tick)
	}))
	require.Equal(t, int64(3), ask[int64](t, url, `SELECT count(*) FROM changes`))
}

// A connection that breaks before the COMMIT was sent has changed nothing for
// certain, though the server had begun.
func TestConnectionLostBeforeTheCommitIsSent(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	s := mustOpen(t, url, Config{})
	a := mustCommit(t, s, create(rooms("a"), "one"))[0]
	err := transactWith(t, s, func() { require.NoError(t, s.writer.PgConn().Conn().Close()) })
	require.Error(t, err)
	require.NotErrorIs(t, err, persist.ErrUnknown)
	require.ErrorIs(t, s.unavailableOr(err), persist.ErrUnavailable)
	serves(t, s)
	require.Equal(t, int64(1), ask[int64](t, url, `SELECT count(*) FROM changes`))
	o := mustCommit(t, s, step(rooms("a"), a.Life, 1, "two"))[0]
	require.Equal(t, a.Position+1, o.Position)
}
