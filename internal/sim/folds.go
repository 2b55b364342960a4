package sim

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"time"

	"github.com/twinsrv/twinsrv/persist"
)

// folded are the pods that the projection follows.
func folded() []string { return []string{things, books, beats, accounts} }

// projection keeps, for each entity, a digest of all its changes in order, which
// is the same only if each was applied once.
func (w *process) projection() persist.Projection {
	return persist.Projection{
		Name: "digests", Pods: folded(), Batch: 7,
		Gap: func(from, to uint64) error {
			w.note("gap %d to %d", from, to)
			w.gap = true
			return nil
		},
		Apply: func(ctx context.Context, t *persist.Table, changes []persist.Change) error {
			if w.unruly && w.rng.IntN(6) == 0 {
				return errOnPurpose
			}
			for i := range changes {
				old, _, err := t.Get(ctx, changes[i].Key.String())
				if err != nil {
					return err
				}
				t.Put(changes[i].Key.String(), digest(old, &changes[i]))
			}
			return nil
		},
	}
}

func digest(old []byte, c *persist.Change) []byte {
	h := fnv.New64a()
	_, _ = h.Write(old)
	_, _ = h.Write(binary.AppendUvarint(nil, c.Position))
	_, _ = h.Write(c.Data)
	return h.Sum(nil)
}

// project does something to the projection, in the background.
func (w *process) project(n int) {
	w.jobs++
	w.sys.Go(func() {
		ctx, cancel := w.sys.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		var err error
		switch n {
		case 0:
			w.folds.Rebuild()
		case 1, 2:
			if err = w.folds.Stop(ctx); err != nil {
				break
			}
			for { // the store may be away
				var folds *persist.Running
				if folds, err = persist.StartProjection(w.pods.Committer(), w.projection()); err == nil {
					w.folds = folds
				}
				if err == nil || w.sys.Sleep(ctx, 10*time.Millisecond) != nil {
					break
				}
			}
		case 3:
			err = w.folds.Wait(ctx, w.folds.Position()+1)
		default:
			_, _, err = w.folds.Get(ctx, "things/e0")
		}
		w.jobs--
		if !w.dead {
			w.note("projection, %d: %v, at %d", n, err, w.folds.Position())
		}
	})
}

// checkFolds compares the projection's table with the journal.
func (w *process) checkFolds() {
	if w.gap || w.plan.keep > 0 || w.plan.keepFor > 0 {
		return // it has not seen all there was
	}
	ctx := context.Background()
	log, err := w.disk.base.Log(ctx, 0, 1<<20)
	w.must(err)
	want := map[string][]byte{}
	for i := range log {
		if c := &log[i]; contains(folded(), c.Key.Pod) {
			want[c.Key.String()] = digest(want[c.Key.String()], c)
		}
	}
	entries, err := w.folds.Scan(ctx, "", "", 1<<16)
	w.must(err)
	for _, e := range entries {
		if string(e.Value) != string(want[e.ID]) {
			w.wrong("the projection has not seen the changes of %s as they are", e.ID)
		}
		delete(want, e.ID)
	}
	for _, name := range sortedKeys(want) {
		w.wrong("the projection has not seen %s", name)
	}
}
