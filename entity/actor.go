package entity

import (
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
)

// EntityActor is the actor behind one entity whose state is an S. Package pod
// makes it, through NewActor, and gives it its messages.
type EntityActor[S any] struct {
	*activation
	state *S // nil: to be decoded from the last encoding by the next turn
}

// entityActor is an EntityActor whose S does not matter.
type entityActor interface {
	actor.Actor
	model
}

// model is the half of an entity that knows its state's type. The activation
// calls it on the entity's turns.
type model interface {
	// adopt takes a decoded or new state, a *S.
	adopt(state any)
	// forget drops a state that a failed turn may have changed.
	forget()
	// restore makes sure that there is a state, from its encoding.
	restore(enc []byte) error
	// encode returns the canonical encoding of the state.
	encode() ([]byte, error)
	// current returns the state, a *S.
	current() any
	// handle calls a handler on the state.
	handle(c *Context, h *handler, msg any) (any, error)
	// query calls a handler on a copy of the state.
	query(c *Context, h *handler, msg any, enc []byte) (any, error)
}

// NewActor returns the actor of an entity in its place.
func NewActor(host Host) actor.Actor {
	a := &activation{host: host, key: host.Key(), spec: host.Spec()}
	if a.spec.Durability.IsAsync() {
		a.async = &flusher{}
	}
	a.snapshots = a.noSnapshots()
	e := a.spec.newActor(a)
	a.model = e
	return e
}

func (e *EntityActor[S]) adopt(state any) { e.state = state.(*S) }

func (e *EntityActor[S]) current() any { return e.state }

func (e *EntityActor[S]) forget() { e.state = nil }

func (e *EntityActor[S]) restore(enc []byte) error {
	if e.state != nil {
		return nil
	}
	s := new(S)
	if err := e.spec.codec.Decode(enc, s); err != nil {
		return fmt.Errorf("restore the state: %w", err)
	}
	e.state = s
	return nil
}

func (e *EntityActor[S]) encode() ([]byte, error) { return e.spec.codec.Append(nil, e.state) }

func (e *EntityActor[S]) handle(c *Context, h *handler, msg any) (any, error) {
	return h.call(c, e.state, msg)
}

func (e *EntityActor[S]) query(c *Context, h *handler, msg any, enc []byte) (any, error) {
	s := new(S)
	if err := e.spec.codec.Decode(enc, s); err != nil {
		return nil, fmt.Errorf("copy the state: %w", err)
	}
	return h.call(c, s, msg)
}
