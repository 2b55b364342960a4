package entity

import (
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/persist"
)

var (
	// ErrNotFound says that an entity does not exist and that the message may
	// not create it.
	ErrNotFound = errors.New("no such entity")
	// ErrUnknownMessage says that a pod has no handler for a message.
	ErrUnknownMessage = errors.New("no such message")
	// ErrMalformed says that a message's body is not JSON of the message's
	// shape.
	ErrMalformed = errors.New("malformed message")
	// ErrUnknownField says that a message's body has a field that the message
	// does not know.
	ErrUnknownField = errors.New("unknown field")
	// ErrName refuses an entity's or a pod's name.
	ErrName = errors.New("bad name")
	// ErrStale says that the entity is at another revision than a condition of
	// the message asks for.
	ErrStale = errors.New("stale revision")
	// ErrCondition says that the entity's state is not as a condition of the
	// message asks for.
	ErrCondition = errors.New("condition not met")
	// ErrNoValue says that nothing stands at a JSON pointer.
	ErrNoValue = errors.New("nothing at the pointer")
	// ErrQuarantined says that the entity's record cannot be read and that the
	// entity stays blocked until it is repaired or deleted.
	ErrQuarantined = errors.New("entity is quarantined")
	// ErrDefinition refuses a Type or a Document at its start.
	ErrDefinition = errors.New("bad definition")
	// ErrBusy says that an entity has something to finish first: messages wait
	// for it, or it has sent some that are not delivered.
	ErrBusy = errors.New("entity is busy")
	// ErrReused refuses a message whose id was used for another message.
	ErrReused = errors.New("message id was used for another message")
)

// RejectedError is a handler's "no": the message was understood and refused,
// and nothing changed.
type RejectedError struct {
	Reason string
}

func (e *RejectedError) Error() string { return "rejected: " + e.Reason }

// Rejectf returns a RejectedError with a formatted reason, for a handler to
// return.
func Rejectf(format string, args ...any) error {
	return &RejectedError{Reason: fmt.Sprintf(format, args...)}
}

// HandlerError says that a handler or Init failed or panicked. Nothing changed.
type HandlerError struct {
	Key     persist.Key
	Message string // the handler's name, or "Init"
	Err     error
}

func (e *HandlerError) Error() string {
	return fmt.Sprintf("%s: handler %q failed and changed nothing: %v", e.Key, e.Message, e.Err)
}

func (e *HandlerError) Unwrap() error { return e.Err }
