package persisttest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/snapshot"
)

// runModel compares the store with a memory.Store after random commits, trims
// and reopenings. Each gives lives and positions of its own, so lives are
// translated and positions compared by their order.
func runModel(t *testing.T, fresh func(t *testing.T) Fixture) {
	if testing.Short() {
		t.Skip("the model test takes seconds")
	}
	rapid.Check(t, func(rt *rapid.T) {
		fix := fresh(t)
		m := &modelRun{
			Assertions: require.New(rt), rt: rt, t: t, fix: fix, store: fix.Store,
			model: memory.Open(memory.Config{}), lives: map[uint64]uint64{}, ctx: context.Background(),
		}
		defer func() { _ = m.store.Close() }()
		for _, what := range rapid.SliceOfN(rapid.SampledFrom([]string{"commit", "commit", "commit", "reopen", "trim"}), 1, 20).Draw(rt, "steps") {
			switch what {
			case "commit":
				m.commit(rt)
			case "reopen":
				m.reopen()
			case "trim":
				m.trim(rt)
			}
			m.compare(rt)
		}
	})
}

type modelRun struct {
	*require.Assertions
	rt    *rapid.T
	t     *testing.T
	ctx   context.Context
	fix   Fixture
	store persist.PersistenceService
	model *memory.Store
	lives map[uint64]uint64 // the store's life → the model's
	last  uint64            // the store's last position
	count int               // makes states differ
}

var (
	modelPods  = []string{"a", "a-b", "b"}
	modelNames = []string{"x", "x/y", "xy", "é"}
	modelKinds = []string{"inbox", "outbox"}
)

func (m *modelRun) reopen() {
	m.NoError(m.store.Close())
	m.store = m.fix.Reopen(m.t)
}

// commit sends the same units, each with its own side's lives, to both.
func (m *modelRun) commit(rt *rapid.T) {
	n := rapid.IntRange(1, 6).Draw(rt, "units")
	units := make([]persist.Unit, n)
	hoped := map[persist.Key]persist.Unit{} // what is stored if every unit is applied
	for i := range units {
		units[i] = m.unit(rt, hoped)
	}
	mine := make([]persist.Unit, n)
	for i, u := range units {
		mine[i] = u
		if life, ok := m.lives[u.Life]; ok {
			mine[i].Life = life
		} else if u.Life != 0 {
			mine[i].Life = 1 << 60
		}
	}
	want, err := m.model.Commit(m.ctx, mine)
	m.NoError(err)
	got, err := m.store.Commit(m.ctx, units)
	m.NoError(err)
	m.Len(got, n)
	for i := range got {
		m.sameOutcome(units[i], want[i], got[i])
	}
}

func (m *modelRun) sameOutcome(u persist.Unit, want, got persist.Outcome) {
	if want.Err != nil {
		m.Error(got.Err, "%+v", u)
		m.True(oneOf(got.Err, persist.ErrConflict, persist.ErrInvalid), "%v", got.Err)
		return
	}
	m.NoError(got.Err, "%+v", u)
	if want.Life == 0 {
		return // by force, and nothing was there
	}
	m.Greater(got.Position, m.last, "positions strictly increase")
	m.last = got.Position
	if life, ok := m.lives[got.Life]; ok {
		m.Equal(want.Life, life)
	}
	m.lives[got.Life] = want.Life
}

// unit draws a step of some entity: mostly one that fits what is stored, or
// will be when the earlier units of the call are applied.
func (m *modelRun) unit(rt *rapid.T, hoped map[persist.Key]persist.Unit) persist.Unit {
	u := m.draw(rt, hoped)
	next := persist.Unit{Life: u.Life, Expect: u.Expect}
	if u.Record != nil {
		next.Expect = u.Record.Revision
	}
	if u.Delete {
		next = persist.Unit{}
	}
	hoped[u.Key] = next
	return u
}

func (m *modelRun) draw(rt *rapid.T, hoped map[persist.Key]persist.Unit) persist.Unit {
	k := persist.Key{Pod: rapid.SampledFrom(modelPods).Draw(rt, "pod"), Name: rapid.SampledFrom(modelNames).Draw(rt, "name")}
	u := persist.Unit{Key: k}
	if h, ok := hoped[k]; ok {
		u.Life, u.Expect = h.Life, h.Expect
	} else if r, err := m.store.Load(m.ctx, k); err == nil {
		u.Life, u.Expect = r.Life, r.Revision
	}
	switch rapid.IntRange(0, 11).Draw(rt, "kind") {
	case 0:
		u.Expect += uint64(rapid.IntRange(0, 2).Draw(rt, "off"))
	case 1:
		u.Life = 0
	case 2:
		u.Expect, u.Life = 0, 0
	case 3:
		u.Key.Name += "\x00"
	}
	switch rapid.IntRange(0, 7).Draw(rt, "what") {
	case 0:
		u.Delete = true
		u.Changes = []persist.Change{{Revision: u.Expect + 1, Type: "deleted", Time: at(u.Expect)}}
		return u
	case 1:
		u.Delete, u.Force = true, true
		return u
	case 2:
		u.Rows = m.rows(rt)
		return u
	}
	m.count++
	state := fmt.Sprint("state ", m.count)
	leap := uint64(rapid.IntRange(0, 2).Draw(rt, "leap"))
	u.Record = record(u.Expect+leap, state)
	event := rapid.Bool().Draw(rt, "event")
	for r := u.Expect + 1; r <= u.Expect+leap; r++ {
		c := change(r, "changed", fmt.Sprint(state, "@", r))
		c.Event = event
		u.Changes = append(u.Changes, c)
	}
	u.Rows = m.rows(rt)
	return u
}

