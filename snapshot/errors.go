package snapshot

import "errors"

var (
	// ErrCorrupt says that stored bytes are not what was written.
	ErrCorrupt = errors.New("record is damaged")
	// ErrNewer says that a record was written by a newer version than this
	// program knows.
	ErrNewer = errors.New("record is newer than this program")
)
