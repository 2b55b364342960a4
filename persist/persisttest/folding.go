package persisttest

import (
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// folder returns the store as one, or skips the test.
func (s *suite) folder() persist.Folder {
	s.t.Helper()
	f, ok := s.store.(persist.Folder)
	if !ok {
		s.t.Skip("no commit log can stand in front of the store")
	}
	return f
}

// fold folds a batch that must be taken.
func (s *suite) fold(f persist.Fold) {
	s.t.Helper()
	s.NoError(s.folder().Fold(s.ctx, f))
}

func (s *suite) heads(keys ...persist.Key) []persist.Head {
	s.t.Helper()
	heads, err := s.folder().Heads(s.ctx, keys)
	s.NoError(err)
	s.Len(heads, len(keys), "one head for each key")
	return heads
}

func (s *suite) mark() persist.Mark {
	s.t.Helper()
	m, err := s.folder().Mark(s.ctx)
	s.NoError(err)
	return m
}

// filed is a batch that also files its changes.
func filed(b persist.Batch) persist.Fold { return persist.Fold{Batch: b, Filed: b.Changes} }

func markOf(through uint64) persist.Mark { return persist.Mark{Log: 77, Through: through} }

// folding tests persist.Folder.
var folding = []test{
	{"heads are what is stored, in the order of the keys", func(s *suite) {
		s.folder()
		s.Empty(s.heads())
		o := s.applied(create(rooms("a"), "A"), create(rooms("b"), "B"), create(rooms("gone"), "x"))
		s.applied(step(rooms("b"), o[1].Life, 1, "B2"), remove(rooms("gone"), o[2].Life, 1))
		for range 2 {
			s.Equal([]persist.Head{
				{Exists: true, Life: o[1].Life, Revision: 2}, {}, {Exists: true, Life: o[0].Life, Revision: 1}, {}, {},
				{Exists: true, Life: o[1].Life, Revision: 2},
			}, s.heads(rooms("b"), rooms("never"), rooms("a"), rooms("gone"), persist.Key{Pod: "rooms", Name: "a\x00"}, rooms("b")))
			s.reopen()
		}
		keys := make([]persist.Key, 2000)
		for i := range keys {
			keys[i] = rooms([]string{"a", "b", "never"}[i%3])
		}
		for i, h := range s.heads(keys...) {
			s.Equal(s.heads(keys[i%3])[0], h)
		}
	}},
	{"an unreadable record is its head's error, and no other's", func(s *suite) {
		s.folder()
		a, _, c := s.damagedRoom()
		h := s.heads(rooms("a"), rooms("b"), rooms("c"))
		s.Equal(persist.Head{Exists: true, Life: a, Revision: 1}, h[0])
		s.Equal(persist.Head{Exists: true, Life: c, Revision: 1}, h[2])
		s.True(h[1].Exists)
		s.ErrorIs(h[1].Err, snapshot.ErrCorrupt)
		again := create(rooms("b"), "again")
		s.ErrorIs(h[1].Admits(&again, 0), persist.ErrConflict, "an unreadable record never becomes a blank entity")
		s.fold(persist.Fold{Batch: persist.Batch{Records: []persist.Stored{stored(rooms("b"), 50, 7, "whole")}}})
		s.Equal([]persist.Head{{Exists: true, Life: 50, Revision: 7}}, s.heads(rooms("b")))
		s.holds(rooms("b"), 50, 7, "whole")
	}},
	{"a fold takes everything as it is, again and again", func(s *suite) {
		s.folder()
		for range 2 {
			for range 2 {
				s.fold(filed(sample()))
				s.has(sample())
			}
			s.reopen()
			s.has(sample())
		}
		s.refused(step(rooms("a"), 10, 2, "stale"), persist.ErrConflict)
		s.Greater(s.applied(step(rooms("a"), 10, 3, "A4"))[0].Position, uint64(100), "positions go on above it")
		s.Equal([]uint64{1, 2, 3, 4}, revisions(s.changes(rooms("a"), 10, 0, 10)))
		s.fold(persist.Fold{Batch: persist.Batch{Records: []persist.Stored{stored(rooms("later"), 700, 1, "x")}}})
		s.Greater(s.applied(create(rooms("last"), "x"))[0].Position, uint64(700), "and above the lives")
	}},
	{"changes are in the log before they are filed", func(s *suite) {
		s.folder()
		b := sample()
		s.fold(persist.Fold{Batch: persist.Batch{Changes: b.Changes}})
		for range 2 {
			s.Equal(b.Changes, s.log(0, 100))
			s.Empty(s.changes(rooms("a"), 0, 0, 10))
			s.Empty(s.changes(rooms("b"), 20, 1, 10))
			s.reopen()
		}
		s.fold(persist.Fold{Filed: b.Changes[:2]})
		s.Equal([]uint64{1}, revisions(s.changes(rooms("a"), 0, 0, 10)))
		without := append([]persist.Change(nil), b.Changes[2:]...)
		for i := range without {
			without[i].Data = nil
		}
		s.fold(persist.Fold{Batch: persist.Batch{Records: b.Records, Rows: b.Rows, Position: b.Position}, Filed: without})
		for range 2 {
			s.has(b)
			s.reopen()
		}
	}},
	{"what was filed is not filed twice", func(s *suite) {
		s.folder()
		const count = 80 // more than stores keep aside
		var all []persist.Change
		for r := uint64(1); r <= count; r++ {
			all = append(all, logged(rooms("a"), 100+2*r, 102, r, "changed", "x"), logged(rooms("b"), 101+2*r, 103, r, "changed", "y"))
		}
		s.fold(persist.Fold{Batch: persist.Batch{Changes: all}})
		want := make([]uint64, count)
		for i := range want {
			want[i] = uint64(i + 1)
		}
		for _, part := range [][]persist.Change{all[:5], all[:100], all[50:], all, all[:1], all[len(all)-1:], all[:60], all[20:]} {
			s.fold(persist.Fold{Filed: part})
		}
		for range 2 {
			for _, name := range []string{"a", "b"} {
				s.Equal(want, revisions(s.changes(rooms(name), 0, 0, 1000)))
				s.Equal(want[70:], revisions(s.changes(rooms(name), 0, 71, 1000)))
			}
			s.reopen()
		}
	}},
	{"a fold deletes with rows, and makes again in the same batch", func(s *suite) {
		s.folder()
		s.fold(filed(sample()))
		other := persist.Row{Kind: "outbox", Key: rooms("b"), ID: "1", Value: []byte("b's")}
		s.fold(persist.Fold{Batch: persist.Batch{Rows: []persist.Row{other}}})
		f := filed(persist.Batch{
			Records: []persist.Stored{stored(rooms("a"), 202, 1, "A again")},
			Changes: []persist.Change{logged(rooms("a"), 201, 10, 4, "deleted", ""), logged(rooms("a"), 202, 202, 1, "made", "A again")},
			Rows:    []persist.Row{{Kind: "outbox", Key: rooms("a"), ID: "new", Value: []byte("new")}},
		})
		f.Deleted = []persist.Key{rooms("a"), rooms("never")}
		for range 2 {
			s.fold(f)
			s.holds(rooms("a"), 202, 1, "A again")
			rows, err := s.store.RowsOf(s.ctx, rooms("a"))
			s.NoError(err)
			s.Equal(f.Rows, rows)
			s.Equal([]uint64{1, 2, 3, 4, 1}, revisions(s.changes(rooms("a"), 0, 0, 10)))
			s.Equal([]uint64{1}, revisions(s.changes(rooms("a"), 202, 0, 10)))
			s.Len(s.rows("", nil, 10), 3, "others keep theirs")
		}
		s.fold(persist.Fold{Deleted: []persist.Key{rooms("a"), rooms("b")}})
		for range 2 {
			s.absent(rooms("a"))
			s.absent(rooms("b"))
			s.Len(s.rows("", nil, 10), 1)
			s.Equal([]string{"e"}, s.names("events", "", 10))
			s.reopen()
		}
	}},
	{"a fold removes rows before it writes others", func(s *suite) {
		s.folder()
		b := sample()
		s.fold(filed(b))
		gone := []persist.Row{{Kind: "inbox", Key: rooms("a"), ID: "x"}, {Kind: "outbox", Key: rooms("a"), ID: "1"}, {Kind: "timer", Key: rooms("a"), ID: "none"}}
		new1 := persist.Row{Kind: "outbox", Key: rooms("a"), ID: "1", Value: []byte("new")}
		for range 2 {
			s.fold(persist.Fold{RowsGone: gone, Batch: persist.Batch{Rows: []persist.Row{new1}}})
			s.Equal([]persist.Row{b.Rows[1], new1}, s.rows("", nil, 10))
			s.reopen()
		}
	}},
	{"a mark is kept, and the zero mark is none", func(s *suite) {
		s.folder()
		s.Zero(s.mark())
		s.fold(persist.Fold{})
		s.Zero(s.mark())
		want := persist.Mark{}
		for _, m := range []persist.Mark{markOf(1), {}, markOf(1), {Log: 77, Through: 1, Reached: 4}, markOf(5), markOf(3), {Log: 8}, {Log: 8, Through: 2, Detached: true}, {}, markOf(9)} {
			s.fold(persist.Fold{Mark: m, Batch: persist.Batch{Rows: []persist.Row{{Kind: "outbox", Key: rooms("a"), ID: "1"}}}})
			if m != (persist.Mark{}) {
				want = m
			}
			s.Equal(want, s.mark())
			s.reopen()
			s.Equal(want, s.mark())
		}
		s.fold(persist.Fold{Mark: markOf(10)})
		s.Equal(markOf(10), s.mark(), "a mark alone is stored, too")
		s.applied(create(rooms("b"), "a commit leaves it"))
		_, err := s.store.Trim(s.ctx, 0, 100, 100)
		s.NoError(err)
		s.reopen()
		s.Equal(markOf(10), s.mark())
	}},
	{"a fold goes on behind a trim", func(s *suite) {
		s.folder()
		var all []persist.Change
		for r := uint64(1); r <= 10; r++ {
			all = append(all, logged(rooms("a"), 100+r, 101, r, "changed", "x"))
		}
		s.fold(persist.Fold{Batch: persist.Batch{Changes: all[:6], Records: []persist.Stored{stored(rooms("a"), 101, 6, "x")}}, Filed: all[:2]})
		_, err := s.store.Trim(s.ctx, 0, 104, 100)
		s.NoError(err)
		s.Empty(s.changes(rooms("a"), 0, 0, 10))
		s.fold(persist.Fold{Filed: all[2:5]})
		s.Equal([]uint64{5}, revisions(s.changes(rooms("a"), 0, 0, 10)), "what was trimmed is not filed")
		s.fold(persist.Fold{Batch: persist.Batch{Changes: all[6:]}, Filed: all[5:]})
		for range 2 {
			s.Equal([]uint64{5, 6, 7, 8, 9, 10}, revisions(s.changes(rooms("a"), 101, 0, 10)))
			s.Equal(all[4:], s.log(0, 100))
			s.reopen()
		}
		s.trimAll(200, 3)
		s.Empty(s.log(0, 10))
		s.Empty(s.changes(rooms("a"), 0, 0, 10))
	}},
	{"what was folded again is trimmed like the rest", func(s *suite) {
		b := sample()
		s.fold(filed(b))
		s.fold(persist.Fold{Batch: persist.Batch{Changes: b.Changes}})
		s.has(b)
		_, err := s.store.Trim(s.ctx, 0, 13, 100)
		s.NoError(err)
		s.Equal(b.Changes[3:], s.log(0, 100))
		s.Equal([]uint64{3}, revisions(s.changes(rooms("a"), 0, 0, 10)))
		s.Equal([]uint64{2, 1}, revisions(s.changes(rooms("b"), 0, 0, 10)))
	}},
	{"a fold refuses what must not be stored, and takes nothing", func(s *suite) {
		f := s.folder()
		a := rooms("a")
		bad := map[string]persist.Fold{
			"a deleted name with U+0000":  {Deleted: []persist.Key{rooms("a\x00b")}},
			"no deleted name":             {Deleted: []persist.Key{{Pod: "rooms"}}},
			"a removed row of nobody":     {RowsGone: []persist.Row{{Kind: "outbox", ID: "1"}}},
			"a removed row without ID":    {RowsGone: []persist.Row{{Kind: "outbox", Key: a}}},
			"a removed row of no kind":    {RowsGone: []persist.Row{{Kind: "No", Key: a, ID: "1"}}},
			"a filed change of nobody":    {Filed: []persist.Change{logged(rooms(""), 1, 1, 1, "x", "")}},
			"a filed change at 0":         {Filed: []persist.Change{logged(a, 0, 1, 1, "x", "")}},
			"a filed change of life 0":    {Filed: []persist.Change{logged(a, 1, 0, 1, "x", "")}},
			"filed out of order":          {Filed: []persist.Change{logged(a, 3, 2, 2, "x", ""), logged(a, 2, 2, 1, "x", "")}},
			"changes out of order":        {Batch: persist.Batch{Changes: []persist.Change{logged(a, 3, 3, 1, "x", ""), logged(rooms("b"), 2, 2, 1, "x", "")}}},
			"two changes at one position": {Batch: persist.Batch{Changes: []persist.Change{logged(a, 3, 3, 1, "x", ""), logged(a, 3, 3, 2, "x", "")}}},
			"an unreadable change":        {Batch: persist.Batch{Changes: []persist.Change{{Position: 1, Life: 1, Key: a, Err: persist.ErrInvalid}}}},
			"revision 0":                  {Batch: persist.Batch{Records: []persist.Stored{stored(a, 1, 0, "x")}}},
			"an unreadable row":           {Batch: persist.Batch{Rows: []persist.Row{{Kind: "outbox", Key: a, ID: "1", Err: persist.ErrInvalid}}}},
			"the very last position":      {Batch: persist.Batch{Position: ^uint64(0)}},
			"a mark of no log":            {Mark: persist.Mark{Through: 1}},
		}
		s.fold(filed(sample()))
		for name, b := range bad {
			b.RowsGone = append(b.RowsGone, sample().Rows...)
			b.Records = append(b.Records, stored(rooms("sound"), 300, 1, "x"))
			b.Rows = append(b.Rows, persist.Row{Kind: "inbox", Key: rooms("sound"), ID: "1"})
			if b.Mark == (persist.Mark{}) {
				b.Mark = markOf(9)
			}
			s.ErrorIs(f.Fold(s.ctx, b), persist.ErrInvalid, name)
			s.has(sample())
			s.Zero(s.mark())
		}
	}},
	{"bytes that are folded stay their owner's", func(s *suite) {
		s.folder()
		b := sample()
		s.fold(filed(b))
		copy(b.Records[0].Record.State, "#####")
		copy(b.Changes[0].Data, "#####")
		copy(b.Rows[0].Value, "#####")
		s.has(sample())
	}},
	{"a fold repairs what cannot be read", func(s *suite) {
		s.fold(filed(sample()))
		b := sample()
		s.damageRow(b.Rows[0])
		s.damageChange(b.Changes[2])
		s.fold(persist.Fold{Batch: persist.Batch{Changes: b.Changes[2:3], Rows: b.Rows[:1]}})
		s.has(b)
	}},
	{"a closed store folds nothing", func(s *suite) {
		f := s.folder()
		s.NoError(f.Close())
		_, err := f.Heads(s.ctx, []persist.Key{rooms("a")})
		s.ErrorIs(err, persist.ErrUnavailable)
		_, err = f.Mark(s.ctx)
		s.ErrorIs(err, persist.ErrUnavailable)
		s.ErrorIs(f.Fold(s.ctx, filed(sample())), persist.ErrUnavailable)
	}},
}
