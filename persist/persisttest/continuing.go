package persisttest

import "github.com/twinsrv/twinsrv/persist"

// continuing tests units with Expect > 0.
var continuing = []test{
	{"continue replaces the record", func(s *suite) {
		a := s.applied(create(rooms("a"), "one"))[0]
		o := s.applied(step(rooms("a"), a.Life, 1, "two"))[0]
		s.Equal(a.Life, o.Life)
		s.Greater(o.Position, a.Position)
		s.holds(rooms("a"), a.Life, 2, "two")
	}},
	{"continue may leap over revisions", func(s *suite) {
		a := s.applied(create(rooms("a"), "one"))[0]
		s.applied(persist.Unit{Key: rooms("a"), Life: a.Life, Expect: 1, Record: record(9, "nine"),
			Changes: []persist.Change{change(4, "x", "four"), change(9, "x", "nine")}})
		s.holds(rooms("a"), a.Life, 9, "nine")
	}},
	{"continue may keep the revision and reserve more", func(s *suite) {
		a := s.applied(create(rooms("a"), "one"))[0]
		r := record(1, "one")
		r.Reserved = 1000
		s.applied(persist.Unit{Key: rooms("a"), Life: a.Life, Expect: 1, Record: r})
		got, err := s.store.Load(s.ctx, rooms("a"))
		s.NoError(err)
		s.Equal(uint64(1000), got.Reserved)
		s.Equal(uint64(1), got.Revision)
	}},
	{"a stale revision conflicts", func(s *suite) {
		a := s.applied(create(rooms("a"), "one"))[0]
		s.applied(step(rooms("a"), a.Life, 1, "two"))
		s.refused(step(rooms("a"), a.Life, 1, "other two"), persist.ErrConflict)
		s.refused(step(rooms("a"), a.Life, 3, "four"), persist.ErrConflict)
		s.holds(rooms("a"), a.Life, 2, "two")
		s.Len(s.changes(rooms("a"), 0, 0, 10), 2)
	}},
	{"another life conflicts", func(s *suite) {
		a := s.applied(create(rooms("a"), "one"))[0]
		s.refused(step(rooms("a"), a.Life+1, 1, "two"), persist.ErrConflict)
		s.applied(remove(rooms("a"), a.Life, 1))
		b := s.applied(create(rooms("a"), "again"))[0]
		s.refused(step(rooms("a"), a.Life, 1, "two of the first life"), persist.ErrConflict)
		s.refused(remove(rooms("a"), a.Life, 1), persist.ErrConflict)
		s.holds(rooms("a"), b.Life, 1, "again")
	}},
	{"continue of an absent entity conflicts", func(s *suite) {
		s.refused(step(rooms("a"), 1, 1, "two"), persist.ErrConflict)
		s.absent(rooms("a"))
	}},
	{"units of one key see the earlier ones of the call", func(s *suite) {
		o := s.applied(
			create(rooms("a"), "one"), step(rooms("a"), 0, 1, "two"), create(rooms("b"), "B"), step(rooms("a"), 0, 2, "three"))
		s.Equal(o[0].Life, o[1].Life)
		s.Equal(o[0].Life, o[3].Life)
		s.Less(o[0].Position, o[1].Position)
		s.Less(o[1].Position, o[2].Position)
		s.Less(o[2].Position, o[3].Position)
		s.holds(rooms("a"), o[0].Life, 3, "three")
		s.Len(s.changes(rooms("a"), o[0].Life, 0, 10), 3)
	}},
	{"behind a refused unit its key's later ones conflict", func(s *suite) {
		a := s.applied(create(rooms("a"), "one"))[0]
		u := step(rooms("a"), a.Life, 1, "two")
		u.Rows = []persist.RowOp{{Kind: "NO", ID: "1"}}
		o := s.commit(u, step(rooms("a"), a.Life, 2, "three"), create(rooms("b"), "B"))
		s.ErrorIs(o[0].Err, persist.ErrInvalid)
		s.ErrorIs(o[1].Err, persist.ErrConflict)
		s.NoError(o[2].Err)
		s.holds(rooms("a"), a.Life, 1, "one")
	}},
	{"life 0 needs a creation in the same call", func(s *suite) {
		a := s.applied(create(rooms("a"), "one"))[0]
		s.refused(step(rooms("a"), 0, 1, "two"), persist.ErrConflict)
		s.holds(rooms("a"), a.Life, 1, "one")
		o := s.commit(create(rooms("a"), "x"), step(rooms("a"), 0, 1, "two"))
		s.ErrorIs(o[0].Err, persist.ErrConflict)
		s.ErrorIs(o[1].Err, persist.ErrConflict, "a creation that failed has given no life")
	}},
	{"life 0 is the newest life of the call", func(s *suite) {
		o := s.applied(create(rooms("a"), "one"), remove(rooms("a"), 0, 1), create(rooms("a"), "again"), step(rooms("a"), 0, 1, "two"))
		s.Greater(o[2].Life, o[0].Life)
		s.Equal(o[2].Life, o[3].Life)
		s.holds(rooms("a"), o[2].Life, 2, "two")
		o = s.commit(create(rooms("b"), "one"), remove(rooms("b"), 0, 1), step(rooms("b"), 0, 1, "two"))
		s.ErrorIs(o[2].Err, persist.ErrConflict)
	}},
}

