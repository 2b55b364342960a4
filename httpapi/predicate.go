package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/snapshot"
)

// standing is the condition that something stands at a JSON pointer in a
// document, and another condition besides. What does not stand there is an error
// of its own.
type standing struct {
	pointer string
	and     entity.Predicate // nil: none
}

// String says what the condition is.
func (s *standing) String() string {
	if s.and == nil {
		return "something at " + s.pointer
	}
	return "something at " + s.pointer + ", and " + s.and.String()
}

// Holds implements entity.Predicate.
func (s *standing) Holds(life, revision uint64, changed time.Time, name, codec string, state []byte) (bool, error) {
	if s.and != nil {
		if holds, err := s.and.Holds(life, revision, changed, name, codec, state); !holds || err != nil {
			return holds, err
		}
	}
	_, err := entity.ValueAt(state, s.pointer) // documents are JSON
	if errors.Is(err, entity.ErrNoValue) {
		return false, noSuchValue(s.pointer)
	}
	return err == nil, err
}

// predicateOf compiles the condition of a request to an entity of a pod.
func predicateOf(pod, text string) (entity.Predicate, error) {
	f, err := compiled("condition", text)
	if err != nil {
		return nil, err
	}
	return &expression{pod: pod, filter: f}, nil
}

// compiled compiles an expression that stands in a parameter.
func compiled(parameter, text string) (*filter.Filter, error) {
	f, err := filter.Compile(text)
	if err != nil {
		return nil, badFilter(parameter, err)
	}
	return f, nil
}

// badFilter says where an expression, or a path, goes wrong.
func badFilter(parameter string, err error) error {
	f := refuse(CodeBadFilter, parameter+": "+err.Error())
	var at *filter.SyntaxError
	if errors.As(err, &at) {
		f.line, f.column = at.Line, at.Column
	}
	return f
}

// expression is a condition in CEL.
type expression struct {
	pod    string
	filter *filter.Filter
}

// String returns the expression.
func (e *expression) String() string { return e.filter.String() }

// Holds implements entity.Predicate.
func (e *expression) Holds(life, revision uint64, changed time.Time, name, codec string, state []byte) (bool, error) {
	s := filter.NewSubject(e.pod, name, &snapshot.Record{Life: life, Revision: revision, Changed: changed, Codec: codec, State: state})
	return e.filter.Match(context.Background(), s) // its cost is bounded
}
