package bolt

import "errors"

var (
	// ErrLocked says that another process (or another Store of this one) holds
	// the file.
	ErrLocked = errors.New("another process holds the file")
	// ErrDamaged says that the file itself, and not just a value in it, is not
	// what was written.
	ErrDamaged = errors.New("the file is damaged")
	// ErrFormat says that the file is not one of this program's: of another
	// program, or of a newer version.
	ErrFormat = errors.New("the file's format is not known")
	// ErrLogged says that a commit log stands in front of the file, which holds
	// what the file does not have yet.
	ErrLogged = errors.New("a commit log stands in front of the file")
)
