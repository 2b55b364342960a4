package persisttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/twinsrv/twinsrv/persist"
)

// backuper returns the store as one, or skips the test.
func (s *suite) backuper() persist.Backuper {
	s.t.Helper()
	b, ok := s.store.(persist.Backuper)
	if !ok {
		s.t.Skip("the store writes no backups")
	}
	s.NotNil(s.fix.Restore, "the fixture must say how a backup is restored")
	return b
}

// restored is the same suite on a store restored from a backup.
func (s *suite) restored(backup []byte) *suite {
	s.t.Helper()
	other := *s
	other.store = s.fix.Restore(s.t, bytes.NewReader(backup))
	return &other
}

// backing tests persist.Backuper.
var backing = []test{
	{"a backup has everything", func(s *suite) {
		b := s.backuper()
		u := create(rooms("a"), "A")
		u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("v")}, {Kind: "inbox", ID: "2"}}
		o := s.applied(u, create(rooms("b"), "B"), event(create(rooms("e"), "E")))
		s.applied(step(rooms("a"), o[0].Life, 1, "A2"), remove(rooms("b"), o[1].Life, 1))
		s.applied(persist.Unit{Key: rooms("plain"), Record: record(1, "without a change")})
		var backup bytes.Buffer
		s.NoError(b.Backup(s.ctx, &backup))
		s.applied(create(rooms("later"), "x"))
		r := s.restored(backup.Bytes())
		defer r.end()
		s.holds(rooms("later"), s.log(0, 100)[5].Life, 1, "x")
		r.absent(rooms("later"))
		r.absent(rooms("b"))
		r.holds(rooms("a"), o[0].Life, 2, "A2")
		r.Equal(s.log(0, 5), r.log(0, 100))
		r.Equal(s.rows("", nil, 100), r.rows("", nil, 100))
		r.Equal([]string{"a", "e", "plain"}, r.names("rooms", "", 10))
		ours, err := s.store.Position(s.ctx)
		r.NoError(err)
		theirs, err := r.store.Position(r.ctx)
		r.NoError(err)
		r.Equal(ours-1, theirs)
		r.applied(step(rooms("a"), o[0].Life, 2, "A3"))
		s.holds(rooms("a"), o[0].Life, 2, "A2")
	}},
	{"a backup of an empty store is one", func(s *suite) {
		var backup bytes.Buffer
		s.NoError(s.backuper().Backup(s.ctx, &backup))
		r := s.restored(backup.Bytes())
		defer r.end()
		r.Empty(r.log(0, 10))
		r.applied(create(rooms("a"), "A"))
	}},
	{"a backup that cannot be written is an error", func(s *suite) {
		b := s.backuper()
		o := s.applied(create(rooms("a"), "A"))
		s.ErrorIs(b.Backup(s.ctx, failingWriter{}), errWriter)
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		s.Error(b.Backup(ctx, io.Discard))
		s.applied(step(rooms("a"), o[0].Life, 1, "A2"))
	}},
	{"a backup has nothing that comes after it told that it has begun", func(s *suite) {
		b, ok := s.backuper().(persist.TellingBackuper)
		if !ok {
			s.t.Skip("the store does not tell when a backup has begun")
		}
		o := s.applied(create(rooms("a"), "A"))
		var backup bytes.Buffer
		var later sync.WaitGroup
		var failed error
		begun := 0
		s.NoError(b.BackupTelling(s.ctx, &backup, func() {
			begun++
			s.Zero(backup.Len())
			later.Go(func() { // a commit may wait for the end of a backup
				_, failed = s.store.Commit(s.ctx, []persist.Unit{create(rooms("later"), "x")})
			})
		}))
		later.Wait()
		s.NoError(failed)
		s.Equal(1, begun)
		r := s.restored(backup.Bytes())
		defer r.end()
		r.holds(rooms("a"), o[0].Life, 1, "A")
		r.absent(rooms("later"))
	}},
	{"a backup during commits has what was acknowledged before, and no half of anything", func(s *suite) {
		b := s.backuper()
		const writers = 3
		w := startPairs(s, writers)
		for range 4 {
			w.wait(s, 8)
			before := w.acknowledged()
			var backup bytes.Buffer
			s.NoError(b.Backup(s.ctx, &backup))
			after := w.acknowledged()
			r := s.restored(backup.Bytes())
			for i := range writers {
				r.checkPair(i, before[i], after[i]+1)
			}
			r.end()
		}
		close(w.done)
		w.running.Wait()
		s.NoError(w.failed())
	}},
}

var errWriter = errors.New("no room for the backup")

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errWriter }

