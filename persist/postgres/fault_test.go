package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
)

// serves waits until the store has healed.
func serves(t testing.TB, s *Store) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Reopen(ctx) == nil }, patience, tick)
}

// A commit whose answer does not come is unknown. Once the store serves again,
// what it reads is what became of the commit, for good.
func TestConnectionCutInTheCommit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   pgtest.Fault
		timeout time.Duration
		want    string
	}{
		"before the server got it":       {pgtest.DropCommit, 0, "one"},
		"before it arrives, later":       {pgtest.DelayCommit, 0, "one"},
		"after the server has committed": {pgtest.DropAnswer, 0, "two"},
		"so that the answer never comes": {pgtest.HoldAnswer, 3 * time.Second, "two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, url := through(t, freshURL(t))
			s := mustOpen(t, url, Config{Timeout: c.timeout})
			a := mustCommit(t, s, create(rooms("a"), "one"))[0]
			epoch := ask[int64](t, url, `SELECT epoch FROM store`)
			struck := proxy.Strike(c.fault)
			_, err := s.Commit(ctx, []persist.Unit{step(rooms("a"), a.Life, 1, "two")})
			require.ErrorIs(t, err, persist.ErrUnknown)
			require.NotErrorIs(t, err, persist.ErrUnavailable)
			<-struck

			require.Equal(t, c.want, state(t, s, rooms("a")), "the store heals itself before it reads")
			require.Greater(t, ask[int64](t, url, `SELECT epoch FROM store`), epoch, "what was begun before is fenced off")
			p, err := s.Position(ctx)
			require.NoError(t, err)
			// What comes late comes too late, also when the entity stands still.
			proxy.Release()
			require.Equal(t, c.want, state(t, s, rooms("a")))
			after, err := s.Position(ctx)
			require.NoError(t, err)
			require.Equal(t, p, after)
			revision := uint64(1)
			if c.want == "two" {
				revision = 2
			}
			o := mustCommit(t, s, step(rooms("a"), a.Life, revision, "three"))[0]
			require.Equal(t, p+1, o.Position)
			log, err := s.Log(ctx, 0, 10)
			require.NoError(t, err)
			require.Len(t, log, int(revision)+1)
		})
	}
}

// A server that cannot be reached, or refuses, has done nothing for certain.
func TestWhatWasNotBegunIsUnavailable(t *testing.T) {
	t.Parallel()
	own := freshURL(t)
	proxy, url := through(t, own)
	s := mustOpen(t, url, Config{})
	a := mustCommit(t, s, create(rooms("a"), "one"))[0]
	proxy.Refuse(true)
	proxy.Cut()
	require.Eventually(t, func() bool { return !s.up() }, patience, tick, "the lock's watch notices")
	begin := time.Now()
	_, err := s.Commit(ctx, []persist.Unit{step(rooms("a"), a.Life, 1, "two")})
	require.ErrorIs(t, err, persist.ErrUnavailable)
	_, err = s.Load(ctx, rooms("a"))
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.NotErrorIs(t, err, persist.ErrNotFound)
	require.ErrorIs(t, s.Reopen(ctx), persist.ErrUnavailable)
	require.Less(t, time.Since(begin), s.cfg.Timeout, "calls fail fast in an outage")
	proxy.Refuse(false)
	serves(t, s)
	mustCommit(t, s, step(rooms("a"), a.Life, 1, "two"))

	// An idle connection that the server ends is seen before anything is sent.
	execSQL(t, own, `SELECT pg_terminate_backend(pid) FROM store`)
	require.Eventually(t, func() bool {
		return ask[int64](t, own, `SELECT count(*) FROM pg_stat_activity a JOIN store s ON s.pid = a.pid AND s.began = a.backend_start`) == 0
	}, patience, tick)
	s.turn <- struct{}{}
	s.used = time.Time{} // long ago
	s.release()
	_, err = s.Commit(ctx, []persist.Unit{step(rooms("a"), a.Life, 2, "three")})
	require.ErrorIs(t, err, persist.ErrUnavailable)
	serves(t, s)
	mustCommit(t, s, step(rooms("a"), a.Life, 2, "three"))

	// So is one from which nothing comes any more, though it takes what is sent.
	s.turn <- struct{}{}
	// (A socket that is shut for reading still yields what arrives in time.)
	require.NoError(t, s.writer.PgConn().Conn().SetReadDeadline(time.Unix(1, 0)))
	s.used = time.Time{}
	s.release()
	_, err = s.Commit(ctx, []persist.Unit{step(rooms("a"), a.Life, 3, "four")})
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.Equal(t, "three", state(t, s, rooms("a")))
}

