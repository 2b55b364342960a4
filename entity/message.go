package entity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/twinsrv/twinsrv/snapshot"
)

// Message is one message to an entity, bound to its handler. It owns its body:
// nothing that the sender does afterwards changes it. Conditions are set
// before it is posted; then it belongs to the entity.
type Message struct {
	// If restricts the revisions at which the message is handled; the check and
	// the turn are one step.
	If Condition
	// Life, if not 0, is the only life that the message is for.
	Life uint64
	// NoCreate keeps a message from creating the entity even if its handler
	// does.
	NoCreate bool

	op      operation
	handler *handler
	body    any    // the message's value, unless enc is set
	enc     []byte // its encoding, for types that hold references
}

// operation is what a Message asks for beyond the user's handlers.
type operation uint8

const (
	opHandle    operation = iota
	opDelete              // end this life
	opPassivate           // leave memory
	opTouch               // be recovered
)

// Delete returns a message that deletes the entity: durable before it is
// answered with an Ack of the deleted revision, ErrNotFound when there is none.
func Delete(c Condition) *Message { return &Message{op: opDelete, If: c} }

// Passivate returns a message that makes the entity leave memory once
// everything before it is durable. It is answered with nil, or with ErrBusy
// when messages wait behind it.
func Passivate() *Message { return &Message{op: opPassivate} }

// Touch returns a message that has the entity recovered and does nothing else.
func Touch() *Message { return &Message{op: opTouch} }

// Name returns the name of the message's handler, for logs.
func (m *Message) Name() string {
	switch m.op {
	case opDelete:
		return "delete"
	case opPassivate:
		return "passivate"
	case opTouch:
		return "touch"
	default:
		return m.handler.name
	}
}

// Wrap binds a Go value to the handler of its type and takes a copy of what it
// refers to.
func (s *Spec) Wrap(v any) (*Message, error) {
	if m, ok := v.(*Message); ok {
		return m, nil
	}
	h, ok := s.byType[reflect.TypeOf(v)]
	if !ok {
		return nil, fmt.Errorf("%w: pod %s has no handler for the Go type %T", ErrUnknownMessage, s.Name, v)
	}
	m := &Message{handler: h, body: v}
	if !h.detach {
		return m, nil
	}
	enc, err := s.codec.Append(nil, v)
	if err != nil {
		return nil, fmt.Errorf("%w: %s %q: %w", ErrMalformed, s.Name, h.name, err)
	}
	m.body, m.enc = nil, enc
	return m, nil
}

// Parse binds a JSON body to the handler of a name. An empty body stands for a
// message without fields. It fails with ErrUnknownMessage, ErrMalformed or
// ErrUnknownField.
func (s *Spec) Parse(name string, body []byte) (*Message, error) {
	h, ok := s.handlers[name]
	if !ok {
		return nil, fmt.Errorf("%w: pod %s does not know %q", ErrUnknownMessage, s.Name, name)
	}
	v := reflect.New(h.message)
	if len(bytes.TrimSpace(body)) == 0 && h.message.Kind() == reflect.Struct {
		body = []byte("{}")
	}
	if err := s.decodeBody(body, v.Interface()); err != nil {
		return nil, fmt.Errorf("message %q of pod %s: %w", name, s.Name, err)
	}
	return &Message{handler: h, body: v.Elem().Interface()}, nil
}

// decodeBody decodes a body that comes from outside, strictly.
func (s *Spec) decodeBody(body []byte, into any) error {
	err := s.strict.Decode(body, into)
	var unknown *snapshot.UnknownFieldError
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: %s", ErrUnknownField, unknown.Path)
	case errors.As(err, &wrong):
		return fmt.Errorf("%w: field %q: a JSON %s is not a %s", ErrMalformed, wrong.Field, wrong.Value, wrong.Type)
	default:
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
}

// value returns the message's body, decoded anew if it crossed as bytes.
func (m *Message) value(c snapshot.Codec) (any, error) {
	if m.enc == nil {
		return m.body, nil
	}
	v := reflect.New(m.handler.message)
	if err := c.Decode(m.enc, v.Interface()); err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrMalformed, m.handler.name, err)
	}
	return v.Elem().Interface(), nil
}

// IsPassivate reports whether the message only asks the entity to leave memory.
func (m *Message) IsPassivate() bool { return m.op == opPassivate }
