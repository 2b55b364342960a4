package commitlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/persist"
)

var (
	_ persist.PersistenceService = (*Store)(nil)
	_ persist.Reopener           = (*Store)(nil)
)

// Store is a persist.PersistenceService: a commit log in front of another. Its
// methods are safe for concurrent use. Reads see only what is durable, and a
// page may mix what two moments near each other had.
//
// After a commit whose outcome is unknown all calls fail with
// persist.ErrUnavailable until Reopen succeeds.
type Store struct {
	dir    string
	behind persist.Folder
	cfg    Config
	disk   Disk
	log    uint64 // its number

	// turn holds the right to commit, reopen and close, and folds that to fold;
	// each is one token. Whoever wants both takes turn first.
	turn, folds chan struct{}

	// mu guards what follows. A generation's content is changed under it.
	mu     sync.RWMutex
	active *generation
	frozen *generation // nil: none
	down   error       // why the store does not serve; wraps persist.ErrUnavailable
	gone   bool        // closed, for good
	free   []*segment  // whose groups are folded, the oldest first
	next   uint64      // the next position to give; all before it are durable
	base   uint64      // everything up to this position is folded

	// Only the holder of the turn touches these.
	current  *segment   // the one that is written; nil: the next commit begins one
	newest   *segment   // where the last durable group stands
	last     use        // the same, as of when it was noted elsewhere (see goneOn)
	warned   use        // of which it was last said that it could not be
	segments []*segment // all
	number   uint64     // of the newest
	named    int        // the highest number that a file's name has
	group    uint64     // the last that is durable
	attached bool       // the store behind knows that it has a log
	lacking  int64      // what a commit found no room for, which Reopen tries; 0: nothing
	words    words
	frame    []byte // is used again

	// Only the holder of folds touches these.
	plan    *plan              // what is left to fold of frozen; nil: not begun
	failing error              // why the last fold failed; mu guards it too
	busy    *persist.BusyError // why the last one was not begun; nil: it was

	wake  chan struct{} // the background has something to do
	leave context.CancelFunc
	left  chan struct{} // closed when the background has ended

	cutOff     chan struct{} // closed when backups that are being made have to end
	endBackups func()        // closes it

	plannedFor, toFold atomic.Int64 // parts of the frozen generation, and of these, what is left
	since              time.Time    // when the oldest change of active was made; mu guards it
}

// Behind is the store behind the log. Nobody writes to it.
func (s *Store) Behind() persist.Folder { return s.behind }

func take(ctx context.Context, turn chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: nothing was begun: %w", persist.ErrUnavailable, err)
	}
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: nothing was begun: %w", persist.ErrUnavailable, ctx.Err())
	}
}

func release(turn chan struct{}) { <-turn }

// serving says why the store does not serve, or nil.
func (s *Store) serving() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.down
}

// fail takes the store out of service until Reopen. The caller has the turn.
func (s *Store) fail(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = fmt.Errorf("%s: %w until it is reopened, after: %w", s.dir, persist.ErrUnavailable, cause)
}

