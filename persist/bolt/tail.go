package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// tailLength is how many entries a tail has before it is moved.
const tailLength = 32

// tail has an entity's newest entries for the changes bucket. There every
// entity has pages of its own once its history fills some, and a commit of many
// entities would write as many pages for one entry each: three quarters of all
// that it writes. So entries wait in the entity's tail, where many entities
// share a page, and move when they are tailLength. All of them are behind those
// that have moved, and of one life.
type tail struct {
	life    uint64
	entries []entryOf
}

// entryOf is the entry of one change.
type entryOf struct{ revision, position uint64 }

func sealTail(key []byte, t tail) []byte {
	var body []byte
	var last entryOf
	for _, e := range t.entries {
		body = binary.AppendUvarint(body, e.revision-last.revision)
		body = binary.AppendUvarint(body, e.position-last.position)
		last = e
	}
	return checked(seal(tailsBucket, key, len(body)+4, t.life), body)
}

// readTail decodes a tail; no value is an empty one.
func readTail(key, value []byte) (tail, error) {
	if value == nil {
		return tail{}, nil
	}
	head, body, err := unseal(tailsBucket, key, value)
	if err != nil {
		return tail{}, err
	}
	if body, err = unchecked(body); err != nil {
		return tail{}, err
	}
	t := tail{life: binary.BigEndian.Uint64(head)}
	f := fields{rest: body}
	var last entryOf
	for len(f.rest) > 0 {
		last = entryOf{last.revision + f.uvarint(), last.position + f.uvarint()}
		t.entries = append(t.entries, last)
	}
	if f.short {
		return tail{}, fmt.Errorf("list of changes is cut short: %w", snapshot.ErrCorrupt)
	}
	return t, nil
}

// note files a change, which is not in the log yet, under its entity.
func (c *commit) note(change *persist.Change) error {
	k := recordKey(change.Key)
	t, err := c.tailOf(k, change.Key)
	if err != nil {
		return err
	}
	if len(t.entries) > 0 && (t.life != change.Life || len(t.entries) >= c.s.cfg.tail) {
		if err := c.move(change.Key, t); err != nil {
			return err
		}
		t.entries = nil
	}
	t.life = change.Life
	t.entries = append(t.entries, entryOf{change.Revision, change.Position})
	return c.tails.Put(k, sealTail(k, t))
}

// tailOf returns an entity's tail. One that cannot be read is given up; see
// refile.
func (c *commit) tailOf(k []byte, key persist.Key) (tail, error) {
	t, err := readTail(k, c.tails.Get(k))
	if !errors.Is(err, snapshot.ErrCorrupt) {
		return t, err
	}
	return tail{}, c.refile(map[persist.Key]struct{}{key: {}})
}

// refile gives up the tails of entities: what the log has of these is filed in
// the changes bucket instead. That fails with errTail, after all that can be
// filed was, when it may lack an event; then the tails stay.
func (c *commit) refile(keys map[persist.Key]struct{}) error {
	found, lack := c.loggedOf(keys)
	for i := range found {
		if err := c.file(found[i].Key, found[i].Life, entryOf{found[i].Revision, found[i].Position}); err != nil {
			return err
		}
	}
	if lack != nil {
		return lackOf(lack)
	}
	for key := range keys {
		if err := c.tails.Delete(recordKey(key)); err != nil {
			return err
		}
	}
	return nil
}

// loggedOf returns what the log has of entities, without the data, and why that
// may not be all.
func (c *commit) loggedOf(keys map[persist.Key]struct{}) (found []persist.Change, lack error) {
	met := guard(c.s.path, func() error {
		cursor := c.log.Cursor()
		for p, v := cursor.First(); p != nil; p, v = cursor.Next() {
			change := readChange(p, v)
			change.Data = nil
			if _, ours := keys[change.Key]; ours {
				found = append(found, change)
			} else if c.s.format >= formatEvents && isLacking(p, v, &change) {
				lack = change.Err
			}
		}
		return nil
	})
	if met != nil {
		lack = met
	}
	return found, lack
}

// move files a tail's entries in the changes bucket, but for those of changes
// that were trimmed meanwhile.
func (c *commit) move(key persist.Key, t tail) error {
	for _, e := range t.entries {
		if e.position <= c.s.trimmed && c.log.Get(positionKey(e.position)) == nil {
			continue
		}
		if err := c.file(key, t.life, e); err != nil {
			return err
		}
	}
	return nil
}

func (c *commit) file(key persist.Key, life uint64, e entryOf) error {
	k := changeKey(changesPrefix(key), life, e.revision)
	return c.changes.Put(k, seal(changesBucket, k, 0, e.position))
}

// lastChange returns the life that a forced deletion ends, and that life's last
// revision in the journal, 0 if there is none. An unreadable record's life is
// the unit's, or else the journal's, or else a new one.
func (c *commit) lastChange(u *persist.Unit, b stored) (life, revision uint64, err error) {
	life = b.life
	if !b.readable {
		life = u.Life
	}
	k := recordKey(u.Key)
	t, err := c.tailOf(k, u.Key)
	if errors.Is(err, errTail) { // a deletion must end also this
		err = c.tails.Delete(k)
	}
	if err != nil {
		return 0, 0, err
	}
	if n := len(t.entries); n > 0 && (life == 0 || life == t.life) {
		return t.life, t.entries[n-1].revision, nil
	}
	prefix := changesPrefix(u.Key)
	end := life
	if end == 0 {
		end = ^uint64(0)
	}
	behind := changeKey(prefix, end, ^uint64(0))
	cursor := c.changes.Cursor()
	k, _ = cursor.Seek(behind)
	switch {
	case k == nil:
		k, _ = cursor.Last()
	case !bytes.Equal(k, behind):
		k, _ = cursor.Prev()
	}
	if bytes.HasPrefix(k, prefix) {
		l, r, err := parseChangeKey(prefix, k)
		if err != nil {
			return 0, 0, err
		}
		if life == 0 || life == l {
			return l, r, nil
		}
	}
	if life == 0 {
		life = c.next
	}
	return life, 0, nil
}
