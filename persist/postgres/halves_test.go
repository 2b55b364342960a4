package postgres

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
)

// crowd are names that a call of one unit for each has in two halves, as many in
// each.
func crowd(n int) []persist.Key {
	keys := make([]persist.Key, n)
	for i := range keys {
		keys[i] = rooms(fmt.Sprint("crowd-", i))
	}
	return keys
}

func created(keys []persist.Key) []persist.Unit {
	units := make([]persist.Unit, len(keys))
	for i, k := range keys {
		units[i] = create(k, "one")
	}
	return units
}

func stepped(keys []persist.Key, o []persist.Outcome) []persist.Unit {
	units := make([]persist.Unit, len(keys))
	for i, k := range keys {
		units[i] = step(k, o[i].Life, 1, "two")
	}
	return units
}

func TestCut(t *testing.T) {
	for names, want := range map[string]int{
		"": 0, "a": 0, "ab": 1, "abc": 1, "abcd": 2, "aabb": 2, "abab": 0, "abca": 0, "aabc": 2, "aaab": 3, "aaaab": 0,
		"abbbcd": 4, "abcdefgg": 4, "abcddefg": 3, "abcdeedg": 3, "abccddeffg": 4,
	} {
		var units []persist.Unit
		for _, name := range names {
			units = append(units, create(rooms(string(name)), "{}"))
		}
		require.Equal(t, want, cut(units), names)
	}
}

func TestHalvesAreAsTheWhole(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, freshURL(t), Config{})
	keys := crowd(200)
	units := created(keys)
	units = append(units, step(keys[177], 0, 1, "two"), create(keys[177], "again"), step(rooms("nobody"), 5, 3, "x"))
	out, err := s.Commit(ctx, units)
	require.NoError(t, err)
	for i, o := range out[:201] {
		require.NoError(t, o.Err, i)
		require.EqualValues(t, i+1, o.Position)
	}
	require.Equal(t, out[177].Life, out[200].Life, "units of one key see the earlier ones")
	require.ErrorIs(t, out[201].Err, persist.ErrConflict)
	require.ErrorIs(t, out[202].Err, persist.ErrConflict)
	p, err := s.Position(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 201, p)
	log, err := s.Log(ctx, 0, 1000)
	require.NoError(t, err)
	require.Len(t, log, 201)
	for i, c := range log {
		require.EqualValues(t, i+1, c.Position)
	}
	for i, k := range keys {
		want := "one"
		if i == 177 {
			want = "two"
		}
		require.Equal(t, want, state(t, s, k))
	}
	// What is not as assumed is judged anew, in both halves.
	again := append(stepped(keys, out), create(rooms("fresh"), "one"))
	out, err = s.Commit(ctx, again)
	require.NoError(t, err)
	for i, o := range out {
		if i == 177 {
			require.ErrorIs(t, o.Err, persist.ErrConflict)
			continue
		}
		require.NoError(t, o.Err)
	}
}

// A value that the server refuses, in whichever half, refuses the call, and
// nothing of it is there.
func TestARefusalOfAHalfIsOneOfTheCall(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	s := mustOpen(t, url, Config{})
	execSQL(t, url, `ALTER TABLE records ADD CONSTRAINT warm CHECK ((state->>'celsius')::int > 0)`)
	keys := crowd(100)
	for half := range 2 {
		units := created(keys)
		for i := range units {
			units[i].Record.State = []byte(`{"celsius":1}`)
		}
		units[half*60+10].Record.State = []byte(`{"celsius":-1}`)
		_, err := s.Commit(ctx, units)
		require.ErrorIs(t, err, persist.ErrInvalid)
		require.Zero(t, ask[int64](t, url, `SELECT count(*) FROM records`))
		require.True(t, s.up())
	}
}

// A constraint of people's own can have one half wait for the other, which waits
// for it to be ready: then they are one transaction.
func TestHalvesThatWaitForEachOther(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	s := mustOpen(t, url, Config{})
	execSQL(t, url, `ALTER TABLE records ADD CONSTRAINT alone EXCLUDE ((state->>'badge') WITH =) DEFERRABLE INITIALLY IMMEDIATE`)
	keys := crowd(100)
	units := created(keys)
	for i := range units {
		units[i].Record.State = fmt.Appendf(nil, `{"badge":"%d"}`, i%80)
	}
	begin := time.Now()
	_, err := s.Commit(ctx, units)
	require.ErrorIs(t, err, persist.ErrInvalid, "so that the committer finds the one")
	require.Less(t, time.Since(begin), s.cfg.Timeout)
	require.True(t, s.up())
}

