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
	values    []Value // in place of all else but pod and name; see ResetValues

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
	s.pod, s.name, s.record, s.values = pod, name, r, nil
	s.state.data, s.state.encoding = r.State, encodingOf(r.Codec)
	s.scope.forget()
}

// Spent says what the last Match cost, of MaxCost.
func (s *Subject) Spent() int { return s.spent }

// ResetValues turns the subject to an entity of which the values at a filter's
// paths are known already: those of Filter.Paths, in that order. The subject
// serves for Match of that filter alone, and for the paths pod and name. The
// values must not change while it is used.
func (s *Subject) ResetValues(pod, name string, values []Value) {
	s.pod, s.name, s.values = pod, name, values
}