// A statement that waits too long for another session is given up, exactly.
func TestTimeout(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	s := mustOpen(t, url, Config{Timeout: time.Second})
	a := mustCommit(t, s, create(rooms("a"), "one"))[0]
	target, err := parse(url, Config{}.withDefaults())
	require.NoError(t, err)
	blocker, err := pgx.ConnectConfig(ctx, target.pool.ConnConfig)
	require.NoError(t, err)
	defer blocker.Close(ctx)
	_, err = blocker.Exec(ctx, `BEGIN; SELECT FROM records FOR UPDATE`)
	require.NoError(t, err)
	_, err = s.Commit(ctx, []persist.Unit{step(rooms("a"), a.Life, 1, "two")})
	require.ErrorIs(t, err, persist.ErrUnavailable, "the server has said that it did nothing")
	require.NotErrorIs(t, err, persist.ErrUnknown)
	require.Equal(t, "one", state(t, s, rooms("a")))
	_, err = blocker.Exec(ctx, `COMMIT`)
	require.NoError(t, err)
	require.Equal(t, "one", state(t, s, rooms("a")))
	mustCommit(t, s, step(rooms("a"), a.Life, 1, "two"))

	short, cancel := context.WithCancel(ctx)
	cancel()
	_, err = s.Commit(short, []persist.Unit{step(rooms("a"), a.Life, 2, "three")})
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.True(t, s.up(), "a caller's own deadline is no outage")
}

// writing commits steps of an entity until it is stopped, as the committer
// does: after a failure it reads what became of it.
type writing struct {
	acknowledged atomic.Uint64
	stop         chan struct{}
	ended        chan error
}

func startWriting(s *Store, k persist.Key) *writing {
	w := &writing{stop: make(chan struct{}), ended: make(chan error, 1)}
	go func() { w.ended <- w.run(s, k) }()
	return w
}

func (w *writing) run(s *Store, k persist.Key) error {
	var life, revision uint64
	for {
		select {
		case <-w.stop:
			return nil
		default:
		}
		u := create(k, "1")
		if revision > 0 {
			u = step(k, life, revision, fmt.Sprint(revision+1))
		}
		o, err := s.Commit(ctx, []persist.Unit{u})
		switch {
		case err == nil && o[0].Err == nil:
			life = o[0].Life
			revision++
			w.acknowledged.Store(revision)
			continue
		case err == nil:
			return o[0].Err
		case errors.Is(err, persist.ErrUnavailable):
			_ = s.Reopen(ctx)
			continue
		case !errors.Is(err, persist.ErrUnknown):
			return err
		}
		for {
			r, err := s.Load(ctx, k)
			if err == nil {
				if r.Revision != revision && r.Revision != revision+1 {
					return fmt.Errorf("revision %d is stored after an unknown commit of %d", r.Revision, revision+1)
				}
				life, revision = r.Life, r.Revision
				break
			}
			if errors.Is(err, persist.ErrNotFound) && revision == 0 {
				break
			}
			if !errors.Is(err, persist.ErrUnavailable) {
				return err
			}
			_ = s.Reopen(ctx)
		}
	}
}

func (w *writing) past(t *testing.T, n uint64) {
	t.Helper()
	require.Eventually(t, func() bool { return w.acknowledged.Load() >= n }, patience, tick)
}

func (w *writing) end(t *testing.T, s *Store, k persist.Key) {
	t.Helper()
	close(w.stop)
	require.NoError(t, <-w.ended)
	r, err := s.Load(ctx, k)
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.Revision, w.acknowledged.Load())
	log, err := s.Log(ctx, 0, 1<<20)
	require.NoError(t, err)
	require.Len(t, log, int(r.Revision))
	for i, c := range log {
		require.Equal(t, uint64(i+1), c.Revision)
	}
}

// While the server is restarted and killed, and the network cut, the store
// comes back by itself and nothing acknowledged is lost.
func TestServerComesAndGoes(t *testing.T) {
	t.Parallel()
	c, url := ownCluster(t)
	proxy, err := pgtest.NewProxy(c.Address())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	url, err = pgtest.Through(proxy.Address(), url)
	require.NoError(t, err)
	s := mustOpen(t, url, Config{})
	w := startWriting(s, rooms("a"))
	w.past(t, 10)
	for round := range 6 {
		switch round % 3 {
		case 0:
			c.Kill()
			require.NoError(t, c.Up(ctx))
		case 1:
			require.NoError(t, c.Restart(ctx))
		case 2:
			for range 5 {
				proxy.Cut()
				w.past(t, w.acknowledged.Load()+1)
			}
		}
		w.past(t, w.acknowledged.Load()+10)
	}
	w.end(t, s, rooms("a"))
}

func TestSecondServerIsRefused(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	s := mustOpen(t, url, Config{})
	_, err := Open(ctx, url, Config{LockTimeout: -1})
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, s.holder, "it says who has it")
	require.ErrorContains(t, err, fmt.Sprintf("pg_terminate_backend(%d)", s.lock.id.pid), "and what to do")
	other := mustOpen(t, strings.Replace(url, "schema=", "schema=other_", 1), Config{})
	mustCommit(t, other, create(rooms("a"), "elsewhere"))
	mustCommit(t, s, create(rooms("a"), "here"))
	require.NoError(t, s.Close())
	s = mustOpen(t, url, Config{LockTimeout: -1})
	require.Equal(t, "here", state(t, s, rooms("a")))
}

