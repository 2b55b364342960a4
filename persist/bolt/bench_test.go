package bolt

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
)

// populate creates n entities of about 200 bytes.
func populate(b *testing.B, s *Store, n int) []uint64 {
	lives := make([]uint64, 0, n)
	for len(lives) < n {
		var units []persist.Unit
		for i := len(lives); i < min(n, len(lives)+4096); i++ {
			units = append(units, create(rooms(fmt.Sprintf("tower-%d-%d", i%100, i)), fmt.Sprintf("%0200d", i)))
		}
		o, err := s.Commit(ctx, units)
		require.NoError(b, err)
		for i := range o {
			lives = append(lives, o[i].Life)
		}
	}
	return lives
}

// BenchmarkCommit steps entities in groups: of 20,000, and of 256.
func BenchmarkCommit(b *testing.B) {
	for _, entities := range []int{256, 20_000} {
		for _, group := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("entities=%d/group=%d", entities, group), func(b *testing.B) {
				s := tempStore(b)
				lives := populate(b, s, entities)
				revisions := make([]uint64, entities)
				e := 0
				b.ReportAllocs()
				b.ResetTimer()
				units := 0
				for b.Loop() {
					unit := make([]persist.Unit, group)
					for i := range unit {
						e = (e + 7919) % entities // a prime: no entity twice in a group
						revisions[e]++
						unit[i] = step(rooms(fmt.Sprintf("tower-%d-%d", e%100, e)), lives[e], revisions[e], fmt.Sprintf("%0200d", e))
					}
					o, err := s.Commit(ctx, unit)
					if err != nil || o[0].Err != nil {
						b.Fatal(err, o[0].Err)
					}
					units += group
				}
				b.ReportMetric(float64(units)/b.Elapsed().Seconds(), "units/s")
			})
		}
	}
}

// BenchmarkFold steps entities in batches of 5,000 that were sorted, as a commit
// log folds them: each has the newest of an entity, and so many changes of it.
func BenchmarkFold(b *testing.B) {
	const batch, entities = 5000, 100_000
	for _, changes := range []int{1, 10} {
		b.Run(fmt.Sprintf("changes=%d", changes), func(b *testing.B) {
			s := mustOpen(b, filepath.Join(b.TempDir(), "bench.db"), Config{CommitLog: true})
			defer func() { _ = s.Close() }()
			lives := populate(b, s, entities)
			revisions := make([]uint64, entities)
			next, from := s.next, 0
			b.ResetTimer()
			keys := 0
			for b.Loop() {
				b.StopTimer()
				f := persist.Fold{Mark: persist.Mark{Log: 7, Through: next}}
				for range batch {
					from = (from + 7919) % entities
					k := rooms(fmt.Sprintf("tower-%d-%d", from%100, from))
					for range changes {
						revisions[from]++
						f.Changes = append(f.Changes, persist.Change{Key: k, Position: next, Life: lives[from], Revision: revisions[from] + 1, Data: fmt.Appendf(nil, "%0200d", from)})
						next++
					}
					f.Records = append(f.Records, persist.Stored{Key: k, Record: lived(revisions[from]+1, fmt.Sprintf("%0200d", from), lives[from])})
				}
				slices.SortFunc(f.Records, func(x, y persist.Stored) int { return strings.Compare(x.Key.String(), y.Key.String()) })
				f.Filed = f.Changes
				b.StartTimer()
				if err := s.Fold(ctx, f); err != nil {
					b.Fatal(err)
				}
				keys += batch
			}
			b.ReportMetric(float64(keys)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}

// BenchmarkHeads reads the heads of 256 entities of 100,000.
func BenchmarkHeads(b *testing.B) {
	s := tempStore(b)
	populate(b, s, 100_000)
	keys, from := make([]persist.Key, 256), 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range keys {
			from = (from + 7919) % 100_000
			keys[i] = rooms(fmt.Sprintf("tower-%d-%d", from%100, from))
		}
		if _, err := s.Heads(ctx, keys); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	s := tempStore(b)
	populate(b, s, 20_000)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i = (i + 7919) % 20_000
		if _, err := s.Load(ctx, rooms(fmt.Sprintf("tower-%d-%d", i%100, i))); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens files of a thousand and a million entities, each with a
// record, a change and its index, with and without verification.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		path := filepath.Join(b.TempDir(), "bench.db")
		s := mustOpen(b, path, Config{})
		begun := time.Now()
		populate(b, s, n)
		b.Logf("%d entities written in %v", n, time.Since(begun))
		require.NoError(b, s.Close())
		for _, noVerify := range []bool{false, true} {
			b.Run(fmt.Sprintf("entities=%d/verify=%t", n, !noVerify), func(b *testing.B) {
				for b.Loop() {
					s := mustOpen(b, path, Config{NoVerify: noVerify})
					b.StopTimer()
					require.NoError(b, s.Close())
					b.StartTimer()
				}
			})
		}
	}
}
