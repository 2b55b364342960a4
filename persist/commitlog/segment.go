package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A segment begins with a header:
//
//	magic 8, version 4, rules 4, log 8, number 8, first 8, position 8, length 8, growth 4, checksum of all that 4
//
// and goes on with groups, each padded to a multiple of eight bytes:
//
//	size 4, checksum 4, group 8, effects of that size
//
// Where the rules say spaced, no group begins eight bytes before the end of a
// sector: there are eight bytes more in front of it then. So a head is written whole
// or not at all. Older programs did not do that.
//
// Numbers are big endian, checksums CRC32C. A group's covers log and number of
// its segment, the group's number, its size and its effects. Groups are numbered
// without gaps over all segments. What a segment has behind the group before
// the next segment's first does not count, but for one frame (see continued). A
// header's position is the last that was given before: a store that lacks one of
// these, which are not in the log either, is an older copy. Its length is what
// the file had when the use began, and growth what is added at a time (see cut);
// both are 0 in files of programs that did not write them.
const (
	magic         = "twinslog"
	formatVersion = 1
	spaced        = 1
	headerSize    = 64
	frameSize     = 16
	frameAlign    = 8
	sector        = 512 // what a disk writes whole or not at all

	maxGrowth = 4 << 20
)

// segment is one file of a log in one of its uses.
type segment struct {
	name string
	file File

	log, number uint64
	first       uint64 // its first group, also of one that is still to come
	position    uint64 // the last one given before
	length      int64  // of the file, durably, when the use began; 0: not known
	end         int64  // where the next group goes
	filled      int64  // the file is allocated up to here
	firmed      int64  // and durably if it is the same
	growth      int64  // by so much it is made longer at a time
	rules       uint32 // spaced, or 0
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// header encodes the header of a use.
func (g *segment) header() []byte {
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint32(b, formatVersion)
	b = binary.BigEndian.AppendUint32(b, g.rules)
	b = binary.BigEndian.AppendUint64(b, g.log)
	b = binary.BigEndian.AppendUint64(b, g.number)
	b = binary.BigEndian.AppendUint64(b, g.first)
	b = binary.BigEndian.AppendUint64(b, g.position)
	b = binary.BigEndian.AppendUint64(b, uint64(g.length))
	b = binary.BigEndian.AppendUint32(b, uint32(g.growth))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// errNoHeader says that a file does not begin like a segment.
var errNoHeader = errors.New("it does not begin like a segment")

// readHeader finds out what a file is.
func (g *segment) readHeader() error {
	var b [headerSize]byte
	n, err := g.file.ReadAt(b[:], 0)
	switch {
	case errors.Is(err, io.EOF) && n < headerSize:
		return errNoHeader
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("read %s: %w", g.name, err)
	case string(b[:len(magic)]) != magic || binary.BigEndian.Uint32(b[headerSize-4:]) != crc32.Checksum(b[:headerSize-4], castagnoli()):
		return errNoHeader
	}
	if v := binary.BigEndian.Uint32(b[8:]); v != formatVersion {
		return fmt.Errorf("%s: it has version %d and this program reads up to %d: use a newer program", g.name, v, formatVersion)
	}
	g.rules = binary.BigEndian.Uint32(b[12:])
	g.log = binary.BigEndian.Uint64(b[16:])
	g.number = binary.BigEndian.Uint64(b[24:])
	g.first = binary.BigEndian.Uint64(b[32:])
	g.position = binary.BigEndian.Uint64(b[40:])
	g.length = int64(binary.BigEndian.Uint64(b[48:]))
	if growth := binary.BigEndian.Uint32(b[56:]); growth > 0 {
		g.growth = int64(growth)
	}
	return nil
}

// begin starts a use of the file, which has room for it and is firm. It is
// durable with the next sync. No group of an earlier use stays where the first
// one goes.
func (g *segment) begin(log, number, first, position uint64) error {
	g.log, g.number, g.first, g.position, g.end = log, number, first, position, headerSize
	g.length, g.rules = g.filled, spaced
	if _, err := g.file.WriteAt(append(g.header(), make([]byte, frameSize)...), 0); err != nil {
		return fmt.Errorf("begin segment %s: %w", g.name, err)
	}
	return nil
}

// allocate makes the file long enough for what is written up to end: blocks
// that have been written once are overwritten faster than new ones are added.
// Before anything is written there, firm is called. A group ends before that.
func (g *segment) allocate(end int64) error {
	for g.filled < end {
		if _, err := g.file.WriteAt(make([]byte, g.growth), g.filled); err != nil {
			return fmt.Errorf("make segment %s longer: %w", g.name, err)
		}
		g.filled += g.growth
	}
	if g.firmed == g.filled {
		return nil
	}
	// Another process, or a sync that failed, may have left a length that the
	// disk does not have, and that no sync would write.
	var last [1]byte
	if _, err := g.file.ReadAt(last[:], g.filled-1); err != nil {
		return fmt.Errorf("read %s: %w", g.name, err)
	}
	if _, err := g.file.WriteAt(last[:], g.filled-1); err != nil {
		return fmt.Errorf("write the end of %s again: %w", g.name, err)
	}
	return nil
}

// firm makes the length durable that allocate has given the file.
func (g *segment) firm() error {
	if g.firmed == g.filled {
		return nil
	}
	if err := g.sync(); err != nil {
		return err
	}
	g.firmed = g.filled
	return nil
}

func (g *segment) sync() error {
	if err := g.file.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", g.name, err)
	}
	return nil
}

// seal fills in the head of a frame, which has room for it in front of its
// effects, and pads it.
func (g *segment) seal(frame []byte, group uint64) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-frameSize))
	binary.BigEndian.PutUint64(frame[8:], group)
	binary.BigEndian.PutUint32(frame[4:], g.sum(frame))
	for len(frame)%frameAlign != 0 {
		frame = append(frame, 0)
	}
	return frame
}

