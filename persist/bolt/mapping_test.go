package bolt

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
)

// waitAtMost is how long a test waits for what should come at once.
const waitAtMost = 10 * time.Second

// tight opens a store of which nothing is mapped ahead.
func tight(t testing.TB, cfg Config) *Store {
	cfg.mapTight = true
	s := mustOpen(t, filepath.Join(t.TempDir(), "test.db"), cfg)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// slowCopy is a backup that stands still before its first byte.
type slowCopy struct {
	bytes.Buffer
	end  func()
	made chan error
}

func copySlowly(t testing.TB, s *Store) *slowCopy {
	begun, end := make(chan struct{}), make(chan struct{})
	c := &slowCopy{end: sync.OnceFunc(func() { close(end) }), made: make(chan error, 1)}
	t.Cleanup(c.end)
	go func() {
		c.made <- s.BackupTelling(ctx, &c.Buffer, func() { close(begun); <-end })
	}()
	<-begun
	return c
}

// finish has the copy made, and opens it.
func (c *slowCopy) finish(t testing.TB) *Store {
	c.end()
	require.NoError(t, <-c.made)
	path := filepath.Join(t.TempDir(), "restored.db")
	require.NoError(t, Restore(path, &c.Buffer))
	s := mustOpen(t, path, Config{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// promptly runs fn, which must not stand still.
func promptly(t testing.TB, fn func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(waitAtMost):
		require.FailNow(t, "it stands still")
		return nil
	}
}

// requireRead requires that reads go on.
func requireRead(t testing.TB, s persist.PersistenceService, k persist.Key) {
	t.Helper()
	require.NoError(t, promptly(t, func() error {
		_, err := s.Load(ctx, k)
		return err
	}))
}

// one is a batch with one record.
func one(name string, revision uint64, state string) persist.Fold {
	return persist.Fold{Batch: persist.Batch{Records: []persist.Stored{{Key: rooms(name), Record: lived(revision, state, 1)}}}}
}

// mapped is how much bbolt has mapped of the file.
func mapped(s *Store) int64 { return reflect.ValueOf(s.db).Elem().FieldByName("datasz").Int() }

func sizeOf(t testing.TB, s *Store) (n int64) {
	require.NoError(t, s.db.View(func(tx *bbolt.Tx) error { n = tx.Size(); return nil }))
	return n
}

// requireWaits requires that somebody waits for a copy to end.
func requireWaits(t testing.TB, s *Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.copies.mu.Lock()
		defer s.copies.mu.Unlock()
		return s.copies.n > 0 && s.copies.wanted
	}, waitAtMost, time.Millisecond)
}

// What has to map the file anew waits for a copy, and reads do not wait for it.
func TestReadsGoOnWhileAWriteWaitsForACopy(t *testing.T) {
	many := strings.Repeat("x", 1<<20) // more than will be mapped
	old := rooms("old")
	for what, write := range map[string]func(ctx context.Context, s *Store) error{
		"commit": func(ctx context.Context, s *Store) error {
			o, err := s.Commit(ctx, []persist.Unit{create(rooms("new"), many)})
			if err == nil {
				err = o[0].Err
			}
			return err
		},
		"fold": func(ctx context.Context, s *Store) error {
			return s.Fold(ctx, one("new", 9, many))
		},
		"import": func(ctx context.Context, s *Store) error {
			return s.Import(ctx, persist.Batch{Records: []persist.Stored{{Key: rooms("new"), Record: lived(9, many, 1)}}})
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := tight(t, Config{})
			o := mustCommit(t, s, create(old, "old"))
			for i := range 60 {
				mustCommit(t, s, create(rooms(fmt.Sprint(i)), strings.Repeat("x", 1500)))
			}
			require.Less(t, sizeOf(t, s)+100_000, mapped(s))
			c := copySlowly(t, s)
			before, err := s.Position(ctx)
			require.NoError(t, err)
			short, cancel := context.WithCancel(ctx)
			wrote := make(chan error, 1)
			go func() { wrote <- write(short, s) }()
			requireWaits(t, s)
			requireRead(t, s, old)
			cancel()
			err = <-wrote
			require.ErrorIs(t, err, persist.ErrUnavailable)
			require.ErrorIs(t, err, context.Canceled)
			_, err = s.Load(ctx, rooms("new"))
			require.ErrorIs(t, err, persist.ErrNotFound)
			position, err := s.Position(ctx)
			require.NoError(t, err)
			require.Equal(t, before, position)

			mustCommit(t, s, step(old, o[0].Life, 1, "what has room goes on"))
			go func() { wrote <- write(ctx, s) }()
			requireWaits(t, s)
			requireRead(t, s, old)
			select {
			case err := <-wrote:
				require.FailNow(t, "it was not to be done yet", "%v", err)
			default:
			}
			r := c.finish(t)
			require.NoError(t, <-wrote)
			require.Equal(t, many, state(t, s, rooms("new")))
			require.Equal(t, "old", state(t, r, old))
			_, err = r.Load(ctx, rooms("new"))
			require.ErrorIs(t, err, persist.ErrNotFound)
		})
	}
}

