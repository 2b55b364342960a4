package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// check reads the file's pages, before bbolt does, and returns the newest meta
// page. With full set it walks everything that can be reached; without, only
// the meta pages and the list of free pages are looked at, and one damaged
// meta page is passed over.
//
// The walk reads each page once, and of the pages that a large value fills
// only those that hold a key. A page passes when it says its own number, its
// kind, sizes that stay inside it, keys in order and between those of its
// parent, and (in this store's buckets) seals that fit; and when nothing else
// refers to it. Values are not read: each has a checksum that is tested when
// it is, so that damage in one harms that one alone.
func check(f io.ReaderAt, size int64, path string, full bool) (meta, error) {
	c, m, err := checkStart(f, size, path, !full)
	if err != nil {
		return meta{}, err
	}
	if m.freelist == noFreelist {
		full = true // bbolt walks all pages then, unguarded
	}
	if !full {
		return m, nil
	}
	return m, c.all(m.root)
}

// checkStart checks the meta pages and the list of free pages. The checker that
// it returns has accounted for these.
func checkStart(f io.ReaderAt, size int64, path string, oneMeta bool) (*checker, meta, error) {
	m, ok, err := readMetas(f, path)
	if err != nil && (!ok || !oneMeta) {
		return nil, meta{}, err
	}
	if m.pages < 4 || m.pages > uint64(size)/uint64(m.pageSize) {
		return nil, meta{}, fmt.Errorf("%s: %w: it has %d bytes but says that it uses %d pages of %d bytes: it was cut short; restore it from a backup",
			path, ErrDamaged, size, m.pages, m.pageSize)
	}
	c := &checker{
		f: f, path: path, size: uint64(m.pageSize), pages: m.pages,
		seen: make([]uint64, m.pages/64+1),
		buf:  make([]byte, m.pageSize),
	}
	if m.freelist != noFreelist {
		if err := c.freelist(m.freelist); err != nil {
			return nil, meta{}, err
		}
	}
	return c, m, nil
}

// checker walks a file's pages.
type checker struct {
	f     io.ReaderAt
	path  string
	size  uint64 // of a page
	pages uint64
	seen  []uint64        // one bit a page: already accounted for; nil: that is not looked at
	buf   []byte          // the page being read, grown to what is needed of its run
	stop  <-chan struct{} // closed: give up; nil: never
}

// fork returns a checker that goes on from here, by itself.
func (c *checker) fork() *checker {
	other := *c
	other.seen, other.buf = slices.Clone(c.seen), make([]byte, c.size)
	return &other
}

// bucketRoot is a bucket found in the root tree.
type bucketRoot struct {
	name   string
	page   uint64 // 0: inline
	inline []byte // a copy of the one page of a small bucket
	at     uint64 // the page that it was found in
}

func (c *checker) bad(page uint64, format string, args ...any) error {
	return damaged(c.path, page, format, args...)
}

// mark accounts for a run of pages, once.
func (c *checker) mark(page, n uint64) error {
	if page < 2 || page >= c.pages || n > c.pages-page {
		return c.bad(page, "pages %d to %d are not all within the file's %d", page, page+n-1, c.pages)
	}
	for p := page; p < page+n && c.seen != nil; p++ {
		if c.seen[p/64]&(1<<(p%64)) != 0 {
			return c.bad(p, "two places refer to it")
		}
		c.seen[p/64] |= 1 << (p % 64)
	}
	return nil
}

// read reads the first n bytes of the run at page into the buffer.
func (c *checker) read(page, n uint64) error {
	if n > uint64(len(c.buf)) {
		c.buf = make([]byte, n)
	}
	if _, err := c.f.ReadAt(c.buf[:n], int64(page*c.size)); err != nil {
		if errors.Is(err, io.EOF) {
			return c.bad(page, "the file ends inside it")
		}
		return c.bad(page, "%v", err)
	}
	return nil
}

