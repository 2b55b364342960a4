package persisttest

import (
	"strings"

	"github.com/twinsrv/twinsrv/persist"
)

var invalidUTF8 = string([]byte{'a', 0xff, 0xfe, 'b'})

// creating tests units with Expect 0 and the data that units may have.
var creating = []test{
	{"create gives the record back as it was", func(s *suite) {
		s.absent(rooms("a"))
		o := s.applied(create(rooms("a"), `{"celsius":21.5}`))
		s.NotZero(o[0].Life)
		s.Equal(o[0].Life, o[0].Position, "a life is the position of its first change")
		s.holds(rooms("a"), o[0].Life, 1, `{"celsius":21.5}`)
	}},
	{"create conflicts with an existing entity", func(s *suite) {
		o := s.applied(create(rooms("a"), "first"))
		s.refused(create(rooms("a"), "second"), persist.ErrConflict)
		s.holds(rooms("a"), o[0].Life, 1, "first")
		s.Len(s.log(0, 10), 1, "nothing of a refused unit is in the journal")
	}},
	{"create of one name twice in a call applies the first", func(s *suite) {
		o := s.commit(create(rooms("a"), "first"), create(rooms("a"), "second"))
		s.NoError(o[0].Err)
		s.ErrorIs(o[1].Err, persist.ErrConflict)
		s.holds(rooms("a"), o[0].Life, 1, "first")
	}},
	{"create may begin at a later revision", func(s *suite) {
		o := s.applied(persist.Unit{Key: rooms("a"), Record: record(3, "three"),
			Changes: []persist.Change{change(1, "a", "one"), change(2, "b", "two"), change(3, "c", "three")}})
		s.holds(rooms("a"), o[0].Life, 3, "three")
		log := s.log(0, 10)
		s.Len(log, 3)
		s.Equal(o[0].Life, log[0].Position, "the life is the position of the first change")
		s.Equal(o[0].Position, log[2].Position, "the outcome's position is that of the last")
	}},
	{"create without changes still has a life of its own", func(s *suite) {
		a := s.applied(persist.Unit{Key: rooms("a"), Record: record(1, "x")})[0]
		b := s.applied(persist.Unit{Key: rooms("b"), Record: record(1, "x")})[0]
		c := s.applied(create(rooms("c"), "x"))[0]
		s.NotZero(a.Life)
		s.Greater(b.Life, a.Life)
		s.Greater(c.Life, b.Life)
		s.Len(s.log(0, 10), 1)
	}},
	{"names of every kind stay apart", func(s *suite) {
		names := []string{"a/b", "a%2Fb", "a b", " a", "a ", "a", "A", "…", "🏢", "e\u0301", "\u00e9", "con", "a.json", "a\\b",
			"'\"`$;--", "\n", "\u007f", "%00", "..a", strings.Repeat("n", 256), strings.Repeat("n", 255), "\uffff", "\U0010ffff"}
		lives := map[string]uint64{}
		for _, n := range names {
			lives[n] = s.applied(create(rooms(n), "state of "+n))[0].Life
		}
		s.reopen()
		for _, n := range names {
			s.holds(rooms(n), lives[n], 1, "state of "+n)
			s.Len(s.changes(rooms(n), 0, 0, 10), 1, "changes of %q", n)
		}
		s.Len(s.names("rooms", "", 1000), len(names))
	}},
	{"pods stay apart", func(s *suite) {
		pods := []string{"a", "ab", "a-b", "a.b", "a_b", strings.Repeat("p", 64)}
		for _, p := range pods {
			s.applied(create(persist.Key{Pod: p, Name: "n"}, p), create(persist.Key{Pod: p, Name: "b-n"}, p+"2"))
		}
		for _, p := range pods {
			s.Equal([]string{"b-n", "n"}, s.names(p, "", 10))
		}
	}},
	{"bad names are refused and lose nobody", func(s *suite) {
		for _, k := range []persist.Key{{Pod: "", Name: "a"}, {Pod: "rooms", Name: ""}, {Pod: "rooms", Name: "a\x00b"}, {Pod: "ro\x00oms", Name: "a"}} {
			s.refused(create(k, "x"), persist.ErrInvalid)
			_, err := s.store.Load(s.ctx, k)
			s.ErrorIs(err, persist.ErrNotFound)
		}
		for _, n := range []string{invalidUTF8, strings.Repeat("n", 257)} {
			o := s.commit(create(rooms(n), "odd"))
			if o[0].Err == nil {
				s.holds(rooms(n), o[0].Life, 1, "odd")
				continue
			}
			s.ErrorIs(o[0].Err, persist.ErrInvalid, "what is not kept exactly is refused")
			s.absent(rooms(n))
		}
	}},
	{"an invalid unit fails alone", func(s *suite) {
		o := s.commit(create(rooms("a"), "A"), create(rooms("b\x00"), "B"), create(rooms("c"), "C"))
		s.NoError(o[0].Err)
		s.ErrorIs(o[1].Err, persist.ErrInvalid)
		s.NoError(o[2].Err)
		s.holds(rooms("a"), o[0].Life, 1, "A")
		s.holds(rooms("c"), o[2].Life, 1, "C")
	}},
	{"units that make no sense are refused", func(s *suite) {
		a := s.applied(create(rooms("a"), "A"))[0]
		bad := map[string]persist.Unit{
			"create without record":   {Key: rooms("b")},
			"revision 0":              {Key: rooms("b"), Record: record(0, "x")},
			"revision below expected": {Key: rooms("a"), Life: a.Life, Expect: 1, Record: record(0, "x")},
			"delete and record":       {Key: rooms("a"), Life: a.Life, Expect: 1, Record: record(2, "x"), Delete: true},
			"force without delete":    {Key: rooms("a"), Life: a.Life, Expect: 1, Record: record(2, "x"), Force: true},
			"delete and rows": {Key: rooms("a"), Life: a.Life, Expect: 1, Delete: true,
				Rows: []persist.RowOp{{Kind: "outbox", ID: "1"}}},
			"changes without record": {Key: rooms("a"), Life: a.Life, Expect: 1, Changes: []persist.Change{change(2, "x", "x")}},
			"change not after expected": {Key: rooms("a"), Life: a.Life, Expect: 1, Record: record(2, "x"),
				Changes: []persist.Change{change(1, "x", "x")}},
			"change beyond record": {Key: rooms("a"), Life: a.Life, Expect: 1, Record: record(2, "x"),
				Changes: []persist.Change{change(3, "x", "x")}},
			"changes out of order": {Key: rooms("a"), Life: a.Life, Expect: 1, Record: record(3, "x"),
				Changes: []persist.Change{change(3, "x", "x"), change(2, "x", "x")}},
		}
		for name, u := range bad {
			o := s.commit(u)
			s.ErrorIs(o[0].Err, persist.ErrInvalid, name)
		}
		s.holds(rooms("a"), a.Life, 1, "A")
		s.absent(rooms("b"))
		s.Len(s.log(0, 10), 1)
	}},
	{"large states and changes round trip", func(s *suite) {
		big := strings.Repeat("0123456789abcdef", 1<<16)
		o := s.applied(create(rooms("a"), "small"), create(rooms("big"), big), create(rooms("c"), "small"))
		s.reopen()
		s.holds(rooms("big"), o[1].Life, 1, big)
		s.Equal(big, string(s.changes(rooms("big"), 0, 0, 1)[0].Data))
		s.holds(rooms("c"), o[2].Life, 1, "small")
	}},
	{"a state over the limit is refused alone", func(s *suite) {
		if s.fix.MaxRecord == 0 {
			s.t.Skip("the fixture tells no limit")
		}
		over := strings.Repeat("x", s.fix.MaxRecord+1)
		o := s.commit(create(rooms("a"), "A"), persist.Unit{Key: rooms("b"), Record: record(1, over)}, create(rooms("c"), "C"))
		s.NoError(o[0].Err)
		s.ErrorIs(o[1].Err, persist.ErrInvalid)
		s.NoError(o[2].Err)
		s.absent(rooms("b"))
	}},
	{"bytes stay their owner's", func(s *suite) {
		u := create(rooms("a"), "state")
		u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("row")}}
		o := s.applied(u)
		for _, b := range [][]byte{u.Record.State, u.Changes[0].Data, u.Rows[0].Value} {
			copy(b, "#####")
		}
		for range 2 { // the second round sees what the first has spoiled
			r, err := s.store.Load(s.ctx, rooms("a"))
			s.NoError(err)
			c, l, row := s.changes(rooms("a"), o[0].Life, 0, 1), s.log(0, 1), s.rows("outbox", nil, 1)
			page, err := s.store.List(s.ctx, "rooms", persist.ListOptions{})
			s.NoError(err)
			items := page.Items
			for _, b := range [][]byte{r.State, c[0].Data, l[0].Data, items[0].Record.State} {
				s.Equal("state", string(b))
				copy(b, "#####")
			}
			s.Equal("row", string(row[0].Value))
			copy(row[0].Value, "###")
		}
	}},
	{"no units are no work", func(s *suite) { s.Empty(s.commit()) }},
}
