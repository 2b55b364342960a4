package entity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

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
	// JSON has the handler's reply come as a JSONReply. One that cannot be written
	// as JSON fails the turn, which changes nothing then.
	JSON bool

	op      operation
	whole   bool // it replaces the whole state of a document, with what must fit the schema
	handler *handler
	body    any    // the message's value, unless enc is set
	enc     []byte // its encoding, for types that hold references
	id      string // see WithID
	once    *once  // of a message of SendOnce
	remind  *reminding

	about *Message // that Admit asks about
}

// operation is what a Message asks for beyond the user's handlers.
type operation uint8

const (
	opHandle    operation = iota
	opDelete              // end this life
	opPassivate           // leave memory
	opTouch               // be recovered
	opDiscard             // end this life, and whatever it has not delivered
	opRebuild             // be recovered from the journal alone
	opRetry               // be recovered anew, if quarantined
	opAdmit               // say whether another message would be handled
	opRemind              // handle a reminder that is due
)

// Delete returns a message that deletes the entity: durable before it is
// answered with an Ack of the deleted revision, ErrNotFound when there is none.
func Delete(c Condition) *Message { return &Message{op: opDelete, If: c} }

// Discard returns a message that deletes the entity whatever its revision.
// Messages of SendOnce that it has not delivered, for which Delete would wait,
// become dead letters.
func Discard() *Message { return &Message{op: opDiscard} }

// Passivate returns a message that makes the entity leave memory once
// everything before it is durable. It is answered with nil, or with ErrBusy
// when messages wait behind it.
func Passivate() *Message { return &Message{op: opPassivate} }

// Touch returns a message that has the entity recovered and does nothing else.
func Touch() *Message { return &Message{op: opTouch} }

// Retry returns a message that has a quarantined entity read again, from its
// journal if it is event-sourced. The answer is nil when it can be read now.
func Retry() *Message { return &Message{op: opRetry} }

// Rebuild returns a message that has an event-sourced entity recovered from all
// its events, without its snapshot, and a new snapshot saved. It is answered
// with an Ack once that is durable.
func Rebuild() *Message { return &Message{op: opRebuild} }

// Name returns the name of the message's handler, for logs.
func (m *Message) Name() string {
	switch m.op {
	case opDelete:
		return "delete"
	case opPassivate:
		return "passivate"
	case opTouch:
		return "touch"
	case opDiscard:
		return "discard"
	case opRebuild:
		return "rebuild"
	case opRetry:
		return "retry"
	case opAdmit:
		return "admit"
	case opRemind:
		return "remind"
	default:
		return m.handler.name
	}
}

// Wrap binds a Go value to the handler of its type and takes a copy of what it
// refers to.
func (s *Spec) Wrap(v any) (*Message, error) {
	switch v := v.(type) {
	case *Message:
		return v, nil
	case identified:
		m, err := s.Wrap(v.v)
		if err != nil {
			return nil, err
		}
		return m, m.SetID(v.id)
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

// Encode returns the name of a Go value's handler and the value's encoding, from
// which Decode makes the message again.
func (s *Spec) Encode(v any) (what string, body []byte, err error) {
	switch v.(type) {
	case *Message, identified:
		return "", nil, fmt.Errorf("%w: only the type's own Go values can be sent so, without an id or conditions", ErrMalformed)
	}
	m, err := s.Wrap(v)
	if err != nil {
		return "", nil, err
	}
	if m.enc != nil {
		return m.handler.name, m.enc, nil
	}
	if body, err = s.codec.Append(nil, m.body); err != nil {
		return "", nil, fmt.Errorf("%w: %s %q: %w", ErrMalformed, s.Name, m.handler.name, err)
	}
	return m.handler.name, body, nil
}

// Decode binds what Encode returned to its handler, also if the program has
// changed since. It fails with ErrUnknownMessage.
func (s *Spec) Decode(what string, body []byte) (*Message, error) {
	h, ok := s.handlers[what]
	if !ok {
		return nil, fmt.Errorf("%w: pod %s does not know %q", ErrUnknownMessage, s.Name, what)
	}
	return &Message{handler: h, enc: body}, nil
}

// Parse binds a JSON body to the handler of a name. An empty body stands for a
// message without fields. It fails with ErrUnknownMessage, ErrMalformed or
// ErrUnknownField.
func (s *Spec) Parse(name string, body []byte) (*Message, error) {
	m, _, err := s.ParseTree(name, body)
	return m, err
}

// maxKnown is how many messages are listed to who sends another one.
const maxKnown = 20

// known lists the pod's messages, for people.
func (s *Spec) known() string {
	names := slices.Sorted(maps.Keys(s.handlers))
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > maxKnown:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxKnown], ", "), len(names)-maxKnown)
	}
	return strings.Join(names, ", ")
}

// ParseTree is Parse that also returns what snapshot.ParseJSON makes of the body,
// for who has more to ask of it.
func (s *Spec) ParseTree(name string, body []byte) (m *Message, tree any, err error) {
	h, ok := s.handlers[name]
	if !ok {
		return nil, nil, fmt.Errorf("%w: pod %s knows %s, not %q", ErrUnknownMessage, s.Name, s.known(), name)
	}
	v := reflect.New(h.message)
	if len(bytes.TrimSpace(body)) == 0 && h.message.Kind() == reflect.Struct {
		body = []byte("{}")
	}
	if tree, err = s.decodeBody(body, v.Interface()); err != nil {
		return nil, tree, fmt.Errorf("message %q of pod %s: %w", name, s.Name, err)
	}
	return &Message{handler: h, body: v.Elem().Interface()}, tree, nil
}

// decodeBody decodes a body that comes from outside, strictly.
func (s *Spec) decodeBody(body []byte, into any) (tree any, err error) {
	if tree, err = snapshot.ParseJSON(body); err == nil {
		err = s.strict.DecodeParsed(body, tree, into)
	}
	var unknown *snapshot.UnknownFieldError
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return tree, nil
	case errors.As(err, &unknown):
		return tree, fmt.Errorf("%w: %s", ErrUnknownField, unknown.Path)
	case errors.As(err, &wrong):
		return tree, fmt.Errorf("%w: field %q: a JSON %s is not a %s", ErrMalformed, wrong.Field, wrong.Value, wrong.Type)
	default:
		return tree, fmt.Errorf("%w: %w", ErrMalformed, err)
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

func (m *Message) deletes() bool { return m.op == opDelete || m.op == opDiscard }

// Frees reports whether the message ends a life that cannot be read: a deletion
// that asks nothing of the state.
func (m *Message) Frees() bool { return m.deletes() && m.If.Where == nil }

// IsPassivate reports whether the message only asks the entity to leave memory.
func (m *Message) IsPassivate() bool { return m.op == opPassivate }
