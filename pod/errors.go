package pod

import "errors"

var (
	// ErrNoPod says that there is no pod of a name.
	ErrNoPod = errors.New("no such pod")
	// ErrReadOnly says that a pod's type is not part of this program: its
	// entities can be read but take no messages; or that a definition that is
	// part of the program cannot be changed from outside.
	ErrReadOnly = errors.New("read-only")
	// ErrExists says that a pod of that name has another type.
	ErrExists = errors.New("pod exists")
	// ErrNotEmpty says that a pod still has entities.
	ErrNotEmpty = errors.New("pod is not empty")
	// ErrStopping says that the pods are being closed, or that this one is being
	// deleted, and take no messages.
	ErrStopping = errors.New("stopping")
)
