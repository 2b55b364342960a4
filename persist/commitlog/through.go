package commitlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/twinsrv/twinsrv/persist"
)

var (
	_ persist.Importer  = (*Store)(nil)
	_ persist.Backuper  = (*Store)(nil)
	_ persist.Compacter = (*Store)(nil)
)

// What the log does not take goes through to the store behind, once everything
// before it is folded.

// errNotBehind says that the store behind lacks an ability.
var errNotBehind = errors.New("the store behind the commit log cannot do that")

// alone runs fn while nobody else commits or folds, after everything was folded.
// The caller has the turn.
func (s *Store) alone(ctx context.Context, fn func() error) error {
	if err := s.drain(ctx); err != nil {
		return s.undrained(err)
	}
	if err := take(ctx, s.folds); err != nil {
		return err
	}
	defer release(s.folds)
	return fn()
}

func (s *Store) undrained(err error) error {
	if isBusy(err) {
		return err
	}
	// The error's own kind is that of the fold.
	return fmt.Errorf("%w: nothing was done: %v", undone(err), err)
}

// written takes over the position of the store behind after it was written to,
// and begins a segment that says so: an older copy of the store, of which that
// is missing, is then told from this one. When that fails, the next commit does
// it, and when err is of an unknown outcome, Reopen.
func (s *Store) written(ctx context.Context, err error) error {
	position, perr := s.behind.Position(ctx)
	if errors.Is(err, persist.ErrUnknown) || perr != nil {
		s.fail(errors.Join(err, perr))
		return err
	}
	s.mu.Lock()
	unchanged := s.next == position+1
	s.next, s.base = position+1, position
	s.mu.Unlock()
	if unchanged {
		return err
	}
	if s.beginDurably() != nil {
		s.current = nil
		return err // what was done is durable, and reads need no segment
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, s.active.segments...)
	s.active = newGeneration(s.group, s.current)
	return err
}

// commitBehind commits a call in the store behind. The caller has the turn.
func (s *Store) commitBehind(ctx context.Context, units []persist.Unit) (outcomes []persist.Outcome, err error) {
	err = s.alone(ctx, func() (err error) {
		outcomes, err = s.behind.Commit(ctx, units)
		return s.written(context.WithoutCancel(ctx), err)
	})
	return outcomes, err
}

// Import implements persist.Importer; the batch goes to the store behind.
func (s *Store) Import(ctx context.Context, b persist.Batch) error {
	im, ok := s.behind.(persist.Importer)
	if !ok {
		return fmt.Errorf("import: %w", errNotBehind)
	}
	return s.aloneWhenFree(ctx, func() error {
		return s.written(context.WithoutCancel(ctx), im.Import(ctx, b))
	})
}

// aloneWhenFree takes the turn, and runs fn alone.
func (s *Store) aloneWhenFree(ctx context.Context, fn func() error) error {
	return persist.WhenFree(ctx, func() error {
		if err := s.begin(ctx); err != nil {
			return err
		}
		defer release(s.turn)
		return s.alone(ctx, fn)
	})
}

// begin takes the turn of a store that serves.
func (s *Store) begin(ctx context.Context) error {
	if err := take(ctx, s.turn); err != nil {
		return err
	}
	if err := s.serving(); err != nil {
		release(s.turn)
		return err
	}
	return nil
}

// Trim implements persist.PersistenceService. What is not folded yet is folded
// first when it is to be trimmed.
func (s *Store) Trim(ctx context.Context, after, through uint64, limit int) (trimmed persist.Trimmed, err error) {
	err = persist.WhenFree(ctx, func() error {
		trimmed, err = s.trim(ctx, after, through, limit)
		return err
	})
	return trimmed, err
}

func (s *Store) trim(ctx context.Context, after, through uint64, limit int) (persist.Trimmed, error) {
	if err := s.begin(ctx); err != nil {
		return persist.Trimmed{}, err
	}
	s.mu.RLock()
	through = min(through, s.next-1)
	// Whether an event stays depends on its entity, which the store behind must
	// know to be gone.
	due := through > s.base || s.thins()
	s.mu.RUnlock()
	var err error
	if due {
		err = s.drain(ctx)
	}
	release(s.turn)
	if err != nil {
		return persist.Trimmed{}, s.undrained(err)
	}
	if err := take(ctx, s.folds); err != nil {
		return persist.Trimmed{}, err
	}
	defer release(s.folds)
	return s.behind.Trim(ctx, after, through, limit)
}

// thins says whether the log has deletions that are not folded. mu is held.
func (s *Store) thins() bool {
	return len(s.active.thinned) > 0 || s.frozen != nil && len(s.frozen.thinned) > 0
}

// Backup implements persist.Backuper. Everything is folded, and then the store
// behind writes itself out; what is committed meanwhile waits in the log until
// that has begun: until the first byte, unless the store is a
// persist.TellingBackuper. Where the store has folding wait for longer
// (persist.BusyError), commits go on until the log is full, and reads in any case.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	b, ok := s.behind.(persist.Backuper)
	if !ok {
		return fmt.Errorf("backup: %w", errNotBehind)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.cutOff:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := persist.WhenFree(ctx, func() error { return s.backUp(ctx, b, w) })
	select {
	case <-s.cutOff:
		if err != nil {
			err = fmt.Errorf("%s: %w: it is being closed, and the backup was cut off: %v", s.dir, persist.ErrUnavailable, err)
		}
	default:
	}
	return err
}

func (s *Store) backUp(ctx context.Context, b persist.Backuper, w io.Writer) error {
	if err := s.foldToBackUp(ctx); err != nil {
		return err
	}
	// From then on folds are not in the backup, and so cannot be half in it.
	begun := sync.OnceFunc(func() { release(s.folds) })
	defer begun()
	if b, ok := b.(persist.TellingBackuper); ok {
		return b.BackupTelling(ctx, w, begun)
	}
	return b.Backup(ctx, writer(func(p []byte) (int, error) {
		begun()
		return w.Write(p)
	}))
}

// foldToBackUp folds everything, and leaves the folding to the caller.
func (s *Store) foldToBackUp(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer release(s.turn)
	if err := s.drain(ctx); err != nil {
		return s.undrained(err)
	}
	return take(ctx, s.folds)
}

// writer is a function as an io.Writer.
type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// Compact implements persist.Compacter. The store behind is compacted; the
// segments of the log keep their size.
func (s *Store) Compact(ctx context.Context) error {
	c, ok := s.behind.(persist.Compacter)
	if !ok {
		return fmt.Errorf("compact: %w", errNotBehind)
	}
	return s.aloneWhenFree(ctx, func() error { return c.Compact(ctx) })
}
