package actor

// Actor is what a user writes: a handler of messages. Receive is never called
// by two goroutines at a time, so an actor's fields need no locks. A returned
// error, like a panic, is a failure: it goes to the supervisor (see Strategy),
// and an ask in progress ends with that error at once.
//
// ctx is valid only until Receive returns. Receive should not block; slow work
// goes through Context.PipeTo.
type Actor interface {
	Receive(ctx *Context, msg any) error
}

// ActorFunc is an Actor that is only a function.
type ActorFunc func(ctx *Context, msg any) error

// Receive calls f.
func (f ActorFunc) Receive(ctx *Context, msg any) error { return f(ctx, msg) }

// PreStarter is called before the first message, at the start and after each
// restart. Its error is a failure: the supervisor decides.
type PreStarter interface {
	PreStart(ctx *Context) error
}

// PostStopper is called last, when the actor's children have stopped and its
// watchers have been told. It is called once in an actor's life and not at
// restarts, and only for an instance that had started. A panic in it is logged.
type PostStopper interface {
	PostStop(ctx *Context)
}

// PreRestarter is called on the failed instance before it is dropped for a new
// one. msg is the message that failed, nil when there was none. A panic in it
// is logged.
type PreRestarter interface {
	PreRestart(ctx *Context, reason error, msg any)
}

// Resumer is called when the supervisor chose Resume after a failure. A panic
// in it is logged.
type Resumer interface {
	Resumed(ctx *Context, reason error)
}

// SystemReceiver takes the messages of Ref.TellSystem, ahead of the user
// mailbox and also while that is held. Its errors and panics are failures like
// those of Receive.
type SystemReceiver interface {
	ReceiveSystem(ctx *Context, msg any) error
}
