package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sort"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// sound is what a walk has found of a file that is read although it is damaged,
// with Config.ReadOnly and Config.NoVerify: the leaves that passed every check,
// and what lies between them. It is read around bbolt, whose cursors end at a
// damaged page or read nonsense from it. Nobody writes to the file meanwhile.
type sound struct {
	c      *checker
	roots  map[string]bucketRoot
	leaves map[string][]soundLeaf
	lost   []lostPart
}

// soundLeaf is a page of a bucket; low is the first key that it may have, nil
// for any.
type soundLeaf struct {
	low    []byte
	page   uint64
	inline []byte // of a small bucket, which has no page
}

// lostPart is a page that cannot be read, with all below it: keys of a bucket
// from low on and before high, as the page above has it. nil is no bound. That
// may be what is damaged, so that any key may be meant that stands behind the
// last one of the leaf before, and before the first one of the leaf behind.
type lostPart struct {
	bucket      string
	page        uint64
	low, high   []byte
	last, first []byte
	why         error
}

// maxDepth bounds the walk where a damaged branch leads back to itself.
const maxDepth = 32

// findSound walks the whole file. Only damage to the root, by which the buckets
// are found, ends it.
func findSound(f io.ReaderAt, path string) (*sound, error) {
	m, ok, err := readMetas(f, path)
	if !ok {
		return nil, err
	}
	s := &sound{roots: map[string]bucketRoot{}, leaves: map[string][]soundLeaf{}}
	s.c = &checker{f: f, path: path, size: uint64(m.pageSize), pages: m.pages, buf: make([]byte, m.pageSize)}
	var buckets []bucketRoot
	tree := walk{c: s.c, root: true, found: func(b bucketRoot) { buckets = append(buckets, b) }}
	if err := tree.page(m.root, nil, nil); err != nil {
		return nil, err
	}
	for _, b := range buckets {
		s.roots[b.name] = b
		s.bucket(b)
	}
	return s, nil
}

// bucket walks a bucket and notes what is sound of it.
func (s *sound) bucket(b bucketRoot) {
	var behind []byte // the last key that was kept
	bounded := len(s.lost)
	lose := func(page uint64, low, high []byte, why error) {
		s.lost = append(s.lost, lostPart{bucket: b.name, page: page, low: bytes.Clone(low), high: bytes.Clone(high), last: behind, why: why})
	}
	keep := func(page uint64, low, first, last []byte) {
		s.leaves[b.name] = append(s.leaves[b.name], soundLeaf{low: bytes.Clone(low), page: page, inline: b.inline})
		behind = bytes.Clone(last)
		for ; bounded < len(s.lost); bounded++ {
			s.lost[bounded].first = bytes.Clone(first)
		}
	}
	if err := s.c.walkBucket(b, span{}, lose, keep); err != nil {
		lose(max(b.page, b.at), nil, nil, err)
	}
}

// isLost says whether a key may stand in a part that cannot be read.
func (s *sound) isLost(bucket string, key []byte) (lostPart, bool) {
	for _, p := range s.lost {
		if p.bucket == bucket && bytes.Compare(key, p.last) > 0 && (p.first == nil || bytes.Compare(key, p.first) < 0) {
			return p, true
		}
	}
	return lostPart{}, false
}

// from returns the leaves that have the keys from a key on.
func (s *sound) from(bucket string, key []byte) []soundLeaf {
	leaves := s.leaves[bucket]
	behind := sort.Search(len(leaves), func(i int) bool { return bytes.Compare(leaves[i].low, key) > 0 })
	return leaves[max(behind-1, 0):]
}

