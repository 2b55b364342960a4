package entity

import (
	"context"
	"fmt"
	"reflect"

	"github.com/twinsrv/twinsrv/actor"
)

// Ack answers a message of an On handler, and a deletion: the entity's life
// and the revision after it.
type Ack struct {
	Life     uint64 `json:"life"`
	Revision uint64 `json:"revision"`
	// Created says that this very message created the entity.
	Created bool `json:"-"`
}

// Ask sends a message and waits for its typed answer: an Ack from an On
// handler, else what the handler returned. A ctx without deadline is bounded by
// the system's AskTimeout. A T that the message is not answered with is refused
// before it is sent. Errors are RejectedError, HandlerError, the
// sentinels of this package and of persist, actor.ErrMailboxFull and
// actor.ErrTimeout, whose outcome is unknown.
func Ask[T any](ctx context.Context, to actor.Target, msg any) (T, error) {
	if r, ok := to.(Ref); ok {
		if m, err := r.dir.Wrap(r.key.Pod, msg); err == nil { // else Post says what is wrong
			if err := m.answeredBy(reflect.TypeFor[T]()); err != nil {
				var none T
				return none, fmt.Errorf("ask %s: %w", r.key, err)
			}
			msg = m
		}
	}
	return actor.Ask[T](ctx, to, msg)
}

// answeredBy refuses a type of answers that the message cannot have: once it was
// handled, who hears of the mistake may send it again.
func (m *Message) answeredBy(wanted reflect.Type) error {
	if m.handler == nil || m.JSON {
		return nil
	}
	is := m.handler.reply
	if is == nil {
		is = reflect.TypeFor[Ack]()
	}
	if is == wanted || is.Kind() == reflect.Interface || wanted.Kind() == reflect.Interface && is.Implements(wanted) {
		return nil
	}
	return fmt.Errorf("%q is answered with %v, not with %v; nothing was sent", m.handler.name, is, wanted)
}