// A log in front waits itself.
func TestALogIsToldToWaitForACopy(t *testing.T) {
	s := tight(t, Config{CommitLog: true})
	mustFold(t, s, persist.Fold{Mark: persist.Mark{Log: 7, Through: 1}})
	c := copySlowly(t, s)
	f := one("a", 9, strings.Repeat("x", 1<<20))
	f.Mark = persist.Mark{Log: 7, Through: 2}
	var busy *persist.BusyError
	require.ErrorAs(t, promptly(t, func() error { return s.Fold(ctx, f) }), &busy)
	require.ErrorIs(t, busy, persist.ErrUnavailable)
	require.ErrorAs(t, promptly(t, func() error { return s.Backup(ctx, new(bytes.Buffer)) }), &busy, "or a backup would follow on the other for ever")
	select {
	case <-busy.Over:
		require.FailNow(t, "it is not over")
	default:
	}
	m, err := s.Mark(ctx)
	require.NoError(t, err)
	require.Equal(t, persist.Mark{Log: 7, Through: 1}, m)
	c.finish(t)
	<-busy.Over
	mustFold(t, s, f)
	require.NotEmpty(t, backupOf(t, s))
}

// What has room ahead does not wait: the file grows to many times its size.
func TestCommitsGoOnWhileACopyIsMade(t *testing.T) {
	if (Config{}).mapsAhead("") == 0 {
		t.Skip("nothing is mapped ahead here")
	}
	s := tempStore(t)
	mustCommit(t, s, create(rooms("old"), "old"))
	before := sizeOf(t, s)
	c := copySlowly(t, s)
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprint("new", i))
		mustCommit(t, s, create(rooms(names[i]), strings.Repeat(fmt.Sprint(i%10), 1<<20)))
		requireRead(t, s, rooms("old"))
	}
	require.Greater(t, sizeOf(t, s), 100*before)
	r := c.finish(t)
	_, err := r.Load(ctx, rooms(names[0]))
	require.ErrorIs(t, err, persist.ErrNotFound)
	for i, name := range names {
		require.Equal(t, strings.Repeat(fmt.Sprint(i%10), 1<<20), state(t, s, rooms(name)))
	}
}

// Commits of all sizes come to the end of the map while copies are made. None makes
// bbolt map anew, for which it would stand still; those that are refused would
// have, leave nothing behind, and nothing is lost.
func TestACopyKeepsCommitsWithinTheMap(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			s := tight(t, Config{CommitLog: true})
			s.db.NoSync = true
			want := map[string]string{}
			var revision uint64
			write := func() error {
				k, n := fmt.Sprint(rng.IntN(60)), rng.IntN(1<<rng.IntN(18))
				revision++
				v := fmt.Sprintf("%d %0*d", revision, n, 0)
				err := s.Fold(ctx, one(k, revision, v))
				if err == nil {
					want[k] = v
				}
				return err
			}
			refused := 0
			for range 12 {
				for range rng.IntN(30) {
					require.NoError(t, write())
				}
				require.LessOrEqual(t, max(s.mapped, mapSize(sizeOf(t, s))), mapped(s), "what is taken for mapped is")
				was, then := mapped(s), maps.Clone(want)
				c := copySlowly(t, s)
				for range 3 + rng.IntN(300) {
					err := promptly(t, write)
					require.Equal(t, was, mapped(s))
					if err == nil {
						continue
					}
					var busy *persist.BusyError
					require.ErrorAs(t, err, &busy)
					refused++
					break
				}
				requireRead(t, s, rooms(anyOf(want)))
				requireHas(t, c.finish(t), then)
			}
			require.Positive(t, refused)
			require.NoError(t, s.Close())
			s = mustOpen(t, s.path, Config{VerifyFirst: true})
			requireHas(t, s, want)
			require.NoError(t, s.Close())
		})
	}
}

