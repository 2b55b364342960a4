package commitlog_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/memory"
)

// pen writes entities one step after the other, to a log and to a model.
type pen struct {
	testing.TB
	model *memory.Store
	count int
}

func newPen(t testing.TB) *pen {
	return &pen{TB: t, model: memory.Open(memory.Config{MaxRecord: maxRecord})}
}

// next is the next step of an entity, whose state has so many bytes more.
func (p *pen) next(name string, more int) persist.Unit {
	p.count++
	u := persist.Unit{Key: persist.Key{Pod: "rooms", Name: name}}
	if r, err := p.model.Load(ctx, u.Key); err == nil {
		u.Life, u.Expect = r.Life, r.Revision
	}
	state := append(fmt.Append(nil, name, " ", p.count, " "), bytes.Repeat([]byte("s"), more)...)
	u.Record = &record{Revision: u.Expect + 1, Changed: at(p.count), Codec: "json", State: state}
	u.Changes = []persist.Change{{Revision: u.Expect + 1, Type: "changed", Time: at(p.count), Codec: "json", Data: state}}
	u.Rows = []persist.RowOp{{Kind: "outbox", ID: "last", Value: fmt.Append(nil, p.count)}, {Kind: "inbox", ID: fmt.Sprint(p.count), Value: []byte("v")}}
	return u
}

// gone is the end of an entity.
func (p *pen) gone(name string) persist.Unit {
	r, err := p.model.Load(ctx, persist.Key{Pod: "rooms", Name: name})
	require.NoError(p, err)
	return persist.Unit{Key: persist.Key{Pod: "rooms", Name: name}, Life: r.Life, Expect: r.Revision, Delete: true,
		Changes: []persist.Change{{Revision: r.Revision + 1, Type: "deleted", Time: at(p.count)}}}
}

// write commits units to both.
func (p *pen) write(s *commitlog.Store, units ...persist.Unit) {
	p.Helper()
	got, err := s.Commit(ctx, units)
	require.NoError(p, err)
	p.wrote(units, got)
}

func (p *pen) wrote(units []persist.Unit, got []persist.Outcome) {
	p.Helper()
	want, err := p.model.Commit(ctx, units)
	require.NoError(p, err)
	require.Equal(p, want, got)
}

// steps writes a step of each entity, in a group of its own.
func (p *pen) steps(s *commitlog.Store, names ...string) {
	p.Helper()
	for _, name := range names {
		p.write(s, p.next(name, 0))
	}
}

// image is what there must be.
func (p *pen) image() []string { return imageIn(p, p.model) }

func imageIn(t testing.TB, s persist.PersistenceService) []string {
	t.Helper()
	lines, err := image(s, 100)
	require.NoError(t, err)
	return lines
}

// has tests that a store has what was written.
func (p *pen) has(s persist.PersistenceService) {
	p.Helper()
	require.Equal(p, p.image(), imageIn(p, s))
}

func (w *world) mustOpen(t testing.TB) *commitlog.Store {
	t.Helper()
	s, err := w.open()
	require.NoError(t, err)
	return s
}

// restarted is a world in which the process was killed, and another one begins
// with copies: it changes nothing of w's.
func (w *world) restarted() *world {
	other := &world{rng: w.rng, segment: w.segment}
	other.enter(w.disk.Copy(), w.behind.Fork())
	return other
}

// create is a commit that needs nothing that was there.
func (p *pen) create(name string) []persist.Unit { return []persist.Unit{p.next(name, 0)} }

// TestBytesStayTheCallers writes over what was handed in.
func TestBytesStayTheCallers(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	u := p.next("a", 10)
	p.write(s, u)
	for _, b := range [][]byte{u.Record.State, u.Rows[0].Value} {
		for i := range b {
			b[i] = 'X'
		}
	}
	p.has(s)
	require.NoError(t, s.Fold(ctx))
	p.has(s)
}
