package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Fold implements persist.Folder. A batch is one transaction and two syncs; it
// is cheapest when what it has is sorted by keys. A batch with a mark needs
// Config.CommitLog: without it the file could not be opened again.
func (s *Store) Fold(ctx context.Context, f persist.Fold) error {
	if err := f.Check(s.cfg.MaxRecord); err != nil {
		return err
	}
	if attached(f.Mark) && !s.cfg.CommitLog {
		return fmt.Errorf("%s: %w: it was opened without bolt.Config.CommitLog and takes no mark of a log", s.path, persist.ErrInvalid)
	}
	return s.write(ctx, func(c *commit, tx *bbolt.Tx) error { return c.fold(tx, &f) })
}

// fold writes a batch.
func (c *commit) fold(tx *bbolt.Tx, f *persist.Fold) error {
	c.open(tx)
	for _, k := range f.Deleted {
		if err := c.records.Delete(recordKey(k)); err != nil {
			return err
		}
		if err := c.deleteRows(k); err != nil {
			return err
		}
	}
	for i := range f.RowsGone {
		r := &f.RowsGone[i]
		if err := c.rows.Delete(rowKey(r.Kind, r.Key, r.ID)); err != nil {
			return err
		}
	}
	last := f.Position
	for i := range f.Records {
		if err := c.takeRecord(&f.Records[i]); err != nil {
			return err
		}
		last = max(last, f.Records[i].Record.Life)
	}
	for i := range f.Rows {
		if err := c.takeRow(&f.Rows[i]); err != nil {
			return err
		}
	}
	for i := range f.Changes {
		if err := c.logChange(&f.Changes[i]); err != nil {
			return err
		}
		last = max(last, f.Changes[i].Position, f.Changes[i].Life)
	}
	for i := range f.Filed {
		last = max(last, f.Filed[i].Position, f.Filed[i].Life)
	}
	if err := c.fileAll(f.Filed); err != nil {
		return err
	}
	return c.endFold(f, last)
}

// endFold writes the store's own numbers, unless nothing was written.
func (c *commit) endFold(f *persist.Fold, last uint64) error {
	if f.Mark != (persist.Mark{}) {
		c.mark = f.Mark
	}
	things := len(f.Deleted) + len(f.RowsGone) + len(f.Filed) + len(f.Records) + len(f.Rows) + len(f.Changes)
	if things == 0 && last < c.next && c.mark == c.s.mark() {
		return errNothing
	}
	c.next = max(c.next, last+1)
	return c.putNumbers()
}

// fileAll lists changes, which are in the log, under their entities: each
// entity's tail is read and written once.
func (c *commit) fileAll(filed []persist.Change) error {
	runs := runsOf(filed)
	damaged := map[persist.Key]struct{}{}
	for _, run := range runs {
		k := recordKey(run[0].Key)
		if _, err := readTail(k, c.tails.Get(k)); errors.Is(err, snapshot.ErrCorrupt) {
			damaged[run[0].Key] = struct{}{}
		} else if err != nil {
			return err
		}
	}
	lacking := false
	if len(damaged) > 0 {
		err := c.refile(damaged)
		if lacking = errors.Is(err, errTail); err != nil && !lacking {
			return err
		}
	}
	for _, run := range runs {
		file := c.fileRun
		if _, is := damaged[run[0].Key]; is && lacking {
			file = c.fileAside
		}
		if err := file(run[0].Key, run); err != nil {
			return err
		}
	}
	return nil
}

// runsOf returns the changes of each entity, in the order of keys.
func runsOf(changes []persist.Change) (runs [][]*persist.Change) {
	sorted := make([]*persist.Change, len(changes))
	for i := range changes {
		sorted[i] = &changes[i]
	}
	slices.SortStableFunc(sorted, func(a, b *persist.Change) int {
		if n := strings.Compare(a.Key.Pod, b.Key.Pod); n != 0 {
			return n
		}
		return strings.Compare(a.Key.Name, b.Key.Name)
	})
	for from := 0; from < len(sorted); {
		to := from + 1
		for to < len(sorted) && sorted[to].Key == sorted[from].Key {
			to++
		}
		runs = append(runs, sorted[from:to])
		from = to
	}
	return runs
}

// fileRun adds changes of one entity, in order, to its tail, as note does one.
//
// What was filed before is not filed twice. Changes of an entity come in order,
// and a tail's entries are behind all that have moved: so one that is not behind
// the tail's last is there. Only when there is no tail has one to look.
func (c *commit) fileRun(key persist.Key, run []*persist.Change) error {
	k := recordKey(key)
	t, err := readTail(k, c.tails.Get(k))
	if err != nil {
		return err
	}
	changed := false
	for _, change := range run {
		e := entryOf{change.Revision, change.Position}
		n := len(t.entries)
		switch {
		case c.wasTrimmed(e):
		case n > 0 && e.position <= t.entries[n-1].position:
		case n == 0 && c.hasMoved(key, change.Life, e):
		default:
			if n > 0 && (t.life != change.Life || n >= c.s.cfg.tail) {
				err, t.entries = c.move(key, t), nil
			}
			t.life, t.entries, changed = change.Life, append(t.entries, e), true
		}
		if err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	return c.tails.Put(k, sealTail(k, t))
}

// fileAside files changes of an entity whose tail is damaged, for good as it
// seems: what is in the tail stays unknown, and the tail as it is.
func (c *commit) fileAside(key persist.Key, run []*persist.Change) error {
	for _, change := range run {
		e := entryOf{change.Revision, change.Position}
		if c.wasTrimmed(e) {
			continue
		}
		if err := c.file(key, change.Life, e); err != nil {
			return err
		}
	}
	return nil
}

// wasTrimmed says whether a change is gone that was in the log.
func (c *commit) wasTrimmed(e entryOf) bool {
	return e.position <= c.s.trimmed && c.log.Get(positionKey(e.position)) == nil
}

// hasMoved says whether an entry is in the changes bucket.
func (c *commit) hasMoved(key persist.Key, life uint64, e entryOf) bool {
	k := changeKey(changesPrefix(key), life, e.revision)
	head, _, err := unseal(changesBucket, k, c.changes.Get(k))
	return err == nil && positionOf(head) == e.position
}