// head reads a page, checks that it is itself and of one of the kinds, and
// accounts for its run.
func (c *checker) head(page uint64, kinds uint16) (header, error) {
	select {
	case <-c.stop:
		return header{}, errStopped
	default:
	}
	if page < 2 || page >= c.pages {
		return header{}, c.bad(page, "it is referred to but not within the file's %d pages", c.pages)
	}
	if err := c.read(page, c.size); err != nil {
		return header{}, err
	}
	h := parseHeader(c.buf)
	if h.id != page {
		return h, c.bad(page, "it says that it is page %d", h.id)
	}
	if h.flags == 0 || h.flags&^kinds != 0 || h.flags&(h.flags-1) != 0 {
		return h, c.bad(page, "it is of kind %#x, which is not expected here", h.flags)
	}
	return h, c.mark(page, h.overflow+1)
}

// freelist checks the list of free pages and accounts for these.
func (c *checker) freelist(page uint64) error {
	h, err := c.head(page, freeFlag)
	if err != nil {
		return err
	}
	n, first := uint64(h.count), uint64(0)
	if h.count == freeMany {
		n, first = binary.NativeEndian.Uint64(c.buf[headerSize:]), 1
	}
	room := ((h.overflow+1)*c.size - headerSize) / 8
	if n > room-first {
		return c.bad(page, "it lists %d free pages but has room for %d", n, room-first)
	}
	if err := c.read(page, headerSize+(first+n)*8); err != nil {
		return err
	}
	for i := first; i < first+n; i++ {
		if err := c.mark(binary.NativeEndian.Uint64(c.buf[headerSize+i*8:]), 1); err != nil {
			return fmt.Errorf("list of free pages on page %d: %w", page, err)
		}
	}
	return nil
}

