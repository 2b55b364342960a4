package bolt

import (
	"encoding/binary"
	"fmt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// entry is what the head of a stored record says: enough to judge a unit
// without reading the state.
type entry struct {
	life, revision uint64
}

// sealRecord encodes a record, whose life is set, for the records bucket.
func sealRecord(key []byte, r *snapshot.Record) []byte {
	v := seal(recordsBucket, key, len(r.State)+len(r.Codec)+64, r.Life, r.Revision)
	return r.Append(v)
}

func readEntry(key, value []byte) (entry, []byte, error) {
	head, body, err := unseal(recordsBucket, key, value)
	if err != nil {
		return entry{}, nil, err
	}
	return entry{binary.BigEndian.Uint64(head), binary.BigEndian.Uint64(head[8:])}, body, nil
}

// readRecord decodes a stored record. The result shares no memory with value.
func readRecord(key, value []byte) (snapshot.Record, error) {
	e, body, err := readEntry(key, value)
	if err != nil {
		return snapshot.Record{}, err
	}
	r, err := snapshot.Parse(body)
	if err != nil {
		return snapshot.Record{}, err
	}
	if r.Life != e.life || r.Revision != e.revision {
		return snapshot.Record{}, fmt.Errorf("record says life %d revision %d, its entry %d and %d: %w",
			r.Life, r.Revision, e.life, e.revision, snapshot.ErrCorrupt)
	}
	return r, nil
}

// sealRow encodes a row's value.
func sealRow(key, value []byte) []byte {
	return checked(seal(rowsBucket, key, len(value)+4), value)
}

// readRow decodes a row. It shares no memory with key or value. It is not ok
// when the key is none of a row; a value that cannot be read is the row's Err.
func readRow(key, value []byte) (row persist.Row, ok bool) {
	row, err := parseRowKey(key)
	if err != nil {
		return row, false
	}
	_, body, err := unseal(rowsBucket, key, value)
	if err == nil {
		body, err = unchecked(body)
	}
	if err != nil {
		row.Err = fmt.Errorf("row %s %q of %s: %w", row.Kind, row.ID, row.Key, err)
		return row, true
	}
	row.Value = append(make([]byte, 0, len(body)), body...)
	return row, true
}
