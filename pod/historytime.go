package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
)

// AtTime returns an entity's state at a time: that of the last change which is
// not after it. It fails with a *DroppedError when the journal no longer has that
// change, with ErrNoRevision when there was no entity, and else as Get does.
//
// Times are those that the system's clock had at the changes. Where it was set
// back, it is one of the changes that are not after the time, with one behind it
// that is.
func (p *Pod) AtTime(ctx context.Context, name string, t time.Time) (View, error) {
	key := persist.Key{Pod: p.name, Name: name}
	head, err := p.headOf(ctx, name)
	if err != nil && !errors.Is(err, entity.ErrNotFound) {
		return View{}, err
	}
	if err == nil {
		if head.State != nil && !head.Changed.After(t) {
			return p.view(name, &head)
		}
		oldest, err := p.oldestKept(ctx, key, head)
		if err != nil {
			return View{}, err
		}
		if !oldest.Time.After(t) {
			return p.lastUntil(ctx, oldest, head.Revision, t)
		}
		if !whole(&oldest) {
			return View{}, &DroppedError{Key: key, Oldest: entity.ETag{Life: oldest.Life, Revision: oldest.Revision}, Time: oldest.Time}
		}
	}
	return p.earlierAt(ctx, key, head.Life, t)
}

// earlierAt is AtTime in the lives before one.
func (p *Pod) earlierAt(ctx context.Context, key persist.Key, before uint64, t time.Time) (View, error) {
	var last, first persist.Change
	for life := uint64(0); ; {
		next, err := persist.NextLife(ctx, p.store(), key, life)
		if err != nil {
			return View{}, err
		}
		if next == 0 || before != 0 && next >= before {
			break
		}
		life = next
		changes, err := p.store().Changes(ctx, key, life, 0, 1)
		if err != nil {
			return View{}, fmt.Errorf("read the history of %s: %w", key, err)
		}
		if len(changes) == 0 { // trimmed meanwhile
			continue
		}
		if first.Life == 0 {
			first = changes[0]
		}
		if changes[0].Time.After(t) {
			if whole(&changes[0]) {
				break
			}
			return View{}, &DroppedError{Key: key, Oldest: entity.ETag{Life: life, Revision: changes[0].Revision}, Time: changes[0].Time}
		}
		last = changes[0]
	}
	switch {
	case last.Life != 0:
		return p.endedAt(ctx, last, t)
	case first.Life != 0 && !whole(&first):
		return View{}, &DroppedError{Key: key, Oldest: entity.ETag{Life: first.Life, Revision: first.Revision}, Time: first.Time}
	}
	mark, err := persist.TrimmedThrough(ctx, p.store())
	if err != nil {
		return View{}, err
	}
	if mark > 0 && first.Life == 0 && before == 0 {
		return View{}, fmt.Errorf("%w: the journal has nothing of %s", entity.ErrNotFound, key)
	}
	return View{}, fmt.Errorf("%w: %s did not exist at %s", ErrNoRevision, key, t.UTC().Format(time.RFC3339Nano))
}

// endedAt is lastUntil for a life that has ended. Retention drops the events of
// such a life in no order; a deletion is the last thing that goes.
func (p *Pod) endedAt(ctx context.Context, c persist.Change, t time.Time) (View, error) {
	c, err := p.seekTime(ctx, c, ^uint64(0), t)
	if err != nil {
		return View{}, err
	}
	if !deletes(&c) {
		next, err := p.store().Changes(ctx, c.Key, c.Life, c.Revision+1, 1)
		if err != nil {
			return View{}, fmt.Errorf("read the history of %s: %w", c.Key, err)
		}
		if len(next) == 0 || c.Event && next[0].Revision != c.Revision+1 {
			return View{}, &DroppedError{Key: c.Key}
		}
	}
	return p.behind(ctx, &c, t)
}

// lastUntil returns the state behind the last change of a life that is not after
// a time, of those from one that is not, through a revision.
func (p *Pod) lastUntil(ctx context.Context, c persist.Change, through uint64, t time.Time) (View, error) {
	c, err := p.seekTime(ctx, c, through, t)
	if err != nil {
		return View{}, err
	}
	return p.behind(ctx, &c, t)
}

// behind returns the state at a time whose last change is c.
func (p *Pod) behind(ctx context.Context, c *persist.Change, t time.Time) (View, error) {
	if deletes(c) {
		return View{}, fmt.Errorf("%w: %s did not exist at %s", ErrNoRevision, c.Key, t.UTC().Format(time.RFC3339Nano))
	}
	return p.viewBehind(ctx, &fold{}, c)
}

// seekTime returns the last change of a life that is not after a time, of those
// from c, which is not, through a revision.
func (p *Pod) seekTime(ctx context.Context, c persist.Change, through uint64, t time.Time) (persist.Change, error) {
	for step, doubles := uint64(1), true; ; { // the step doubles until it goes too far, then halves
		changes, err := p.store().Changes(ctx, c.Key, c.Life, c.Revision+step, 1)
		if err != nil {
			return c, fmt.Errorf("read the history of %s: %w", c.Key, err)
		}
		switch {
		case len(changes) > 0 && changes[0].Revision <= through && !changes[0].Time.After(t):
			if c = changes[0]; doubles {
				step *= 2
			}
		case step == 1:
			return c, nil
		default:
			doubles, step = false, step/2
		}
	}
}
