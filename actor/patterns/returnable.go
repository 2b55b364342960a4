package patterns

import "github.com/twinsrv/twinsrv/actor"

// Returner is a message that knows who is to get what becomes of it, whoever
// hands it on meanwhile. Embedding Returnable makes one:
//
//	type Headline struct {
//		patterns.Returnable
//		Text string
//	}
//
//	ctx.Tell(pipeline, Headline{patterns.Returnable{Origin: ctx.Self()}, "…"})
type Returner interface{ ReturnTo() *actor.Ref }

// Returnable makes a Returner of the message that it is embedded in.
type Returnable struct {
	Origin *actor.Ref // nil: nobody
}

// ReturnTo returns the origin.
func (r Returnable) ReturnTo() *actor.Ref { return r.Origin }

// originOf returns who is to get what becomes of a message; nil for nobody that
// it knows.
func originOf(msg any) (to *actor.Ref) {
	if r, ok := msg.(Returner); ok {
		_ = protect(func() error { to = r.ReturnTo(); return nil }) // a nil pointer, perhaps
	}
	return to
}
