package persisttest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/twinsrv/twinsrv/persist"
)

// listing tests List.
var listing = []test{
	{"a list has the names in byte order, page by page", func(s *suite) {
		names := []string{"Z", "a", "a b", "a/b", "aa", "b", "é", "🏢"}
		for i := range names {
			s.applied(create(rooms(names[(i*3)%len(names)]), "x"))
		}
		s.applied(create(persist.Key{Pod: "room", Name: "other"}, "x"), create(persist.Key{Pod: "rooms2", Name: "other"}, "x"))
		slices.Sort(names)
		for _, page := range []int{1, 3, 8, 100} {
			s.Equal(names, s.names("rooms", "", page))
		}
		s.Empty(s.names("nobody", "", 10))
	}},
	{"a list gives records", func(s *suite) {
		o := s.applied(create(rooms("a"), "A"), create(rooms("b"), "B"))
		page, err := s.store.List(s.ctx, "rooms", persist.ListOptions{})
		s.NoError(err)
		items := page.Items
		want := []persist.Item{{Name: "a", Record: *record(1, "A")}, {Name: "b", Record: *record(1, "B")}}
		want[0].Record.Life, want[1].Record.Life = o[0].Life, o[1].Life
		s.Equal(want, items)
	}},
	{"a list is restricted to a prefix", func(s *suite) {
		for _, n := range []string{"a", "ab", "ab-1", "ab-2", "ab-3", "ac", "b"} {
			s.applied(create(rooms(n), "x"))
		}
		for _, page := range []int{1, 2, 100} {
			s.Equal([]string{"ab", "ab-1", "ab-2", "ab-3"}, s.names("rooms", "ab", page))
			s.Equal([]string{"b"}, s.names("rooms", "b", page))
			s.Empty(s.names("rooms", "ab-4", page))
		}
		for after, want := range map[string]int{"": 3, "a": 3, "ab-2": 1, "ab-3": 0, "z": 0} {
			page, err := s.store.List(s.ctx, "rooms", persist.ListOptions{Prefix: "ab-", After: after})
			s.NoError(err)
			items := page.Items
			s.Len(items, want, "after %q", after)
		}
		page, err := s.store.List(s.ctx, "rooms", persist.ListOptions{After: "aba"})
		s.NoError(err)
		items := page.Items
		s.Len(items, 2, "the name behind which a page starts need not be there")
	}},
	{"a page has 100 items unless told otherwise", func(s *suite) {
		var units []persist.Unit
		for i := range 600 {
			units = append(units, create(rooms(fmt.Sprintf("r%04d", i)), "x"))
		}
		s.applied(units...)
		page, err := s.store.List(s.ctx, "rooms", persist.ListOptions{})
		s.NoError(err)
		items := page.Items
		s.Len(items, 100)
		page, err = s.store.List(s.ctx, "rooms", persist.ListOptions{Limit: 1000})
		s.NoError(err)
		items = page.Items
		s.Len(items, 600)
		s.Equal("r0599", items[599].Name)
		s.Len(s.names("rooms", "", 299), 600)
	}},
	{"a page ends early when its states are large", func(s *suite) {
		for i := range 6 {
			s.applied(create(rooms(fmt.Sprint("r", i)), strings.Repeat("x", 1000)))
		}
		for most, want := range map[int]int{1: 1, 1000: 1, 1001: 2, 2500: 3, 100_000: 6} {
			page, err := s.store.List(s.ctx, "rooms", persist.ListOptions{MaxBytes: most})
			s.NoError(err)
			s.Len(page.Items, want, "at most about %d bytes", most)
			s.Equal(want < 6, page.More)
		}
	}},
}

// opening tests closing, opening again and refusing.
var opening = []test{
	{"what was acknowledged is there after reopening", func(s *suite) {
		u := create(rooms("b"), "B")
		u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("v")}}
		o := s.applied(create(rooms("a"), "A"), u)
		s.applied(step(rooms("a"), o[0].Life, 1, "A2"))
		before := s.log(0, 100)
		for range 3 {
			s.reopen()
			s.holds(rooms("a"), o[0].Life, 2, "A2")
			s.holds(rooms("b"), o[1].Life, 1, "B")
			s.Equal(before, s.log(0, 100))
			s.Len(s.rows("outbox", nil, 10), 1)
		}
		s.refused(step(rooms("a"), o[0].Life, 1, "stale"), persist.ErrConflict)
		s.applied(step(rooms("a"), o[0].Life, 2, "A3"))
	}},
	{"a closed store is unavailable", func(s *suite) {
		s.applied(create(rooms("a"), "A"))
		s.NoError(s.store.Close())
		s.unavailable(s.ctx)
		if r, ok := s.store.(persist.Reopener); ok {
			s.ErrorIs(r.Reopen(s.ctx), persist.ErrUnavailable, "closed is closed")
		}
		s.store = s.fix.Reopen(s.t)
		s.Equal([]string{"a"}, s.names("rooms", "", 10), "nothing was done")
	}},
	{"a cancelled call does nothing", func(s *suite) {
		s.applied(create(rooms("a"), "A"))
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		s.unavailable(ctx)
		s.Equal([]string{"a"}, s.names("rooms", "", 10))
	}},
	{"reopening a store that serves changes nothing", func(s *suite) {
		r, ok := s.store.(persist.Reopener)
		if !ok {
			s.t.Skip("the store has no Reopen")
		}
		a := s.applied(create(rooms("a"), "A"))[0]
		s.NoError(r.Reopen(s.ctx))
		s.holds(rooms("a"), a.Life, 1, "A")
		s.applied(step(rooms("a"), a.Life, 1, "A2"))
	}},
}

