package jsonfile

import "errors"

var (
	// ErrLocked says that another process (or another Store of this one) holds
	// the folder.
	ErrLocked = errors.New("another process holds the folder")
	// ErrDamaged says that what holds the store together (store.json or the
	// journal, and not just one entity's file) is not what was written.
	ErrDamaged = errors.New("the store is damaged")
	// ErrFormat says that the folder is not one of this program's: of another
	// program, or of a newer version.
	ErrFormat = errors.New("the folder's format is not known")
)
