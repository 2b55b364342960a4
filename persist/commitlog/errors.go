package commitlog

import "errors"

var (
	// ErrDamaged says that the log does not have what was written to it, so that
	// acknowledged changes are missing.
	ErrDamaged = errors.New("the commit log is damaged")
	// ErrForeign says that log and store do not belong together.
	ErrForeign = errors.New("the commit log belongs to another store")
	// ErrMissing says that the store needs a log, and there is none.
	ErrMissing = errors.New("the store's commit log is missing")
)
