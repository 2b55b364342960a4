package persist

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/snapshot"
)

// queueFound is what a manager finds in the store when it takes its queue over.
type queueFound struct {
	host           *serviceHost
	life, revision uint64 // of the queue's record, which is this manager's now
	position       uint64 // of the taking over: higher than any before it
	jobs           []*job
	err            error
}

// takeOver makes a queue this manager's and reads it. The queue's record has
// nothing in it; its revision counts the managers that have had the queue, and
// each unit of a manager expects its own. So nothing of an earlier manager is
// committed behind it.
func (h *serviceHost) takeOver(ctx context.Context) queueFound {
	f := queueFound{host: h}
	committer, key := h.committer, h.cfg.key
	f.err = h.persevere(ctx, func() error {
		r, err := committer.readSettled(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		o := committer.commit1(ctx, Unit{Key: key, Life: r.Life, Expect: r.Revision, Record: &snapshot.Record{
			Revision: r.Revision + 1, Reserved: r.Revision + 1, Changed: committer.sys.Now().UTC(), Codec: "json", State: []byte("{}"),
		}})
		f.life, f.revision, f.position = o.Life, r.Revision+1, o.Position
		return o.Err
	})
	after := &Row{Kind: jobKind, Key: key, ID: "-"} // before every job's
	var pages pageSize
	for more := true; more && f.err == nil; {
		f.err = h.persevere(ctx, func() error {
			limit := pages.limit()
			rows, err := committer.store.Rows(ctx, jobKind, after, limit)
			if err != nil {
				return err
			}
			pages.sawRows(rows)
			more = len(rows) == limit
			for _, r := range rows {
				if r.Key != key {
					more = false
					break
				}
				after = &Row{Kind: jobKind, Key: key, ID: r.ID}
				f.add(r)
			}
			return nil
		})
	}
	return f
}

func (f *queueFound) add(r Row) {
	j, err := parseJob(r)
	if err != nil {
		f.host.committer.sys.Logger().Error("a job cannot be read; it stays in the store", "key", r.Key.String(), "job", r.ID, "error", err)
		return
	}
	f.jobs = append(f.jobs, j)
}

// persevere calls f until it succeeds, fails for good, or ctx ends.
func (h *serviceHost) persevere(ctx context.Context, f func() error) error {
	c := h.committer
	for failures := 0; ; failures++ {
		err := f()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, snapshot.ErrCorrupt), errors.Is(err, snapshot.ErrNewer), errors.Is(err, ErrInvalid):
			return err
		}
		pause := c.pauseAfter(failures)
		c.sys.Logger().Warn("a queue of jobs cannot be read now; it is tried again", "key", h.cfg.key.String(), "error", err, "next_try_in", pause)
		if err := c.sys.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// jobID names a job: by where its manager took over, and a number.
func jobID(position, number uint64) string { return fmt.Sprintf("%012x-%010x", position, number) }

// queueOwner is whose the queue is, after a unit of it met a conflict.
type queueOwner struct {
	host *serviceHost
	err  error // why it is this manager's no more
}

// doubt finds out whether a conflict says that the queue is another's. It may be
// that the unit met the refusal of another one of the same commit.
func (h *serviceHost) doubt() {
	committer, key, scope, self := h.committer, h.cfg.key, h.scope, h.self
	life, revision := h.life, h.revision
	committer.sys.Go(func() {
		r, err := committer.readSettled(scope, key)
		switch {
		case scope.Err() != nil:
			return
		case err == nil && (r.Life != life || r.Revision != revision):
			err = fmt.Errorf("%s: %w: another manager has taken it over", key, ErrConflict)
		}
		self.TellSystem(queueOwner{h, err})
	})
}

// pauseForStore is how long a manager waits for the store after so many
// failures.
func (h *serviceHost) pauseForStore() time.Duration {
	h.failures++
	return h.committer.pauseAfter(h.failures - 1)
}
