package bolt

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// A file whose entities are rewritten for ever, a few and many at a time, finds
// room in itself: it does not grow once all of its pages have been rewritten.
//
// It would with bbolt's other list of free pages. That takes single pages from
// wherever one is, so that soon nowhere is room for the list itself, which must
// lie in one piece; each commit then makes the file longer by a list, and the
// list by the pages of it.
func TestAFileStopsGrowing(t *testing.T) {
	t.Parallel()
	const entities, rounds = 8_000, 1200
	s := tempStore(t)
	s.db.NoSync = true
	rng := rand.New(rand.NewPCG(1, 1))
	size := func() (n int64) {
		require.NoError(t, s.db.View(func(tx *bbolt.Tx) error { n = tx.Size(); return nil }))
		return n
	}
	revision := uint64(0)
	rewrite := func(n int, which func(i int) int) {
		revision++
		var f persist.Fold
		for i := range n {
			k := rooms(fmt.Sprintf("room-%05d", which(i)))
			f.Records = append(f.Records, persist.Stored{Key: k, Record: lived(revision, fmt.Sprintf("%02500d", rng.Int64()), 1)})
		}
		mustFold(t, s, f)
	}
	rewrite(entities, func(i int) int { return i })
	anyone := func(int) int { return rng.IntN(entities) }
	var settled int64
	for round := range rounds {
		if round == rounds/2 {
			settled = size()
		}
		n := 10 + rng.IntN(100)
		if round%20 == 0 {
			n = 2500
		}
		rewrite(n, anyone)
	}
	require.LessOrEqual(t, size()-settled, settled/200)
}