func (m *modelRun) rows(rt *rapid.T) []persist.RowOp {
	var ops []persist.RowOp
	for range rapid.IntRange(0, 3).Draw(rt, "rows") {
		m.count++
		ops = append(ops, persist.RowOp{
			Kind:   rapid.SampledFrom(modelKinds).Draw(rt, "row kind"),
			ID:     rapid.SampledFrom([]string{"1", "10", "2", "a/b"}).Draw(rt, "row id"),
			Value:  []byte(fmt.Sprint("row ", m.count)),
			Delete: rapid.IntRange(0, 3).Draw(rt, "row delete") == 0,
		})
	}
	return ops
}

// trim trims the same changes on both sides.
func (m *modelRun) trim(rt *rapid.T) {
	log, err := m.store.Log(m.ctx, 0, 1000)
	m.NoError(err)
	own, err := m.model.Log(m.ctx, 0, 1000)
	m.NoError(err)
	m.Len(log, len(own))
	if len(log) == 0 {
		return
	}
	i := rapid.IntRange(0, len(log)-1).Draw(rt, "through")
	after, ownAfter := uint64(0), uint64(0)
	if rapid.Bool().Draw(rt, "behind some") {
		j := rapid.IntRange(0, i).Draw(rt, "after")
		after, ownAfter = log[j].Position, own[j].Position
	}
	limit := rapid.IntRange(1, 5).Draw(rt, "limit")
	got, err := m.store.Trim(m.ctx, after, log[i].Position, limit)
	m.NoError(err)
	want, err := m.model.Trim(m.ctx, ownAfter, own[i].Position, limit)
	m.NoError(err)
	m.Equal(want.Dropped, got.Dropped)
	m.LessOrEqual(got.Through, log[i].Position)
	m.GreaterOrEqual(got.Through, after)
	m.Equal(behind(own, want.Through), behind(log, got.Through), "where the next one goes on")
}

// behind counts the changes behind a position.
func behind(log []persist.Change, position uint64) (n int) {
	for _, c := range log {
		if c.Position > position {
			n++
		}
	}
	return n
}

func (m *modelRun) compare(rt *rapid.T) {
	page := rapid.IntRange(1, 5).Draw(rt, "page")
	for _, pod := range modelPods {
		want, err := m.model.List(m.ctx, pod, persist.ListOptions{})
		m.NoError(err)
		m.Equal(want.Items, m.list(pod, page))
		for _, name := range modelNames {
			m.compareEntity(persist.Key{Pod: pod, Name: name})
		}
	}
	want, err := m.model.Log(m.ctx, 0, 1000)
	m.NoError(err)
	log, err := m.store.Log(m.ctx, 0, 1000)
	m.NoError(err)
	m.Equal(describeAll(want), describeAll(log))
	last := uint64(0)
	for _, c := range log {
		m.Greater(c.Position, last)
		last = c.Position
	}
	position, err := m.store.Position(m.ctx)
	m.NoError(err)
	m.GreaterOrEqual(position, max(last, m.last))
	for _, kind := range append(modelKinds, "") {
		want, err := m.model.Rows(m.ctx, kind, nil, 1000)
		m.NoError(err)
		m.Equal(want, m.rowPages(kind, page))
	}
	pods, err := m.model.Pods(m.ctx)
	m.NoError(err)
	got, err := m.store.Pods(m.ctx)
	m.NoError(err)
	m.Equal(pods, got)
}

func (m *modelRun) compareEntity(k persist.Key) {
	want, werr := m.model.Load(m.ctx, k)
	got, err := m.store.Load(m.ctx, k)
	if werr != nil {
		m.ErrorIs(err, persist.ErrNotFound)
	} else {
		m.NoError(err)
		m.Equal(want, m.translated(got))
	}
	wanted, err := m.model.Changes(m.ctx, k, 0, 0, 1000)
	m.NoError(err)
	changes, err := m.store.Changes(m.ctx, k, 0, 0, 1000)
	m.NoError(err)
	m.Equal(describeAll(wanted), describeAll(changes))
	wants, err := m.model.RowsOf(m.ctx, k)
	m.NoError(err)
	rows, err := m.store.RowsOf(m.ctx, k)
	m.NoError(err)
	m.Equal(wants, rows)
}

func (m *modelRun) translated(r snapshot.Record) snapshot.Record {
	r.Life = m.lives[r.Life]
	return r
}

func (m *modelRun) list(pod string, page int) (all []persist.Item) {
	after := ""
	for {
		got, err := m.store.List(m.ctx, pod, persist.ListOptions{After: after, Limit: page})
		m.NoError(err)
		for _, item := range got.Items {
			m.True(item.Name > after, "%q is on the page behind %q", item.Name, after)
			item.Record = m.translated(item.Record)
			all = append(all, item)
			after = item.Name
		}
		if !got.More {
			return all
		}
	}
}

func (m *modelRun) rowPages(kind string, page int) (all []persist.Row) {
	var after *persist.Row
	for {
		rows, err := m.store.Rows(m.ctx, kind, after, page)
		m.NoError(err)
		all = append(all, rows...)
		m.LessOrEqual(len(all), 1000, "pages go round")
		if len(rows) < page {
			return all
		}
		after = &all[len(all)-1]
	}
}
