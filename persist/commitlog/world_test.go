package commitlog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/commitlog/logtest"
	"github.com/twinsrv/twinsrv/persist/memory"
)

var (
	ctx       = context.Background()
	errStruck = errors.New("a fault of the test")
	errDied   = errors.New("the process has died")
)

// fault is what happens once.
type fault int

const (
	none fault = iota
	fails
	dies
)

// world is a log's surroundings: a disk and a store behind, and one fault that
// is met at some operation of either.
type world struct {
	disk   *logtest.Disk
	behind *behind
	rng    *rand.Rand

	segment int64 // its size; 0: the smallest
	next    fault
	skip    int // so many operations are done before
	fired   bool
	dead    bool
	calls   int
	trace   []string
}

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1))}
	w.enter(logtest.New(), memory.Open(memory.Config{MaxRecord: maxRecord}))
	return w
}

// enter is the start of a process.
func (w *world) enter(d *logtest.Disk, m *memory.Store) {
	w.disk, w.behind, w.dead = d, &behind{Store: m, w: w}, false
	d.Rand = w.rng
	d.Fail = func(op logtest.Op, name string) error {
		switch w.meet(string(op) + " " + name) {
		case dies:
			return errDied
		case fails:
			return errStruck
		}
		return nil
	}
}

// plan has a fault met behind so many operations.
func (w *world) plan(f fault, skip int) { w.next, w.skip, w.fired = f, skip, false }

// meet is called before each operation.
func (w *world) meet(op string) fault {
	if w.dead {
		return dies
	}
	w.calls++
	if w.trace != nil {
		w.trace = append(w.trace, op)
	}
	if w.next == none {
		return none
	}
	if w.skip > 0 {
		w.skip--
		return none
	}
	f := w.next
	w.next, w.fired, w.dead = none, true, f == dies
	return f
}

// crash is the end of the process, and of the machine unless it is only killed.
func (w *world) crash(killed bool) {
	w.next = none
	if killed {
		w.enter(w.disk.Kill(), w.behind.Fork())
	} else {
		w.enter(w.disk.Crash(w.rng), w.behind.Fork())
	}
}

// leave is the start of another process after an orderly end.
func (w *world) leave() { w.crash(true) }

const maxRecord = 1 << 20

// tiny has a log of the smallest segments that folds in the smallest steps.
func (w *world) tiny() commitlog.Config {
	return commitlog.Config{SegmentSize: max(64<<10, w.segment), FoldKeys: 3, MaxRecord: maxRecord, NoBackground: true, Disk: w.disk}
}

func (w *world) open() (*commitlog.Store, error) { return commitlog.Open("log", w.behind, w.tiny()) }

// behind is a store in memory that a world's faults meet. After a call of an
// unknown outcome it must be reopened.
type behind struct {
	*memory.Store
	w    *world
	down bool
}

var (
	_ persist.Folder   = (*behind)(nil)
	_ persist.Reopener = (*behind)(nil)
	_ persist.Importer = (*behind)(nil)
)

// reads does what changes nothing.
func (b *behind) reads(what string, fn func() error) error {
	if b.w.meet(what) != none {
		return fmt.Errorf("%s: %w: %w", what, persist.ErrUnavailable, errStruck)
	}
	if b.down {
		return fmt.Errorf("%s: %w: it must be reopened", what, persist.ErrUnavailable)
	}
	return fn()
}

// writes does what changes something, unless a fault is met before; or the fault
// is met afterwards.
func (b *behind) writes(what string, fn func() error) error {
	f := b.w.meet(what)
	unavailable := fmt.Errorf("%s: %w: %w", what, persist.ErrUnavailable, errStruck)
	switch {
	case b.down:
		return unavailable
	case f == none:
		return fn()
	}
	how := b.w.rng.IntN(3)
	if how == 0 {
		return unavailable
	}
	if how == 1 {
		if err := fn(); err != nil {
			return err
		}
	}
	b.down = true
	return fmt.Errorf("%s: %w: %w", what, persist.ErrUnknown, errStruck)
}

func (b *behind) Heads(ctx context.Context, keys []persist.Key) (heads []persist.Head, err error) {
	err = b.reads("heads", func() (err error) { heads, err = b.Store.Heads(ctx, keys); return err })
	return heads, err
}

func (b *behind) Mark(ctx context.Context) (m persist.Mark, err error) {
	err = b.reads("mark", func() (err error) { m, err = b.Store.Mark(ctx); return err })
	return m, err
}

func (b *behind) Position(ctx context.Context) (p uint64, err error) {
	err = b.reads("position", func() (err error) { p, err = b.Store.Position(ctx); return err })
	return p, err
}

func (b *behind) Fold(ctx context.Context, f persist.Fold) error {
	return b.writes("fold", func() error { return b.Store.Fold(ctx, f) })
}

func (b *behind) Commit(ctx context.Context, units []persist.Unit) (outcomes []persist.Outcome, err error) {
	err = b.writes("commit", func() (err error) { outcomes, err = b.Store.Commit(ctx, units); return err })
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

func (b *behind) Import(ctx context.Context, batch persist.Batch) error {
	return b.writes("import", func() error { return b.Store.Import(ctx, batch) })
}

func (b *behind) Trim(ctx context.Context, after, through uint64, limit int) (t persist.Trimmed, err error) {
	err = b.writes("trim", func() (err error) { t, err = b.Store.Trim(ctx, after, through, limit); return err })
	if err != nil {
		return persist.Trimmed{}, err
	}
	return t, nil
}

func (b *behind) Reopen(context.Context) error {
	if b.w.meet("reopen") != none {
		return fmt.Errorf("reopen: %w: %w", persist.ErrUnavailable, errStruck)
	}
	b.down = false
	return nil
}

// failingSync is a fault of a disk on which nothing can be made durable.
func failingSync(op logtest.Op, _ string) error {
	if op == logtest.Sync {
		return errStruck
	}
	return nil
}
