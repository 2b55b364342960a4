package persisttest

import (
	"github.com/twinsrv/twinsrv/persist"
)

// stored is a record as another store had it.
func stored(k persist.Key, life, revision uint64, state string) persist.Stored {
	r := *record(revision, state)
	r.Life = life
	return persist.Stored{Key: k, Record: r}
}

// logged is a change as another store had it.
func logged(k persist.Key, position, life, revision uint64, kind, state string) persist.Change {
	c := change(revision, kind, state)
	c.Key, c.Position, c.Life = k, position, life
	return c
}

// importer returns the store as one, or skips the test.
func (s *suite) importer() persist.Importer {
	s.t.Helper()
	i, ok := s.store.(persist.Importer)
	if !ok {
		s.t.Skip("the store cannot import")
	}
	return i
}

// sample is what another store might hold: an entity that goes on, one that was
// deleted and made again, and an event-sourced one.
func sample() persist.Batch {
	a, b, e := rooms("a"), rooms("b"), persist.Key{Pod: "events", Name: "e"}
	first, second := logged(e, 23, 23, 1, "opened", "E1"), logged(e, 24, 23, 2, "paid", "E2")
	first.Event, second.Event = true, true
	return persist.Batch{
		Records: []persist.Stored{stored(e, 23, 2, "E"), stored(a, 10, 3, "A3"), stored(b, 20, 1, "B1 again")},
		Changes: []persist.Change{
			logged(a, 10, 10, 1, "made", "A1"), logged(b, 12, 12, 1, "made", "B1"), logged(a, 13, 10, 2, "changed", "A2"),
			logged(b, 14, 12, 2, "deleted", ""), logged(a, 19, 10, 3, "changed", "A3"), logged(b, 20, 20, 1, "made", "B1 again"),
			first, second,
		},
		Rows: []persist.Row{
			{Kind: "inbox", Key: a, ID: "x", Value: []byte("a's")}, {Kind: "outbox", Key: e, ID: "1", Value: []byte("e's")},
			{Kind: "outbox", Key: a, ID: "1", Value: []byte("a's own")},
		},
		Position: 100,
	}
}

// has requires that the store has exactly what the sample says.
func (s *suite) has(b persist.Batch) {
	s.t.Helper()
	count := 0
	pods, err := s.store.Pods(s.ctx)
	s.NoError(err)
	for _, pod := range pods {
		page, err := s.store.List(s.ctx, pod, persist.ListOptions{Limit: 1000})
		s.NoError(err)
		count += len(page.Items)
	}
	s.Len(b.Records, count)
	for _, want := range b.Records {
		got, err := s.store.Load(s.ctx, want.Key)
		s.NoError(err)
		s.Equal(want.Record, got)
	}
	s.Equal(b.Changes, s.log(0, 1000))
	s.Equal(b.Rows, s.rows("", nil, 1000))
	for _, r := range b.Records {
		var want []persist.Change
		for _, c := range b.Changes {
			if c.Key == r.Key {
				want = append(want, c)
			}
		}
		s.Equal(want, s.changes(r.Key, 0, 0, 1000))
		if len(want) > 0 {
			s.Equal(want[len(want)-1:], s.changes(r.Key, r.Record.Life, r.Record.Revision, 1000))
		}
	}
	position, err := s.store.Position(s.ctx)
	s.NoError(err)
	s.Equal(b.Position, position)
}

