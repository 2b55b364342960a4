package persisttest

import (
	"fmt"

	"github.com/twinsrv/twinsrv/persist"
)

// event turns a unit's changes into events.
func event(u persist.Unit) persist.Unit {
	for i := range u.Changes {
		u.Changes[i].Event = true
	}
	return u
}

// trimAll trims everything, a few at a time, as the committer does: each call
// goes on where the one before it ended.
func (s *suite) trimAll(through uint64, limit int) (dropped int) {
	s.t.Helper()
	after := uint64(0)
	for range 1000 {
		t, err := s.store.Trim(s.ctx, after, through, limit)
		s.NoError(err)
		s.GreaterOrEqual(t.Through, after)
		s.LessOrEqual(t.Through, through)
		s.LessOrEqual(t.Dropped, limit)
		dropped += t.Dropped
		if t.Through == after || t.Through == through {
			return dropped
		}
		after = t.Through
	}
	s.Fail("trimming comes to no end")
	return dropped
}

// trimming tests Trim with its cursor, and what it keeps.
var trimming = []test{
	{"an event comes back as one", func(s *suite) {
		a := s.applied(event(create(rooms("a"), "one")), create(rooms("b"), "B"))[0]
		want := change(1, "made", "one")
		want.Key, want.Life, want.Position, want.Event = rooms("a"), a.Life, a.Position, true
		for range 2 {
			s.Equal([]persist.Change{want}, s.changes(rooms("a"), 0, 0, 10))
			log := s.log(0, 10)
			s.Equal(want, log[0])
			s.False(log[1].Event)
			s.reopen()
		}
	}},
	{"trim goes on behind its cursor", func(s *suite) {
		a := s.applied(create(rooms("a"), "1"))[0]
		for r := uint64(1); r < 10; r++ {
			s.applied(step(rooms("a"), a.Life, r, "x"))
		}
		all := s.log(0, 100)
		t, err := s.store.Trim(s.ctx, all[2].Position, all[6].Position, 3)
		s.NoError(err)
		s.Equal(3, t.Dropped)
		s.Equal(all[5].Position, t.Through, "it looked at three")
		t, err = s.store.Trim(s.ctx, t.Through, all[6].Position, 3)
		s.NoError(err)
		s.Equal(1, t.Dropped)
		s.Equal(all[6].Position, t.Through, "everything was looked at")
		for range 2 {
			s.Equal([]uint64{1, 2, 3, 8, 9, 10}, revisions(s.log(0, 100)))
			s.Equal([]uint64{1, 2, 3, 8, 9, 10}, revisions(s.changes(rooms("a"), a.Life, 0, 100)))
			s.Equal([]uint64{3, 8}, revisions(s.changes(rooms("a"), a.Life, 3, 2)))
			s.reopen()
		}
		s.applied(step(rooms("a"), a.Life, 10, "y"))
		s.Equal([]uint64{1, 2, 3, 8, 9, 10, 11}, revisions(s.changes(rooms("a"), 0, 0, 100)))
		t, err = s.store.Trim(s.ctx, 5, 3, 10)
		s.NoError(err)
		s.Zero(t.Dropped, "nothing is behind the end and not behind the start")
		s.Equal(3, s.trimAll(all[2].Position, 2))
		s.Equal([]uint64{8, 9, 10, 11}, revisions(s.changes(rooms("a"), 0, 0, 100)))
	}},
	{"trim keeps the events of a life that has its record, and drops the states", func(s *suite) {
		o := s.applied(event(create(rooms("a"), "1")), create(rooms("b"), "1"), event(create(rooms("c"), "1")))
		var last uint64
		for r := uint64(1); r < 6; r++ {
			last = s.applied(event(step(rooms("a"), o[0].Life, r, fmt.Sprint("a", r+1))), step(rooms("b"), o[1].Life, r, "x"),
				event(step(rooms("c"), o[2].Life, r, "x")))[2].Position
		}
		s.Equal(6, s.trimAll(last, 4))
		for range 2 {
			s.Equal([]uint64{1, 2, 3, 4, 5, 6}, revisions(s.changes(rooms("a"), o[0].Life, 0, 100)))
			s.Empty(s.changes(rooms("b"), 0, 0, 100))
			s.Len(s.log(0, 100), 12)
			s.reopen()
		}
		s.Zero(s.trimAll(last, 5))
		s.Equal("a4", string(s.changes(rooms("a"), o[0].Life, 4, 1)[0].Data))
		s.applied(event(step(rooms("a"), o[0].Life, 6, "a7")), step(rooms("b"), o[1].Life, 6, "x"))
		s.Equal([]uint64{1, 2, 3, 4, 5, 6, 7}, revisions(s.changes(rooms("a"), 0, 0, 100)))
		s.Equal([]uint64{7}, revisions(s.changes(rooms("b"), 0, 0, 100)))
	}},
	{"trim drops the events of a life that is over", func(s *suite) {
		a := s.applied(event(create(rooms("a"), "1")), event(create(rooms("b"), "1")))
		s.applied(event(step(rooms("a"), a[0].Life, 1, "2")))
		s.applied(event(remove(rooms("a"), a[0].Life, 2)))
		again := s.applied(event(create(rooms("a"), "again")), event(step(rooms("a"), 0, 1, "again 2")))
		s.Equal(3, s.trimAll(again[1].Position, 2))
		for range 2 {
			s.Empty(s.changes(rooms("a"), a[0].Life, 0, 10))
			s.Equal([]uint64{1, 2}, revisions(s.changes(rooms("a"), again[0].Life, 0, 10)))
			s.Equal([]uint64{1}, revisions(s.changes(rooms("b"), 0, 0, 10)))
			s.Len(s.log(0, 10), 3)
			s.reopen()
		}
		s.applied(persist.Unit{Key: rooms("b"), Delete: true, Force: true})
		s.Equal(1, s.trimAll(again[1].Position, 2))
		s.Empty(s.changes(rooms("b"), 0, 0, 10))
	}},
	{"trim looks at no more than its limit", func(s *suite) {
		var units []persist.Unit
		for i := range 8 {
			units = append(units, event(create(rooms(fmt.Sprint("e", i)), "x")))
		}
		o := s.applied(append(units, create(rooms("state"), "x"))...)
		t, err := s.store.Trim(s.ctx, 0, o[8].Position, 3)
		s.NoError(err)
		s.Zero(t.Dropped)
		s.Equal(o[2].Position, t.Through, "kept ones count as looked at")
		t, err = s.store.Trim(s.ctx, t.Through, o[8].Position, 100)
		s.NoError(err)
		s.Equal(1, t.Dropped)
		s.Equal(o[8].Position, t.Through)
	}},
}