// Reopen begins a new segment, whose durable header says what of the last one
// counts, and reopens the store behind. On a store that serves, and behind which
// one serves, it makes sure that there is room when a commit has found none, and
// fails as long as there is not; otherwise it does nothing.
func (s *Store) Reopen(ctx context.Context) error {
	if err := take(ctx, s.turn); err != nil {
		return err
	}
	defer release(s.turn)
	s.mu.RLock()
	down, gone := s.down, s.gone
	s.mu.RUnlock()
	if gone {
		return down
	}
	if err := s.reopenBehind(ctx); err != nil {
		return err
	}
	if down == nil {
		return s.tryRoom(ctx)
	}
	position, err := s.behind.Position(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w: reopen: %w", s.dir, persist.ErrUnavailable, err)
	}
	s.mu.Lock()
	s.next = max(s.next, position+1) // a commit of the store behind may have been done
	s.mu.Unlock()
	if err := s.beginDurably(); err != nil {
		return fmt.Errorf("%s: %w: reopen: %w", s.dir, persist.ErrUnavailable, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The new header makes void what stands in those that have no durable group.
	s.active.segments = slices.DeleteFunc(s.active.segments, func(g *segment) bool {
		void := g.first > s.group
		if void {
			s.free = append(s.free, g)
		}
		return void
	})
	s.active.segments = append(s.active.segments, s.current)
	if s.active.empty() && s.frozen == nil {
		s.base = s.next - 1
	}
	s.down = nil
	return nil
}

func (s *Store) reopenBehind(ctx context.Context) error {
	r, ok := s.behind.(persist.Reopener)
	if !ok {
		return nil
	}
	return r.Reopen(ctx)
}

// beginSegment makes a free segment, or a new one, the one that is written. When
// it fails the new header may be there all the same, and say that no further
// group of the segment before counts: so the caller sees to it that this gets
// none. The caller has the turn.
func (s *Store) beginSegment() error {
	g, err := s.freeSegment()
	if err != nil {
		return err
	}
	err = g.allocate(headerSize + frameSize)
	if err == nil {
		err = g.firm()
	}
	if err != nil {
		s.putBack(g)
		return err
	}
	s.number++
	err = g.begin(s.log, s.number, s.group+1, s.next-1)
	if err == nil && g == s.newest {
		// Nothing newer says that what this file had is folded. So its header must
		// not stay the old one in front of half a new group.
		err = g.sync()
	}
	if err != nil {
		s.putBack(g)
		return err
	}
	s.current = g
	return nil
}

// beginDurably makes the segment durable with which it goes on.
func (s *Store) beginDurably() error {
	if err := s.beginSegment(); err != nil {
		return err
	}
	if err := s.current.sync(); err != nil {
		s.putBack(s.current)
		return err
	}
	return nil
}

// freeSegment takes the one that was freed first: the segment before stays as
// long as there is another, and tells that this one goes on behind it. One for
// whose file there was no room is taken when nothing else is there.
func (s *Store) freeSegment() (*segment, error) {
	s.mu.Lock()
	if len(s.free) > 0 {
		i := max(0, slices.IndexFunc(s.free, func(g *segment) bool { return g.filled >= g.growth }))
		g := s.free[i]
		s.free = slices.Delete(s.free, i, i+1)
		s.mu.Unlock()
		return g, nil
	}
	s.mu.Unlock()
	name := segmentName(s.named + 1)
	f, err := s.disk.Open(name)
	if err != nil {
		return nil, fmt.Errorf("make segment %s: %w", name, err)
	}
	s.named++
	return s.segment(name, f), nil
}

// segment takes a file into the log.
func (s *Store) segment(name string, f File) *segment {
	g := &segment{name: name, file: f, growth: max(minSegment, min(maxGrowth, s.cfg.SegmentSize/16))}
	s.segments = append(s.segments, g)
	return g
}

func (s *Store) putBack(g *segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, g)
}

const segmentPrefix = "segment-"

func segmentName(i int) string { return fmt.Sprint(segmentPrefix, i) }

// Close folds what the log has, so that the store behind can be used alone, and
// releases both. What cannot be folded stays in the log for the next Open. A backup
// that folding would have to wait for is cut off. Later
// calls of every method fail with persist.ErrUnavailable, except Close, which
// returns nil.
func (s *Store) Close() error {
	s.leave()
	<-s.left
	s.turn <- struct{}{}
	defer release(s.turn)
	s.mu.RLock()
	gone, down := s.gone, s.down
	s.mu.RUnlock()
	if gone {
		return nil
	}
	if down == nil {
		s.detach()
	}
	s.folds <- struct{}{}
	defer release(s.folds)
	s.mu.Lock()
	s.gone, s.down = true, fmt.Errorf("%s: %w: it was closed", s.dir, persist.ErrUnavailable)
	s.active, s.frozen = nil, nil
	s.mu.Unlock()
	errs := []error{s.behind.Close()}
	for _, g := range s.segments {
		errs = append(errs, g.file.Close())
	}
	return errors.Join(errs...)
}

// detach folds everything and lets the store behind go. The caller has the
// turn, and nobody commits behind it.
func (s *Store) detach() {
	ctx := context.Background()
	err := persist.WhenFree(ctx, func() error {
		err := s.letGo(ctx)
		if isBusy(err) {
			s.endBackups() // they may take long, and would end with the store
		}
		return err
	})
	if err != nil {
		s.cfg.Logger.Warn("the commit log could not be folded; it will be when the store is opened again", "log", s.dir, "error", err)
	}
}

func (s *Store) letGo(ctx context.Context) error {
	if err := s.foldAll(ctx, s.freezeLast); err != nil {
		return err
	}
	mark, err := s.behind.Mark(ctx)
	if err != nil || mark.Log == 0 || mark.Detached {
		return err
	}
	return s.behind.Fold(ctx, persist.Fold{Mark: persist.Mark{Log: s.log, Through: s.group, Detached: true}})
}
