package persisttest

import (
	"fmt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

func (s *suite) unreadable(err error) {
	s.t.Helper()
	s.ErrorIs(err, snapshot.ErrCorrupt)
	s.ErrorContains(err, "rooms/b", "the error names the key")
}

// journal tests Changes, Log and Trim.
var journal = []test{
	{"changes come back whole", func(s *suite) {
		o := s.applied(create(rooms("a"), "one"))[0]
		want := change(1, "made", "one")
		want.Key, want.Life, want.Position = rooms("a"), o.Life, o.Position
		s.Equal([]persist.Change{want}, s.changes(rooms("a"), o.Life, 0, 10))
		s.Equal([]persist.Change{want}, s.log(0, 10))
	}},
	{"the store fills in key, life and position", func(s *suite) {
		u := create(rooms("a"), "one")
		u.Changes[0].Key, u.Changes[0].Life, u.Changes[0].Position = rooms("other"), 77, 88
		o := s.applied(u)[0]
		c := s.log(0, 10)[0]
		s.Equal(rooms("a"), c.Key)
		s.Equal(o.Life, c.Life)
		s.Equal(o.Position, c.Position)
		s.Empty(s.changes(rooms("other"), 0, 0, 10))
	}},
	{"changes are read by life and from a revision", func(s *suite) {
		a := s.applied(create(rooms("a"), "1"))[0]
		for r := uint64(1); r < 5; r++ {
			s.applied(step(rooms("a"), a.Life, r, fmt.Sprint(r+1)), bystander(rooms(fmt.Sprint("b", r))))
		}
		s.Equal([]uint64{3, 4}, revisions(s.changes(rooms("a"), a.Life, 3, 2)))
		s.Equal([]uint64{1, 2}, revisions(s.changes(rooms("a"), 0, 0, 2)))
		s.applied(remove(rooms("a"), a.Life, 5))
		b := s.applied(create(rooms("a"), "again"), step(rooms("a"), 0, 1, "again 2"))[0]
		s.Equal([]uint64{1, 2, 3, 4, 5, 6}, revisions(s.changes(rooms("a"), a.Life, 0, 10)))
		s.Equal([]uint64{3, 4}, revisions(s.changes(rooms("a"), a.Life, 3, 2)))
		s.Equal([]uint64{2}, revisions(s.changes(rooms("a"), b.Life, 2, 10)))
		s.Equal([]uint64{1, 2, 3, 4, 5, 6, 1, 2}, revisions(s.changes(rooms("a"), 0, 0, 10)), "life 0 is every life, in order")
		s.Equal([]uint64{2, 3, 4, 5, 6, 2}, revisions(s.changes(rooms("a"), 0, 2, 10)))
		s.Empty(s.changes(rooms("a"), b.Life, 3, 10))
		s.Empty(s.changes(rooms("a"), b.Life+1, 0, 10))
		s.Empty(s.changes(rooms("nobody"), 0, 0, 10))
	}},
	{"the log has every change in the order of commit", func(s *suite) {
		var want []string
		for i := range 12 {
			var units []persist.Unit
			for j := range 3 {
				u := create(rooms(fmt.Sprintf("r%02d-%d", (i*7)%12, j)), "x")
				units = append(units, u)
				want = append(want, u.Key.String())
			}
			s.applied(units...)
		}
		for _, limit := range []int{1, 5, 100} {
			var got []string
			after := uint64(0)
			for {
				page := s.log(after, limit)
				s.LessOrEqual(len(page), limit)
				for _, c := range page {
					s.Greater(c.Position, after, "positions strictly increase")
					after = c.Position
					got = append(got, c.Key.String())
				}
				if len(page) < limit {
					break
				}
			}
			s.Equal(want, got)
		}
		s.Empty(s.log(^uint64(0), 10))
	}},
	{"a long journal is read in one call", func(s *suite) {
		a := s.applied(create(rooms("a"), "1"))[0]
		for first := uint64(1); first < 901; first += 300 {
			var units []persist.Unit
			for r := first; r < first+300; r++ {
				units = append(units, step(rooms("a"), a.Life, r, "x"))
			}
			s.applied(units...)
		}
		s.Len(s.log(0, 5000), 901)
		s.Len(s.log(0, 899), 899)
		s.Len(s.changes(rooms("a"), a.Life, 2, 5000), 900)
		s.Len(s.changes(rooms("a"), 0, 500, 5000), 402)
	}},
	{"positions go on after reopening", func(s *suite) {
		a := s.applied(create(rooms("a"), "1"))[0]
		b := s.applied(persist.Unit{Key: rooms("b"), Record: record(1, "no change")})[0]
		s.reopen()
		c := s.applied(create(rooms("c"), "1"))[0]
		s.Greater(c.Position, b.Position)
		s.Greater(b.Position, a.Position)
		s.applied(step(rooms("a"), a.Life, 1, "2"))
		s.Equal([]string{"rooms/a", "rooms/c", "rooms/a"}, keys(s.log(0, 10)))
	}},
	{"a change's data may be empty", func(s *suite) {
		s.applied(persist.Unit{Key: rooms("a"), Record: record(1, ""), Changes: []persist.Change{{Revision: 1, Time: at(1)}}})
		c := s.log(0, 10)
		s.Len(c, 1)
		s.Empty(c[0].Data)
		s.Equal("", c[0].Type)
		s.True(at(1).Equal(c[0].Time))
	}},
	{"trim drops the oldest changes and nothing else", func(s *suite) {
		u := create(rooms("a"), "1")
		u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("v")}}
		a := s.applied(u)[0]
		var last persist.Outcome
		for r := uint64(1); r < 10; r++ {
			last = s.applied(step(rooms("a"), a.Life, r, "x"))[0]
		}
		all := s.log(0, 100)
		n, err := s.trim(all[5].Position, 4)
		s.NoError(err)
		s.Equal(4, n, "at most limit are dropped, the oldest first")
		s.Equal([]uint64{5, 6, 7, 8, 9, 10}, revisions(s.log(0, 100)))
		n, err = s.trim(all[5].Position, 100)
		s.NoError(err)
		s.Equal(2, n)
		n, err = s.trim(all[5].Position, 100)
		s.NoError(err)
		s.Zero(n)
		s.Equal([]uint64{7, 8, 9, 10}, revisions(s.log(0, 100)))
		s.Equal([]uint64{7, 8, 9, 10}, revisions(s.changes(rooms("a"), a.Life, 0, 100)))
		s.holds(rooms("a"), a.Life, 10, "x")
		s.Len(s.rows("outbox", nil, 10), 1)
		s.reopen()
		s.Equal([]uint64{7, 8, 9, 10}, revisions(s.log(0, 100)))
		n, err = s.trim(last.Position, 100)
		s.NoError(err)
		s.Equal(4, n)
		s.Empty(s.log(0, 100))
		o := s.applied(step(rooms("a"), a.Life, 10, "y"))[0]
		s.Greater(o.Position, last.Position)
	}},
}

