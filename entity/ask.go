package entity

import (
	"context"

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
// the system's AskTimeout. Errors are RejectedError, HandlerError, the
// sentinels of this package and of persist, actor.ErrMailboxFull and
// actor.ErrTimeout, whose outcome is unknown.
func Ask[T any](ctx context.Context, to actor.Target, msg any) (T, error) {
	return actor.Ask[T](ctx, to, msg)
}
