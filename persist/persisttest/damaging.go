package persisttest

import (
	"fmt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// damageRow makes rows unreadable; the store is closed meanwhile.
func (s *suite) damageRow(rows ...persist.Row) {
	s.t.Helper()
	if s.fix.DamageRow == nil {
		s.t.Skip("the fixture cannot damage a row")
	}
	s.NoError(s.store.Close())
	for _, r := range rows {
		s.fix.DamageRow(s.t, r)
	}
	s.store = s.fix.Reopen(s.t)
}

// damageChange makes changes unreadable; the store is closed meanwhile.
func (s *suite) damageChange(changes ...persist.Change) {
	s.t.Helper()
	if s.fix.DamageChange == nil {
		s.t.Skip("the fixture cannot damage a change")
	}
	s.NoError(s.store.Close())
	for _, c := range changes {
		s.fix.DamageChange(s.t, c)
	}
	s.store = s.fix.Reopen(s.t)
}

// threeRows makes rooms a, b and c with rows and damages b's row outbox/1.
func (s *suite) threeRows() []persist.Outcome {
	s.t.Helper()
	var units []persist.Unit
	for _, name := range []string{"a", "b", "c"} {
		u := create(rooms(name), "1")
		for _, id := range []string{"1", "2"} {
			u.Rows = append(u.Rows, persist.RowOp{Kind: "outbox", ID: id, Value: []byte("value of " + name + id)})
		}
		units = append(units, u)
	}
	o := s.applied(units...)
	s.damageRow(persist.Row{Kind: "outbox", Key: rooms("b"), ID: "1"})
	return o
}

// unreadableRow requires that a row says that it cannot be read, and which it
// is.
func (s *suite) unreadableRow(r persist.Row, key persist.Key, id string) {
	s.t.Helper()
	s.ErrorIs(r.Err, snapshot.ErrCorrupt)
	s.ErrorContains(r.Err, key.String(), "the error names the key")
	r.Err = nil
	s.Equal(persist.Row{Kind: "outbox", Key: key, ID: id}, r)
}

// damage tests what single damaged rows and changes do; records are among
// deleting.
var damage = []test{
	{"an unreadable row is told, and scanning goes on behind it", func(s *suite) {
		s.threeRows()
		for _, kind := range []string{"outbox", ""} {
			for _, limit := range []int{1, 2, 3, 100} {
				var got []persist.Row
				var after *persist.Row
				for {
					page := s.rows(kind, after, limit)
					got = append(got, page...)
					s.LessOrEqual(len(got), 6, "pages go round")
					if len(page) < limit {
						break
					}
					after = &page[len(page)-1]
				}
				s.Len(got, 6)
				s.unreadableRow(got[2], rooms("b"), "1")
				for i, want := range []string{"a1", "a2", "", "b2", "c1", "c2"} {
					if want != "" {
						s.NoError(got[i].Err)
						s.Equal("value of "+want, string(got[i].Value))
					}
				}
			}
		}
		rows, err := s.store.RowsOf(s.ctx, rooms("b"))
		s.NoError(err)
		s.Len(rows, 2)
		s.unreadableRow(rows[0], rooms("b"), "1")
		s.Equal("value of b2", string(rows[1].Value))
	}},
	{"an entity with an unreadable row goes on", func(s *suite) {
		o := s.threeRows()
		u := step(rooms("b"), o[1].Life, 1, "2")
		u.Rows = []persist.RowOp{{Kind: "outbox", ID: "2", Value: []byte("new")}}
		s.applied(u)
		s.Error(s.rows("outbox", nil, 10)[2].Err)
		u = step(rooms("b"), o[1].Life, 2, "3")
		u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("whole again")}}
		s.applied(u)
		rows, err := s.store.RowsOf(s.ctx, rooms("b"))
		s.NoError(err)
		s.Len(rows, 2)
		s.NoError(rows[0].Err)
		s.Equal("whole again", string(rows[0].Value))
	}},
	{"an unreadable row is deleted alone or with its entity", func(s *suite) {
		o := s.threeRows()
		s.damageRow(persist.Row{Kind: "outbox", Key: rooms("a"), ID: "2"})
		u := step(rooms("a"), o[0].Life, 1, "2")
		u.Rows = []persist.RowOp{{Kind: "outbox", ID: "2", Delete: true}}
		s.applied(u, remove(rooms("b"), o[1].Life, 1))
		s.absent(rooms("b"))
		for range 2 {
			var got []string
			for _, r := range s.rows("", nil, 10) {
				s.NoError(r.Err)
				got = append(got, string(r.Value))
			}
			s.Equal([]string{"value of a1", "value of c1", "value of c2"}, got)
			s.reopen()
		}
	}},
	{"an unreadable change is told, and scanning goes on behind it", func(s *suite) {
		a := s.applied(create(rooms("a"), "1"), create(rooms("b"), "1"))
		for r := uint64(1); r < 5; r++ {
			s.applied(step(rooms("a"), a[0].Life, r, fmt.Sprint(r+1)), step(rooms("b"), a[1].Life, r, fmt.Sprint(r+1)))
		}
		all := s.log(0, 100)
		s.damageChange(all[4], all[9]) // revision 3 of a, 5 of b
		for _, limit := range []int{1, 3, 100} {
			var got []persist.Change
			for after := uint64(0); ; {
				page := s.log(after, limit)
				got = append(got, page...)
				s.LessOrEqual(len(got), 10, "pages go round")
				if len(page) < limit {
					break
				}
				after = page[len(page)-1].Position
			}
			s.Len(got, 10)
			for i := range all {
				s.Equal(all[i].Position, got[i].Position, "the position is right")
				if i == 4 || i == 9 {
					s.ErrorIs(got[i].Err, snapshot.ErrCorrupt)
					s.Empty(got[i].Data)
					continue
				}
				s.Equal(all[i], got[i])
			}
		}
		c := s.changes(rooms("a"), a[0].Life, 2, 3)
		s.Len(c, 3)
		s.Equal(all[2], c[0])
		s.ErrorIs(c[1].Err, snapshot.ErrCorrupt)
		s.ErrorContains(c[1].Err, "rooms/a", "the error names the key")
		s.Equal(all[4].Position, c[1].Position)
		s.Equal(all[6], c[2])
	}},
	{"an entity with an unreadable change goes on and ends", func(s *suite) {
		a := s.applied(create(rooms("a"), "1"), create(rooms("b"), "1"))
		s.applied(step(rooms("a"), a[0].Life, 1, "2"))
		all := s.log(0, 100)
		s.damageChange(all[0], all[2])
		s.holds(rooms("a"), a[0].Life, 2, "2")
		s.applied(step(rooms("a"), a[0].Life, 2, "3"))
		c := s.changes(rooms("a"), a[0].Life, 0, 10)
		s.Len(c, 3)
		s.Error(c[0].Err)
		s.Error(c[1].Err)
		s.Equal("3", string(c[2].Data))
		s.applied(remove(rooms("a"), a[0].Life, 3))
		s.absent(rooms("a"))
		again := s.applied(create(rooms("a"), "again"))[0]
		s.Greater(again.Life, a[0].Life)
		s.Equal([]uint64{1}, revisions(s.changes(rooms("a"), again.Life, 0, 10)))
		c = s.changes(rooms("a"), 0, 0, 10)
		s.Len(c, 5)
		s.Equal("again", string(c[4].Data))
	}},
	{"trim passes an unreadable change, and keeps an event that cannot be read", func(s *suite) {
		o := s.applied(create(rooms("state"), "1"), event(create(rooms("sourced"), "1")), event(create(rooms("other"), "1")))
		last := s.applied(step(rooms("state"), o[0].Life, 1, "2"), event(step(rooms("sourced"), o[1].Life, 1, "2")))[1].Position
		all := s.log(0, 100)
		s.damageChange(all[0], all[4])
		s.trimAll(last, 2)
		c := s.changes(rooms("sourced"), o[1].Life, 0, 10)
		s.Len(c, 2)
		s.NoError(c[0].Err)
		s.ErrorIs(c[1].Err, snapshot.ErrCorrupt, "without it, recovery would take the event before it for the last")
		s.Len(s.changes(rooms("other"), 0, 0, 10), 1)
	}},
}