// importing tests persist.Importer.
var importing = []test{
	{"import takes everything as it is", func(s *suite) {
		i := s.importer()
		s.NoError(i.Import(s.ctx, sample()))
		s.has(sample())
		s.reopen()
		s.has(sample())
	}},
	{"import takes parts in any order, again and again", func(s *suite) {
		i := s.importer()
		b := sample()
		parts := []persist.Batch{
			{Rows: b.Rows[1:]}, {Changes: b.Changes[3:]}, {Records: b.Records[:1], Rows: b.Rows[:2]}, {Changes: b.Changes[:4]},
			{Position: b.Position}, {Records: b.Records}, {}, {Changes: b.Changes[2:5]},
		}
		for range 2 {
			for _, p := range parts {
				s.NoError(i.Import(s.ctx, p))
			}
			s.has(b)
		}
		s.reopen()
		s.has(b)
	}},
	{"behind an import positions go on above it", func(s *suite) {
		s.NoError(s.importer().Import(s.ctx, sample()))
		o := s.applied(create(rooms("new"), "x"), persist.Unit{Key: rooms("plain"), Record: record(1, "y")})
		s.Greater(o[0].Position, uint64(100))
		s.reopen()
		s.Greater(s.applied(create(rooms("newer"), "x"))[0].Position, o[1].Position)
		s.NoError(s.importer().Import(s.ctx, persist.Batch{Changes: []persist.Change{logged(rooms("late"), 500, 500, 1, "made", "x")}}))
		s.Greater(s.applied(create(rooms("newest"), "x"))[0].Position, uint64(500), "also above the changes alone")
		s.NoError(s.importer().Import(s.ctx, persist.Batch{Records: []persist.Stored{stored(rooms("later"), 700, 1, "x")}}))
		s.Greater(s.applied(create(rooms("last"), "x"))[0].Position, uint64(700), "and above the lives")
		p, err := s.store.Position(s.ctx)
		s.NoError(err)
		s.NoError(s.importer().Import(s.ctx, persist.Batch{Position: 3}))
		after, err := s.store.Position(s.ctx)
		s.NoError(err)
		s.Equal(p, after, "positions never go back")
	}},
	{"an imported entity goes on with its life and revision", func(s *suite) {
		s.NoError(s.importer().Import(s.ctx, sample()))
		s.refused(step(rooms("a"), 10, 2, "stale"), persist.ErrConflict)
		s.refused(step(rooms("b"), 12, 1, "of the life before"), persist.ErrConflict)
		s.refused(create(rooms("a"), "again"), persist.ErrConflict)
		s.applied(step(rooms("a"), 10, 3, "A4"), event(step(persist.Key{Pod: "events", Name: "e"}, 23, 2, "E3")))
		s.holds(rooms("a"), 10, 4, "A4")
		s.Equal([]uint64{1, 2, 3, 4}, revisions(s.changes(rooms("a"), 10, 0, 10)))
		s.Equal([]uint64{2, 3}, revisions(s.changes(persist.Key{Pod: "events", Name: "e"}, 23, 2, 10)))
		s.trimAll(200, 3)
		s.Equal([]uint64{1, 2, 3}, revisions(s.changes(persist.Key{Pod: "events", Name: "e"}, 0, 0, 10)), "imported events are kept")
		s.Empty(s.changes(rooms("a"), 0, 0, 10))
		s.applied(remove(rooms("a"), 10, 4))
		s.Len(s.rows("", nil, 10), 1, "its rows go with it")
	}},
	{"import of changes joins those that are there", func(s *suite) {
		i := s.importer()
		b := sample()
		s.NoError(i.Import(s.ctx, persist.Batch{Records: b.Records, Position: b.Position}))
		s.applied(step(rooms("a"), 10, 3, "A4"))
		s.NoError(i.Import(s.ctx, persist.Batch{Changes: b.Changes}))
		s.Equal([]uint64{1, 2, 3, 4}, revisions(s.changes(rooms("a"), 10, 0, 10)))
		s.applied(step(rooms("a"), 10, 4, "A5"))
		s.Equal([]uint64{1, 2, 3, 4, 5}, revisions(s.changes(rooms("a"), 0, 0, 10)))
		s.reopen()
		s.Equal([]uint64{3, 4, 5}, revisions(s.changes(rooms("a"), 10, 3, 10)))
		s.Len(s.log(0, 100), 10)
	}},
	{"import of changes behind those that are there keeps their order", func(s *suite) {
		i := s.importer()
		a := s.applied(create(rooms("a"), "1"), step(rooms("a"), 0, 1, "2"))[0]
		s.NoError(i.Import(s.ctx, persist.Batch{Changes: []persist.Change{
			logged(rooms("a"), 502, 500, 2, "changed", "2 again"), logged(rooms("a"), 500, 500, 1, "made", "again"),
			logged(rooms("a"), 400, a.Life, 3, "deleted", ""),
		}}))
		for range 2 {
			s.Equal([]uint64{1, 2, 3, 1, 2}, revisions(s.changes(rooms("a"), 0, 0, 10)))
			s.Equal([]uint64{2, 3}, revisions(s.changes(rooms("a"), a.Life, 2, 10)))
			s.reopen()
		}
		s.applied(persist.Unit{Key: rooms("a"), Delete: true, Force: true})
		s.applied(create(rooms("a"), "third life"))
		s.Equal([]uint64{1, 2, 3, 1, 2, 1}, revisions(s.changes(rooms("a"), 0, 0, 10)))
	}},
	{"import replaces records, rows and changes", func(s *suite) {
		i := s.importer()
		s.NoError(i.Import(s.ctx, sample()))
		b := sample()
		b.Records[1] = stored(rooms("a"), 10, 3, "A3 otherwise")
		b.Changes[4] = logged(rooms("a"), 19, 10, 3, "corrected", "A3 otherwise")
		b.Rows[0].Value = []byte("other")
		s.NoError(i.Import(s.ctx, persist.Batch{Records: b.Records[1:2], Changes: b.Changes[4:5], Rows: b.Rows[:1]}))
		s.has(b)
		other := rooms("b")
		b.Changes[4] = logged(other, 19, 12, 3, "moved", "to another entity")
		s.NoError(i.Import(s.ctx, persist.Batch{Changes: b.Changes[4:5]}))
		s.Equal(b.Changes, s.log(0, 100))
		s.Equal([]uint64{1, 2}, revisions(s.changes(rooms("a"), 0, 0, 10)))
		s.Equal([]uint64{1, 2, 3}, revisions(s.changes(other, 12, 0, 10)))
	}},
	{"import repairs what is missing or cannot be read", func(s *suite) {
		s.importer()
		a, b, c := s.damagedRoom()
		i := s.importer()
		whole := stored(rooms("b"), b, 1, "state B")
		s.NoError(i.Import(s.ctx, persist.Batch{Records: []persist.Stored{whole, stored(rooms("lost"), 2, 5, "found")}}))
		s.holds(rooms("a"), a, 1, "state A")
		s.holds(rooms("b"), b, 1, "state B")
		s.holds(rooms("c"), c, 1, "state C")
		s.holds(rooms("lost"), 2, 5, "found")
		s.applied(step(rooms("b"), b, 1, "state B2"))
		s.reopen()
		s.holds(rooms("b"), b, 2, "state B2")
	}},
	{"import repairs rows and changes", func(s *suite) {
		s.NoError(s.importer().Import(s.ctx, sample()))
		b := sample()
		s.damageRow(b.Rows[0])
		s.damageChange(b.Changes[2])
		s.Error(s.rows("", nil, 10)[0].Err)
		s.Error(s.log(0, 10)[2].Err)
		s.NoError(s.importer().Import(s.ctx, persist.Batch{Changes: b.Changes[2:3], Rows: b.Rows[:1]}))
		s.has(b)
	}},
	{"import refuses what must not be stored", func(s *suite) {
		i := s.importer()
		bad := map[string]persist.Batch{
			"a name with U+0000":     {Records: []persist.Stored{stored(rooms("a\x00b"), 1, 1, "x")}},
			"no name":                {Changes: []persist.Change{logged(rooms(""), 1, 1, 1, "x", "x")}},
			"revision 0":             {Records: []persist.Stored{stored(rooms("a"), 1, 0, "x")}},
			"life 0":                 {Records: []persist.Stored{stored(rooms("a"), 0, 1, "x")}},
			"position 0":             {Changes: []persist.Change{logged(rooms("a"), 0, 1, 1, "x", "x")}},
			"a kind that is none":    {Rows: []persist.Row{{Kind: "No", Key: rooms("a"), ID: "1"}}},
			"a row without ID":       {Rows: []persist.Row{{Kind: "outbox", Key: rooms("a")}}},
			"a row of nobody":        {Rows: []persist.Row{{Kind: "outbox", ID: "1"}}},
			"an unreadable row":      {Rows: []persist.Row{{Kind: "outbox", Key: rooms("a"), ID: "1", Err: persist.ErrInvalid}}},
			"an unreadable change":   {Changes: []persist.Change{{Position: 1, Life: 1, Key: rooms("a"), Err: persist.ErrInvalid}}},
			"the very last position": {Position: ^uint64(0)},
		}
		for name, b := range bad {
			s.ErrorIs(i.Import(s.ctx, b), persist.ErrInvalid, name)
		}
		s.applied(create(rooms("a"), "works"))
		s.Len(s.log(0, 10), 1)
	}},
	{"bytes that are imported stay their owner's", func(s *suite) {
		b := sample()
		s.NoError(s.importer().Import(s.ctx, b))
		copy(b.Records[0].Record.State, "#####")
		copy(b.Changes[0].Data, "#####")
		copy(b.Rows[0].Value, "#####")
		s.has(sample())
	}},
}
