package bolt

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// churn is a writer that steps the same entities for ever and trims behind
// itself: what it needs room for does not grow.
type churn struct {
	s         *Store
	lives     []uint64
	revisions []uint64
}

func newChurn(t testing.TB, s *Store, entities int) *churn {
	c := &churn{s: s}
	var units []persist.Unit
	for i := range entities {
		u := create(rooms(fmt.Sprintf("e%04d", i)), strings.Repeat("x", 500))
		u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("row")}}
		units = append(units, u)
	}
	for _, o := range mustCommit(t, s, units...) {
		c.lives, c.revisions = append(c.lives, o.Life), append(c.revisions, 1)
	}
	return c
}

// write makes commits of 20 entities each.
func (c *churn) write(t testing.TB, commits int) {
	for n := range commits {
		var units []persist.Unit
		for i := range 20 {
			e := (n*20 + i) % len(c.lives)
			u := step(rooms(fmt.Sprintf("e%04d", e)), c.lives[e], c.revisions[e], strings.Repeat("y", 500))
			u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("row")}}
			units = append(units, u)
			c.revisions[e]++
		}
		o := mustCommit(t, c.s, units...)
		if last := o[19].Position; last > 400 {
			_, err := c.s.Trim(ctx, 0, last-400, 100)
			require.NoError(t, err)
		}
	}
}

// pages returns how many pages the store's file uses.
func (c *churn) pages(t testing.TB) int { return usedPages(t, c.s.path) }

func TestLongScansLeaveTheFileItsSize(t *testing.T) {
	t.Parallel()
	s := tempStore(t)
	c := newChurn(t, s, 400)
	c.write(t, 60)
	settled := c.pages(t)

	var listed, logged, rowed int
	var name string
	var position uint64
	var row *persist.Row
	for range 40 { // a reader in the midst of three long scans, with a writer between its pages
		page, err := s.List(ctx, "rooms", persist.ListOptions{After: name, Limit: 10})
		require.NoError(t, err)
		name = page.Items[len(page.Items)-1].Name
		listed += len(page.Items)
		log, err := s.Log(ctx, position, 10)
		require.NoError(t, err)
		position = log[len(log)-1].Position
		logged += len(log)
		rows, err := s.Rows(ctx, "outbox", row, 10)
		require.NoError(t, err)
		row = &rows[len(rows)-1]
		rowed += len(rows)
		c.write(t, 4)
	}
	require.Equal(t, []int{400, 400, 400}, []int{listed, logged, rowed})
	require.Less(t, c.pages(t), settled+settled/2, "the file grows with what is read")
}

func TestAScanIsManyShortTransactions(t *testing.T) {
	s := tempStore(t)
	var units []persist.Unit
	for i := range 1000 {
		units = append(units, create(rooms(fmt.Sprintf("small%04d", i)), "x"))
	}
	for i := range 8 {
		units = append(units, create(rooms(fmt.Sprintf("z-large%d", i)), strings.Repeat("x", 1<<20)))
	}
	mustCommit(t, s, units...)
	counts := map[*bbolt.Tx][2]int{}
	total := 0
	require.NoError(t, s.scan(ctx, recordsBucket, nil, func(tx *bbolt.Tx, k, v []byte) (bool, error) {
		n := counts[tx]
		counts[tx] = [2]int{n[0] + 1, n[1] + len(v)}
		total++
		return true, nil
	}, nil))
	require.Equal(t, 1008, total)
	for _, n := range counts {
		require.LessOrEqual(t, n[0], chunkItems)
		require.LessOrEqual(t, n[1], chunkBytes+(2<<20))
	}
}

func TestABackupThatIsTakenSlowlyPinsNothing(t *testing.T) {
	t.Parallel()
	s := tempStore(t)
	c := newChurn(t, s, 400)
	c.write(t, 60)
	settled := c.pages(t)
	var at int
	slow := writerFunc(func(b []byte) (int, error) {
		if at++; at <= 20 {
			c.write(t, 8) // a commit would wait for ever for whoever waits for this
		}
		return len(b), nil
	})
	require.NoError(t, s.Backup(ctx, slow))
	require.GreaterOrEqual(t, at, 20)
	require.Less(t, c.pages(t), settled+settled/2)
	requireAlone(t, s.path)
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// requireAlone requires that there is nothing beside a file.
func requireAlone(t testing.TB, path string) {
	t.Helper()
	dir, err := os.Open(path[:strings.LastIndexByte(path, os.PathSeparator)])
	require.NoError(t, err)
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	require.NoError(t, err)
	require.Len(t, names, 1, "%v", names)
}