// counting tests Pods and Position.
var counting = []test{
	{"pods are those that have records, in byte order", func(s *suite) {
		pods := func() []string {
			got, err := s.store.Pods(s.ctx)
			s.NoError(err)
			return got
		}
		s.Empty(pods())
		var lives []uint64
		for _, p := range []string{"b", "a-b", "$pods", "a", "ab", "a.b"} {
			var units []persist.Unit
			for i := range 3 {
				units = append(units, create(persist.Key{Pod: p, Name: fmt.Sprint("n", i)}, "x"))
			}
			lives = append(lives, s.applied(units...)[0].Life)
		}
		s.Equal([]string{"$pods", "a", "a-b", "a.b", "ab", "b"}, pods())
		s.applied(remove(persist.Key{Pod: "b", Name: "n0"}, lives[0], 1))
		s.Len(pods(), 6)
		for i := range 3 {
			s.applied(persist.Unit{Key: persist.Key{Pod: "a", Name: fmt.Sprint("n", i)}, Delete: true, Force: true})
		}
		for range 2 {
			s.Equal([]string{"$pods", "a-b", "a.b", "ab", "b"}, pods(), "changes alone make no pod")
			s.reopen()
		}
	}},
	{"the position rises and is never forgotten", func(s *suite) {
		position := func() uint64 {
			p, err := s.store.Position(s.ctx)
			s.NoError(err)
			return p
		}
		s.Zero(position())
		a := s.applied(create(rooms("a"), "1"))[0]
		s.Equal(a.Position, position())
		b := s.applied(persist.Unit{Key: rooms("b"), Record: record(1, "no change")})[0]
		s.Equal(b.Position, position(), "also that of a unit without changes")
		s.refused(create(rooms("a"), "again"), persist.ErrConflict)
		s.GreaterOrEqual(position(), b.Position)
		c := s.applied(step(rooms("a"), a.Life, 1, "2"), create(rooms("c"), "1"))[1]
		s.Equal(c.Position, position())
		s.reopen()
		s.Equal(c.Position, position())
		d := s.applied(remove(rooms("a"), a.Life, 2), persist.Unit{Key: rooms("b"), Delete: true, Force: true},
			persist.Unit{Key: rooms("c"), Delete: true, Force: true})[2]
		s.trimAll(d.Position, 100)
		s.Empty(s.log(0, 10))
		s.Equal(d.Position, position())
		s.reopen()
		s.Equal(d.Position, position())
	}},
}