// unavailable requires that every method fails so.
func (s *suite) unavailable(ctx context.Context) {
	s.t.Helper()
	_, err := s.store.Commit(ctx, []persist.Unit{create(rooms("new"), "x")})
	s.ErrorIs(err, persist.ErrUnavailable, "Commit")
	_, err = s.store.Load(ctx, rooms("a"))
	s.ErrorIs(err, persist.ErrUnavailable, "Load")
	s.NotErrorIs(err, persist.ErrNotFound, "Load")
	_, err = s.store.List(ctx, "rooms", persist.ListOptions{})
	s.ErrorIs(err, persist.ErrUnavailable, "List")
	_, err = s.store.Changes(ctx, rooms("a"), 0, 0, 10)
	s.ErrorIs(err, persist.ErrUnavailable, "Changes")
	_, err = s.store.Log(ctx, 0, 10)
	s.ErrorIs(err, persist.ErrUnavailable, "Log")
	_, err = s.store.Trim(ctx, 0, 100, 10)
	s.ErrorIs(err, persist.ErrUnavailable, "Trim")
	_, err = s.store.Rows(ctx, "outbox", nil, 10)
	s.ErrorIs(err, persist.ErrUnavailable, "Rows")
	_, err = s.store.RowsOf(ctx, rooms("a"))
	s.ErrorIs(err, persist.ErrUnavailable, "RowsOf")
	_, err = s.store.Pods(ctx)
	s.ErrorIs(err, persist.ErrUnavailable, "Pods")
	_, err = s.store.Position(ctx)
	s.ErrorIs(err, persist.ErrUnavailable, "Position")
	if i, ok := s.store.(persist.Importer); ok {
		s.ErrorIs(i.Import(ctx, persist.Batch{Records: []persist.Stored{stored(rooms("new"), 1, 1, "x")}}), persist.ErrUnavailable, "Import")
	}
	if b, ok := s.store.(persist.Backuper); ok {
		s.ErrorIs(b.Backup(ctx, io.Discard), persist.ErrUnavailable, "Backup")
	}
	if c, ok := s.store.(persist.Compacter); ok {
		s.ErrorIs(c.Compact(ctx), persist.ErrUnavailable, "Compact")
	}
}

// together tests calls that run at the same time.
var together = []test{
	{"of concurrent creations one wins", func(s *suite) {
		for round := range 5 {
			k := rooms(fmt.Sprint("r", round))
			results := make([]persist.Outcome, 8)
			var wg sync.WaitGroup
			for i := range results {
				wg.Go(func() {
					if o, err := s.store.Commit(s.ctx, []persist.Unit{create(k, fmt.Sprint(i))}); err != nil {
						results[i].Err = err
					} else {
						results[i] = o[0]
					}
				})
			}
			wg.Wait()
			winner := -1
			for i, o := range results {
				if o.Err == nil {
					s.Equal(-1, winner, "two creations of %s were applied", k)
					winner = i
					continue
				}
				s.ErrorIs(o.Err, persist.ErrConflict)
			}
			s.GreaterOrEqual(winner, 0)
			s.holds(k, results[winner].Life, 1, fmt.Sprint(winner))
		}
	}},
	{"readers and writers run together", func(s *suite) {
		const writers, steps = 4, 25
		var writing, reading sync.WaitGroup
		errs := make(chan error, 64)
		report := func(err error) {
			if err != nil {
				select {
				case errs <- err:
				default:
				}
			}
		}
		done := make(chan struct{})
		for w := range writers {
			writing.Go(func() { report(s.writeSteps(rooms(fmt.Sprint("w", w)), steps)) })
		}
		for range 3 {
			reading.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						report(s.readAll())
					}
				}
			})
		}
		writing.Wait()
		close(done)
		reading.Wait()
		close(errs)
		for err := range errs {
			s.NoError(err)
		}
		s.Len(s.log(0, 1000), writers*steps)
		for w := range writers {
			s.Len(s.changes(rooms(fmt.Sprint("w", w)), 0, 0, 1000), steps)
		}
	}},
}

func (s *suite) writeSteps(k persist.Key, n int) error {
	var life uint64
	for r := range uint64(n) {
		u := create(k, "1")
		if r > 0 {
			u = step(k, life, r, fmt.Sprint(r+1))
		}
		o, err := s.store.Commit(s.ctx, []persist.Unit{u})
		if err != nil {
			return err
		}
		if o[0].Err != nil {
			return o[0].Err
		}
		life = o[0].Life
		got, err := s.store.Load(s.ctx, k)
		if err != nil {
			return err
		}
		if got.Revision != r+1 || string(got.State) != fmt.Sprint(r+1) {
			return fmt.Errorf("%s: loaded revision %d with %q after revision %d was acknowledged", k, got.Revision, got.State, r+1)
		}
	}
	return nil
}

// readAll reads everything and tests that it hangs together.
func (s *suite) readAll() error {
	page, err := s.store.List(s.ctx, "rooms", persist.ListOptions{})
	if err != nil {
		return err
	}
	for _, item := range page.Items {
		if item.Err != nil {
			return item.Err
		}
		if string(item.Record.State) != fmt.Sprint(item.Record.Revision) {
			return fmt.Errorf("%s has revision %d with the state %q", item.Name, item.Record.Revision, item.Record.State)
		}
	}
	log, err := s.store.Log(s.ctx, 0, 1000)
	if err != nil {
		return err
	}
	next := map[persist.Key]uint64{}
	for _, c := range log {
		if next[c.Key]++; c.Revision != next[c.Key] {
			return fmt.Errorf("the log has revision %d of %s where %d is next", c.Revision, c.Key, next[c.Key])
		}
	}
	return nil
}