// A server whose lock went, without its knowing, writes nothing any more once
// another has taken the store, and does not come back by itself.
func TestFencing(t *testing.T) {
	t.Parallel()
	proxy, url := through(t, freshURL(t))
	first := mustOpen(t, url, Config{})
	a := mustCommit(t, first, create(rooms("a"), "one"))[0]
	// The packet of a commit is still under way when the other takes over.
	struck := proxy.Strike(pgtest.DelayCommit)
	first.lock.release(ctx)
	_, err := first.Commit(ctx, []persist.Unit{step(rooms("a"), a.Life, 1, "late")})
	require.ErrorIs(t, err, persist.ErrUnknown)
	<-struck
	second := mustOpen(t, url, Config{})
	proxy.Release()
	require.Equal(t, "one", state(t, second, rooms("a")))
	_, err = first.Commit(ctx, []persist.Unit{step(rooms("a"), a.Life, 1, "other two")})
	require.ErrorIs(t, err, persist.ErrUnavailable)
	mustCommit(t, second, step(rooms("a"), a.Life, 1, "two"))
	require.Eventually(t, func() bool { return errors.Is(first.Reopen(ctx), ErrFenced) }, patience, tick)
	for range 2 {
		_, err = first.Commit(ctx, []persist.Unit{step(rooms("a"), a.Life, 2, "three"), create(rooms("b"), "b")})
		require.ErrorIs(t, err, ErrFenced)
		require.ErrorIs(t, err, persist.ErrUnavailable)
		require.ErrorContains(t, err, second.holder)
		_, err = first.Load(ctx, rooms("a"))
		require.ErrorIs(t, err, ErrFenced, "what it knows may be old")
	}
	require.Equal(t, "two", state(t, second, rooms("a")))
	require.NoError(t, second.Close())
	require.ErrorIs(t, first.Reopen(ctx), ErrFenced, "somebody has written since")
}

// The epoch alone keeps a server out that still has good connections.
func TestFencingOfCommits(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	first := mustOpen(t, url, Config{})
	a := mustCommit(t, first, create(rooms("a"), "one"))[0]
	first.lock.release(ctx)
	execSQL(t, url, `UPDATE store SET epoch = epoch + 1, instance = 'other', holder = 'somebody else'`)
	_, err := first.Commit(ctx, []persist.Unit{step(rooms("a"), a.Life, 1, "two")})
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.Equal(t, int64(1), ask[int64](t, url, `SELECT revision FROM records`))
	_, err = first.Trim(ctx, 0, 1, 10)
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.Equal(t, int64(1), ask[int64](t, url, `SELECT count(*) FROM changes`))
	require.ErrorIs(t, first.Import(ctx, persist.Batch{Position: 9}), persist.ErrUnavailable)
}

// A lock that is lost is taken again at once, while nobody else has it.
func TestLostLockIsTakenAgain(t *testing.T) {
	t.Parallel()
	proxy, url := through(t, freshURL(t))
	s := mustOpen(t, url, Config{})
	a := mustCommit(t, s, create(rooms("a"), "one"))[0]
	id := s.lock.id
	execSQL(t, url, `SELECT pg_terminate_backend($1)`, id.pid)
	relocked := func() bool {
		s.turn <- struct{}{}
		defer s.release()
		return s.lock.id != id && s.lock.alive() && s.up()
	}
	require.Eventually(t, relocked, patience, tick)
	_, err := Open(ctx, url, Config{LockTimeout: -1})
	require.ErrorIs(t, err, ErrLocked)
	mustCommit(t, s, step(rooms("a"), a.Life, 1, "two"))

	// The server does not notice that this side is gone: its session is ended.
	id = s.lock.id
	proxy.CutClients()
	require.Eventually(t, relocked, patience, tick)
	serves(t, s)
	mustCommit(t, s, step(rooms("a"), a.Life, 2, "three"))
}

// A reading connection that was lost is replaced: the caller does not notice.
func TestReadsSurviveALostConnection(t *testing.T) {
	t.Parallel()
	url := freshURL(t) + "&application_name=reading"
	s := mustOpen(t, url, Config{Readers: 1})
	mustCommit(t, s, create(rooms("a"), "one"))
	require.Equal(t, "one", state(t, s, rooms("a")))
	execSQL(t, url, `SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a, store
		WHERE application_name = 'reading' AND a.pid NOT IN ($1, store.pid, pg_backend_pid())`, s.lock.id.pid)
	require.Equal(t, "one", state(t, s, rooms("a")))
	require.True(t, s.up())
}