// trim trims from the start and returns how many changes were dropped.
func (s *suite) trim(through uint64, limit int) (int, error) {
	t, err := s.store.Trim(s.ctx, 0, through, limit)
	return t.Dropped, err
}

// bystander creates an entity, to be something between another's changes.
func bystander(k persist.Key) persist.Unit { return create(k, "other") }

func revisions(changes []persist.Change) []uint64 {
	out := []uint64{}
	for _, c := range changes {
		out = append(out, c.Revision)
	}
	return out
}

func keys(changes []persist.Change) []string {
	out := []string{}
	for _, c := range changes {
		out = append(out, c.Key.String())
	}
	return out
}

// rows tests what commits with records.
var rows = []test{
	{"rows commit with their unit", func(s *suite) {
		u := create(rooms("a"), "1")
		u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("hello")}, {Kind: "inbox", ID: "floors/f", Value: nil}}
		a := s.applied(u)[0]
		s.Equal([]persist.Row{{Kind: "outbox", Key: rooms("a"), ID: "1", Value: []byte("hello")}}, s.rows("outbox", nil, 10))
		in := s.rows("inbox", nil, 10)
		s.Len(in, 1)
		s.Empty(in[0].Value)
		u = step(rooms("a"), a.Life, 1, "2")
		u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("other")}, {Kind: "inbox", ID: "floors/f", Delete: true},
			{Kind: "inbox", ID: "never there", Delete: true}}
		s.applied(u)
		s.reopen()
		s.Equal("other", string(s.rows("outbox", nil, 10)[0].Value))
		s.Empty(s.rows("inbox", nil, 10))
	}},
	{"rows of a refused unit are not written", func(s *suite) {
		a := s.applied(create(rooms("a"), "1"))[0]
		u := step(rooms("a"), a.Life, 7, "8")
		u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("x")}}
		s.refused(u, persist.ErrConflict)
		s.Empty(s.rows("outbox", nil, 10))
	}},
	{"a unit may be of rows alone", func(s *suite) {
		a := s.applied(create(rooms("a"), "1"))[0]
		u := persist.Unit{Key: rooms("a"), Life: a.Life, Expect: 1, Rows: []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("x")}}}
		o := s.applied(u)[0]
		s.Equal(a.Life, o.Life)
		s.holds(rooms("a"), a.Life, 1, "1")
		s.Len(s.rows("outbox", nil, 10), 1)
		s.Len(s.log(0, 10), 1)
		u.Expect = 2
		s.refused(u, persist.ErrConflict)
		u.Expect = 0
		s.refused(u, persist.ErrInvalid)
	}},
	{"the last of two operations on a row counts", func(s *suite) {
		u := create(rooms("a"), "1")
		u.Rows = []persist.RowOp{
			{Kind: "outbox", ID: "1", Value: []byte("x")}, {Kind: "outbox", ID: "1", Delete: true},
			{Kind: "outbox", ID: "2", Delete: true}, {Kind: "outbox", ID: "2", Value: []byte("y")}}
		s.applied(u)
		r := s.rows("outbox", nil, 10)
		s.Len(r, 1)
		s.Equal("2", r[0].ID)
	}},
	{"rows go with their entity and no other", func(s *suite) {
		var units []persist.Unit
		for _, n := range []string{"a", "a/b", "aa", "b"} {
			u := create(rooms(n), "1")
			for _, kind := range []string{"outbox", "inbox", "out"} {
				u.Rows = append(u.Rows, persist.RowOp{Kind: kind, ID: "1", Value: []byte(n)}, persist.RowOp{Kind: kind, ID: "2", Value: []byte(n)})
			}
			units = append(units, u)
		}
		o := s.applied(units...)
		s.reopen()
		s.applied(remove(rooms("a"), o[0].Life, 1))
		for _, kind := range []string{"outbox", "inbox", "out"} {
			var names []string
			for _, r := range s.rows(kind, nil, 100) {
				s.Equal(kind, r.Kind)
				s.Equal(r.Key.Name, string(r.Value))
				names = append(names, r.Key.Name+r.ID)
			}
			s.Equal([]string{"a/b1", "a/b2", "aa1", "aa2", "b1", "b2"}, names)
		}
		s.applied(create(rooms("a"), "again"))
		s.Len(s.rows("outbox", nil, 100), 6, "a new life begins without rows")
	}},
	{"rows come in the order of pod, name and ID, page by page", func(s *suite) {
		var want []persist.Row
		for _, pod := range []string{"a", "a-b", "b"} {
			for _, name := range []string{"x", "x y", "x/y", "xy", "🏢"} {
				k := persist.Key{Pod: pod, Name: name}
				u := create(k, "1")
				for _, id := range []string{"z", "1", "10", "2", "a/b"} {
					u.Rows = append(u.Rows, persist.RowOp{Kind: "k-1", ID: id, Value: []byte(id)})
				}
				s.applied(u)
				for _, id := range []string{"1", "10", "2", "a/b", "z"} {
					want = append(want, persist.Row{Kind: "k-1", Key: k, ID: id, Value: []byte(id)})
				}
			}
		}
		for _, limit := range []int{1, 7, 1000} {
			var got []persist.Row
			var after *persist.Row
			for {
				page := s.rows("k-1", after, limit)
				s.LessOrEqual(len(page), limit)
				got = append(got, page...)
				s.LessOrEqual(len(got), len(want), "pages go round")
				if len(page) < limit {
					break
				}
				after = &page[len(page)-1]
			}
			s.Equal(want, got)
		}
		s.Len(s.rows("k-1", &persist.Row{Key: persist.Key{Pod: "a", Name: "xz"}, ID: "1"}, 1000), len(want)-20,
			"the row behind which a page starts need not be there")
		s.Empty(s.rows("k", nil, 10))
		s.Empty(s.rows("k-1\x00a", nil, 10))
	}},
	{"rows of an entity come in the order of kind and ID", func(s *suite) {
		of := func(name string) []persist.Row {
			rows, err := s.store.RowsOf(s.ctx, rooms(name))
			s.NoError(err)
			return rows
		}
		s.Empty(of("a"))
		var units []persist.Unit
		for _, n := range []string{"a", "a/b", "aa", "b"} {
			u := create(rooms(n), "1")
			for _, kind := range []string{"outbox", "k-1", "out", "k"} {
				for _, id := range []string{"2", "1", "10", "a/b"} {
					u.Rows = append(u.Rows, persist.RowOp{Kind: kind, ID: id, Value: []byte(n + kind + id)})
				}
			}
			units = append(units, u)
		}
		o := s.applied(units...)
		s.applied(create(rooms("none"), "1"))
		var want []persist.Row
		for _, kind := range []string{"k", "k-1", "out", "outbox"} {
			for _, id := range []string{"1", "10", "2", "a/b"} {
				want = append(want, persist.Row{Kind: kind, Key: rooms("a"), ID: id, Value: []byte("a" + kind + id)})
			}
		}
		s.Equal(want, of("a"))
		s.reopen()
		s.Equal(want, of("a"))
		s.Empty(of("none"))
		s.Empty(of(""))
		s.Empty(of("a\x00"))
		s.Len(of("aa"), 16)
		u := step(rooms("a"), o[0].Life, 1, "2")
		u.Rows = []persist.RowOp{{Kind: "k", ID: "1", Delete: true}, {Kind: "a-new", ID: "z", Value: nil}}
		s.applied(u)
		got := of("a")
		s.Len(got, 16)
		s.Equal("a-new", got[0].Kind)
		s.Empty(got[0].Value)
		s.Equal(want[1:], got[1:])
		s.applied(remove(rooms("a"), o[0].Life, 2))
		s.Empty(of("a"))
		s.Len(of("a/b"), 16)
	}},
	{"rows of every kind come in the order of kinds, page by page", func(s *suite) {
		var want []persist.Row
		kinds := []string{"k", "k-1", "out", "outbox"}
		for _, name := range []string{"b", "a", "a/b"} {
			u := create(rooms(name), "1")
			for _, kind := range kinds {
				u.Rows = append(u.Rows, persist.RowOp{Kind: kind, ID: "2", Value: []byte(name)}, persist.RowOp{Kind: kind, ID: "1", Value: []byte(name)})
			}
			s.applied(u)
		}
		for _, kind := range kinds {
			for _, name := range []string{"a", "a/b", "b"} {
				for _, id := range []string{"1", "2"} {
					want = append(want, persist.Row{Kind: kind, Key: rooms(name), ID: id, Value: []byte(name)})
				}
			}
		}
		for _, limit := range []int{1, 5, 24, 1000} {
			var got []persist.Row
			var after *persist.Row
			for {
				page := s.rows("", after, limit)
				s.LessOrEqual(len(page), limit)
				got = append(got, page...)
				s.LessOrEqual(len(got), len(want), "pages go round")
				if len(page) < limit {
					break
				}
				after = &page[len(page)-1]
			}
			s.Equal(want, got)
		}
		s.Len(s.rows("", nil, 0), 24)
		s.Len(s.rows("", &persist.Row{Kind: "l"}, 1000), 12, "the row behind which a page starts need not be there")
		s.Equal(want[14:18], s.rows("out", &persist.Row{Kind: "k", Key: rooms("a"), ID: "2"}, 1000), "a kind that is given counts")
	}},
	{"bad rows are refused with their unit", func(s *suite) {
		for _, op := range []persist.RowOp{{Kind: "", ID: "1"}, {Kind: "Out", ID: "1"}, {Kind: "o_b", ID: "1"}, {Kind: "1a", ID: "1"},
			{Kind: "o\x00b", ID: "1"}, {Kind: "outbox", ID: ""}, {Kind: "outbox", ID: "a\x00b"}} {
			u := create(rooms("a"), "1")
			u.Rows = []persist.RowOp{{Kind: "outbox", ID: "good"}, op}
			s.refused(u, persist.ErrInvalid)
		}
		s.absent(rooms("a"))
		s.Empty(s.rows("outbox", nil, 10))
		s.Empty(s.log(0, 10))
	}},
}
