package commitlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/snapshot"
)

type record = snapshot.Record

// TestHistories compares a log with a store in memory that gets the same, through
// faults and crashes at any operation.
func TestHistories(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	rapid.Check(t, func(rt *rapid.T) {
		h := &history{rt: rt, Assertions: require.New(rt), w: newWorld(rapid.Uint64().Draw(rt, "seed")),
			models: []*memory.Store{memory.Open(memory.Config{MaxRecord: maxRecord})}}
		h.w.segment = rapid.SampledFrom([]int64{0, 512 << 10}).Draw(rt, "segment") // the larger one grows
		h.start()
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			h.step()
		}
		h.end()
	})
}

// history is a run of one log.
type history struct {
	*require.Assertions
	rt *rapid.T
	w  *world
	s  *commitlog.Store
	// models are what the log may hold: one, or, while the outcome of a step is
	// unknown, that without it and that with it.
	models []*memory.Store
	count  int // makes states differ
}

var steps = []string{"commit", "commit", "commit", "commit", "commit", "fold", "trim", "import", "reopen", "restart", "crash", "crash"}

func (h *history) step() {
	switch rapid.IntRange(0, 9).Draw(h.rt, "fault") {
	case 0:
		h.w.plan(dies, rapid.IntRange(0, 15).Draw(h.rt, "dies behind"))
	case 1, 2:
		h.w.plan(fails, rapid.IntRange(0, 10).Draw(h.rt, "fails behind"))
	default:
		h.w.plan(none, 0)
	}
	switch rapid.SampledFrom(steps).Draw(h.rt, "step") {
	case "commit":
		h.commit()
	case "fold":
		h.try(h.s.Fold(ctx), nil)
	case "trim":
		h.trim()
	case "import":
		h.importing()
	case "reopen":
		h.try(h.s.Reopen(ctx), nil)
	case "restart":
		h.restart()
		return
	case "crash":
		h.w.dead = true
	}
	h.settle()
}

// try takes note of what became of a step. then does the same to a model.
func (h *history) try(err error, then func(m *memory.Store)) {
	switch {
	case !h.w.fired && !h.w.dead:
		h.NoError(err, "no fault was met")
	case h.w.dead, errors.Is(err, persist.ErrUnknown):
		// Whoever called knows nothing.
		if then != nil {
			other := h.models[0].Fork()
			then(other)
			h.models = append(h.models, other)
		}
		if err != nil && !h.w.dead {
			h.NotErrorIs(err, persist.ErrUnavailable)
		}
		return
	case err != nil:
		h.ErrorIs(err, persist.ErrUnavailable)
		h.NotErrorIs(err, persist.ErrInvalid)
		return
	}
	if then != nil {
		then(h.models[0])
	}
}

// settle brings the log back into service, and compares.
func (h *history) settle() {
	if h.w.dead {
		h.crash()
		return
	}
	h.w.next = none
	down := h.w.behind.down
	if _, err := h.s.Position(ctx); err != nil {
		h.ErrorIs(err, persist.ErrUnavailable)
		down = true
		if rapid.IntRange(0, 3).Draw(h.rt, "dies instead") == 0 {
			h.crash()
			return
		}
	} else {
		h.True(down || len(h.models) == 1, "a store whose outcome is unknown must be reopened")
	}
	if down {
		h.w.plan(fails, rapid.IntRange(0, 20).Draw(h.rt, "fails again"))
		if err := h.s.Reopen(ctx); err != nil {
			h.ErrorIs(err, persist.ErrUnavailable)
			h.w.next = none
			h.NoError(h.s.Reopen(ctx))
		}
		h.w.next = none
	}
	h.compare(h.s)
}

func (h *history) crash() {
	h.w.crash(rapid.Bool().Draw(h.rt, "only killed"))
	h.start()
}

