package postgres

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// The column changes.change, version 1:
//
//	version 0x01
//	varint seconds since 1970 | uvarint nanoseconds (of the time)
//	uvarint schema
//	uvarint length, type
//	uvarint length, codec
//	uvarint length, data
//	CRC32C, 4 bytes, big endian: of all before, and then of position, life,
//	revision (8 bytes each, big endian), event (one byte), pod, 0, name
const changeVersion = 1

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func changeSum(body []byte, c *persist.Change) uint32 {
	t := castagnoli()
	sum := crc32.Checksum(body, t)
	head := make([]byte, 0, 26+len(c.Key.Pod)+len(c.Key.Name))
	for _, n := range []uint64{c.Position, c.Life, c.Revision} {
		head = binary.BigEndian.AppendUint64(head, n)
	}
	event := byte(0)
	if c.Event {
		event = 1
	}
	head = append(head, event)
	head = append(head, c.Key.Pod...)
	head = append(head, 0)
	head = append(head, c.Key.Name...)
	return crc32.Update(sum, t, head)
}

// sealChange appends the change, sealed, to b.
func sealChange(b []byte, c *persist.Change) []byte {
	begin := len(b)
	b = append(b, changeVersion)
	b = binary.AppendVarint(b, c.Time.Unix())
	b = binary.AppendUvarint(b, uint64(c.Time.Nanosecond()))
	b = binary.AppendUvarint(b, uint64(c.Schema))
	for _, s := range []string{c.Type, c.Codec} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(c.Data)))
	b = append(b, c.Data...)
	return binary.BigEndian.AppendUint32(b, changeSum(b[begin:], c))
}

// openChange fills in what is sealed. The change has what is in its columns
// already; data is its own from then on.
func openChange(c *persist.Change, sealed []byte) error {
	if len(sealed) < 5 {
		return fmt.Errorf("a change of %d bytes is too short: %w", len(sealed), snapshot.ErrCorrupt)
	}
	body := sealed[:len(sealed)-4]
	if want, got := binary.BigEndian.Uint32(sealed[len(body):]), changeSum(body, c); want != got {
		return fmt.Errorf("a change's checksum is %08x, its columns give %08x: %w", want, got, snapshot.ErrCorrupt)
	}
	if body[0] != changeVersion {
		return fmt.Errorf("a change has version %d, this program reads %d: %w", body[0], changeVersion, snapshot.ErrCorrupt)
	}
	f := fields{rest: body[1:]}
	sec, nsec, schema := f.varint(), f.uvarint(), f.uvarint()
	kind, codec, data := f.bytes(), f.bytes(), f.bytes()
	if f.short || len(f.rest) > 0 || nsec > 999_999_999 || schema > 1<<32-1 {
		return fmt.Errorf("a change's fields do not end where it does: %w", snapshot.ErrCorrupt)
	}
	c.Time = time.Unix(sec, int64(nsec)).UTC()
	c.Schema, c.Type, c.Codec = uint32(schema), string(kind), string(codec)
	if len(data) > 0 {
		c.Data = data
	}
	return nil
}

// fields reads one field after the other; after the first that is not there it
// gives zeros.
type fields struct {
	rest  []byte
	short bool
}

func (f *fields) took(n int) bool {
	if n <= 0 {
		f.rest, f.short = nil, true
		return false
	}
	f.rest = f.rest[n:]
	return true
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.rest)
	if !f.took(n) {
		return 0
	}
	return v
}

func (f *fields) varint() int64 {
	v, n := binary.Varint(f.rest)
	if !f.took(n) {
		return 0
	}
	return v
}

func (f *fields) bytes() []byte {
	n := f.uvarint()
	if n > uint64(len(f.rest)) {
		f.rest, f.short = nil, true
		return nil
	}
	b := f.rest[:n:n]
	f.rest = f.rest[n:]
	return b
}

// rowSum is the column entity_rows.sum: CRC32C of kind, pod, name and id, each
// ended by 0, and the value.
func rowSum(r *persist.Row) int64 {
	t := castagnoli()
	b := make([]byte, 0, len(r.Kind)+len(r.Key.Pod)+len(r.Key.Name)+len(r.ID)+4)
	for _, s := range []string{r.Kind, r.Key.Pod, r.Key.Name, r.ID} {
		b = append(b, s...)
		b = append(b, 0)
	}
	return int64(crc32.Update(crc32.Checksum(b, t), t, r.Value))
}

// openRecord reads a record and tests that the columns belong to it.
func openRecord(life, revision int64, envelope []byte) (snapshot.Record, error) {
	r, err := snapshot.Parse(envelope)
	if err != nil {
		return snapshot.Record{}, err
	}
	if r.Life != uint64(life) || r.Revision != uint64(revision) {
		return snapshot.Record{}, fmt.Errorf("the record has life %d revision %d, its columns %d and %d: %w",
			r.Life, r.Revision, life, revision, snapshot.ErrCorrupt)
	}
	return r, nil
}