// However the connection breaks at the commit of either half, what the store
// reads afterwards is so for good, an outcome is unknown only if something may
// have been committed, and positions go on behind what is there.
func TestConnectionCutInTheCommitOfAHalf(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]pgtest.Fault{
		"before the server got it": pgtest.DropCommit, "before it arrives, later": pgtest.DelayCommit,
		"after the server has committed": pgtest.DropAnswer, "so that the answer never comes": pgtest.HoldAnswer,
	} {
		for half := range 2 {
			t.Run(fmt.Sprintf("of half %d, %s", half+1, name), func(t *testing.T) {
				t.Parallel()
				proxy, url := through(t, freshURL(t))
				s := mustOpen(t, url, Config{Timeout: 3 * time.Second})
				keys := crowd(80)
				o := mustCommit(t, s, created(keys)...)
				struck := proxy.StrikeAfter(half, fault)
				_, err := s.Commit(ctx, stepped(keys, o))
				require.ErrorIs(t, err, persist.ErrUnknown)
				<-struck
				serves(t, s)
				p, err := s.Position(ctx)
				require.NoError(t, err)
				proxy.Release()
				took := 0
				for i, k := range keys {
					own := i / 40
					committed := own < half || own == half && (fault == pgtest.DropAnswer || fault == pgtest.HoldAnswer)
					want := "one"
					if committed {
						want = "two"
						took++
					}
					require.Equal(t, want, state(t, s, k))
				}
				require.EqualValues(t, 80+took, p)
				next := mustCommit(t, s, create(rooms("next"), "one"))[0]
				require.Equal(t, p+1, next.Position)
				log, err := s.Log(ctx, 0, 1000)
				require.NoError(t, err)
				require.Len(t, log, 80+took+1)
			})
		}
	}
}

// A server that loses the store between the two commits has the first half
// stored, and the second never.
func TestFencingOfTheSecondHalf(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	first := mustOpen(t, url, Config{})
	keys := crowd(80)
	o := mustCommit(t, first, created(keys)...)
	first.lock.release(ctx)
	execSQL(t, url, `CREATE FUNCTION taken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			NEW.epoch := OLD.epoch + 1; NEW.instance := 'other'; RETURN NEW; END $$`)
	execSQL(t, url, `CREATE TRIGGER taken BEFORE UPDATE ON store FOR EACH ROW EXECUTE FUNCTION taken()`)
	_, err := first.Commit(ctx, stepped(keys, o))
	require.ErrorIs(t, err, persist.ErrUnknown)
	execSQL(t, url, `DROP TRIGGER taken ON store`)
	const count = 40
	require.EqualValues(t, count, ask[int64](t, url, `SELECT count(*) FROM records WHERE revision = 2`))
	require.EqualValues(t, 80+count, ask[int64](t, url, `SELECT position FROM store`))
	require.EqualValues(t, 80+count, ask[int64](t, url, `SELECT max(position) FROM changes`))
}

// The session of a second half that the server does not know to be gone keeps
// nobody from the store.
func TestALostSecondSessionIsEnded(t *testing.T) {
	t.Parallel()
	proxy, url := through(t, freshURL(t))
	s := mustOpen(t, url, Config{})
	keys := crowd(80)
	o := mustCommit(t, s, created(keys)...)
	s.turn <- struct{}{}
	_, err := s.second.Exec(ctx, "BEGIN")
	require.NoError(t, err)
	_, err = s.second.Exec(ctx, "UPDATE records SET size = size")
	require.NoError(t, err)
	s.release()
	proxy.CutClients()
	require.Eventually(t, func() bool { return !s.up() }, patience, tick)
	serves(t, s)
	begin := time.Now()
	mustCommit(t, s, stepped(keys, o)...)
	require.Less(t, time.Since(begin), s.cfg.Timeout/2)
}

// A server that lost the store without knowing may connect anew just when the
// next one does. The lock of the second session is the next one's.
func TestTheSecondSessionIsOfWhoHasTheStore(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	s := mustOpen(t, url, Config{})
	s.turn <- struct{}{}
	defer s.release()
	require.NoError(t, closeQuietly(s.second))
	late, err := s.connectSecond(ctx) // as the earlier server has it
	require.NoError(t, err)
	s.second, err = s.connectSecond(ctx)
	require.NoError(t, err)
	require.Error(t, late.Ping(ctx), "it was ended")

	execSQL(t, url, `UPDATE store SET epoch = epoch + 1`)
	_, err = s.connectSecond(ctx) // now this one is the earlier
	require.ErrorContains(t, err, "another server has taken the store")
	require.NoError(t, s.second.Ping(ctx), "it is not ended by who lost the store")
}

// A reader sees no position before those below it also while two transactions
// are under way, and groups may end at any time.
func TestReadersSeeThePositionsOfHalvesInOrder(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, freshURL(t), Config{halveFrom: 2})
	const steps, group = 40, 12
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	failed := make(chan error, 1)
	wg.Go(func() {
		for i := range steps {
			var units []persist.Unit
			for j := range group {
				units = append(units, create(rooms(fmt.Sprintf("%d-%d", i, j)), "{}"))
			}
			if _, err := s.Commit(ctx, units); err != nil {
				failed <- err
				return
			}
		}
	})
	for seen := uint64(0); seen < steps*group; {
		p, err := s.Position(ctx)
		require.NoError(t, err)
		log, err := s.Log(ctx, seen, 1000)
		require.NoError(t, err)
		for _, c := range log {
			require.Equal(t, seen+1, c.Position)
			seen = c.Position
		}
		require.GreaterOrEqual(t, seen, p, "what has a position can be read")
		select {
		case err := <-failed:
			require.NoError(t, err)
		default:
		}
	}
}
