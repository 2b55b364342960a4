package bolt

import (
	"errors"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// loadSound reads the store's own numbers in a damaged file. One that cannot be
// read is worth no record: the next position is then behind all that there is,
// and no log is known to stand in front. Only a newer format is refused, and a
// file that says none and has lost nothing in which it could stand.
func (o *opened) loadSound(b *bbolt.Bucket) (err error) {
	lost := false
	for _, p := range o.sound.lost {
		if errors.Is(p.why, ErrFormat) {
			return p.why
		}
		lost = lost || p.bucket == metaBucket
	}
	legible := !lost || o.sound.isLeaf(metaBucket)
	number := func(key string) (uint64, bool) {
		if !legible {
			return 0, false
		}
		n, ok, err := getNumber(b, key)
		return n, ok && err == nil
	}
	format, ok := number(formatKey)
	if !ok && lost {
		format, ok = formatEvents, true
		if _, logged := number(plainKey); logged {
			format = formatLogged
		}
	}
	if err := knownFormat(format, ok); err != nil {
		return err
	}
	o.format, o.mark = formatEvents, persist.Mark{}
	if legible {
		if plain, mark, err := loadMark(b, format); err == nil {
			o.format, o.mark = plain, mark
		}
	}
	if o.next, ok = number(nextKey); !ok || o.next == 0 {
		o.next, err = o.sound.newest()
		o.next++
	}
	return err
}

// isLeaf says whether a bucket's root, which is damaged, is at least a leaf: of a
// branch, bbolt may go round for ever.
func (s *sound) isLeaf(bucket string) bool {
	root := s.roots[bucket]
	if root.page == 0 {
		return parseHeader(root.inline).flags == leafFlag
	}
	if s.c.read(root.page, s.c.size) != nil {
		return false
	}
	h := parseHeader(s.c.buf)
	return h.id == root.page && h.flags == leafFlag
}

// newest is the highest position that is read, of a change or as a life.
func (s *sound) newest() (position uint64, err error) {
	take := func(n []byte) {
		if len(n) >= 8 {
			position = max(position, positionOf(n))
		}
	}
	for _, l := range s.leaves[logBucket] {
		if _, err := s.each(l, func(k, _ []byte) (bool, error) { take(k); return true, nil }); err != nil {
			return 0, err
		}
	}
	for _, l := range s.leaves[recordsBucket] {
		_, err := s.each(l, func(k, v []byte) (bool, error) {
			if head, _, err := unseal(recordsBucket, k, v); err == nil {
				take(head) // of its life
			}
			return true, nil
		})
		if err != nil {
			return 0, err
		}
	}
	return position, nil
}
