package bolt

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// changeVersion is the first byte of an encoded change.
const changeVersion = 1

// sealChange encodes a change, whose key, life and position are set, for the
// log bucket.
func sealChange(key []byte, c *persist.Change) []byte {
	body := make([]byte, 0, len(c.Key.Pod)+len(c.Key.Name)+len(c.Type)+len(c.Codec)+len(c.Data)+64)
	body = append(body, changeVersion)
	body = appendText(body, c.Key.Pod)
	body = appendText(body, c.Key.Name)
	body = binary.AppendUvarint(body, c.Life)
	body = binary.AppendUvarint(body, c.Revision)
	body = binary.AppendVarint(body, c.Time.Unix())
	body = binary.AppendUvarint(body, uint64(c.Time.Nanosecond()))
	body = appendText(body, c.Type)
	body = binary.AppendUvarint(body, uint64(c.Schema))
	body = appendText(body, c.Codec)
	body = append(body, c.Data...)
	return checked(seal(logBucket, key, len(body)+4), body)
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// readChange decodes an entry of the log. The result shares no memory with key
// or value; no data comes back as nil.
func readChange(key, value []byte) (persist.Change, error) {
	_, body, err := unseal(logBucket, key, value)
	if err != nil {
		return persist.Change{}, err
	}
	if body, err = unchecked(body); err != nil {
		return persist.Change{}, err
	}
	if len(body) == 0 || len(key) != 8 {
		return persist.Change{}, fmt.Errorf("change is cut short: %w", snapshot.ErrCorrupt)
	}
	if body[0] != changeVersion {
		return persist.Change{}, fmt.Errorf("change has version %d, this program reads %d: %w", body[0], changeVersion, snapshot.ErrNewer)
	}
	r := fields{rest: body[1:]}
	c := persist.Change{Position: binary.BigEndian.Uint64(key)}
	c.Key.Pod = r.text()
	c.Key.Name = r.text()
	c.Life = r.uvarint()
	c.Revision = r.uvarint()
	sec := r.varint()
	nsec := r.uvarint()
	c.Time = time.Unix(sec, int64(nsec)).UTC()
	c.Type = r.text()
	c.Schema = uint32(r.uvarint())
	c.Codec = r.text()
	if r.short {
		return persist.Change{}, fmt.Errorf("change is cut short: %w", snapshot.ErrCorrupt)
	}
	c.Data = append(c.Data, r.rest...)
	return c, nil
}

// fields reads a change's fields in order; once something is cut short it
// gives zeros.
type fields struct {
	rest  []byte
	short bool
}

func (f *fields) took(n int) {
	if n <= 0 {
		f.short, f.rest = true, nil
		return
	}
	f.rest = f.rest[n:]
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.rest)
	f.took(n)
	return v
}

func (f *fields) varint() int64 {
	v, n := binary.Varint(f.rest)
	f.took(n)
	return v
}

func (f *fields) text() string {
	n := f.uvarint()
	if n > uint64(len(f.rest)) {
		f.short, f.rest = true, nil
		return ""
	}
	s := string(f.rest[:n])
	f.rest = f.rest[n:]
	return s
}
