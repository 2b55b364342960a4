package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/commitlog/logtest"
)

// withLog is a base with a commit log in front. What a crash leaves of it is not
// drawn unit by unit: the process dies inside an append, a sync, a fold, or
// between them, and the next one opens the log as the disk has it.
type withLog struct {
	*commitlog.Store
	files  *logtest.Disk
	behind base
	rng    *rand.Rand
	trap   *trap
}

// trap fails what is done to the files and to the store behind.
type trap struct {
	armed bool
	left  int  // so many more operations succeed
	dies  bool // from then on all fail
}

var errTrap = errors.New("by the simulation")

func (t *trap) arm(left int, dies bool) { *t = trap{armed: true, left: left, dies: dies} }

func (t *trap) step() error {
	switch {
	case !t.armed:
		return nil
	case t.left > 0:
		t.left--
		return nil
	}
	t.armed = t.dies
	return errTrap
}

// foldedInto is the store behind, with the trap before and after what it does.
type foldedInto struct {
	persist.Folder
	*trap
}

// Fold has an unknown outcome when the trap springs after it.
func (f foldedInto) Fold(ctx context.Context, b persist.Fold) error {
	if err := f.step(); err != nil {
		return fmt.Errorf("%w: %w", persist.ErrUnavailable, err)
	}
	if err := f.Folder.Fold(ctx, b); err != nil {
		return err
	}
	if err := f.step(); err != nil {
		return fmt.Errorf("%w: %w", persist.ErrUnknown, err)
	}
	return nil
}

// newWithLog puts an empty log in front of an empty store.
func newWithLog(behind base, rng *rand.Rand) (base, error) {
	return openWithLog(behind, logtest.New(), rng)
}

func openWithLog(behind base, files *logtest.Disk, rng *rand.Rand) (*withLog, error) {
	folder, ok := behind.(persist.Folder)
	if !ok {
		return nil, fmt.Errorf("a %T takes no log", behind)
	}
	l := &withLog{files: files, behind: behind, rng: rng, trap: &trap{}}
	files.Rand = rng
	files.Fail = func(op logtest.Op, _ string) error {
		if op == logtest.Write || op == logtest.Sync {
			return l.trap.step()
		}
		return nil
	}
	var err error
	l.Store, err = commitlog.Open("log", foldedInto{folder, l.trap}, commitlog.Config{
		Disk: files, NoBackground: true, SegmentSize: 1, FoldKeys: 1 + rng.IntN(8),
	})
	return l, err
}

// reopened is the log as the next process finds it.
func (l *withLog) reopened() (base, error) {
	behind, err := l.behind.reopened()
	if err != nil {
		return nil, err
	}
	return openWithLog(behind, l.files.Crash(l.rng), l.rng)
}

// discard does not close the log: that would fold it.
func (l *withLog) discard() { l.behind.discard() }

// die is what the process does when it dies: a commit, if there is one, or a
// fold, which are cut off somewhere.
func (l *withLog) die(units []persist.Unit) {
	l.trap.arm(l.rng.IntN(6), true)
	switch {
	case len(units) > 0:
		_, _ = l.Commit(context.Background(), units)
	case l.rng.IntN(2) == 0:
		_ = l.Fold(context.Background())
	}
}

// fail commits while a write, a sync or a fold that is needed for it may fail.
func (l *withLog) fail(ctx context.Context, units []persist.Unit) ([]persist.Outcome, error) {
	l.trap.arm(l.rng.IntN(3), false)
	outcomes, err := l.Commit(ctx, units)
	l.trap.armed = false
	return outcomes, err
}

// fold is the background's work: nothing, some of it, or all.
func (l *withLog) fold(ctx context.Context) {
	switch l.rng.IntN(8) {
	case 0:
		_ = l.Fold(ctx)
	case 1:
		l.trap.arm(l.rng.IntN(8), false)
		_ = l.Fold(ctx)
		l.trap.armed = false
	}
}
