package jsonfile

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
)

// clean removes segments that nobody needs and writes anew those of which
// little is needed. The caller holds flushing.
func (s *Store) clean() error {
	if s.pins > 0 {
		return nil
	}
	kept := 0 // dropped changes that the earlier segments still have
	for _, seg := range s.flushedSegments() {
		s.mu.RLock()
		live, used, dropped, trims, size := seg.live, seg.used, seg.dropped, seg.trims, seg.size
		s.mu.RUnlock()
		switch {
		case live == 0 && (!trims || kept == 0):
			if err := s.swap(seg, nil, nil); err != nil {
				return err
			}
		case size > s.cfg.segment/16 && used < size/4:
			done, err := s.rewrite(seg)
			if err != nil {
				return err
			}
			if !done {
				kept += dropped
			}
		default:
			kept += dropped
		}
	}
	return nil
}

// flushedSegments returns the segments that are not needed to bring the
// entities' files up to date.
func (s *Store) flushedSegments() []*segment {
	s.noting.Lock()
	name := s.note.Flushed.Segment
	s.noting.Unlock()
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := slices.IndexFunc(s.segs, func(seg *segment) bool { return seg.name == name })
	return slices.Clone(s.segs[:max(i, 0)])
}

// swap puts a segment in the place of an old one, or nothing. moved has the new
// places of its changes by their positions.
func (s *Store) swap(old, fresh *segment, moved map[uint64]entry) error {
	s.noting.Lock()
	m := *s.note
	m.Segments = nil
	for _, n := range s.note.Segments {
		switch {
		case n.Name != old.name:
			m.Segments = append(m.Segments, n)
		case fresh != nil:
			m.Segments = append(m.Segments, segmentNote{Name: fresh.name, Size: fresh.size})
		}
	}
	err := m.write(s.files, s.dir)
	if err == nil {
		s.note = &m
	}
	s.noting.Unlock()
	if err != nil {
		return err // which of the two is named is known at the next Open; both are there
	}
	s.using.Lock()
	defer s.using.Unlock()
	s.mu.Lock()
	i := slices.Index(s.segs, old)
	s.segs = slices.Delete(slices.Clone(s.segs), i, i+1)
	if fresh != nil {
		s.segs = slices.Insert(s.segs, i, fresh)
		for k := range s.x.log {
			e := &s.x.log[k]
			if to, ok := moved[e.position]; ok && e.seg == old {
				e.seg, e.off, e.size, e.index = fresh, to.off, to.size, to.index
				fresh.live++
				fresh.used += int64(to.size)
			}
		}
		fresh.dropped = len(moved) - fresh.live // dropped while it was written
	}
	s.mu.Unlock()
	old.gone = true
	_ = old.f.Close()                           // it was only read
	_ = s.files.Remove(s.segmentPath(old.name)) // what is left goes at the next Open
	return nil
}

// rewrite writes a segment anew, with the changes that were not dropped and
// without what only the entities' files needed. It leaves a segment with damage
// as it is.
func (s *Store) rewrite(old *segment) (bool, error) {
	base, _, _ := strings.Cut(old.name, ".")
	fresh := &segment{name: fmt.Sprintf("%s.%d%s", base, s.x.seq, segmentEnd), trims: old.trims}
	if fresh.name == old.name {
		return false, nil
	}
	text, err := s.files.ReadFile(s.segmentPath(old.name))
	if err != nil {
		return false, err
	}
	out, moved, err := s.condense(old, text)
	if err != nil || out == nil || len(out) > len(text)*9/10 {
		return false, err
	}
	path := s.segmentPath(fresh.name)
	if err := replace(s.files, filepath.Join(s.dir, journalName, tempPrefix+"segment"), path, out); err != nil {
		return false, err
	}
	if err := s.files.SyncDir(filepath.Join(s.dir, journalName)); err != nil {
		return false, err
	}
	if fresh.f, err = s.files.Open(path); err != nil {
		return false, err
	}
	fresh.size = int64(len(out))
	if err := s.swap(old, fresh, moved); err != nil {
		_ = fresh.f.Close()
		return false, err
	}
	return true, nil
}

// condense returns what is needed of a segment, nil when some of it is damaged.
func (s *Store) condense(seg *segment, text []byte) (out []byte, moved map[uint64]entry, err error) {
	moved = map[uint64]entry{}
	for _, p := range pieces(text) {
		if !p.full {
			return nil, nil, nil
		}
		raw := text[p.off : p.off+int64(p.size)]
		if p.head.Op == opSegment || p.head.Op == opTrim {
			out = append(append(out, raw...), '\n')
			continue
		}
		l, err := readLine(raw)
		if err != nil {
			return nil, nil, nil
		}
		for i := range l.Revisions {
			position := l.Position + uint64(i)
			if !s.stands(position, seg, p.off) {
				continue
			}
			one := line{lineHead: l.lineHead}
			one.Position, one.New, one.Revisions, one.Events = position, false, l.Revisions[i:i+1], nil
			if l.isEvent(i) {
				one.Events = []int{0}
			}
			one.Changes = l.Changes[i : i+1]
			start := len(out)
			if out, err = one.append(out); err != nil {
				return nil, nil, err
			}
			moved[position] = entry{off: int64(start), size: int32(len(out) - start - 1)}
		}
	}
	return out, moved, nil
}

// stands says whether the change at a position is the one of that line.
func (s *Store) stands(position uint64, seg *segment, off int64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.x.at(position)
	return e != nil && e.seg == seg && e.off == off
}

// Compact implements persist.Compacter: it writes the journal anew, without
// what was trimmed and without what only brought the entities' files up to date.
// Otherwise that happens by itself, but only where it gives back most of a
// segment.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.serve(ctx); err != nil {
		return err
	}
	defer s.release()
	s.flushing.Lock()
	defer s.flushing.Unlock()
	if s.pins > 0 {
		return fmt.Errorf("%s: %w: a backup is being written", s.dir, persist.ErrUnavailable)
	}
	if err := s.begins(); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	for _, seg := range s.flushedSegments() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := s.rewrite(seg); err != nil {
			return err
		}
	}
	return s.clean()
}
