package pod

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// maxLines is the most changes that a reader takes at a time.
const maxLines = 64

// tail is a watch's place in the journal of one store.
type tail struct {
	hub    *hub
	watch  *Watch
	main   bool // the watch can be resumed at its positions, which others have not
	number uint64
	joined atomic.Bool
	pages  pageLimit

	// Guarded by the hub's mu.
	listed bool
	at     uint64 // everything through it was read, or is not for the watch
	behind bool   // there may be something behind it; else the hub says when there is
}

func (t *tail) matching() int64 {
	if t.watch.req.Match == nil {
		return 0
	}
	return 1
}

// behindFrom notes that there is something to read behind a position, and
// nothing before it that was not noted. The hub's mu is held.
func (t *tail) behindFrom(position uint64) {
	if t.behind || position < t.at { // or it has read the journal ahead of the hub
		return
	}
	t.at, t.behind = position, true
	t.watch.waiter.Wake()
}

// read takes the next changes for the watch into its page, from the ring or from
// the journal. It reports whether there was anything to look at.
func (t *tail) read(ctx context.Context) (bool, error) {
	h := t.hub
	h.mu.Lock()
	if !t.behind {
		if t.main {
			t.watch.id = max(t.watch.id, h.through)
		}
		h.mu.Unlock()
		return false, nil
	}
	if t.at >= h.from || mutant.On(mutant.WatchLosesBehind) {
		t.takeRing()
		h.mu.Unlock()
		return true, nil
	}
	at, base, to := t.at, h.base, h.through // and no further: behind it entities may not show yet what is durable
	h.mu.Unlock()
	if at < base {
		t.gap(at, base)
		return true, nil
	}
	limit := t.pages.next()
	changes, mark, err := t.journal(ctx, at, to, limit)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil: // nothing is acknowledged meanwhile either
		return true, h.pods.sys.Sleep(ctx, storePause)
	case mark > at && !mutant.On(mutant.WatchGapUntold):
		t.gap(at, mark)
		return true, nil
	}
	t.pages.saw(changes)
	if err := t.await(ctx, changes); err != nil {
		return false, err
	}
	for i := range changes {
		if c := &changes[i]; t.watch.wants(c.Key) || c.Err != nil && c.Key.Pod == "" {
			t.watch.page = append(t.watch.page, line{tail: t, change: &change{Change: *c}})
		}
	}
	if len(changes) == limit {
		to = changes[limit-1].Position
	}
	t.moveTo(to)
	return true, nil
}

// await waits a moment until the entities show changes to reads that the hub did
// not wait for, since they came before it had anybody to tell.
func (t *tail) await(ctx context.Context, changes []persist.Change) error {
	sys := t.hub.pods.sys
	until := sys.Now().Add(showWithin)
	for i := range changes {
		for t.watch.wants(changes[i].Key) && t.hub.pods.lags(&changes[i]) && sys.Now().Before(until) {
			if err := sys.Sleep(ctx, showWithin/50); err != nil {
				return err
			}
		}
	}
	return nil
}

// lags reports whether reads show an entity as it was before a change.
func (p *Pods) lags(c *persist.Change) bool {
	pod, err := p.Pod(c.Key.Pod)
	if err != nil {
		return false
	}
	r := pod.acknowledged(c.Key.Name)
	switch {
	case r == nil: // they go to the store
		return false
	case r.Revision == 0: // of an absent entity the view tells the life that has ended, if it is known
		return !deletes(c) && r.Life < c.Life
	}
	return r.Life < c.Life || r.Life == c.Life && (r.Revision < c.Revision || deletes(c))
}

// takeRing takes from the ring. The hub's mu is held.
func (t *tail) takeRing() {
	h := t.hub
	i, _ := slices.BinarySearchFunc(h.ring, t.at, func(c *change, at uint64) int { return cmp.Compare(c.Position, at+1) })
	bytes := 0
	for ; i < len(h.ring); i++ {
		c := h.ring[i]
		if !t.watch.wants(c.Key) && (c.Err == nil || c.Key.Pod != "") {
			continue
		}
		if bytes += c.size(); len(t.watch.page) >= maxLines || bytes > pageBytes && len(t.watch.page) > 0 {
			t.at = c.Position - 1
			return
		}
		t.watch.page = append(t.watch.page, line{tail: t, change: c})
	}
	t.at, t.behind = max(t.at, h.through), false
}

