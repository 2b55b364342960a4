package actor

import (
	"errors"
	"fmt"
)

var (
	// ErrStopped says that an actor, or the system, no longer takes messages
	// or children.
	ErrStopped = errors.New("stopped")
	// ErrMailboxFull says that a bounded mailbox refused a message. The
	// message was not taken and may be sent again later. FullError says whose
	// mailbox it is.
	ErrMailboxFull = errors.New("mailbox full")
	// ErrTimeout says that an ask got no answer in time. Whether the message
	// was, is or will be handled is not known.
	ErrTimeout = errors.New("no answer in time; outcome unknown")
	// ErrNoReply says that a handler returned without answering an ask.
	ErrNoReply = errors.New("handler gave no reply")
	// ErrAlreadyExists says that a child of that name exists or has not yet
	// stopped wholly.
	ErrAlreadyExists = errors.New("name is taken")
	// ErrNotFound says that a path names no actor.
	ErrNotFound = errors.New("no such actor")
	// ErrDieIn is why an actor ended that its dead-man's handle (Context.DieIn)
	// stopped.
	ErrDieIn = errors.New("did not end in the time it had given itself")
	// ErrInvalid says that props or a name cannot be used to spawn an actor.
	ErrInvalid = errors.New("invalid")
)

// FullError is the ErrMailboxFull of one actor.
type FullError struct {
	Ref      *Ref // whose mailbox is full
	Capacity int  // messages that it holds
}

// Error names the actor.
func (e *FullError) Error() string {
	return fmt.Sprintf("%s: %v (%d messages wait)", e.Ref.Path(), ErrMailboxFull, e.Capacity)
}

// Unwrap returns ErrMailboxFull.
func (e *FullError) Unwrap() error { return ErrMailboxFull }

// PanicError is what a panic in an actor becomes: for its supervisor, and for
// the caller of an ask in progress.
type PanicError struct {
	Value any    // what was given to panic
	Stack []byte // the stack of the panicking goroutine
}

// Error says what was panicked with, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value when it is an error, so that errors.Is and
// errors.As see through the panic.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
