package memory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

func TestConforms(t *testing.T) {
	persisttest.Run(t, func(t *testing.T) persisttest.Fixture {
		s := memory.Open(memory.Config{MaxRecord: 2 << 20})
		return persisttest.Fixture{
			Store: s,
			Reopen: func(*testing.T) persist.PersistenceService {
				s = s.Fork()
				return s
			},
			MaxRecord: 2 << 20,
		}
	})
}

func unit(name string, life, expect uint64, state string) persist.Unit {
	return persist.Unit{Key: persist.Key{Pod: "rooms", Name: name}, Life: life, Expect: expect,
		Record:  &snapshot.Record{Revision: expect + 1, State: []byte(state)},
		Changes: []persist.Change{{Revision: expect + 1, Type: "changed", Data: []byte(state)}}}
}

func commit(t testing.TB, s *memory.Store, units ...persist.Unit) []persist.Outcome {
	o, err := s.Commit(ctx, units)
	require.NoError(t, err)
	for i := range o {
		require.NoError(t, o[i].Err)
	}
	return o
}

func TestPositionsStartAboveTheFirst(t *testing.T) {
	s := memory.Open(memory.Config{FirstPosition: 1000})
	p, err := s.Position(ctx)
	require.NoError(t, err)
	require.Equal(t, uint64(1000), p)
	o := commit(t, s, unit("a", 0, 0, "A"))
	require.Equal(t, uint64(1001), o[0].Life)
}

func TestAForkGoesItsOwnWay(t *testing.T) {
	s := memory.Open(memory.Config{})
	o := commit(t, s, unit("a", 0, 0, "A"), unit("b", 0, 0, "B"))
	f := s.Fork()
	commit(t, s, unit("a", o[0].Life, 1, "A2"))
	commit(t, f, unit("b", o[1].Life, 1, "B2"), unit("c", 0, 0, "C"))
	for store, want := range map[*memory.Store][]string{s: {"A2", "B"}, f: {"A", "B2", "C"}} {
		page, err := store.List(ctx, "rooms", persist.ListOptions{})
		require.NoError(t, err)
		var got []string
		for _, item := range page.Items {
			got = append(got, string(item.Record.State))
		}
		require.Equal(t, want, got)
	}
	require.NoError(t, s.Close())
	_, err := s.Load(ctx, persist.Key{Pod: "rooms", Name: "a"})
	require.ErrorIs(t, err, persist.ErrUnavailable)
	commit(t, f, unit("d", 0, 0, "D"))
	log, err := f.Log(ctx, 0, 10)
	require.NoError(t, err)
	require.Len(t, log, 5)
}

// BenchmarkCommit steps one entity of stores of different sizes: it costs the
// same but for the depth of the trees.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{100, 1_000_000} {
		b.Run(fmt.Sprintf("entities=%d", n), func(b *testing.B) {
			s := memory.Open(memory.Config{})
			lives := make([]uint64, n)
			revisions := make([]uint64, n)
			for i := range lives {
				lives[i] = commit(b, s, unit(fmt.Sprint("r", i), 0, 0, "x"))[0].Life
				revisions[i] = 1
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i = (i + 7919) % n
				o, err := s.Commit(ctx, []persist.Unit{unit(fmt.Sprint("r", i), lives[i], revisions[i], "x")})
				if err != nil || o[0].Err != nil {
					b.Fatal(err, o[0].Err)
				}
				revisions[i]++
				if _, err := s.Trim(ctx, 0, o[0].Position-min(o[0].Position, 1_000_000), 10); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkList reads a page in the middle of a pod.
func BenchmarkList(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("entities=%d", n), func(b *testing.B) {
			s := memory.Open(memory.Config{})
			for i := range n {
				commit(b, s, unit(fmt.Sprintf("r%07d", i), 0, 0, "x"))
			}
			for b.Loop() {
				page, err := s.List(ctx, "rooms", persist.ListOptions{After: fmt.Sprintf("r%07d", n/2), Limit: 100})
				if err != nil || len(page.Items) != 100 {
					b.Fatal(err, len(page.Items))
				}
			}
		})
	}
}
