package actor

import (
	"context"
	"errors"
)

// piped is a result of PipeTo in a mailbox. It is taken also by a full one,
// because nobody could send it again. One for the actor's own life (own) does
// not reach a later actor of that name.
type piped struct {
	value any
	own   bool
}

var errNoTarget = errors.New("actor: PipeTo needs an actor to send to")

// PipeTo runs f off the workers, where it may block, and sends its value to an
// actor as a message from this one. When f fails or panics the message is a
// PipeFailed. ctx is cancelled when this actor stops; a result that comes for
// a stopped actor is a dead letter. f must not use the Context, nor the
// actor's fields.
func (c *Context) PipeTo(to *Ref, f func(ctx context.Context) (any, error)) {
	c.must()
	if to == nil {
		panic(errNoTarget)
	}
	self, ctx := c.ref(), c.Context()
	self.sys.Go(func() {
		result := any(PipeFailed{errExited})
		defer func() { // also when f ends the goroutine
			m := Message{Payload: &piped{result, to == self}, Sender: self}
			if to.enqueue(m, nil) != nil {
				to.absent(m)
			}
		}()
		var v any
		err := protect(func() (err error) { v, err = f(ctx); return err })
		if err != nil {
			v = PipeFailed{err}
		}
		result = v
	})
}
