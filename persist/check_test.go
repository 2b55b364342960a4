package persist_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

func checked(t *testing.T, s persist.PersistenceService, o persist.CheckOptions) persist.Report {
	before := whole(t, s)
	r, err := persist.Check(context.Background(), s, o)
	require.NoError(t, err)
	require.Equal(t, before, whole(t, s), "it changes nothing")
	total := 0
	for _, n := range r.Counts {
		total += n
	}
	require.Len(t, r.Problems, total)
	return r
}

// TestCheckOfSoundStores finds nothing, whatever happened to them.
func TestCheckOfSoundStores(t *testing.T) {
	for seed := range uint64(50) {
		m := persisttest.NewMemory()
		fill(t, m, seed, 150)
		var last persist.CheckProgress
		r := checked(t, m, persist.CheckOptions{Pods: []string{"p", "q"}, Progress: func(p persist.CheckProgress) { last = p }})
		require.True(t, r.OK(), "seed %d: %v", seed, r.Problems)
		require.Equal(t, "changes", last.Doing)
		records, rows, changes := 0, 0, 0
		for _, p := range r.Pods {
			records, rows, changes = records+p.Records, rows+p.Rows, changes+p.Changes
		}
		require.Equal(t, []int{last.Records, last.Rows, last.Changes}, []int{records, rows, changes})
	}
}

func TestCheckFindsDamage(t *testing.T) {
	m := persisttest.NewMemory()
	fill(t, m, 5, 200)
	record, row, change := damageSome(t, m)
	r := checked(t, m, persist.CheckOptions{Pods: []string{"p", "q"}})
	require.Equal(t, map[persist.ProblemKind]int{persist.UnreadableRecord: 1, persist.UnreadableRow: 1, persist.UnreadableChange: 1}, r.Counts)
	require.Equal(t, record, r.Problems[0].Key)
	require.ErrorIs(t, r.Problems[0].Err, snapshot.ErrCorrupt)
	require.Equal(t, row.Key, r.Problems[1].Key)
	require.Contains(t, r.Problems[1].String(), row.ID)
	require.Equal(t, change.Position, r.Problems[2].Position)

	r, err := persist.Check(context.Background(), m, persist.CheckOptions{Pods: []string{"p", "q"}, MaxProblems: 1})
	require.NoError(t, err)
	require.Len(t, r.Problems, 1)
	require.Len(t, r.Counts, 3)

	faulty := persisttest.NewFaultStore(persisttest.NewMemory())
	fill(t, faulty, 6, 50)
	faulty.OnLoads(func(k persist.Key) bool { return k.Pod == "p" && k.Name[0] == 'e' }, snapshot.ErrNewer)
	r = checked(t, faulty, persist.CheckOptions{Pods: []string{"p", "q"}})
	require.Positive(t, r.Counts[persist.NewerRecord])
	require.Len(t, r.Counts, 1)
}

