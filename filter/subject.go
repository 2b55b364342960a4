package filter

import (
	"context"

	"github.com/twinsrv/twinsrv/snapshot"
)

// Subject is what an expression sees: one entity's envelope. Its zero value is
// ready for Reset. One serves for a whole scan, one entity after the other; it
// must not be used concurrently.
type Subject struct {
	pod, name string
	record    *snapshot.Record
	state     raw
	rows      *Rows // in place of the record and the state; see ResetRow
	row       int

	scope  scope           // what cel-go sees of it
	ctx    context.Context // of the Match under way
	spent  int             // its cost
	failed error           // why it ends without an answer
}

// NewSubject returns a subject of one entity.
func NewSubject(pod, name string, r *snapshot.Record) *Subject {
	s := &Subject{}
	s.Reset(pod, name, r)
	return s
}

// Reset turns the subject to another entity. The record is read while the
// subject is used, and must not change meanwhile; its state is as its codec
// wrote it. With nil, or a codec that is unknown here, every path of the state
// is missing.
func (s *Subject) Reset(pod, name string, r *snapshot.Record) {
	if r == nil {
		r = &snapshot.Record{}
	}
	s.pod, s.name, s.record, s.rows = pod, name, r, nil
	s.state.data, s.state.encoding = r.State, encodingOf(r.Codec)
	s.scope.forget()
}

// Spent says what the last Match cost, of MaxCost.
func (s *Subject) Spent() int { return s.spent }
