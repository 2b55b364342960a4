package persist

import (
	"context"
	"errors"
	"fmt"
)

// BusyError is an error of a Folder's calls that write: nothing was done, since that
// would have to wait for a backup which is being copied, and what is read for it. Over
// is closed when it is worth another try.
type BusyError struct {
	Err  error // wraps ErrUnavailable
	Over <-chan struct{}
}

func (e *BusyError) Error() string { return e.Err.Error() }
func (e *BusyError) Unwrap() error { return e.Err }

// WhenFree runs fn, and again whenever a BusyError of it is over, until ctx ends.
// fn holds nothing when it returns.
func WhenFree(ctx context.Context, fn func() error) error {
	for {
		err := fn()
		var busy *BusyError
		if !errors.As(err, &busy) {
			return err
		}
		select {
		case <-busy.Over:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}