// sum is the checksum of a frame without its padding.
func (g *segment) sum(frame []byte) uint32 {
	var seed [16]byte
	binary.BigEndian.PutUint64(seed[:], g.log)
	binary.BigEndian.PutUint64(seed[8:], g.number)
	t := castagnoli()
	c := crc32.Update(0, t, seed[:])
	c = crc32.Update(c, t, frame[:4])
	return crc32.Update(c, t, frame[8:])
}

// frame returns the group that stands at a place of a segment's bytes, and its
// effects; ok is false when none does.
func (g *segment) frame(b []byte, at int) (group uint64, effects []byte, ok bool) {
	if at+frameSize > len(b) {
		return 0, nil, false
	}
	size := int64(binary.BigEndian.Uint32(b[at:]))
	if size == 0 || int64(at)+frameSize+size > int64(len(b)) {
		return 0, nil, false
	}
	f := b[at : at+frameSize+int(size)]
	if binary.BigEndian.Uint32(f[4:]) != g.sum(f) {
		return 0, nil, false
	}
	return binary.BigEndian.Uint64(f[8:]), f[frameSize:], true
}

// walk calls fn for the groups up to the one before the group until, in order,
// and sets end. It returns the first group that is not there; damaged says that there is a group behind the end: then what is
// missing was acknowledged, as the next group is written when a group is
// durable.
func (g *segment) walk(b []byte, until uint64, fn func(group uint64, effects []byte) error) (next uint64, damaged bool, err error) {
	at := headerSize
	next = g.first
	for next < until {
		group, effects, ok := g.frame(b, at)
		if !ok || group != next {
			break
		}
		if err := fn(group, effects); err != nil {
			return next, false, fmt.Errorf("group %d in %s: %w", group, g.name, err)
		}
		at = g.place(at + frameSize + len(effects))
		next++
	}
	g.end = int64(at)
	if next == until {
		return next, false, nil
	}
	most := next + uint64(len(b)/frameSize)
	for p := align(at + 1); p+frameSize <= len(b); p += frameAlign {
		group := binary.BigEndian.Uint64(b[p+8:])
		if group <= next || group > most || group >= until {
			continue
		}
		if _, _, ok := g.frame(b, p); ok {
			return next, true, nil
		}
	}
	return next, false, nil
}

func align(n int) int { return (n + frameAlign - 1) &^ (frameAlign - 1) }

// place is where a group begins when the one before ends at at.
func (g *segment) place(at int) int {
	at = align(at)
	if g.rules&spaced != 0 && at%sector == sector-frameAlign {
		return at + frameAlign
	}
	return at
}

// read reads the whole file.
func (g *segment) read() ([]byte, error) {
	size, err := g.file.Size()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", g.name, err)
	}
	b := make([]byte, size)
	if n, err := g.file.ReadAt(b, 0); int64(n) < size {
		return nil, fmt.Errorf("read %s: %w", g.name, err)
	}
	return b, nil
}

// settle writes again what was read, and syncs it. A process that died between
// writing and syncing, or whose sync failed, leaves what the kernel shows and
// the disk may not have.
func (g *segment) settle() error {
	b, err := g.read()
	if err != nil {
		return err
	}
	if _, err := g.file.WriteAt(b[:min(g.end, int64(len(b)))], 0); err != nil {
		return fmt.Errorf("write %s again over itself: if the disk is full, it needs room for that: make some: %w", g.name, err)
	}
	return g.sync()
}
