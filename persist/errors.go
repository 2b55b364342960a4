package persist

import "errors"

var (
	// ErrNotFound says that a key has no record.
	ErrNotFound = errors.New("not found")
	// ErrConflict refuses a unit whose expected life or revision is not the
	// stored one. Nothing of it was applied.
	ErrConflict = errors.New("conflict with the stored revision")
	// ErrInvalid refuses a unit for its data. Nothing of it was applied.
	ErrInvalid = errors.New("refused by the store")
	// ErrUnavailable says that the store is closed, broken or down and that
	// nothing was done.
	ErrUnavailable = errors.New("store unavailable")
	// ErrNoRoom stands beside ErrUnavailable when the store's disk is full.
	ErrNoRoom = errors.New("the disk is full, make room on it")
	// ErrUnknown says that a commit may or may not have been applied.
	ErrUnknown = errors.New("outcome unknown")
)