// gap tells that what is behind from and not behind to cannot be read.
func (t *tail) gap(from, to uint64) {
	e := &Event{Kind: EventGap, From: from, To: to, Reason: GapTrimmed}
	if !t.main {
		e.Reason = GapVolatile
	}
	t.watch.page = append(t.watch.page, line{tail: t, gap: e})
	t.moveTo(to)
}

func (t *tail) moveTo(at uint64) {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	t.at = max(t.at, at)
}

// journal is readLog, of which a watch of one entity that is far behind looks at
// that entity's changes alone, where that is possible.
func (t *tail) journal(ctx context.Context, at, to uint64, limit int) (changes []persist.Change, mark uint64, err error) {
	store, r := t.hub.committer.Service(), &t.watch.req
	if r.Name != "" && to-min(at, to) > t.hub.far {
		changes, is, err := readEntity(ctx, store, persist.Key{Pod: r.Pods[0], Name: r.Name}, at, to, limit)
		if err == nil && is {
			mark, err = persist.TrimmedThrough(ctx, store)
		}
		if err != nil || is {
			return changes, mark, err
		}
	}
	return readLog(ctx, store, at, to, limit)
}

// readEntity is readLog for one entity, without the mark; is is false when the
// journal has, or had a moment ago, changes of more than its present life.
func readEntity(ctx context.Context, store persist.PersistenceService, key persist.Key, at, to uint64, limit int) (changes []persist.Change, is bool, err error) {
	head, err := store.Load(ctx, key)
	if err != nil {
		return nil, false, nil // it is absent, or whoever reads the log finds out
	}
	from := uint64(0)
	if head.Life > at {
		first, err := store.Changes(ctx, key, 0, 0, 1)
		if err != nil || len(first) == 0 || first[0].Life != head.Life {
			return nil, false, err
		}
	} else if from, err = revisionBehind(ctx, store, key, &head, at); err != nil {
		return nil, false, err
	}
	if changes, err = store.Changes(ctx, key, head.Life, from, limit); err != nil {
		return nil, false, fmt.Errorf("read the history of %s: %w", key, err)
	}
	return through(changes, to), true, nil
}

// revisionBehind returns a revision of the head's life from which on all changes
// are behind a position, and before which none is.
func revisionBehind(ctx context.Context, store persist.PersistenceService, key persist.Key, head *snapshot.Record, at uint64) (uint64, error) {
	low, high := uint64(0), head.Revision+1
	for low < high {
		middle := low + (high-low)/2
		changes, err := store.Changes(ctx, key, head.Life, middle, 1)
		if err != nil {
			return 0, fmt.Errorf("read the history of %s: %w", key, err)
		}
		if len(changes) == 0 || changes[0].Position > at {
			high = middle
		} else {
			low = changes[0].Revision + 1
		}
	}
	return low, nil
}

// through returns the changes that are not behind a position.
func through(changes []persist.Change, to uint64) []persist.Change {
	n := len(changes)
	for n > 0 && changes[n-1].Position > to {
		n--
	}
	return changes[:n]
}

// readLog reads changes behind a position that are not behind to, at most limit;
// when there are fewer there are no others. Those through the mark may be
// missing, since retention has dropped them.
func readLog(ctx context.Context, store persist.PersistenceService, after, to uint64, limit int) (changes []persist.Change, mark uint64, err error) {
	changes, err = store.Log(ctx, after, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("read the journal behind position %d: %w", after, err)
	}
	if mark, err = persist.TrimmedThrough(ctx, store); err != nil {
		return nil, 0, err
	}
	return through(changes, to), mark, nil
}

// pageLimit chooses how many changes to read at a time, so that they have about
// pageBytes, and never more than worstPage.
type pageLimit struct{ limit, most int }

const (
	firstPage = 32
	maxPage   = 512
	pageBytes = 1 << 20
	worstPage = 128 << 20
)

// pages returns what chooses the pages of one reader: no change is larger than a
// state may be, but of those that were written when more was allowed.
func (p *Pods) pages() pageLimit {
	most := min(max(worstPage/p.cfg.MaxState, 1), maxPage)
	return pageLimit{limit: min(firstPage, most), most: most}
}

func (p *pageLimit) next() int { return p.limit }

func (p *pageLimit) saw(changes []persist.Change) {
	if len(changes) == 0 {
		return
	}
	size := 0
	for i := range changes {
		size += len(changes[i].Data)
	}
	p.limit = min(max(min(pageBytes/max(size/len(changes), 1), 4*p.limit), 1), p.most)
}