// start opens the log, which may die while it is opened, too.
func (h *history) start() {
	for range rapid.IntRange(0, 2).Draw(h.rt, "dies at open") {
		h.w.plan(rapid.SampledFrom([]fault{dies, fails}).Draw(h.rt, "fault at open"), rapid.IntRange(0, 15).Draw(h.rt, "at open behind"))
		s, err := h.w.open()
		h.w.next = none
		if err == nil && !h.w.fired {
			h.s = s
			h.compare(s)
		} else if err != nil {
			h.True(h.w.fired, "%v", err)
			h.NotErrorIs(err, commitlog.ErrDamaged)
			h.NotErrorIs(err, commitlog.ErrForeign)
			h.NotErrorIs(err, commitlog.ErrMissing)
		}
		h.w.crash(rapid.Bool().Draw(h.rt, "only killed"))
	}
	s, err := h.w.open()
	h.NoError(err)
	h.s = s
	h.compare(s)
}

// restart closes the log and opens it again.
func (h *history) restart() {
	err := h.s.Close()
	if !h.w.fired {
		h.NoError(err)
		mark, err := h.w.behind.Fork().Mark(ctx)
		h.NoError(err)
		h.True(mark.Detached || mark == persist.Mark{}, "nothing was committed, or the log has let it go")
		h.compare(h.w.behind.Fork())
	}
	if h.w.dead {
		h.crash()
		return
	}
	h.w.leave()
	h.start()
}

func (h *history) end() {
	h.w.plan(none, 0)
	h.restart()
	h.NoError(h.s.Close())
}

// compare reads all there is. What was unknown is then known.
func (h *history) compare(s persist.PersistenceService) {
	got, err := image(s, rapid.IntRange(1, 7).Draw(h.rt, "page"))
	h.NoError(err)
	for _, m := range h.models {
		want, err := image(m, 1000)
		h.NoError(err)
		if slices.Equal(want, got) {
			h.models = []*memory.Store{m}
			return
		}
	}
	want, err := image(h.models[0], 1000)
	h.NoError(err)
	h.Equal(want, got, "one of %d that could be", len(h.models))
}

func (h *history) commit() {
	units := h.units()
	got, err := h.s.Commit(ctx, units)
	h.try(err, func(m *memory.Store) {
		want, werr := m.Commit(ctx, units)
		h.NoError(werr)
		if err != nil {
			return
		}
		h.Len(got, len(want))
		for i := range want {
			if want[i].Err != nil {
				for _, e := range []error{persist.ErrConflict, persist.ErrInvalid} {
					h.Equal(errors.Is(want[i].Err, e), errors.Is(got[i].Err, e), "%v, want %v", got[i].Err, want[i].Err)
				}
				want[i].Err, got[i].Err = nil, nil
			}
			h.Equal(want[i], got[i])
		}
	})
}

func (h *history) trim() {
	last, err := h.models[0].Position(ctx)
	h.NoError(err)
	after := rapid.Uint64Range(0, last).Draw(h.rt, "after") / 4
	through := rapid.Uint64Range(after, last+2).Draw(h.rt, "through")
	limit := rapid.IntRange(1, 30).Draw(h.rt, "limit")
	got, err := h.s.Trim(ctx, after, through, limit)
	h.try(err, func(m *memory.Store) {
		want, werr := m.Trim(ctx, after, through, limit)
		h.NoError(werr)
		if err == nil {
			h.Equal(want, got)
		}
	})
}

func (h *history) importing() {
	last, err := h.models[0].Position(ctx)
	h.NoError(err)
	h.count++
	k := key(rapid.IntRange(0, 11).Draw(h.rt, "key"))
	b := persist.Batch{Position: last + rapid.Uint64Range(0, 3).Draw(h.rt, "further")}
	if rapid.Bool().Draw(h.rt, "with an entity") {
		life := last + 1
		b.Records = []persist.Stored{{Key: k, Record: record{Life: life, Revision: 1, Changed: at(h.count), Codec: "json", State: []byte("imported")}}}
		b.Changes = []persist.Change{{Key: k, Life: life, Position: life, Revision: 1, Type: "imported", Time: at(h.count), Codec: "json", Data: []byte("imported")}}
		b.Rows = []persist.Row{{Kind: "inbox", Key: k, ID: "imported", Value: []byte("1")}}
	}
	h.try(h.s.Import(ctx, b), func(m *memory.Store) { h.NoError(m.Import(ctx, b)) })
}