// TestCheckFindsWhatDoesNotFit: each inconsistency by its kind, and none where
// there is none.
func TestCheckFindsWhatDoesNotFit(t *testing.T) {
	ctx := context.Background()
	key := persist.Key{Pod: "p", Name: "a"}
	rec := func(life, rev uint64) persist.Stored {
		return persist.Stored{Key: key, Record: snapshot.Record{Life: life, Revision: rev, Reserved: rev, Codec: "json"}}
	}
	ch := func(pos, life, rev uint64) persist.Change {
		return persist.Change{Key: key, Position: pos, Life: life, Revision: rev}
	}
	def := func(durability string) persist.Stored {
		return persist.Stored{Key: persist.Key{Pod: "$pods", Name: "p"}, Record: snapshot.Record{Life: 1, Revision: 1, Reserved: 1, Codec: "json",
			State: fmt.Appendf(nil, `{"durability":%q}`, durability)}}
	}
	mark := func(through int) persist.Stored {
		return persist.Stored{Key: persist.Key{Pod: "$journal", Name: "trimmed"}, Record: snapshot.Record{Life: 1, Revision: 1, Reserved: 1, Codec: "json",
			State: fmt.Appendf(nil, `{"through":%d}`, through)}}
	}
	row := persist.Row{Kind: "outbox", Key: persist.Key{Pod: "p", Name: "nobody"}, ID: "1"}
	for name, c := range map[string]struct {
		batch persist.Batch
		want  persist.ProblemKind
	}{
		"sound":                      {persist.Batch{Records: []persist.Stored{def("sync"), rec(2, 2)}, Changes: []persist.Change{ch(2, 2, 1), ch(3, 2, 2)}}, ""},
		"history of a deleted one":   {persist.Batch{Records: []persist.Stored{def("sync")}, Changes: []persist.Change{ch(2, 2, 1), ch(3, 2, 2)}}, ""},
		"two lives":                  {persist.Batch{Records: []persist.Stored{def("sync"), rec(4, 1)}, Changes: []persist.Change{ch(2, 2, 1), ch(3, 2, 2), ch(4, 4, 1)}}, ""},
		"row without a record":       {persist.Batch{Records: []persist.Stored{def("sync")}, Rows: []persist.Row{row}}, persist.OrphanedRow},
		"pod without definition":     {persist.Batch{Records: []persist.Stored{rec(2, 2)}}, persist.OrphanedRecord},
		"missing revision":           {persist.Batch{Records: []persist.Stored{def("sync"), rec(2, 3)}, Changes: []persist.Change{ch(2, 2, 1), ch(4, 2, 3)}}, persist.JournalInconsistent},
		"missing first revision":     {persist.Batch{Records: []persist.Stored{def("sync"), rec(2, 3)}, Changes: []persist.Change{ch(3, 2, 2), ch(4, 2, 3)}}, persist.JournalInconsistent},
		"trimmed first revision":     {persist.Batch{Records: []persist.Stored{def("sync"), mark(2), rec(2, 3)}, Changes: []persist.Change{ch(3, 2, 2), ch(4, 2, 3)}}, ""},
		"trimmed between kept ones":  {persist.Batch{Records: []persist.Stored{def("sync"), mark(3), rec(2, 3)}, Changes: []persist.Change{ch(2, 2, 1), ch(4, 2, 3)}}, ""},
		"coalesced":                  {persist.Batch{Records: []persist.Stored{def("async:1s"), rec(2, 3)}, Changes: []persist.Change{ch(2, 2, 1), ch(4, 2, 3)}}, ""},
		"revision back":              {persist.Batch{Records: []persist.Stored{def("async:1s"), rec(2, 3)}, Changes: []persist.Change{ch(2, 2, 2), ch(4, 2, 1)}}, persist.JournalInconsistent},
		"life back":                  {persist.Batch{Records: []persist.Stored{def("sync"), rec(3, 1)}, Changes: []persist.Change{ch(3, 3, 1), ch(4, 2, 1)}}, persist.JournalInconsistent},
		"life behind its change":     {persist.Batch{Records: []persist.Stored{def("sync")}, Changes: []persist.Change{ch(3, 4, 1)}}, persist.JournalInconsistent},
		"record of an older life":    {persist.Batch{Records: []persist.Stored{def("sync"), rec(2, 9)}, Changes: []persist.Change{ch(3, 3, 1)}}, persist.JournalInconsistent},
		"record of an older version": {persist.Batch{Records: []persist.Stored{def("sync"), rec(2, 1)}, Changes: []persist.Change{ch(2, 2, 1), ch(3, 2, 2)}}, persist.JournalInconsistent},
	} {
		m := persisttest.NewMemory()
		c.batch.Position = 100
		require.NoError(t, m.Import(ctx, c.batch), name)
		r := checked(t, m, persist.CheckOptions{})
		if c.want == "" {
			require.True(t, r.OK(), "%s: %v", name, r.Problems)
			continue
		}
		require.Equal(t, map[persist.ProblemKind]int{c.want: 1}, r.Counts, name)
	}
	m := persisttest.NewMemory()
	require.NoError(t, m.Import(ctx, persist.Batch{Records: []persist.Stored{def("sync"), rec(50, 1)}, Changes: []persist.Change{ch(60, 50, 1)}}))
	r := checked(t, persist.PersistenceService(behind{m}), persist.CheckOptions{Pods: []string{"p"}})
	require.Equal(t, map[persist.ProblemKind]int{persist.PositionReused: 2}, r.Counts)
}

// TestCheckOfADamagedCreation: the change that began a life cannot be read, and
// the one behind it is not blamed for that.
func TestCheckOfADamagedCreation(t *testing.T) {
	m := persisttest.NewMemory()
	key := persist.Key{Pod: "p", Name: "a"}
	first := persist.Change{Key: key, Position: 2, Life: 2, Revision: 1}
	require.NoError(t, m.Import(context.Background(), persist.Batch{
		Position: 3,
		Records: []persist.Stored{
			{Key: persist.Key{Pod: "$pods", Name: "p"}, Record: snapshot.Record{Life: 1, Revision: 1, Reserved: 1, Codec: "json", State: []byte(`{"durability":"sync"}`)}},
			{Key: key, Record: snapshot.Record{Life: 2, Revision: 2, Reserved: 2, Codec: "json"}},
		},
		Changes: []persist.Change{first, {Key: key, Position: 3, Life: 2, Revision: 2}},
	}))
	m.DamageChange(first)
	r := checked(t, m, persist.CheckOptions{})
	require.Equal(t, map[persist.ProblemKind]int{persist.UnreadableChange: 1}, r.Counts)
}

// behind is a store that has lost count.
type behind struct{ *persisttest.Memory }

func (behind) Position(context.Context) (uint64, error) { return 10, nil }

func TestCheckOfBrokenStore(t *testing.T) {
	m := persisttest.NewMemory()
	require.NoError(t, m.Close())
	_, err := persist.Check(context.Background(), m, persist.CheckOptions{})
	require.ErrorIs(t, err, persist.ErrUnavailable)
}