// all walks every bucket, the store's own numbers first: a newer format is
// refused as such and not as damage.
func (c *checker) all(root uint64) error {
	var buckets []bucketRoot
	tree := walk{c: c, root: true, found: func(b bucketRoot) { buckets = append(buckets, b) }}
	if err := tree.page(root, nil, nil); err != nil {
		return err
	}
	for _, metaFirst := range []bool{true, false} {
		for _, b := range buckets {
			if (b.name == metaBucket) != metaFirst {
				continue
			}
			if err := c.bucket(b, span{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket walks a bucket, or the part of it that has the keys of a span.
func (c *checker) bucket(b bucketRoot, part span) error { return c.walkBucket(b, part, nil, nil) }

// walkBucket is bucket; lose and keep are those of the walk.
func (c *checker) walkBucket(b bucketRoot, part span, lose func(uint64, []byte, []byte, error), keep func(page uint64, low, first, last []byte)) error {
	w := walk{c: c, bucket: b.name, span: part, lose: lose, keep: keep}
	w.head, w.sealed = headSize(b.name)
	if b.page != 0 {
		return w.page(b.page, nil, nil)
	}
	h := parseHeader(b.inline)
	if h.flags != leafFlag {
		return c.bad(b.at, "the small bucket %q in it is of kind %#x", b.name, h.flags)
	}
	return w.leaf(b.at, leaf{raw: b.inline, length: uint64(len(b.inline)), count: h.count}, nil, nil)
}

// walk checks the tree of one bucket, or of the root.
type walk struct {
	c      *checker
	root   bool
	found  func(bucketRoot)
	bucket string
	sealed bool // values have seals
	head   int  // bytes of a value that the seal covers

	span   span // the keys that matter
	met    int  // how many of them were met
	enough bool // all of it was met, and the key behind it

	// lose, if set, is told of a page that is damaged, and the walk goes on behind
	// it; keep is told of each leaf that is not, with its first and its last key.
	lose  func(page uint64, low, high []byte, why error)
	keep  func(page uint64, low, first, last []byte)
	depth int
}

// meet counts a key.
func (w *walk) meet(key []byte) {
	if bytes.Compare(key, w.span.from) < 0 {
		return
	}
	w.met++
	w.enough = w.enough || w.met == w.span.most || w.span.before != nil && bytes.Compare(key, w.span.before) >= 0
}

// page checks the tree below a page, whose keys must be at least low and below
// high (nil: no bound).
func (w *walk) page(id uint64, low, high []byte) error {
	if w.depth++; w.depth > maxDepth {
		return w.c.bad(id, "it is too deep below the root")
	}
	defer func() { w.depth-- }()
	h, err := w.c.head(id, branchFlag|leafFlag)
	if err != nil {
		return err
	}
	length := (h.overflow + 1) * w.c.size
	table := headerSize + uint64(h.count)*elementSize
	if table > length {
		return w.c.bad(id, "its %d elements do not fit into it", h.count)
	}
	loaded := w.c.size
	if table > loaded || h.flags == branchFlag {
		loaded = length // a branch is keys alone
		if err := w.c.read(id, loaded); err != nil {
			return err
		}
	}
	if h.flags == branchFlag {
		return w.branch(id, h.count, length, low, high)
	}
	return w.leaf(id, leaf{raw: w.c.buf[:loaded], length: length, count: h.count}, low, high)
}

type child struct {
	key  []byte
	page uint64
}

func (w *walk) branch(id uint64, count int, length uint64, low, high []byte) error {
	if count == 0 {
		return w.c.bad(id, "it is a branch without children")
	}
	children := make([]child, count)
	keys := make([]byte, 0, w.c.size)
	packed := packing(count)
	for i := range children {
		at := uint64(headerSize + i*elementSize)
		e := w.c.buf[at:]
		start, n := at+uint64(binary.NativeEndian.Uint32(e)), uint64(binary.NativeEndian.Uint32(e[4:]))
		if n > maxKeySize || start < headerSize || start+n > length {
			return w.c.bad(id, "the key of its element %d is not inside it", i)
		}
		if !packed.follows(start, n) {
			return w.c.bad(id, "its element %d does not begin where the one before it ends", i)
		}
		keys = append(keys, w.c.buf[start:start+n]...)
		children[i] = child{key: keys[len(keys)-int(n):], page: binary.NativeEndian.Uint64(e[8:])}
	}
	for i, k := range children {
		if err := w.inOrder(id, i, k.key, low, high); err != nil {
			return err
		}
		low = k.key
	}
	for i, k := range children {
		next := high
		if i+1 < count {
			next = children[i+1].key
		}
		if w.enough || next != nil && bytes.Compare(next, w.span.from) <= 0 {
			continue
		}
		err := w.page(k.page, k.key, next)
		if err != nil && w.lose != nil {
			w.lose(k.page, k.key, next, err)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inOrder tests low <= key < high. Only the first key of a page may equal low.
func (w *walk) inOrder(id uint64, i int, key, low, high []byte) error {
	c := bytes.Compare(key, low)
	if c < 0 || (c == 0 && i > 0) || (high != nil && bytes.Compare(key, high) >= 0) {
		return w.c.bad(id, "the key of its element %d is out of order", i)
	}
	return nil
}

// leaf is a leaf's bytes as far as they were read.
type leaf struct {
	raw    []byte
	length uint64 // of the whole run
	count  int
}

func (w *walk) leaf(id uint64, l leaf, low, high []byte) error {
	if uint64(headerSize+l.count*elementSize) > l.length {
		return w.c.bad(id, "its %d elements do not fit into it", l.count)
	}
	if l.count == 0 && !empty(l.raw) {
		return w.c.bad(id, "it has no elements but is not empty")
	}
	// bbolt removes pages that become empty, and a bucket that does is no page.
	if l.count == 0 && w.depth > 0 && (!w.root || w.depth > 1) {
		return w.c.bad(id, "it has no elements, which no page of a bucket may have")
	}
	packed, bound, first := packing(l.count), low, []byte(nil)
	for i := range l.count {
		at := uint64(headerSize + i*elementSize)
		e := l.raw[at:]
		flags, n, size := binary.NativeEndian.Uint32(e), uint64(binary.NativeEndian.Uint32(e[8:])), uint64(binary.NativeEndian.Uint32(e[12:]))
		start := at + uint64(binary.NativeEndian.Uint32(e[4:]))
		if n == 0 || n > maxKeySize || start < headerSize || start+n+size > l.length {
			return w.c.bad(id, "its element %d is not inside it", i)
		}
		if !packed.follows(start, n+size) {
			return w.c.bad(id, "its element %d does not begin where the one before it ends", i)
		}
		if (flags == bucketElement) != w.root || flags&^bucketElement != 0 {
			return w.c.bad(id, "its element %d is of kind %#x, which is not expected here", i, flags)
		}
		want := n + uint64(sealSize+w.head)
		if w.root {
			want = n + size
		}
		b, err := w.part(id, l, start, min(want, n+size))
		if err != nil {
			return err
		}
		key := b[:n]
		if err := w.inOrder(id, i, key, low, high); err != nil {
			return err
		}
		if err := w.element(id, i, key, b[n:]); err != nil {
			return err
		}
		w.meet(key)
		if low = key; i == 0 {
			first = key
		}
	}
	if w.keep != nil {
		w.keep(id, bound, first, low)
	}
	return nil
}

// packed follows the elements of a page, which bbolt writes one behind the
// other, the first right behind the table. So a count that was damaged shows:
// the table would have another length.
type packed struct{ next uint64 }

func packing(count int) packed { return packed{uint64(headerSize + count*elementSize)} }

func (p *packed) follows(start, n uint64) bool {
	ok := start == p.next
	p.next = start + n
	return ok
}

// empty reports whether nothing stands where a leaf's first element would.
func empty(raw []byte) bool {
	for _, b := range raw[headerSize:min(len(raw), headerSize+elementSize)] {
		if b != 0 {
			return false
		}
	}
	return true
}

// part returns bytes of a leaf, from the file where they were not read yet.
func (w *walk) part(id uint64, l leaf, start, n uint64) ([]byte, error) {
	if start+n <= uint64(len(l.raw)) {
		return l.raw[start : start+n], nil
	}
	b := make([]byte, n)
	if _, err := w.c.f.ReadAt(b, int64(id*w.c.size+start)); err != nil {
		return nil, w.c.bad(id, "%v", err)
	}
	return b, nil
}

// element checks a key with the start of its value.
func (w *walk) element(id uint64, i int, key, value []byte) error {
	if w.root {
		if len(value) < bucketSize {
			return w.c.bad(id, "the bucket %q in it has %d bytes", key, len(value))
		}
		b := bucketRoot{name: string(key), page: binary.NativeEndian.Uint64(value), at: id}
		if b.page == 0 {
			b.inline = bytes.Clone(value[bucketSize:])
			if len(b.inline) < headerSize {
				return w.c.bad(id, "the bucket %q in it has %d bytes", key, len(value))
			}
		}
		w.found(b)
		return nil
	}
	if !w.sealed {
		return nil
	}
	if len(value) < sealSize+w.head {
		if valueDamaged(w.bucket, key, value) {
			return nil
		}
		return w.c.bad(id, "the value of its element %d is too short", i)
	}
	head := value[sealSize : sealSize+w.head]
	fits := sealed(binary.BigEndian.Uint32(value), w.bucket, key, head)
	if w.bucket == metaBucket && string(key) == formatKey {
		// A newer layout may seal differently: its number alone decides.
		if n := binary.BigEndian.Uint64(head); n > formatVersion && fits {
			return fmt.Errorf("%s: %w", w.c.path, knownFormat(n, true))
		}
	}
	if !fits && !valueDamaged(w.bucket, key, value) {
		return w.c.bad(id, "the key of its element %d does not fit its value", i)
	}
	return nil
}
