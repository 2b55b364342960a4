package bolt

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// fault is a panic or memory fault of bbolt, met on a page that is not what
// was written (or is beyond the end of the file).
type fault struct {
	path  string
	cause any
}

func (f *fault) Error() string {
	return fmt.Sprintf("%s: a page is damaged (%v): restore the file from a backup, or copy what is whole with `twinsrv store copy --skip-unreadable`", f.path, f.cause)
}

func (f *fault) Unwrap() error { return ErrDamaged }

// guard runs fn and turns a panic or memory fault in it into a *fault. bbolt
// trusts the file that it maps into memory: it panics on pages of the wrong
// kind and reads behind the map where an offset is damaged.
//
// fn must not start goroutines: a fault in one of these would end the process.
func guard(path string, fn func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if p := recover(); p != nil {
			err = &fault{path: path, cause: p}
		}
	}()
	return fn()
}

func isFault(err error) bool {
	var f *fault
	return errors.As(err, &f)
}
