package pod

import (
	"context"
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// viewOf returns the state that a change of an entity, which is not
// event-sourced, led to, as the pod's type sees it now; as it was written when
// the type does not take it.
func (p *Pods) viewOf(c *persist.Change) View {
	r := snapshot.Record{
		Life: c.Life, Revision: c.Revision, Reserved: c.Revision, Changed: c.Time,
		Schema: c.Schema, Codec: c.Codec, State: c.Data,
	}
	v := View{Pod: c.Key.Pod, Name: c.Key.Name, Life: c.Life, Revision: c.Revision, Changed: c.Time, record: r}
	pod, err := p.Pod(c.Key.Pod)
	if err != nil {
		return v
	}
	spec := pod.spec.Load()
	if spec == nil || spec.IsSourced() {
		return v
	}
	if modern, err := spec.Modern(r); err == nil {
		v.record, v.spec = modern, spec
	}
	return v
}

// viewBehind returns the state that a change led to.
func (p *Pod) viewBehind(ctx context.Context, f *fold, c *persist.Change) (View, error) {
	switch {
	case c.Err != nil:
		return View{}, fmt.Errorf("%s at revision %d: %w", c.Key, c.Revision, c.Err)
	case deletes(c):
		return View{}, fmt.Errorf("%w: %s was deleted", ErrNoRevision, c.Key)
	case !c.Event:
		return p.pods.viewOf(c), nil
	}
	spec := p.spec.Load()
	if spec == nil || !spec.IsSourced() {
		_, err := p.writable()
		if err == nil {
			err = fmt.Errorf("%w: pod %s is no longer event-sourced", snapshot.ErrCorrupt, p.name)
		}
		return View{}, fmt.Errorf("%s at revision %d: %w", c.Key, c.Revision, err)
	}
	r, err := f.to(ctx, spec, p.store(), c)
	if err != nil {
		return View{}, p.dropped(ctx, c, err)
	}
	return View{Pod: p.name, Name: c.Key.Name, Life: c.Life, Revision: c.Revision, Changed: c.Time, record: r, spec: spec}, nil
}

// dropped says why events do not make a state, if retention is to blame: it
// drops those of lives that have ended.
func (p *Pod) dropped(ctx context.Context, c *persist.Change, cause error) error {
	if !errors.Is(cause, snapshot.ErrCorrupt) {
		return cause
	}
	mark, err := persist.TrimmedThrough(ctx, p.store())
	if err != nil || mark < c.Life {
		return cause
	}
	if r, err := p.store().Load(ctx, c.Key); !errors.Is(err, persist.ErrNotFound) && (err != nil || r.Life == c.Life) {
		return cause
	}
	return &DroppedError{Key: c.Key}
}

// foldTo returns the state that an event led to.
func (p *Pod) foldTo(ctx context.Context, c *persist.Change) (View, error) {
	return p.viewBehind(ctx, &fold{}, c)
}

// fold makes the states behind events of an event-sourced entity: behind one
// that follows on the last, of this event alone, else from the entity's
// snapshot, or from its first event on. Its zero value is ready.
type fold struct{ last snapshot.Record }

func (f *fold) to(ctx context.Context, spec *entity.Spec, store persist.PersistenceService, c *persist.Change) (snapshot.Record, error) {
	r := snapshot.Record{Life: c.Life, Revision: c.Revision, Reserved: c.Revision, Changed: c.Time}
	if f.last.Life == c.Life && f.last.Revision != 0 && f.last.Revision+1 == c.Revision {
		store = nextEvent{PersistenceService: store, last: &f.last, event: c}
	}
	r, err := spec.Complete(ctx, store, c.Key, r, nil)
	if err != nil {
		return snapshot.Record{}, err
	}
	f.last = r
	return r, nil
}

// nextEvent is a store as recovery sees it when the state before one event is
// the entity's snapshot.
type nextEvent struct {
	persist.PersistenceService
	last  *snapshot.Record
	event *persist.Change
}

func (s nextEvent) RowsOf(context.Context, persist.Key) ([]persist.Row, error) {
	return []persist.Row{{Kind: entity.SnapshotRows, Key: s.event.Key, ID: entity.StateSnapshot, Value: s.last.Append(nil)}}, nil
}

func (s nextEvent) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	if from != s.event.Revision {
		return s.PersistenceService.Changes(ctx, key, life, from, limit)
	}
	return []persist.Change{*s.event}, nil
}
