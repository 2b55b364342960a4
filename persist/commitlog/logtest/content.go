package logtest

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
)

// Sector is the number of bytes that a disk writes whole or not at all.
const Sector = 512

// content is that of a file.
type content struct {
	named    bool            // its name is durable
	shown    []byte          // what reads show
	kept     []byte          // what is durable
	unsynced map[int]*sector // by number: those of which kept is not sure to have what is shown
}

// sector is one that was written since it was durable.
type sector struct {
	// dirty says that the next sync writes it. One that is not was given up by a
	// sync that failed: the system takes it for clean, and no sync writes it
	// until it is written to again.
	dirty bool
	// older are what it has shown meanwhile. The system may have written any of
	// them to the disk.
	older [][]byte
}

func newContent() *content { return &content{unsynced: map[int]*sector{}} }

// write writes bytes, of which any part may be durable from now on.
func (c *content) write(b []byte, at int64) {
	if len(b) == 0 {
		return
	}
	first, last := int(at/Sector), int((at+int64(len(b))-1)/Sector)
	for i := first; i <= last; i++ {
		if s := c.unsynced[i]; s != nil {
			s.dirty, s.older = true, append(s.older, bytes.Clone(piece(c.shown, i)))
		} else {
			c.unsynced[i] = &sector{dirty: true}
		}
	}
	c.shown = resize(c.shown, max(len(c.shown), int(at)+len(b)))
	copy(c.shown[at:], b)
}

// sync makes durable the name, what is dirty, and the size as far as that goes.
func (c *content) sync() {
	c.named = true
	size := len(c.kept)
	for i, s := range c.unsynced {
		if s.dirty {
			size = max(size, min((i+1)*Sector, len(c.shown)))
		}
	}
	c.kept = resize(c.kept, size)
	for i, s := range c.unsynced {
		if s.dirty {
			copy(piece(c.kept, i), piece(c.shown, i))
			delete(c.unsynced, i)
		}
	}
}

// syncFails gives up what is dirty, and the size that it would have made durable.
// Some of it may have been written.
func (c *content) syncFails(rng *rand.Rand) {
	for _, i := range slices.Sorted(maps.Keys(c.unsynced)) {
		s := c.unsynced[i]
		s.dirty = false
		if rng != nil && rng.IntN(2) == 0 && (i+1)*Sector <= len(c.kept) {
			copy(piece(c.kept, i), piece(c.shown, i))
		}
	}
}

// crash leaves what is durable and some of what is not; nil if that is nothing.
func (c *content) crash(rng *rand.Rand) *content {
	if !c.named && rng.IntN(2) == 0 {
		return nil
	}
	luck := rng.IntN(4) // nothing of it, all of it, or some
	pick := func(n int) int {
		switch luck {
		case 0:
			return 0
		case 1:
			return n - 1
		}
		return rng.IntN(n)
	}
	size := len(c.kept)
	if grown := len(c.shown) - size; grown > 0 {
		sectors := (grown + Sector - 1) / Sector
		size = min(size+pick(sectors+1)*Sector, len(c.shown))
	}
	left := resize(bytes.Clone(c.kept), size)
	for _, i := range slices.Sorted(maps.Keys(c.unsynced)) {
		s := c.unsynced[i]
		n := pick(len(s.older) + 2)
		if n == 0 || i*Sector >= size {
			continue
		}
		now := piece(c.shown, i)
		if n <= len(s.older) {
			now = s.older[n-1]
		}
		clear(piece(left, i))
		copy(piece(left, i), now)
	}
	return settled(left)
}

// settled is a file that is durable.
func settled(b []byte) *content {
	return &content{named: true, shown: b, kept: bytes.Clone(b), unsynced: map[int]*sector{}}
}

// piece is what bytes have of a sector.
func piece(b []byte, i int) []byte {
	return b[min(i*Sector, len(b)):min((i+1)*Sector, len(b))]
}

// resize cuts bytes off or adds zeros.
func resize(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-len(b))...)
}
