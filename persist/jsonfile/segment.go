package jsonfile

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/twinsrv/twinsrv/persist"
)

const segmentEnd = ".jsonl"

// segment is one file of the journal. Its size belongs to the holder of the
// turn; live and used are the index's.
type segment struct {
	name    string
	f       file
	size    int64
	live    int   // changes that were not dropped
	used    int64 // bytes of their lines
	dropped int   // changes that were
	trims   bool  // it has lines that say which
	gone    bool  // removed; guarded by Store.using
}

func (s *Store) segmentPath(name string) string { return filepath.Join(s.dir, journalName, name) }

// active returns the segment that grows.
func (s *Store) active() *segment {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.segs[len(s.segs)-1]
}

// newSegment makes the file of a segment, durable with its first line.
func (s *Store) newSegment(name string, seq, position uint64) (*segment, error) {
	l := line{lineHead: lineHead{Seq: seq, Op: opSegment, Position: position}, lineBody: lineBody{Format: format}}
	text, err := l.append(nil)
	if err != nil {
		return nil, err
	}
	path := s.segmentPath(name)
	f, err := s.files.Create(path)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteAt(text, 0)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = s.files.SyncDir(filepath.Join(s.dir, journalName))
	}
	if err != nil {
		_ = f.Close() // it is of no use
		_ = s.files.Remove(path)
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return &segment{name: name, f: f, size: int64(len(text))}, nil
}

// rotate begins a new segment when the last one is long enough. The caller has
// the turn. Whatever fails, nothing of the journal has changed.
func (s *Store) rotate() error {
	if s.active().size < s.cfg.segment {
		return nil
	}
	return s.begins()
}

// begins begins a new segment.
func (s *Store) begins() error {
	last := s.active()
	seq := s.x.seq + 1
	seg, err := s.newSegment(fmt.Sprintf("%020d%s", seq, segmentEnd), seq, s.x.last)
	if err != nil {
		return fmt.Errorf("%w: %w", persist.ErrUnavailable, noRoom(err))
	}
	s.noting.Lock()
	defer s.noting.Unlock()
	m := *s.note
	m.Segments = append([]segmentNote(nil), m.Segments...)
	m.Segments[len(m.Segments)-1].Size = last.size
	m.Segments = append(m.Segments, segmentNote{Name: seg.name})
	if err := m.write(s.files, s.dir); err != nil {
		// It may say already that the old segment has ended.
		_ = seg.f.Close()
		err = fmt.Errorf("%w: %w", persist.ErrUnavailable, noRoom(err))
		s.fail(err)
		return err
	}
	s.note = &m
	s.mu.Lock()
	defer s.mu.Unlock()
	s.x.seq = seq
	s.segs = append(s.segs, seg)
	s.x.end = place{Segment: seg.name, Offset: seg.size, Seq: seq}
	return nil
}

// written is where lines came to stand.
type written struct {
	seg    *segment
	places []span
}

type span struct {
	off  int64
	size int
}

// append makes lines durable with one sync, in one group that a loss of power
// leaves a beginning of. It sets their Seq and At. The caller has the turn.
func (s *Store) append(lines []*line) (written, error) {
	if err := s.rotate(); err != nil {
		return written{}, s.lacks(1, err)
	}
	seg := s.active()
	w := written{seg: seg}
	var text []byte
	for i, l := range lines {
		l.Seq, l.At = s.x.seq+uint64(i)+1, seg.size
		start := len(text)
		var err error
		if text, err = l.append(text); err != nil {
			return written{}, fmt.Errorf("%s: %w: %w", l.key(), persist.ErrInvalid, err)
		}
		w.places = append(w.places, span{seg.size + int64(start), len(text) - start - 1})
	}
	if _, err := seg.f.WriteAt(text, seg.size); err != nil {
		return written{}, s.lacks(len(text), s.undo(seg, fmt.Errorf("write %s: %w", s.segmentPath(seg.name), err)))
	}
	if err := seg.f.Sync(); err != nil {
		err = fmt.Errorf("%s: %w: sync %s: %w", s.dir, persist.ErrUnknown, seg.name, err)
		s.fail(err)
		return written{}, err
	}
	seg.size += int64(len(text))
	s.wanted = 0
	return w, nil
}

// undo takes back a write that failed, so that for certain nothing of it is
// there after whatever happens next.
func (s *Store) undo(seg *segment, cause error) error {
	err := seg.f.Truncate(seg.size)
	if err == nil {
		err = seg.f.Sync()
	}
	if err != nil {
		cause = fmt.Errorf("%w: %w; %w", persist.ErrUnknown, cause, err)
		s.fail(cause)
		return cause
	}
	return fmt.Errorf("%w: nothing was written: %w", persist.ErrUnavailable, noRoom(cause))
}

// piece is a line as it is found in a segment.
type piece struct {
	span
	head lineHead
	name bool // the head is whole
	full bool // all of it is
}

// pieces splits a segment into lines. What stands behind the last line end is a
// piece too.
func pieces(text []byte) []piece {
	var out []piece
	for off := 0; off < len(text); {
		n := bytes.IndexByte(text[off:], '\n')
		p := piece{span: span{int64(off), n}, full: true}
		if n < 0 {
			n = len(text) - off
			p.size, p.full = n, false
		}
		b := text[off : off+n]
		p.head, p.name = readHead(b)
		p.full = p.full && p.name && whole(b)
		out = append(out, p)
		off += n + 1
	}
	return out
}