// each calls fn for the entries of a leaf, in order, until it returns false. The
// leaf was sound, so that its table is right; each value has its own checksum.
func (s *sound) each(l soundLeaf, fn func(k, v []byte) (bool, error)) (more bool, err error) {
	raw := l.inline
	if raw == nil {
		head := make([]byte, headerSize)
		if _, err := s.c.f.ReadAt(head, int64(l.page*s.c.size)); err != nil {
			return false, s.c.bad(l.page, "%v", err)
		}
		raw = make([]byte, (parseHeader(head).overflow+1)*s.c.size)
		if _, err := s.c.f.ReadAt(raw, int64(l.page*s.c.size)); err != nil {
			return false, s.c.bad(l.page, "%v", err)
		}
	}
	for i := range parseHeader(raw).count {
		at := headerSize + i*elementSize
		e := raw[at:]
		start := at + int(binary.NativeEndian.Uint32(e[4:]))
		n, size := int(binary.NativeEndian.Uint32(e[8:])), int(binary.NativeEndian.Uint32(e[12:]))
		if start+n+size > len(raw) {
			return false, s.c.bad(l.page, "it has changed while it was read")
		}
		if more, err := fn(raw[start:start+n], raw[start+n:start+n+size]); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// scanSound is scan in a damaged file: it goes on behind what cannot be read.
func (s *Store) scanSound(ctx context.Context, bucket string, seek []byte,
	fn func(tx *bbolt.Tx, k, v []byte) (bool, error), last func(tx *bbolt.Tx) error) error {
	for _, l := range s.sound.from(bucket, seek) {
		more := false
		err := s.view(ctx, func(tx *bbolt.Tx) (err error) {
			more, err = s.sound.each(l, func(k, v []byte) (bool, error) {
				if bytes.Compare(k, seek) < 0 {
					return true, nil
				}
				return fn(tx, k, v)
			})
			return err
		})
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if last == nil {
		return nil
	}
	return s.view(ctx, last)
}

// soundValue returns the value of a key in a damaged file, nil if there is none.
func (s *Store) soundValue(ctx context.Context, bucket string, key []byte) (value []byte, err error) {
	if part, lost := s.sound.isLost(bucket, key); lost {
		return nil, fmt.Errorf("%w: %w", snapshot.ErrCorrupt, part.why)
	}
	err = s.scanSound(ctx, bucket, key, func(_ *bbolt.Tx, k, v []byte) (bool, error) {
		if bytes.Equal(k, key) {
			value = bytes.Clone(v)
		}
		return false, nil
	}, nil)
	return value, err
}

// loadSound is Load in a damaged file.
func (s *Store) loadSound(ctx context.Context, key persist.Key, k []byte) (r snapshot.Record, err error) {
	v, err := s.soundValue(ctx, recordsBucket, k)
	switch {
	case err != nil:
	case v == nil || key.Check() != nil:
		err = persist.ErrNotFound
	default:
		r, err = readRecord(k, v)
	}
	if err != nil {
		return snapshot.Record{}, unreadable(key.String(), err)
	}
	return r, nil
}

// rowsOfSound is RowsOf in a damaged file.
func (s *Store) rowsOfSound(ctx context.Context, key persist.Key) (rows []persist.Row, err error) {
	if key.Check() != nil {
		return nil, nil
	}
	kinds, err := s.startsSound(ctx, rowsBucket)
	if err != nil {
		return nil, unreadable("kinds of rows", err)
	}
	for _, kind := range kinds {
		prefix := rowsPrefix(kind, key)
		err := s.scanSound(ctx, rowsBucket, prefix, func(_ *bbolt.Tx, k, v []byte) (bool, error) {
			if !bytes.HasPrefix(k, prefix) {
				return false, nil
			}
			if row, ok := readRow(k, v); ok {
				rows = append(rows, row)
			}
			return true, nil
		}, nil)
		if err != nil {
			return nil, unreadable(fmt.Sprintf("rows of %s", key), err)
		}
	}
	return rows, nil
}

// podsSound is Pods in a damaged file.
func (s *Store) podsSound(ctx context.Context) ([]string, error) {
	pods, err := s.startsSound(ctx, recordsBucket)
	if err != nil {
		return nil, unreadable("pods", err)
	}
	return pods, nil
}

// startsSound returns what the keys of a bucket in a damaged file begin with, up
// to their first zero.
func (s *Store) startsSound(ctx context.Context, bucket string) (starts []string, err error) {
	for seek := []byte(nil); ; {
		start, found := "", false
		err := s.scanSound(ctx, bucket, seek, func(_ *bbolt.Tx, k, _ []byte) (bool, error) {
			start, found = keyOf(k).Pod, true
			return false, nil
		}, nil)
		if err != nil || !found {
			return starts, err
		}
		starts, seek = append(starts, start), append([]byte(start), 1)
	}
}

// Lost implements persist.Lossy: it lists the pages that cannot be read, of a
// store that was opened with Config.ReadOnly and Config.NoVerify.
func (s *Store) Lost() (problems []persist.Problem) {
	if s.sound == nil {
		return nil
	}
	for _, p := range s.sound.lost {
		problem := persist.Problem{Kind: persist.LostPart, Err: fmt.Errorf("the part of %s on page %d%s: %w", p.bucket, p.page, p.extent(), p.why)}
		if p.bucket == recordsBucket {
			problem.Key = keyOf(p.low)
		}
		problems = append(problems, problem)
	}
	return problems
}

// keyOf is the entity of a key of the records.
func keyOf(k []byte) persist.Key {
	pod, name, _ := bytes.Cut(k, []byte{0})
	return persist.Key{Pod: string(pod), Name: string(name)}
}

// extent says for people which keys a lost part may have had.
func (p *lostPart) extent() string {
	shown := func(k []byte) string {
		switch {
		case p.bucket == logBucket && len(k) == 8:
			return fmt.Sprintf("position %d", positionOf(k))
		case p.bucket == recordsBucket || p.bucket == tailsBucket:
			return keyOf(k).String()
		}
		return fmt.Sprintf("%q", k)
	}
	text := ""
	if p.low != nil {
		text = ", from " + shown(p.low)
	}
	if p.high != nil {
		text += ", before " + shown(p.high)
	}
	return text
}
