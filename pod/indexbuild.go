package pod

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

const (
	// The wait before the store is read again for an index, when it did not
	// answer, grows from minIndexPause to maxIndexPause.
	minIndexPause = 50 * time.Millisecond
	maxIndexPause = 5 * time.Second
)

// index gives the pod the indexes that its spec asks for. They are filled in the
// background; until then queries do without.
func (p *Pod) index() {
	spec := p.spec.Load()
	if spec == nil || len(spec.Index()) == 0 {
		p.indexes.Store(nil)
		return
	}
	if x := p.indexes.Load(); x != nil && x.spec == spec && slices.Equal(x.texts, spec.Index()) {
		return
	}
	x, err := newIndexes(p.name, spec, spec.Index())
	if err != nil { // by other rules than today's
		p.pods.sys.Logger().Error("a pod has no indexes, for those that it asks for cannot be made", "pod", p.name, "error", err)
		p.indexes.Store(nil)
		return
	}
	p.indexes.Store(x)
	p.pods.sys.Go(func() { p.fillIndexes(x) })
}

// refill reads the store anew for indexes with many doubtful entities, as faults
// of the store leave behind.
func (p *Pod) refill(x *indexes) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.seen != nil {
		return
	}
	x.seen, x.doubtful = map[string]bool{}, map[string]bool{}
	p.pods.sys.Go(func() { p.fillIndexes(x) })
}

// fillIndexes reads the store into new indexes, again until that succeeds.
func (p *Pod) fillIndexes(x *indexes) {
	ctx := p.pods.work
	for pause := minIndexPause; ; pause = min(2*pause, maxIndexPause) {
		err := p.fillIndexesOnce(ctx, x)
		if err == nil || ctx.Err() != nil || p.indexes.Load() != x {
			return
		}
		p.pods.sys.Logger().Warn("the store could not be read for a pod's indexes; it is read again", "pod", p.name, "error", err)
		if p.pods.sys.Sleep(ctx, pause) != nil {
			return
		}
	}
}

func (p *Pod) fillIndexesOnce(ctx context.Context, x *indexes) error {
	o := persist.ListOptions{Limit: mostListed, MaxBytes: mostListedBytes}
	for p.indexes.Load() == x {
		page, err := p.List(ctx, o)
		if err != nil {
			return err
		}
		x.take(p, page)
		if o.After = page.Next; page.Next == "" {
			x.mu.Lock()
			x.seen = nil
			x.mu.Unlock()
			return nil
		}
	}
	return nil
}

// take enters what a page shows, but for entities of which something newer is
// known.
func (x *indexes) take(p *Pod, page Page) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for n := range page.Items {
		i := &page.Items[n]
		if x.seen[i.Name] {
			continue
		}
		if errors.Is(i.Err, entity.ErrQuarantined) {
			x.doubtful[i.Name] = true
			continue
		}
		if s := p.slots.get(i.Name); s != nil && (s.view.Load() == nil || s.ref.Stopped()) && !mutant.On(mutant.IndexTrustsStore) {
			x.doubtful[i.Name] = true
		} else {
			delete(x.doubtful, i.Name)
		}
		x.put(p.name, i.Name, &i.View.record)
	}
}
