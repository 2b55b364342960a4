package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// What bbolt's file looks like: pages in the machine's byte order, each run of
// pages headed by its own number.
//
//	header  id 8, flags 2, count 2, overflow 4 (pages that follow in the run)
//	branch  header, count × (pos 4, key size 4, page 8), keys
//	leaf    header, count × (flags 4, pos 4, key size 4, value size 4), keys and values
//	free    header, ids of free pages 8 each (their number first from 65,535 on)
//	meta    header, magic 4, version 4, page size 4, flags 4, root 8, sequence 8,
//	        free list 8, pages 8, transaction 8, FNV-1a of the fields before 8
//
// pos counts from the element it stands in. A bucket is a leaf's element with
// flag 1, whose value is a root page 8, a sequence 8 and, when the root is 0,
// the bucket's one page itself.
const (
	headerSize  = 16
	elementSize = 16
	metaSize    = headerSize + 64
	bucketSize  = 16

	branchFlag = 0x01
	leafFlag   = 0x02
	metaFlag   = 0x04
	freeFlag   = 0x10

	bucketElement = 0x01

	metaMagic   = 0xED0CDAED
	metaVersion = 2

	noFreelist = ^uint64(0)
	freeMany   = 0xFFFF // a free list of this count has its true one first

	minPageSize = 512
	maxPageSize = 16 << 20
	maxKeySize  = 32768
)

// header is the start of a run of pages.
type header struct {
	id       uint64
	flags    uint16
	count    int
	overflow uint64
}

func parseHeader(b []byte) header {
	return header{
		id:       binary.NativeEndian.Uint64(b),
		flags:    binary.NativeEndian.Uint16(b[8:]),
		count:    int(binary.NativeEndian.Uint16(b[10:])),
		overflow: uint64(binary.NativeEndian.Uint32(b[12:])),
	}
}

// meta is one of the two pages that say where everything begins.
type meta struct {
	page     uint64 // 0 or 1
	pageSize int64
	root     uint64
	freelist uint64
	pages    uint64 // how many the file uses
	txid     uint64
}

func parseMeta(b []byte, page uint64) (meta, error) {
	h := parseHeader(b)
	m := meta{
		page:     page,
		pageSize: int64(binary.NativeEndian.Uint32(b[24:])),
		root:     binary.NativeEndian.Uint64(b[32:]),
		freelist: binary.NativeEndian.Uint64(b[48:]),
		pages:    binary.NativeEndian.Uint64(b[56:]),
		txid:     binary.NativeEndian.Uint64(b[64:]),
	}
	hash := fnv.New64a()
	_, _ = hash.Write(b[headerSize : headerSize+56]) // a hash's Write never fails
	switch {
	case binary.NativeEndian.Uint32(b[16:]) != metaMagic:
		return m, errors.New("it does not begin like a bbolt file")
	case binary.NativeEndian.Uint32(b[20:]) != metaVersion:
		return m, fmt.Errorf("it has bbolt's file version %d, not %d", binary.NativeEndian.Uint32(b[20:]), metaVersion)
	case binary.NativeEndian.Uint64(b[72:]) != hash.Sum64():
		return m, errors.New("its checksum is wrong")
	case h.id != page || h.flags != metaFlag:
		return m, fmt.Errorf("it says that it is page %d with flags %#x", h.id, h.flags)
	case m.pageSize < minPageSize || m.pageSize > maxPageSize || m.pageSize&(m.pageSize-1) != 0:
		return m, fmt.Errorf("it says that pages have %d bytes", m.pageSize)
	}
	return m, nil
}

// readMeta reads the meta page at the given offset.
func readMeta(f io.ReaderAt, page uint64, offset int64) (meta, error) {
	var b [metaSize]byte
	if _, err := f.ReadAt(b[:], offset); err != nil {
		if errors.Is(err, io.EOF) {
			return meta{}, errors.New("the file ends before it")
		}
		return meta{}, err
	}
	return parseMeta(b[:], page)
}

// readMetas reads both meta pages and returns the newer. When one of them is
// damaged, err says so and newest is the other; when both are, ok is false.
func readMetas(f io.ReaderAt, path string) (newest meta, ok bool, err error) {
	m0, err0 := readMeta(f, 0, 0)
	if err0 != nil {
		// The page size is not known then: look where the second can be.
		for size := int64(minPageSize); size <= maxPageSize; size *= 2 {
			if m1, err1 := readMeta(f, 1, size); err1 == nil && m1.pageSize == size {
				return m1, true, damaged(path, 0, "%v", err0)
			}
		}
		return meta{}, false, damaged(path, 0, "%v", err0)
	}
	m1, err1 := readMeta(f, 1, m0.pageSize)
	switch {
	case err1 != nil:
		return m0, true, damaged(path, 1, "%v", err1)
	case m1.txid > m0.txid:
		return m1, true, nil
	}
	return m0, true, nil
}

// damaged is an error about one page.
func damaged(path string, page uint64, format string, args ...any) error {
	return fmt.Errorf("%s: %w: page %d: %s; restore the file from a backup, or copy what is whole with `twinsrv store copy --skip-unreadable`",
		path, ErrDamaged, page, fmt.Sprintf(format, args...))
}
