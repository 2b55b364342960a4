package jsonfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
)

// load reads the folder, mends what a loss of power left half done, and proves
// that the folder takes writes. Whatever it has read is durable then.
func (s *Store) load() error {
	m, err := readManifest(s.files, s.dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.x, s.segs, s.read = newIndex(), nil, nil
	s.mu.Unlock()
	s.made = map[string]bool{}
	if m == nil {
		return s.begin()
	}
	r := &loading{s: s, m: m, x: s.x, redo: map[persist.Key][]redoLine{}}
	r.x.last, r.x.seq = m.Position, m.Flushed.Seq
	if err := r.journal(); err != nil {
		return err
	}
	if err := r.scan(); err != nil {
		return err
	}
	if err := r.apply(); err != nil {
		return err
	}
	if err := r.settle(); err != nil {
		return err
	}
	// A pod's folder may be there and not durable yet.
	if err := s.files.SyncDir(filepath.Join(s.dir, podsName)); err != nil {
		return err
	}
	// From here on nothing needs what the manifest does not name.
	if err := m.write(s.files, s.dir); err != nil {
		return err
	}
	s.noting.Lock()
	s.note = m
	s.noting.Unlock()
	for _, path := range r.garbage {
		if err := s.files.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// begin makes a new store in a folder that has nothing of anybody's.
func (s *Store) begin() error {
	entries, err := s.files.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == lockName || name == journalName || strings.HasPrefix(name, tempPrefix):
		case name == podsName:
			pods, err := s.files.ReadDir(filepath.Join(s.dir, podsName))
			if err != nil {
				return err
			}
			if len(pods) > 0 {
				return fmt.Errorf("%s: %w: %s is missing: restore the folder from a backup", s.dir, ErrDamaged, manifestName)
			}
		default:
			return fmt.Errorf("%s: %w: it has no %s, but a file %q: use another folder", s.dir, ErrFormat, manifestName, name)
		}
	}
	for _, name := range []string{journalName, podsName} {
		if err := s.files.Mkdir(filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	if err := s.files.SyncDir(s.dir); err != nil {
		return err
	}
	seg, err := s.newSegment(fmt.Sprintf("%020d%s", 1, segmentEnd), 1, 0)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noting.Lock() // nobody else has it: nothing serves yet
	defer s.noting.Unlock()
	s.x.seq = 1
	s.x.end = place{Segment: seg.name, Offset: seg.size, Seq: 1}
	s.segs = []*segment{seg}
	s.note = &manifest{Format: format, Segments: []segmentNote{{Name: seg.name}}, Records: map[string]int{},
		Flushed: place{Segment: seg.name, Offset: seg.size, Seq: 1}}
	if err := s.note.write(s.files, s.dir); err != nil {
		return err
	}
	return s.files.SyncDir(filepath.Dir(filepath.Clean(s.dir)))
}

// loading is one load.
type loading struct {
	s       *Store
	m       *manifest
	x       *index
	redo    map[persist.Key][]redoLine // what the files may not show yet, in order
	garbage []string                   // files that nothing needs
	after   uint64                     // the highest position that an entity's file tells
	where   string                     // and which file that is
	files   map[string]int             // of each pod
	strays  []stray                    // files that are another entity's
	cut     int64                      // where the journal ends
	group   int64                      // where its last group begins
	tail    []byte                     // that group
}

// redoLine is a line behind the place to which everything was flushed; l is nil
// when only its head can be read.
type redoLine struct {
	head lineHead
	l    *line
}

func (r *loading) damaged(name string, off int64, text string, args ...any) error {
	return fmt.Errorf("%s: %w: at byte %d: %s; restore the folder from a backup",
		r.s.segmentPath(name), ErrDamaged, off, fmt.Sprintf(text, args...))
}

// journal reads all segments.
func (r *loading) journal() error {
	s := r.s
	entries, err := s.files.ReadDir(filepath.Join(s.dir, journalName))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for _, e := range entries {
		named := slices.ContainsFunc(r.m.Segments, func(n segmentNote) bool { return n.Name == e.Name() })
		if !named && strings.HasSuffix(e.Name(), segmentEnd) {
			r.garbage = append(r.garbage, s.segmentPath(e.Name())) // made and never used, or used up
		}
	}
	redo := false
	for i, n := range r.m.Segments {
		path := s.segmentPath(n.Name)
		text, err := s.files.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%w: %w: restore the folder from a backup", ErrDamaged, err)
		}
		f, err := s.files.Open(path)
		if err != nil {
			return err
		}
		seg := &segment{name: n.Name, f: f, size: int64(len(text))}
		s.mu.Lock()
		s.segs = append(s.segs, seg)
		s.mu.Unlock()
		if n.Size > 0 && n.Size != seg.size {
			return r.damaged(n.Name, min(n.Size, seg.size), "the file has %d bytes, not %d", seg.size, n.Size)
		}
		found := pieces(text)
		from := int64(-1)
		if n.Name == r.m.Flushed.Segment {
			redo = true
			from = r.m.Flushed.Offset
			if seg.size < from {
				return r.damaged(n.Name, seg.size, "the file has %d bytes, at least %d were written", seg.size, from)
			}
		} else if redo {
			from = 0
		}
		if i == len(r.m.Segments)-1 {
			found = r.end(text, found, max(from, 0))
			seg.size = r.cut
		}
		if err := r.enter(seg, text, found, from); err != nil {
			return err
		}
	}
	if !redo {
		return fmt.Errorf("%s: %w: the segment %s is not among the journal's", s.dir, ErrDamaged, r.m.Flushed.Segment)
	}
	return nil
}

// end finds where the last segment ends: before the first line of its last
// group that is not whole. What stands before that group was durable when it was
// written, and so is damaged where it is not whole.
func (r *loading) end(text []byte, found []piece, durable int64) []piece {
	group := durable
	for _, p := range found {
		if p.full {
			group = max(group, p.head.At)
		}
	}
	r.cut = int64(len(text))
	for i, p := range found {
		if p.off >= group && !p.full {
			r.cut = p.off
			found = found[:i]
			break
		}
	}
	r.group = min(group, r.cut)
	r.tail = text[r.group:r.cut]
	return found
}

// enter notes a segment's lines; what stands from the given offset on (-1 for
// nothing) is done again later.
func (r *loading) enter(seg *segment, text []byte, found []piece, from int64) error {
	for _, p := range found {
		again := from >= 0 && p.off >= from
		if again {
			if !p.name || p.head.Seq != r.x.seq+1 {
				return r.damaged(seg.name, p.off, "a line that the entities' files may not show yet cannot be read")
			}
			r.x.seq = p.head.Seq
		}
		if !p.name {
			if at := r.x.last + 1; p.off > 0 && r.x.at(at) == nil {
				r.x.put(entry{position: at, seg: seg, off: p.off, size: int32(p.size), bad: true})
			}
			continue
		}
		if p.head.Op == opSegment || p.head.Op == opTrim || again {
			if err := r.enterBody(seg, text[p.off:p.off+int64(p.size)], p, again); err != nil {
				return err
			}
		}
		r.x.note(&p.head, seg, p.off, p.size, !p.full)
	}
	return nil
}

func (r *loading) enterBody(seg *segment, text []byte, p piece, again bool) error {
	l, err := readLine(text)
	switch {
	case err == nil && l.Format > format:
		return fmt.Errorf("%s: %w: it has format %d and this program reads up to %d: use a newer program",
			r.s.segmentPath(seg.name), ErrFormat, l.Format, format)
	case err == nil && p.head.Op == opTrim:
		seg.trims = true
		r.x.drop(l.Drop)
	}
	if again && p.head.Pod != "" {
		key := p.head.key()
		if err != nil {
			l = nil
		}
		r.redo[key] = append(r.redo[key], redoLine{p.head, l})
	}
	return nil
}

// settle cuts off what a loss of power left of a group, and writes and syncs the
// last group again: the sync of the process that wrote it may have failed.
func (r *loading) settle() error {
	seg := r.s.segs[len(r.s.segs)-1]
	if err := seg.f.Truncate(r.cut); err != nil {
		return err
	}
	if len(r.tail) > 0 {
		if _, err := seg.f.WriteAt(r.tail, r.group); err != nil {
			return err
		}
	}
	r.x.end = place{Segment: seg.name, Offset: seg.size, Seq: r.x.seq}
	return seg.f.Sync()
}

// apply does the lines again that the files may not show yet.
func (r *loading) apply() error {
	known := map[string]int{} // files that are counted in the manifest and were touched since
	keys := slices.SortedFunc(maps.Keys(r.redo), compareKeys)
	for _, key := range keys {
		lines := r.redo[key]
		touches := slices.ContainsFunc(lines, func(l redoLine) bool { return l.l == nil || l.l.touches() })
		if !touches {
			continue
		}
		if first := slices.IndexFunc(lines, func(l redoLine) bool { return l.l == nil || l.l.touches() }); !lines[first].head.New {
			known[key.Pod]++
		}
		if e := r.x.entities[key]; e != nil && e.present {
			r.files[key.Pod]--
		}
		if err := r.again(key, lines); err != nil {
			return err
		}
	}
	if r.after > r.x.last {
		return fmt.Errorf("%s: %w: the journal ends at position %d, but %s was written at %d: restore the folder from a backup",
			r.s.dir, ErrDamaged, r.x.last, r.where, r.after)
	}
	return r.count(known)
}

// touches says whether the line changes an entity's file.
func (l *line) touches() bool { return l.Delete || l.Record != nil || len(l.Rows) > 0 }

// asItIs is what to do when files cannot be put back.
const asItIs = "have the store as it is with --ignore-missing of `twinsrv serve`, `store check` or `store copy` (in Go: Config.IgnoreMissing)"

// count tells files that went or came while the store was closed.
func (r *loading) count(known map[string]int) error {
	if r.s.cfg.IgnoreMissing {
		return nil
	}
	pods := maps.Clone(r.m.Records)
	for pod := range r.files {
		pods[pod] += 0
	}
	for _, pod := range slices.Sorted(maps.Keys(pods)) {
		if want, got := r.m.Records[pod]-known[pod], r.files[pod]; want != got {
			return fmt.Errorf("%s: %w: %d files of entities were written and %d are there%s: put back what is missing and take away what was added, or %s",
				r.s.folder(pod), ErrDamaged, want+known[pod], got+known[pod], r.changed(pod, want-got), asItIs)
		}
	}
	return r.renamed()
}

// again does one entity's lines again.
func (r *loading) again(key persist.Key, lines []redoLine) error {
	var c *content
	var bad error
	deleted := false
	for _, l := range lines {
		switch {
		case l.l == nil && (l.head.Op == opUnit || l.head.Op == opImport):
			c, deleted = nil, false
			bad = damaged("the journal's line for position %d is damaged, and the entity's file may be older", l.head.Position)
			continue
		case !l.l.touches():
			continue
		case l.l.Delete:
			c, bad, deleted = nil, nil, true
			continue
		case l.head.New || l.l.Full:
			c, bad = newContent(key), nil
		case c == nil && bad == nil && !deleted:
			c, bad = r.s.readFile(key)
			if errors.Is(bad, errEdited) {
				return fmt.Errorf("%s: %w: it was edited, but the journal has changes of it that the file does not show: take the edit back, open and close the store, and edit it then",
					r.s.file(key), ErrDamaged)
			}
		}
		if bad != nil && l.head.Op == opImport && l.l.Record != nil {
			c, bad = newContent(key), nil
		}
		if c == nil && bad == nil { // something of a deleted entity: not of this store's making
			c = newContent(key)
		}
		deleted = false
		if bad == nil {
			bad = l.l.apply(c)
		}
	}
	e := r.x.entity(key)
	switch {
	case deleted:
		r.x.hold(e, nil)
	case bad != nil:
		r.x.setKinds(e, nil)
		r.x.show(e, true, true)
		e.err = bad
	default:
		r.x.hold(e, c)
	}
	return nil
}

func compareKeys(a, b persist.Key) int {
	if c := strings.Compare(a.Pod, b.Pod); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
