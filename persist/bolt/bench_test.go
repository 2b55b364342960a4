package bolt

import (
	"fmt"
	"path/filepath"
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
