package postgres

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
)

const benchEntities = 20_000

// benchName and benchState are of the i-th write: no entity twice in a group.
func benchName(i int) string { return fmt.Sprintf("tower-%d", i*7919%benchEntities) }

func benchState(i int) string {
	return fmt.Sprintf(`{"celsius":%d.5,"occupants":%d,"floor":"%d","note":"%0140d"}`, i%30, i%7, i%50, i)
}

// benchUnits has entities that were created, and their next units.
type benchUnits struct {
	lives, revisions []uint64
	journal          bool
	next             int
}

func populate(b *testing.B, s *Store, journal bool) *benchUnits {
	p := &benchUnits{lives: make([]uint64, benchEntities), revisions: make([]uint64, benchEntities), journal: journal}
	for from := 0; from < benchEntities; from += 1000 {
		var units []persist.Unit
		for i := from; i < from+1000; i++ {
			units = append(units, create(rooms(benchName(i)), benchState(i)))
		}
		for i, o := range mustCommit(b, s, units...) {
			p.lives[from+i], p.revisions[from+i] = o.Life, 1
		}
	}
	return p
}

// group returns the next n steps.
func (p *benchUnits) group(n int) []persist.Unit {
	units := make([]persist.Unit, n)
	for j := range units {
		i := p.next % benchEntities
		p.next++
		units[j] = step(rooms(benchName(i)), p.lives[i], p.revisions[i], benchState(p.next))
		p.revisions[i]++
		if !p.journal {
			units[j].Changes = nil
		}
	}
	return units
}

// BenchmarkCommit steps 20,000 entities in groups on a server that waits for the
// disk; BenchmarkUpsert does the same by a statement and a transaction each.
func BenchmarkCommit(b *testing.B) {
	for _, journal := range []bool{false, true} {
		_, url := ownCluster(b)
		s := mustOpen(b, url, Config{})
		p := populate(b, s, journal)
		for _, group := range []int{1, 256, 1024} {
			b.Run(fmt.Sprintf("journal=%v/group=%d", journal, group), func(b *testing.B) {
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					for _, o := range mustCommit(b, s, p.group(group)...) {
						if o.Err != nil {
							b.Fatal(o.Err)
						}
					}
					n += group
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "units/s")
			})
		}
	}
}

func BenchmarkUpsert(b *testing.B) {
	for _, journal := range []bool{false, true} {
		_, url := ownCluster(b)
		for _, c := range []struct{ goroutines, conns int }{{1, 1}, {256, 4}, {256, 16}, {256, 64}} {
			b.Run(fmt.Sprintf("journal=%v/goroutines=%d/conns=%d", journal, c.goroutines, c.conns), func(b *testing.B) {
				naive, err := pgtest.NewNaive(ctx, url, c.conns, journal)
				require.NoError(b, err)
				defer naive.Close()
				of := func(i int) (string, string) { return benchName(i), benchState(i) }
				require.NoError(b, naive.Run(ctx, c.goroutines*4, benchEntities, of))
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					require.NoError(b, naive.Run(ctx, c.goroutines, 2048, of))
					n += 2048
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "units/s")
			})
		}
	}
}
