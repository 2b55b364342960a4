package snapshot

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// The envelope, version 1:
//
//	magic 0xD7 | version 0x01
//	uvarint life | uvarint revision | uvarint reserved
//	varint seconds since 1970 | uvarint nanoseconds (of changed)
//	uvarint schema
//	uvarint length, codec name
//	uvarint length, state
//	CRC32C (Castagnoli) of all before, 4 bytes, big endian
//
// Varints are those of encoding/binary, in their shortest form. Every version
// of the envelope begins with the magic and its version and ends with the
// checksum, so that damage is told from a newer version.
const (
	envelopeMagic   = 0xD7
	envelopeVersion = 1
	checksumSize    = 4
)

// Append appends the record in its checksummed envelope to dst and returns the
// extended slice. Equal records give equal bytes. Changed is kept as an instant
// with nanoseconds: its location and monotonic reading are not.
func (r *Record) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, envelopeMagic, envelopeVersion)
	dst = binary.AppendUvarint(dst, r.Life)
	dst = binary.AppendUvarint(dst, r.Revision)
	dst = binary.AppendUvarint(dst, r.Reserved)
	dst = binary.AppendVarint(dst, r.Changed.Unix())
	dst = binary.AppendUvarint(dst, uint64(r.Changed.Nanosecond()))
	dst = binary.AppendUvarint(dst, uint64(r.Schema))
	dst = binary.AppendUvarint(dst, uint64(len(r.Codec)))
	dst = append(dst, r.Codec...)
	dst = binary.AppendUvarint(dst, uint64(len(r.State)))
	dst = append(dst, r.State...)
	return binary.BigEndian.AppendUint32(dst, checksum(dst[start:]))
}

// Parse reads a record back from its envelope. The record shares no memory with
// data; an empty state comes back as nil.
//
// It returns ErrCorrupt for bytes that are not what Append wrote (a wrong
// checksum, missing or surplus bytes), and ErrNewer for an intact envelope of a
// version that this program does not know. It never panics.
func Parse(data []byte) (Record, error) {
	if len(data) < 2+checksumSize {
		return Record{}, fmt.Errorf("envelope of %d bytes is too short: %w", len(data), ErrCorrupt)
	}
	body, sum := data[:len(data)-checksumSize], data[len(data)-checksumSize:]
	if want, got := binary.BigEndian.Uint32(sum), checksum(body); want != got {
		return Record{}, fmt.Errorf("envelope's checksum is %08x, its bytes give %08x: %w", want, got, ErrCorrupt)
	}
	if body[0] != envelopeMagic {
		return Record{}, fmt.Errorf("envelope begins with %#02x, want %#02x: %w", body[0], envelopeMagic, ErrCorrupt)
	}
	if v := body[1]; v > envelopeVersion {
		return Record{}, fmt.Errorf("envelope has version %d, this program reads up to %d: %w", v, envelopeVersion, ErrNewer)
	} else if v == 0 {
		return Record{}, fmt.Errorf("envelope has version 0: %w", ErrCorrupt)
	}
	return parseBody(body[2:])
}

func parseBody(body []byte) (Record, error) {
	c := cursor{rest: body}
	r := Record{
		Life:     c.uvarint("life"),
		Revision: c.uvarint("revision"),
		Reserved: c.uvarint("reserved"),
	}
	sec := c.varint("changed")
	nsec := c.bounded("nanoseconds", 999_999_999)
	r.Changed = time.Unix(sec, int64(nsec)).UTC()
	r.Schema = uint32(c.bounded("schema", 1<<32-1))
	r.Codec = string(c.bytes("codec"))
	r.State = append(r.State, c.bytes("state")...)
	if c.err == nil && len(c.rest) > 0 {
		c.fail("state", "is followed by surplus bytes")
	}
	if c.err != nil {
		return Record{}, c.err
	}
	return r, nil
}

// cursor reads an envelope's fields in order; after its first error it gives
// zeros.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) fail(field, what string) {
	if c.err == nil {
		c.err = fmt.Errorf("envelope's %s %s: %w", field, what, ErrCorrupt)
	}
	c.rest = nil
}

func (c *cursor) uvarint(field string) uint64 {
	v, n := binary.Uvarint(c.rest)
	return c.took(field, v, n)
}

func (c *cursor) varint(field string) int64 {
	u := c.uvarint(field)
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

// took accepts a varint of n bytes when these are its shortest form.
func (c *cursor) took(field string, v uint64, n int) uint64 {
	if n <= 0 || (n > 1 && c.rest[n-1] == 0) {
		c.fail(field, "is cut short or malformed")
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

func (c *cursor) bounded(field string, limit uint64) uint64 {
	v := c.uvarint(field)
	if v > limit {
		c.fail(field, "is out of range")
		return 0
	}
	return v
}

func (c *cursor) bytes(field string) []byte {
	n := c.uvarint(field)
	if n > uint64(len(c.rest)) {
		c.fail(field, "is cut short")
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

// checksum makes its table on each call from the standard library's own
// Castagnoli table, which costs nothing.
func checksum(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}