// requireHas requires that a store has these states, and no others.
func requireHas(t testing.TB, s *Store, want map[string]string) {
	t.Helper()
	page, err := s.List(ctx, "rooms", persist.ListOptions{Limit: 1000})
	require.NoError(t, err)
	got := map[string]string{}
	for _, item := range page.Items {
		got[item.Name] = string(item.Record.State)
	}
	require.True(t, maps.Equal(want, got))
}

func anyOf(m map[string]string) string {
	for k := range m {
		return k
	}
	return ""
}

// A commit waits only when a page of it would not end before the map does.
func TestACopyLeavesCommitsAllThatIsMapped(t *testing.T) {
	s := tight(t, Config{CommitLog: true})
	s.db.NoSync = true
	for i := range uint64(300) { // so that pages are few
		mustFold(t, s, one("a", i+1, strings.Repeat("a", 100)))
	}
	c := copySlowly(t, s)
	for revision := uint64(400); ; revision++ {
		err := promptly(t, func() error { return s.Fold(ctx, one("a", revision, strings.Repeat("a", 100))) })
		var busy *persist.BusyError
		if err != nil {
			require.ErrorAs(t, err, &busy)
			break
		}
	}
	// Such a fold takes some pages, for the way to the entity, the buckets and the
	// list of free pages.
	require.Less(t, mapped(s)-sizeOf(t, s), int64(12*s.db.Info().PageSize))
	c.finish(t)
}

// Closing waits neither for a copy nor for who waits for one.
func TestClosingEndsWaitingForACopy(t *testing.T) {
	s := tight(t, Config{})
	mustCommit(t, s, create(rooms("a"), "A"))
	begun, made, wrote := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		made <- s.BackupTelling(ctx, new(bytes.Buffer), func() {
			close(begun)
			for !s.leaving.Load() {
				runtime.Gosched()
			}
		})
	}()
	<-begun
	go func() {
		_, err := s.Commit(ctx, []persist.Unit{create(rooms("b"), strings.Repeat("x", 1<<20))})
		wrote <- err
	}()
	requireWaits(t, s)
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-made, persist.ErrUnavailable)
	require.ErrorIs(t, <-wrote, persist.ErrUnavailable)
}

// With a log in front commits go on until that is full, and reads for ever.
func TestReadsGoOnWhileAFoldWaitsForACopy(t *testing.T) {
	dir := t.TempDir()
	b := tight(t, Config{CommitLog: true})
	s, err := commitlog.Open(dir, b, commitlog.Config{SegmentSize: 1 << 20, FoldAfter: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	commit := func(ctx context.Context, i int) error {
		_, err := s.Commit(ctx, []persist.Unit{create(rooms(fmt.Sprint(i)), strings.Repeat("x", 100_000))})
		return err
	}
	require.NoError(t, commit(ctx, 0))
	require.NoError(t, s.Fold(ctx))
	c := copySlowly(t, b)
	n := 1
	for ; n < 10; n++ {
		require.NoError(t, promptly(t, func() error { return commit(ctx, n) }), "there is room in the log")
		requireRead(t, s, rooms("0"))
	}
	requireWaits(t, b)
	wrote := make(chan error, 1)
	go func() {
		for ; n < 100; n++ {
			if err := commit(ctx, n); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	for i := range 10 {
		requireRead(t, s, rooms(fmt.Sprint(i)))
	}
	require.NoError(t, s.Reopen(ctx))
	r := c.finish(t)
	require.NoError(t, <-wrote)
	require.NoError(t, s.Close())
	_, err = r.Load(ctx, rooms("1"))
	require.ErrorIs(t, err, persist.ErrNotFound)
	b = mustOpen(t, b.path, Config{})
	defer func() { _ = b.Close() }()
	for i := range 100 {
		require.Len(t, state(t, b, rooms(fmt.Sprint(i))), 100_000)
	}
}
