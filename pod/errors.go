package pod

import "errors"

var (
	// ErrNoPod says that there is no pod of a name.
	ErrNoPod = errors.New("no such pod")
	// ErrReadOnly says that a pod's type is not part of this program: its
	// entities can be read but take no messages; or that a definition that is
	// part of the program cannot be changed from outside.
	ErrReadOnly error = later("read-only")
	// ErrExists says that a pod of that name has another type.
	ErrExists = errors.New("pod exists")
	// ErrNotEmpty says that a pod still has entities.
	ErrNotEmpty = errors.New("pod is not empty")
	// ErrStopping says that the pods are being closed, or that this one is being
	// deleted, and take no messages.
	ErrStopping error = later("stopping")
)

// later is an error that may pass: a message that meets it can be sent again.
type later string

func (e later) Error() string { return string(e) }

// Later implements entity.Later.
func (e later) Later() bool { return true }
