package entity

import (
	"fmt"
	"reflect"
)

// HandlerKind says what a handler does with the entity's state.
type HandlerKind string

// The kinds of handler.
const (
	KindOn    HandlerKind = "on"    // changes state, acknowledged with the new revision
	KindReply HandlerKind = "reply" // changes state, answers with a value
	KindQuery HandlerKind = "query" // reads a copy of the state, answers with a value, never creates
)

// Handler handles one message of a Type. Make one with On, Reply or Query.
type Handler[S any] struct {
	kind    HandlerKind
	message reflect.Type
	reply   reflect.Type // nil for On
	call    func(c *Context, s *S, m any) (any, error)
}

// Handlers are a Type's handlers by the name of their message, as it stands in
// HTTP paths and in the journal.
type Handlers[S any] map[string]Handler[S]

// On makes a handler whose message is acknowledged with the entity's life and
// revision. An error undoes what it did to the state.
func On[S, M any](f func(c *Context, s *S, m M) error) Handler[S] {
	if f == nil {
		return Handler[S]{} // which no type takes
	}
	return Handler[S]{
		kind: KindOn, message: reflect.TypeFor[M](),
		call: func(c *Context, s *S, m any) (any, error) { return nil, f(c, s, m.(M)) },
	}
}

// Reply makes a handler whose message is answered with a value. The answer
// holds what it held in that turn, even when it shares memory with the state.
func Reply[S, M, R any](f func(c *Context, s *S, m M) (R, error)) Handler[S] {
	if f == nil {
		return Handler[S]{}
	}
	return Handler[S]{
		kind: KindReply, message: reflect.TypeFor[M](), reply: reflect.TypeFor[R](),
		call: func(c *Context, s *S, m any) (any, error) { return f(c, s, m.(M)) },
	}
}

// Query makes a handler that only reads. It works on a copy of the state, so
// whatever it does to it is forgotten, and it cannot send.
func Query[S, M, R any](f func(c *Context, s *S, m M) (R, error)) Handler[S] {
	h := Reply(f)
	h.kind = KindQuery
	return h
}

// handler is a Handler without its state's type.
type handler struct {
	name     string
	kind     HandlerKind
	message  reflect.Type
	reply    reflect.Type
	creates  bool
	detach   bool // messages hold references and cross as bytes
	detachRe bool // replies do
	call     func(c *Context, state, m any) (any, error)
}

func erase[S any](name string, h Handler[S]) (*handler, error) {
	if h.call == nil {
		return nil, fmt.Errorf("%w: handler %q is empty; make it with On, Reply or Query, and a function", ErrDefinition, name)
	}
	return &handler{
		name: name, kind: h.kind, message: h.message, reply: h.reply,
		call: func(c *Context, state, m any) (any, error) { return h.call(c, state.(*S), m) },
	}, nil
}
