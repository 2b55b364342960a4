package commitlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

// Open puts the log in the folder dir, which it makes if it is missing, in front
// of a store that is open, and reads what is not folded yet. From then on the
// store behind belongs to the log, which closes it; when Open fails it stays the
// caller's.
//
// It needs no room on the disk: the first commit makes what is missing, and
// begins the segment that is written. Until then a group that is not whole stays
// behind the last one that counts, where the next Open drops it as this one did.
//
// It fails with an error that wraps ErrDamaged when acknowledged changes are
// missing from the log, ErrForeign when it belongs to another store or to a
// newer state of this one, and ErrMissing when the store needs a log and dir has
// none.
func Open(dir string, behind persist.Folder, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	s := &Store{dir: dir, behind: behind, cfg: cfg, disk: cfg.Disk, words: words{},
		turn: make(chan struct{}, 1), folds: make(chan struct{}, 1), wake: make(chan struct{}, 1), left: make(chan struct{}), cutOff: make(chan struct{})}
	if s.disk == nil {
		d := folder{dir, syncFolder}
		if err := d.make(); err != nil && !persist.IsNoRoom(err) {
			return nil, fmt.Errorf("make the commit log's folder: %w", err)
		}
		s.disk = d
	}
	if err := s.open(context.Background()); err != nil {
		for _, g := range s.segments {
			err = errors.Join(err, g.file.Close())
		}
		return nil, fmt.Errorf("open the commit log %s: %w", dir, err)
	}
	background, leave := context.WithCancel(context.Background())
	s.leave = leave
	s.endBackups = sync.OnceFunc(func() { close(s.cutOff) })
	if cfg.NoBackground {
		close(s.left)
	} else {
		go s.background(background)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	mark, err := s.behind.Mark(ctx)
	if err != nil {
		return fmt.Errorf("ask the store behind how far the log is folded: %w", err)
	}
	position, err := s.behind.Position(ctx)
	if err != nil {
		return fmt.Errorf("ask the store behind for its position: %w", err)
	}
	s.base, s.next, s.group = position, position+1, mark.Through
	uses, err := s.find(mark)
	if err != nil {
		return err
	}
	found := newGeneration(mark.Through)
	if err := s.replay(uses, mark, found); err != nil {
		return err
	}
	if s.log = mark.Log; s.log == 0 {
		s.log = rand.Uint64() | 1
	}
	if !found.empty() {
		s.frozen = found
		s.plannedFor.Store(1) // it is not known to what is written how far it is
	} else {
		s.free = append(s.free, found.segments...)
	}
	s.active = newGeneration(s.group)
	s.attached = mark.Log != 0 && !mark.Detached
	return nil
}

// attach notes in the store behind that it has a log. The first commit does it,
// and not Open, since stores that check themselves after they were opened take
// nothing meanwhile. The log is durable before: otherwise a crash would leave a
// store whose log is missing. The caller has the turn.
func (s *Store) attach(ctx context.Context) error {
	if s.attached {
		return nil
	}
	if err := s.current.file.Sync(); err != nil {
		s.fail(err)
		return fmt.Errorf("%s: %w: nothing was done: sync %s: %w", s.dir, persist.ErrUnavailable, s.current.name, err)
	}
	if err := s.behind.Fold(ctx, persist.Fold{Mark: persist.Mark{Log: s.log, Through: s.group}}); isBusy(err) {
		return err
	} else if err != nil {
		return fmt.Errorf("%s: %w: nothing was done: note in the store behind that it has a log: %v", s.dir, undone(err), err)
	}
	s.attached = true
	return nil
}

// find opens the segments and returns those that the store's mark speaks of, in
// the order of their use.
func (s *Store) find(mark persist.Mark) ([]*segment, error) {
	names, err := s.disk.Names()
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var uses, blank []*segment
	for _, name := range names {
		i, err := strconv.Atoi(strings.TrimPrefix(name, segmentPrefix))
		if err != nil || name != segmentName(i) {
			continue
		}
		s.named = max(s.named, i)
		g, used, err := s.inspect(name, mark)
		switch {
		case errors.Is(err, errNoHeader):
			blank = append(blank, g)
			s.free = append(s.free, g)
		case err != nil:
			return nil, err
		case used:
			uses = append(uses, g)
		default:
			s.free = append(s.free, g)
		}
	}
	for _, g := range blank {
		if err := s.lost(g, mark); err != nil {
			return nil, err
		}
	}
	if mark.Log != 0 && !mark.Detached && len(uses) == 0 {
		there := ""
		if len(blank) > 0 {
			there = fmt.Sprintf(" (%s is there, and does not begin as it was written)", blank[0].name)
		}
		return nil, fmt.Errorf("%w%s: the store was not closed, and what was acknowledged last stands in its log; bring the folder back, or restore a backup", ErrMissing, there)
	}
	slices.SortFunc(uses, func(a, b *segment) int { return cmp.Compare(a.number, b.number) })
	for i := 1; i < len(uses); i++ {
		if uses[i-1].number == uses[i].number {
			return nil, fmt.Errorf("%w: %s and %s are the same segment, and one of them is a copy, perhaps an older one; move that away", ErrDamaged, uses[i-1].name, uses[i].name)
		}
	}
	return uses, nil
}

// inspect opens a file and tells whether it is a segment of the store's log.
func (s *Store) inspect(name string, mark persist.Mark) (g *segment, used bool, err error) {
	f, err := s.disk.Open(name)
	if err != nil {
		return nil, false, err
	}
	g = s.segment(name, f)
	if g.filled, err = f.Size(); err != nil {
		return nil, false, fmt.Errorf("read %s: %w", name, err)
	}
	if err := g.readHeader(); err != nil {
		return g, false, err
	}
	s.number = max(s.number, g.number)
	if g.log == mark.Log {
		return g, true, nil
	}
	if g.position >= s.next {
		return nil, false, older(s.next, g.position, name)
	}
	b, err := g.read()
	if err != nil {
		return nil, false, err
	}
	if _, _, ok := g.frame(b, headerSize); ok {
		return nil, false, fmt.Errorf("%w: %s was written for one with another number; if the store was restored from a backup, move the folder of the log away", ErrForeign, name)
	}
	return g, false, nil
}

// lost looks whether a file without a header is a segment whose header was
// damaged: one that a crash has cut off has no groups behind it. One that is not
// the newest is missed by replay.
func (s *Store) lost(g *segment, mark persist.Mark) error {
	b, err := g.read()
	if err != nil {
		return err
	}
	for number := s.number + 1; number <= s.number+maxRetries; number++ {
		use := segment{log: mark.Log, number: number}
		if _, _, ok := use.frame(b, headerSize); ok {
			return fmt.Errorf("%w: the header of %s is not what was written; restore a backup", ErrDamaged, g.name)
		}
	}
	return nil
}

// maxRetries is how many segments are begun in vain, at most, before one serves.
const maxRetries = 1000

// replay reads the groups behind the mark, and makes sure that they are durable.
func (s *Store) replay(uses []*segment, mark persist.Mark, found *generation) error {
	ends := uint64(0)
	for i, g := range uses {
		until := ^uint64(0)
		if i+1 < len(uses) {
			until = uses[i+1].first
		}
		found.segments = append(found.segments, g)
		if until <= mark.Through+1 && until > g.first {
			continue
		}
		if g.first > s.group+1 {
			return fmt.Errorf("%w: groups %d to %d are missing before %s; restore a backup", ErrDamaged, s.group+1, g.first-1, g.name)
		}
		if g.position >= s.next {
			return older(s.next, g.position, g.name)
		}
		var err error
		if ends, err = s.replaySegment(g, until, mark, found); err != nil {
			return err
		}
		if i+1 < len(uses) && s.group+1 < until {
			return fmt.Errorf("%w: groups %d to %d are missing at the end of %s, or between it and %s; restore a backup", ErrDamaged, s.group+1, until-1, g.name, uses[i+1].name)
		}
	}
	if mark.Detached && s.group > mark.Through {
		return fmt.Errorf("%w: it goes on behind group %d, where the store left it: the store is an older copy; bring back the newer one, or move the folder of the log away", ErrForeign, mark.Through)
	}
	if len(uses) > 0 {
		return s.takeOver(uses, ends, mark)
	}
	return nil
}

// takeOver makes what was read durable, and sees to it that the newest segment is
// missed should it be lost: another process may have died before it did that.
func (s *Store) takeOver(uses []*segment, ends uint64, mark persist.Mark) error {
	told, err := complete(uses, ends, mark, s.cfg.SegmentSize)
	if err != nil {
		return err
	}
	newest := uses[len(uses)-1]
	if err := newest.settle(); err != nil {
		return err
	}
	s.newest = newest
	now := use{newest, newest.number}
	switch {
	case told:
		s.last = now
	case len(uses) > 1:
		if err := uses[len(uses)-2].noteContinued(newest.number); err != nil {
			s.untold(now, err)
			break
		}
		s.last = now
	}
	return nil // where nothing is last, the first commit tells the store behind
}

// older says that positions are missing that only the store behind had.
func older(from, to uint64, place string) error {
	return fmt.Errorf("%w: the store has not got the positions %d to %d, which come before %s: it is an older copy; bring back the newer one, or move the folder of the log away", ErrForeign, from, to, place)
}

// replaySegment reads the groups of a segment before the group until, and returns
// the last one that it has.
func (s *Store) replaySegment(g *segment, until uint64, mark persist.Mark, found *generation) (uint64, error) {
	b, err := g.read()
	if err != nil {
		return 0, err
	}
	next, damaged, err := g.walk(b, until, func(group uint64, effects []byte) error {
		if group <= mark.Through {
			return nil
		}
		if err := s.redo(effects, group, found); err != nil {
			return err
		}
		s.group, found.last = group, group
		return nil
	})
	if err == nil && damaged {
		err = fmt.Errorf("%w: group %d in %s is not what was written, and others stand behind it; restore a backup", ErrDamaged, next, g.name)
	}
	return next - 1, err
}

// redo does again what a group has done.
func (s *Store) redo(effects []byte, group uint64, found *generation) error {
	r := reader{rest: effects, words: s.words}
	for len(r.rest) > 0 {
		e, err := r.effect()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if len(r.rest) == 0 && mutant.On(mutant.LogReplaysShort) {
			break
		}
		first := e.first()
		if first > s.next {
			return older(s.next, first-1, fmt.Sprintf("group %d", group))
		}
		if found.empty() {
			s.base = min(s.base, first-1)
		}
		found.apply(&e)
		s.next = max(s.next, e.last+1)
	}
	return nil
}
