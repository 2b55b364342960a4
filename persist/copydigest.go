package persist

import (
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/twinsrv/twinsrv/snapshot"
)

// summing reads a store for its digest.
type summing struct {
	c       *copying
	leftOut func(Key) bool // whether a row's record was
	skip    func(Problem)  // nil: what cannot be read is an error
	d       digest
	n       CopyCounts
}

func (s *summing) unreadable(p Problem) error {
	if s.skip == nil {
		return fmt.Errorf("%s: %w", p.Kind, p.Err)
	}
	s.skip(p)
	return nil
}

func (s *summing) records(pod string, items []Item) error {
	for i := range items {
		key := Key{Pod: pod, Name: items[i].Name}
		switch {
		case key == copyKey():
		case items[i].Err != nil:
			if err := s.unreadable(recordProblem(key, items[i].Err)); err != nil {
				return err
			}
		default:
			s.d.record(key, &items[i].Record)
			s.n.Records++
		}
	}
	s.c.tell(s.n)
	return nil
}

func (s *summing) rows(rows []Row) error {
	for i := range rows {
		switch {
		case rows[i].Err != nil:
			if err := s.unreadable(rowProblem(&rows[i])); err != nil {
				return err
			}
		case s.skip == nil || !s.leftOut(rows[i].Key):
			s.d.row(&rows[i])
			s.n.Rows++
		}
	}
	s.c.tell(s.n)
	return nil
}

func (s *summing) changes(changes []Change) error {
	for i := range changes {
		if changes[i].Err != nil {
			if err := s.unreadable(changeProblem(&changes[i])); err != nil {
				return err
			}
			continue
		}
		s.d.change(&changes[i])
		s.n.Changes++
	}
	s.c.tell(s.n)
	return nil
}

// digest sums up the parts of a store, each with the lengths of its fields.
type digest struct {
	h   hash.Hash
	buf []byte
}

func put[T uint64 | string](h hash.Hash, v T) {
	switch v := any(v).(type) {
	case uint64:
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, v))
	case string:
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(v))))
		_, _ = h.Write([]byte(v))
	}
}

func (d *digest) text(parts ...string) {
	for _, s := range parts {
		d.buf = binary.AppendUvarint(d.buf, uint64(len(s)))
		d.buf = append(d.buf, s...)
	}
}

func (d *digest) flush() {
	_, _ = d.h.Write(d.buf)
	d.buf = d.buf[:0]
}

func (d *digest) record(k Key, r *snapshot.Record) {
	d.text("record", k.Pod, k.Name)
	d.buf = r.Append(d.buf)
	d.flush()
}

func (d *digest) row(r *Row) {
	d.text("row", r.Kind, r.Key.Pod, r.Key.Name, r.ID)
	d.buf = binary.AppendUvarint(d.buf, uint64(len(r.Value)))
	d.buf = append(d.buf, r.Value...)
	d.flush()
}

func (d *digest) change(c *Change) {
	d.text("change", c.Key.Pod, c.Key.Name, c.Type, c.Codec)
	for _, v := range []uint64{c.Position, c.Life, c.Revision, uint64(c.Time.Unix()), uint64(c.Time.Nanosecond()), uint64(c.Schema), uint64(len(c.Data))} {
		d.buf = binary.AppendUvarint(d.buf, v)
	}
	if c.Event {
		d.buf = append(d.buf, 1)
	}
	d.buf = append(d.buf, c.Data...)
	d.flush()
}
