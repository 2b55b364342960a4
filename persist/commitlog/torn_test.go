package commitlog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/commitlog/logtest"
)

func TestTornLastGroup(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	p.steps(s, "a", "b", "a")
	before := p.image()
	p.write(s, p.next("a", 700), p.next("c", 3))
	after := p.image()
	content := w.disk.Content("segment-1")
	groups := commitlog.Groups(content)
	require.Len(t, groups, 4)
	last := groups[3]
	for cut := last.From; cut <= last.Next; cut++ {
		for _, how := range []string{"cut off", "zeros"} {
			other := w.restarted()
			if how == "cut off" {
				other.disk.Put("segment-1", commitlog.Older(content[:cut]))
			} else {
				other.disk.Put("segment-1", append(content[:cut:cut], make([]byte, len(content)-cut)...))
			}
			want := before
			if cut >= last.End || how == "zeros" && allZero(content[cut:last.End]) {
				want = after
			}
			s := other.mustOpen(t)
			require.Equal(t, want, imageIn(t, s), "%s at %d", how, cut)
			if cut%97 == 0 {
				_, err := s.Commit(ctx, newPen(t).create("later"))
				require.NoError(t, err)
				want = imageIn(t, s)
				other.crash(false)
				require.Equal(t, want, imageIn(t, other.mustOpen(t)), "%s at %d, and gone on", how, cut)
			}
		}
	}
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// refused tests that the log is not opened, with an error that says all of that,
// and that nothing is changed.
func (w *world) refused(t *testing.T, kind error, says ...string) {
	t.Helper()
	names, err := w.disk.Names()
	require.NoError(t, err)
	before := map[string][]byte{}
	for _, name := range names {
		before[name] = w.disk.Content(name)
	}
	store := imageIn(t, w.behind.Fork())
	mark, err := w.behind.Fork().Mark(ctx)
	require.NoError(t, err)
	_, err = w.open()
	require.ErrorIs(t, err, kind)
	for _, text := range says {
		require.ErrorContains(t, err, text)
	}
	left, err := w.disk.Names()
	require.NoError(t, err)
	require.Equal(t, names, left)
	for _, name := range names {
		require.Equal(t, before[name], w.disk.Content(name), "%s is as it was", name)
	}
	require.Equal(t, store, imageIn(t, w.behind.Fork()))
	is, err := w.behind.Fork().Mark(ctx)
	require.NoError(t, err)
	require.Equal(t, mark, is)
}

func TestFlippedBitInAGroup(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	p.steps(s, "a")
	p.write(s, p.next("a", 300), p.next("b", 0))
	p.steps(s, "c")
	groups := commitlog.Groups(w.disk.Content("segment-1"))
	require.Len(t, groups, 3)
	for i, g := range groups[:2] {
		for at := g.From; at < g.End; at++ {
			other := w.restarted()
			other.disk.Flip("segment-1", int64(at), uint(at%8))
			other.refused(t, commitlog.ErrDamaged, fmt.Sprint("group ", i+1, " in segment-1"), "restore a backup")
		}
	}
}

// threeSegments has a group in each of three segments, of which none is folded.
func threeSegments(t *testing.T) (*world, *pen) {
	w, p := newWorld(1), newPen(t)
	for i, name := range []string{"a", "b", "c"} {
		s := w.mustOpen(t)
		p.steps(s, name)
		if i < 2 {
			w.crash(true)
		}
	}
	p.has(w.restarted().mustOpen(t))
	return w, p
}

func TestFlippedBitInTheLastGroupOfASegment(t *testing.T) {
	w, _ := threeSegments(t)
	for i, name := range []string{"segment-1", "segment-2"} {
		g := commitlog.Groups(w.disk.Content(name))[0]
		for at := g.From; at < g.End; at++ {
			other := w.restarted()
			other.disk.Flip(name, int64(at), uint(at%8))
			other.refused(t, commitlog.ErrDamaged, fmt.Sprintf("groups %d to %d are missing at the end of %s", i+1, i+1, name))
		}
	}
}

func TestFlippedBitInAHeader(t *testing.T) {
	t.Run("of three", func(t *testing.T) {
		w, _ := threeSegments(t)
		for _, name := range []string{"segment-1", "segment-2", "segment-3"} {
			for at := range int64(64) {
				other := w.restarted()
				other.disk.Flip(name, at, uint(at%8))
				other.refused(t, commitlog.ErrDamaged)
			}
		}
	})
	t.Run("of the only one", func(t *testing.T) {
		w, p := newWorld(1), newPen(t)
		p.steps(w.mustOpen(t), "a", "b")
		for at := range int64(64) {
			other := w.restarted()
			other.disk.Flip("segment-1", at, uint(at%8))
			other.refused(t, commitlog.ErrDamaged, "header of segment-1")
		}
	})
}

func TestMissingSegment(t *testing.T) {
	w, _ := threeSegments(t)
	for name, says := range map[string]string{"segment-1": "groups 1 to 1 are missing before segment-2", "segment-2": "groups 2 to 2 are missing at the end of segment-1, or between it and segment-3"} {
		other := w.restarted()
		other.disk.Remove(name)
		other.refused(t, commitlog.ErrDamaged, says)
	}
	other := w.restarted()
	other.disk.Truncate("segment-2", 64)
	other.refused(t, commitlog.ErrDamaged, "groups 2 to 2 are missing at the end of segment-2")
}

// A newest segment that has gone, or has lost all its groups, is missed, unless
// the store behind has everything.
func TestMissingNewestSegment(t *testing.T) {
	w, p := threeSegments(t)
	harms := map[string]func(d *logtest.Disk){
		"removed": func(d *logtest.Disk) { d.Remove("segment-3") },
		"emptied": func(d *logtest.Disk) { d.Truncate("segment-3", 0) },
		"cut":     func(d *logtest.Disk) { d.Truncate("segment-3", 63) },
		"groups":  func(d *logtest.Disk) { d.Truncate("segment-3", 64) },
		"zeros":   func(d *logtest.Disk) { d.Put("segment-3", make([]byte, 4096)) },
		"no zeros": func(d *logtest.Disk) {
			d.Put("segment-3", append(d.Content("segment-3")[:64:64], make([]byte, 4096)...))
		},
	}
	for how, harm := range harms {
		t.Run(how, func(t *testing.T) {
			other := w.restarted()
			harm(other.disk)
			other.refused(t, commitlog.ErrDamaged, "acknowledged")
		})
	}
	s := w.mustOpen(t)
	require.NoError(t, s.Close())
	for how, harm := range harms {
		t.Run(how+" when all is folded", func(t *testing.T) {
			other := w.restarted()
			harm(other.disk)
			p.has(other.mustOpen(t))
		})
	}
}

// A segment that was begun and has no durable group is not missed.
func TestNewestSegmentWithoutAGroup(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	p.steps(w.mustOpen(t), "a")
	w.crash(true)
	before := p.image()
	for n := range 100 {
		other := w.restarted()
		s := other.mustOpen(t)
		other.plan(dies, n)
		_, err := s.Commit(ctx, newPen(t).create("b"))
		if err == nil {
			require.Greater(t, n, 2)
			return
		}
		other.crash(true)
		names, _ := other.disk.Names()
		for _, name := range names {
			if name != "segment-1" {
				other.disk.Remove(name)
			}
		}
		require.Equal(t, before, imageIn(t, other.mustOpen(t)))
	}
	t.Fatal("the commit is never done")
}

// TestStaleGroups begins a segment anew where groups stand that would fit: what
// an earlier use has left passes for nothing.
func TestStaleGroups(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	empty := p.image()
	p.steps(s, "a", "b", "c")
	other := w.restarted()
	mark, err := w.behind.Mark(ctx)
	require.NoError(t, err)
	mark.Reached = 0 // nothing of it counts
	require.NoError(t, other.behind.Fold(ctx, persist.Fold{Mark: mark}))
	other.disk.Put("segment-1", commitlog.Reused(w.disk.Content("segment-1")))
	s = other.mustOpen(t)
	require.Equal(t, empty, imageIn(t, s))
	other.crash(true)
	require.Equal(t, empty, imageIn(t, other.mustOpen(t)))
}

// TestMissingNumberInNames takes a segment away that was not needed: the name of
// a new one must not be that of another that is in use.
func TestMissingNumberInNames(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	p.steps(s, "a")
	require.NoError(t, s.Fold(ctx)) // segment-1
	for _, name := range []string{"b", "c"} {
		p.steps(s, name) // in segment-2 and segment-3
		w.crash(true)
		s = w.mustOpen(t)
	}
	other := w.restarted()
	other.disk.Remove("segment-1")
	other.disk.Remove("segment-4") // where nothing is yet
	other.disk.Put("segment-3.bak", w.disk.Content("segment-3"))
	s = other.mustOpen(t)
	p.has(s)
	p.steps(s, "d")
	other.crash(false)
	p.has(other.mustOpen(t))
	require.NotNil(t, other.disk.Content("segment-4"))
}
