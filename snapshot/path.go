package snapshot

import (
	"errors"
	"fmt"
)

// pathError is an error inside a value; path says where, like
// .rooms["a"].celsius.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string {
	path := e.path
	if path[0] == '.' {
		path = path[1:]
	}
	if len(path) > 160 {
		path = path[:80] + "…" + path[len(path)-80:]
	}
	return path + ": " + e.err.Error()
}

func (e *pathError) Unwrap() error { return e.err }

// at puts a step in front of an error's path. It is called only once an error
// exists, while the calls that led to it return.
func at(step string, err error) error {
	if inner, ok := err.(*pathError); ok { //nolint:errorlint // only our own, unwrapped
		return &pathError{path: step + inner.path, err: inner.err}
	}
	return &pathError{path: step, err: err}
}

func errNotUTF8(s string) error {
	return fmt.Errorf("%q is not valid UTF-8: keep such text as []byte", shorten(s))
}

func errTooDeep() error {
	return errors.New("nests deeper than 1000 levels, or holds itself")
}

// shorten keeps error texts readable.
func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