func key(i int) persist.Key {
	return persist.Key{Pod: []string{"a", "a-b", "b"}[i%3], Name: []string{"x", "x/y", "xy", "é"}[i/3]}
}

// at is a time that is not in UTC.
func at(i int) time.Time {
	return time.Date(2024, 1, 2, 3, 4, 5, i, time.FixedZone("here", 3600))
}

// units draws a commit: mostly of steps that fit what is stored.
func (h *history) units() []persist.Unit {
	units := make([]persist.Unit, rapid.IntRange(1, 6).Draw(h.rt, "units"))
	hoped := map[persist.Key]persist.Unit{}
	for i := range units {
		u := h.unit(hoped)
		next := persist.Unit{Life: u.Life, Expect: u.Expect}
		if u.Record != nil {
			next.Expect = u.Record.Revision
		}
		if u.Delete {
			next = persist.Unit{}
		}
		hoped[u.Key], units[i] = next, u
	}
	return units
}

func (h *history) unit(hoped map[persist.Key]persist.Unit) persist.Unit {
	u := persist.Unit{Key: key(rapid.IntRange(0, 11).Draw(h.rt, "key"))}
	if was, ok := hoped[u.Key]; ok {
		u.Life, u.Expect = was.Life, was.Expect
	} else if r, err := h.models[0].Load(ctx, u.Key); err == nil {
		u.Life, u.Expect = r.Life, r.Revision
	}
	switch rapid.IntRange(0, 14).Draw(h.rt, "wrong") {
	case 0:
		u.Expect += 2
	case 1:
		u.Life = 0
	case 2:
		u.Expect, u.Life = 0, 0
	case 3:
		u.Key.Name += "\x00"
	}
	what := rapid.IntRange(0, 20).Draw(h.rt, "what")
	switch {
	case what < 4:
		u.Delete = true
		u.Changes = []persist.Change{{Revision: u.Expect + 1, Type: "deleted", Time: at(h.count)}}
		return u
	case what == 4:
		u.Delete, u.Force = true, true
		return u
	case what < 7:
		u.Rows = h.rows()
		return u
	}
	h.count++
	leap := uint64(rapid.IntRange(0, 2).Draw(h.rt, "leap"))
	state := h.state()
	u.Record = &record{Revision: max(u.Expect+leap, 1), Changed: at(h.count), Codec: "json", Schema: uint32(h.count % 2), State: state}
	event := rapid.Bool().Draw(h.rt, "event")
	for r := u.Expect + 1; r <= u.Expect+leap; r++ {
		c := persist.Change{Revision: r, Type: "changed", Time: at(h.count), Event: event, Codec: "json", Data: state}
		if event {
			c.Schema, c.Data = 7, fmt.Append(nil, "event ", h.count)
		}
		u.Changes = append(u.Changes, c)
	}
	u.Rows = h.rows()
	return u
}

// state draws one; a few fit no segment.
func (h *history) state() []byte {
	state := fmt.Appendf(nil, "state %d", h.count)
	switch n := rapid.IntRange(0, 40).Draw(h.rt, "size"); {
	case n == 40:
		return append(state, bytes.Repeat([]byte("o"), 66<<10)...)
	case n > 30:
		return append(state, bytes.Repeat([]byte("."), 9000)...)
	case n > 25:
		return append(state, bytes.Repeat([]byte("-"), rapid.IntRange(0, 25000).Draw(h.rt, "so many"))...)
	case n == 0:
		return nil
	}
	return state
}

func (h *history) rows() (ops []persist.RowOp) {
	for range rapid.IntRange(0, 3).Draw(h.rt, "rows") {
		h.count++
		op := persist.RowOp{Kind: rapid.SampledFrom([]string{"inbox", "outbox"}).Draw(h.rt, "kind"), ID: rapid.SampledFrom([]string{"1", "10", "2", "a/b"}).Draw(h.rt, "id")}
		switch rapid.IntRange(0, 5).Draw(h.rt, "row") {
		case 0:
			op.Delete = true
		case 1:
		default:
			op.Value = fmt.Appendf(nil, "row %d", h.count)
		}
		ops = append(ops, op)
	}
	return ops
}