// deleting tests units with Delete.
var deleting = []test{
	{"delete removes the record and says so in the journal", func(s *suite) {
		a := s.applied(create(rooms("a"), "A"), create(rooms("b"), "B"))
		o := s.applied(remove(rooms("a"), a[0].Life, 1))[0]
		s.Equal(a[0].Life, o.Life)
		s.absent(rooms("a"))
		s.Equal([]string{"b"}, s.names("rooms", "", 10))
		log := s.log(a[1].Position, 10)
		s.Len(log, 1)
		s.Equal("deleted", log[0].Type)
		s.Empty(log[0].Data)
		s.Equal(a[0].Life, log[0].Life)
		s.Equal(o.Position, log[0].Position)
		s.reopen()
		s.absent(rooms("a"))
	}},
	{"delete expects life and revision", func(s *suite) {
		a := s.applied(create(rooms("a"), "A"))[0]
		s.refused(remove(rooms("a"), a.Life, 2), persist.ErrConflict)
		s.refused(remove(rooms("a"), a.Life+1, 1), persist.ErrConflict)
		s.refused(remove(rooms("b"), a.Life, 1), persist.ErrConflict)
		o := s.commit(persist.Unit{Key: rooms("a"), Delete: true})
		s.Error(o[0].Err, "a deletion without expectation needs Force")
		s.holds(rooms("a"), a.Life, 1, "A")
	}},
	{"a new life is another one, and the old changes stay", func(s *suite) {
		a := s.applied(create(rooms("a"), "A"))[0]
		s.applied(remove(rooms("a"), a.Life, 1))
		b := s.applied(create(rooms("a"), "B"))[0]
		s.Greater(b.Life, a.Life)
		s.Len(s.changes(rooms("a"), a.Life, 0, 10), 2)
		s.Len(s.changes(rooms("a"), b.Life, 0, 10), 1)
		s.Len(s.changes(rooms("a"), 0, 0, 10), 3)
	}},
	{"a position spent on a deleted life is not given again", func(s *suite) {
		a := s.applied(create(rooms("a"), "A"))[0]
		o := s.applied(remove(rooms("a"), a.Life, 1))[0]
		_, err := s.store.Trim(s.ctx, 0, o.Position, 100)
		s.NoError(err)
		s.reopen()
		b := s.applied(create(rooms("a"), "B"))[0]
		s.Greater(b.Life, o.Position)
	}},
	{"force deletes whatever is there", func(s *suite) {
		a := s.applied(create(rooms("a"), "A"))[0]
		s.applied(step(rooms("a"), a.Life, 1, "A2"))
		o := s.applied(persist.Unit{Key: rooms("a"), Delete: true, Force: true, Changes: []persist.Change{{Type: "deleted", Time: at(9)}}})[0]
		s.Equal(a.Life, o.Life)
		s.absent(rooms("a"))
		c := s.changes(rooms("a"), a.Life, 0, 10)
		s.Len(c, 3, "a forced deletion overwrites no earlier change")
		s.Equal("deleted", c[2].Type)
		s.Equal(uint64(3), c[2].Revision)
	}},
	{"force of an absent key changes nothing", func(s *suite) {
		s.applied(persist.Unit{Key: rooms("a"), Delete: true, Force: true, Changes: []persist.Change{{Type: "deleted", Time: at(9)}}})
		s.absent(rooms("a"))
		s.Empty(s.log(0, 10))
	}},
	{"an unreadable record is an error, never absent", func(s *suite) {
		a, b, c := s.damagedRoom()
		_, err := s.store.Load(s.ctx, rooms("b"))
		s.unreadable(err)
		s.holds(rooms("a"), a, 1, "state A")
		s.holds(rooms("c"), c, 1, "state C")
		page, err := s.store.List(s.ctx, "rooms", persist.ListOptions{})
		s.NoError(err)
		items := page.Items
		s.Len(items, 3)
		s.NoError(items[0].Err)
		s.Equal("b", items[1].Name)
		s.unreadable(items[1].Err)
		s.NoError(items[2].Err)
		s.refused(create(rooms("b"), "blank"), persist.ErrConflict)
		s.applied(step(rooms("a"), a, 1, "state A2"))
		s.NotEmpty(s.changes(rooms("b"), b, 0, 10))
	}},
	{"force ends an unreadable record", func(s *suite) {
		_, b, _ := s.damagedRoom()
		s.applied(persist.Unit{Key: rooms("b"), Delete: true, Force: true, Changes: []persist.Change{{Type: "deleted", Revision: 1, Time: at(9)}}})
		s.absent(rooms("b"))
		s.Empty(s.rows("outbox", nil, 10), "its rows go with it")
		c := s.changes(rooms("b"), 0, 0, 10)
		s.Len(c, 2)
		s.Equal("made", c[0].Type)
		s.Equal("deleted", c[1].Type)
		s.Equal(b, c[1].Life, "the life that ended is the one that the journal knows")
		o := s.applied(create(rooms("b"), "new"))[0]
		s.Greater(o.Life, b)
		s.holds(rooms("b"), o.Life, 1, "new")
	}},
}

// damagedRoom makes rooms a, b and c, damages b and returns their lives.
func (s *suite) damagedRoom() (a, b, c uint64) {
	if s.fix.Damage == nil {
		s.t.Skip("the fixture cannot damage a record")
	}
	u := create(rooms("b"), "state B")
	u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("x")}}
	o := s.applied(create(rooms("a"), "state A"), u, create(rooms("c"), "state C"))
	s.NoError(s.store.Close())
	s.fix.Damage(s.t, rooms("b"))
	s.store = s.fix.Reopen(s.t)
	return o[0].Life, o[1].Life, o[2].Life
}