// pairs are writers that each step two entities with a row in one commit, as
// fast as they can. A pair's revisions are equal at every moment.
type pairs struct {
	s       *suite
	done    chan struct{}
	running sync.WaitGroup

	mu    sync.Mutex
	acked []uint64
	err   error
}

func pairKey(i, half int) persist.Key { return rooms(fmt.Sprintf("pair%d-%d", i, half)) }

// startPairs starts n writers, until done is closed.
func startPairs(s *suite, n int) *pairs {
	w := &pairs{s: s, done: make(chan struct{}), acked: make([]uint64, n)}
	for i := range n {
		w.running.Go(func() { w.write(i) })
	}
	return w
}

func (w *pairs) write(i int) {
	var lives [2]uint64
	for r := uint64(0); ; r++ {
		select {
		case <-w.done:
			return
		default:
		}
		var units []persist.Unit
		for half := range 2 {
			u := create(pairKey(i, half), "1")
			if r > 0 {
				u = step(pairKey(i, half), lives[half], r, fmt.Sprint(r+1))
			}
			u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte(fmt.Sprint(r + 1))}}
			units = append(units, u)
		}
		o, err := w.s.store.Commit(w.s.ctx, units)
		if err == nil {
			err = errors.Join(o[0].Err, o[1].Err)
		}
		w.acknowledge(i, r+1, err)
		if err != nil {
			return
		}
		lives = [2]uint64{o[0].Life, o[1].Life}
	}
}

func (w *pairs) acknowledge(i int, revision uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = err
		return
	}
	w.acked[i] = revision
}

func (w *pairs) acknowledged() []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]uint64(nil), w.acked...)
}

func (w *pairs) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// wait waits until every writer has made so many more steps.
func (w *pairs) wait(s *suite, more uint64) {
	begun := w.acknowledged()
	s.Eventually(func() bool {
		now := w.acknowledged()
		for i := range now {
			if now[i] < begun[i]+more {
				return w.failed() != nil
			}
		}
		return true
	}, waitAtMost, waitStep)
}

// checkPair requires that a pair of the restored store is whole, with a
// revision between the two.
func (s *suite) checkPair(i int, least, most uint64) {
	s.t.Helper()
	var revision uint64
	for half := range 2 {
		r, err := s.store.Load(s.ctx, pairKey(i, half))
		s.NoError(err)
		s.Equal(fmt.Sprint(r.Revision), string(r.State))
		if half == 0 {
			revision = r.Revision
		}
		s.Equal(revision, r.Revision, "a commit is whole or absent")
		rows, err := s.store.RowsOf(s.ctx, pairKey(i, half))
		s.NoError(err)
		s.Len(rows, 1)
		s.Equal(fmt.Sprint(r.Revision), string(rows[0].Value), "a unit is whole")
		s.Len(s.changes(pairKey(i, half), r.Life, 0, 1<<20), int(r.Revision))
	}
	s.GreaterOrEqual(revision, least, "what was acknowledged before is there")
	s.LessOrEqual(revision, most)
}

// compacting tests persist.Compacter.
var compacting = []test{
	{"compacting changes nothing that can be read", func(s *suite) {
		c, ok := s.store.(persist.Compacter)
		if !ok {
			s.t.Skip("the store needs no compacting")
		}
		s.NoError(c.Compact(s.ctx), "an empty store")
		var units []persist.Unit
		for i := range 200 {
			u := create(rooms(fmt.Sprintf("r%03d", i)), fmt.Sprintf("%0500d", i))
			u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("v")}}
			units = append(units, u)
		}
		o := s.applied(units...)
		units = nil
		for i := range 190 {
			units = append(units, remove(rooms(fmt.Sprintf("r%03d", i)), o[i].Life, 1))
		}
		last := s.applied(units...)[189].Position
		s.trimAll(last-5, 50)
		s.applied(event(step(rooms("r199"), o[199].Life, 1, "an event")))
		log, rows := s.log(0, 1000), s.rows("", nil, 1000)
		position, err := s.store.Position(s.ctx)
		s.NoError(err)
		for range 2 {
			s.NoError(c.Compact(s.ctx))
			for range 2 {
				s.Equal(log, s.log(0, 1000))
				s.Equal(rows, s.rows("", nil, 1000))
				s.holds(rooms("r199"), o[199].Life, 2, "an event")
				s.Len(s.names("rooms", "", 100), 10)
				got, err := s.store.Position(s.ctx)
				s.NoError(err)
				s.Equal(position, got)
				s.reopen()
			}
			c = s.store.(persist.Compacter)
		}
		s.NoError(c.Compact(s.ctx))
		s.applied(step(rooms("r198"), o[198].Life, 1, "goes on"))
		s.reopen()
		s.holds(rooms("r198"), o[198].Life, 2, "goes on")
	}},
}
