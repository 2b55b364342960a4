package jsonfile

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
)

// script is a fixed series of calls whose every outcome is known. It is run on
// disks that lose power or fail at every one of their operations.
type script struct {
	t    require.TestingT
	disk *fakeDisk
	cfg  Config
	s    *Store

	// sure is what was acknowledged: what each entity's units have made of it.
	sure map[persist.Key]image
	// maybe has the states that a call in progress would have made, one behind
	// the other.
	maybe map[persist.Key][]image
	lives map[persist.Key]uint64
	// trimmed says that some changes may be gone.
	trimmed uint64
	where   string // what is being tried
}

// image is what one entity is to be.
type image struct {
	revision uint64
	state    string
	rows     string
	changes  uint64 // of the present life
}

func scripted(t require.TestingT, disk *fakeDisk) *script {
	return &script{t: t, disk: disk, sure: map[persist.Key]image{}, maybe: map[persist.Key][]image{}, lives: map[persist.Key]uint64{},
		cfg: Config{Flush: -1, files: disk, single: true, segment: 1500}}
}

// turn is one entity's next unit, and what it makes of an image.
func (p *script) turn(key persist.Key, before image, life uint64, remove bool) (persist.Unit, image) {
	r := before.revision
	if remove {
		return persist.Unit{Key: key, Life: life, Expect: r, Delete: true,
			Changes: []persist.Change{{Revision: r + 1, Type: "deleted"}}}, image{}
	}
	after := image{revision: r + 1, state: fmt.Sprintf(`{"revision":%d,"pad":%q}`, r+1, strings.Repeat("x", 40)), changes: before.changes + 1}
	u := step(key, life, r, after.state)
	for i := range uint64(3) { // a row that comes, one that stays and one that goes
		u.Rows = append(u.Rows, persist.RowOp{Kind: "outbox", ID: fmt.Sprint(r + 1 - min(i, r)), Value: []byte(fmt.Sprint("row of ", r+1)), Delete: i == 2 && r >= 2})
	}
	rows := map[string]string{}
	for _, part := range strings.Fields(before.rows) {
		id, v, _ := strings.Cut(part, "=")
		rows[id] = v
	}
	for _, op := range u.Rows {
		if op.Delete {
			delete(rows, op.ID)
		} else {
			rows[op.ID] = fmt.Sprint(r + 1)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		after.rows += id + "=" + rows[id] + " "
	}
	return u, after
}

// commit commits one unit of each key, in one call.
func (p *script) commit(remove bool, keys ...persist.Key) error {
	var units []persist.Unit
	now := map[persist.Key]image{}
	for _, k := range keys {
		before, ok := now[k]
		if !ok {
			before = p.sure[k]
		}
		u, after := p.turn(k, before, p.lives[k], remove)
		if ok && before.revision > 0 && p.lives[k] == 0 {
			u.Life = 0
		}
		now[k] = after
		p.maybe[k] = append(p.maybe[k], after)
		units = append(units, u)
	}
	o, err := p.s.Commit(ctx, units)
	if err != nil {
		if errors.Is(err, persist.ErrUnavailable) && !errors.Is(err, persist.ErrUnknown) && !p.disk.dead() {
			p.maybe = map[persist.Key][]image{} // for certain nothing was applied
		}
		return err
	}
	for i, k := range keys {
		require.NoError(p.t, o[i].Err)
		p.lives[k] = o[i].Life
		if now[k].revision == 0 {
			delete(p.lives, k)
		}
		p.sure[k] = now[k]
	}
	p.maybe = map[persist.Key][]image{}
	return nil
}

func (p *script) open() (err error) {
	p.s, err = Open("/store", p.cfg)
	return err
}

// calls are the script's.
func (p *script) calls() []func() error {
	a, b, long := rooms("a"), persist.Key{Pod: "Halls", Name: "b"}, rooms(strings.Repeat("Long name ", 30))
	trim := func() error {
		last, err := p.s.Position(ctx)
		if err != nil {
			return err
		}
		p.trimmed = max(p.trimmed, last-2)
		_, err = p.s.Trim(ctx, 0, last-2, 100)
		return err
	}
	flush := func() error { return p.s.Flush(ctx) }
	return []func() error{
		p.open,
		func() error { return p.commit(false, a) },
		func() error { return p.commit(false, a, b, long) },
		flush,
		func() error { return p.commit(false, a, a, b) },
		func() error { return p.commit(true, b) },
		func() error { return p.commit(false, b, a) },
		flush,
		func() error { return p.commit(true, long, a) },
		trim,
		flush,
		func() error { return p.commit(false, b) },
		func() error { return p.commit(false, a, long) },
		func() error { return p.s.Compact(ctx) },
		func() error { return p.commit(false, b, a, long) },
		func() error { return p.s.Close() },
		p.open,
		func() error { return p.commit(false, a) },
		func() error { return p.s.Close() },
	}
}

// check opens what is there and requires that everything acknowledged is there,
// and of what was in progress whole units, in order.
func (p *script) check() {
	require.NoError(p.t, p.open(), p.where)
	keys := map[persist.Key]bool{}
	for k := range p.sure {
		keys[k] = true
	}
	for k := range p.maybe {
		keys[k] = true
	}
	for k := range keys {
		got := p.image(k)
		want := append([]image{p.sure[k]}, p.maybe[k]...)
		i := slices.IndexFunc(want, func(w image) bool {
			return w.revision == got.revision && w.state == got.state && w.rows == got.rows && (p.trimmed > 0 || w.changes == got.changes)
		})
		require.GreaterOrEqual(p.t, i, 0, "%s: %s is %+v, want one of %+v", p.where, k, got, want)
		p.sure[k] = want[i]
	}
	p.maybe = map[persist.Key][]image{}
	last := uint64(0)
	log, err := p.s.Log(ctx, 0, 1000)
	require.NoError(p.t, err)
	for _, c := range log {
		require.NoError(p.t, c.Err)
		require.Greater(p.t, c.Position, last)
		last = c.Position
	}
}

func (p *script) image(k persist.Key) image {
	r, err := p.s.Load(ctx, k)
	if errors.Is(err, persist.ErrNotFound) {
		rows, err := p.s.RowsOf(ctx, k)
		require.NoError(p.t, err)
		require.Empty(p.t, rows)
		delete(p.lives, k)
		return image{}
	}
	require.NoError(p.t, err)
	p.lives[k] = r.Life
	got := image{revision: r.Revision, state: string(r.State)}
	rows, err := p.s.RowsOf(ctx, k)
	require.NoError(p.t, err)
	for _, row := range rows {
		got.rows += row.ID + "=" + strings.TrimPrefix(string(row.Value), "row of ") + " "
	}
	changes, err := p.s.Changes(ctx, k, r.Life, 0, 1000)
	require.NoError(p.t, err)
	got.changes = uint64(len(changes))
	return got
}

// goOn proves that the store that was found works.
func (p *script) goOn() {
	for range 2 {
		require.NoError(p.t, p.commit(false, rooms("a"), persist.Key{Pod: "Halls", Name: "b"}))
	}
	require.NoError(p.t, p.s.Close())
	p.check()
	require.NoError(p.t, p.s.Close())
}

// run runs the script until something fails.
func (p *script) run() error {
	for _, call := range p.calls() {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

// long is how often something is tried: the second number where
// JSONFILE_LONG is set.
func long(short, long uint64) uint64 {
	if os.Getenv("JSONFILE_LONG") != "" {
		return long
	}
	return short
}

func operations(t *testing.T) int {
	d := newDisk()
	p := scripted(t, d)
	require.NoError(t, p.run())
	p.check()
	require.NoError(t, p.s.Close())
	require.Greater(t, d.ops, 100)
	return d.ops
}

func TestALossOfPowerAtEveryOperationLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	for stop := range operations(t) {
		stop++
		for seed := range long(1, 6) {
			rng := rand.New(rand.NewPCG(seed, uint64(stop)))
			d := newDisk()
			d.stop = stop
			p := scripted(t, d)
			_ = p.run()
			// The power goes again while what is left is being mended.
			for again := range rng.IntN(3) {
				p.disk = p.disk.lose(rng)
				p.cfg.files = p.disk
				p.disk.stop = 1 + rng.IntN(12)
				if err := p.open(); err != nil {
					require.ErrorIs(t, err, errPower, "stop %d, seed %d, again %d", stop, seed, again)
				}
			}
			p.disk = p.disk.lose(rng)
			p.cfg.files = p.disk
			p.where = fmt.Sprintf("stop %d, seed %d", stop, seed)
			p.check()
			p.goOn()
		}
	}
}

func TestAFailureAtEveryOperationIsToldHonestly(t *testing.T) {
	t.Parallel()
	for fail := range operations(t) {
		fail++
		for n, cause := range []error{syscall.ENOSPC, syscall.EIO} {
			for _, stays := range []bool{false, true} {
				if stays != (n == 0) && long(1, 2) == 1 {
					continue
				}
				rng := rand.New(rand.NewPCG(uint64(fail), 1))
				d := newDisk()
				d.fail, d.cause, d.stays = fail, cause, stays
				p := scripted(t, d)
				err := p.run()
				if err != nil && !errors.Is(err, persist.ErrUnknown) && !errors.Is(err, persist.ErrUnavailable) {
					require.ErrorIs(t, err, cause, "operation %d", fail)
				}
				d.fail = 0
				if p.s != nil && err != nil {
					p.heal(fail)
				}
				p.disk = d.lose(rng)
				p.cfg.files = p.disk
				p.where = fmt.Sprintf("operation %d fails with %v, later ones too: %t", fail, cause, stays)
				p.check()
				p.goOn()
			}
		}
	}
}

// heal brings a store back whose disk works again, or closes it.
func (p *script) heal(fail int) {
	err := p.s.Reopen(ctx)
	if errors.Is(err, persist.ErrUnavailable) { // closed, or never open
		p.disk.locked = false
		return
	}
	require.NoError(p.t, err, "operation %d", fail)
	for k := range p.maybe {
		got := p.image(k)
		want := append([]image{p.sure[k]}, p.maybe[k]...)
		i := slices.IndexFunc(want, func(w image) bool { return w.revision == got.revision && w.state == got.state && w.rows == got.rows })
		require.GreaterOrEqual(p.t, i, 0, "operation %d: %s is %+v, want one of %+v", fail, k, got, want)
		p.sure[k] = want[i]
	}
	p.maybe = map[persist.Key][]image{}
	require.NoError(p.t, p.commit(false, rooms("a"), persist.Key{Pod: "Halls", Name: "b"}))
}
