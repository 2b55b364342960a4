package persist

import "fmt"

// Check says, with an error that wraps ErrInvalid and names the key, why no store
// may fold the batch, or returns nil. No state, change or row may have more than
// maxValue bytes. Every store calls it before it looks at what it holds.
func (f *Fold) Check(maxValue int) error {
	if f.Mark.Log == 0 && f.Mark != (Mark{}) {
		return fmt.Errorf("%w: a mark of no log, folded through %d", ErrInvalid, f.Mark.Through)
	}
	for _, k := range f.Deleted {
		if err := k.Check(); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	for i := range f.RowsGone {
		r := &f.RowsGone[i]
		op := RowOp{Kind: r.Kind, ID: r.ID}
		if err := r.Key.Check(); err != nil {
			return fmt.Errorf("%s: %w", r.Key, err)
		}
		if err := op.check(); err != nil {
			return fmt.Errorf("%s: %w", r.Key, err)
		}
	}
	if err := f.Batch.Check(maxValue); err != nil {
		return err
	}
	return f.checkOrder()
}

// checkOrder tests that changes come in the order of positions, and those that
// are filed in that of their entities.
func (f *Fold) checkOrder() error {
	var last uint64
	for i := range f.Changes {
		c := &f.Changes[i]
		if c.Position <= last {
			return fmt.Errorf("%s: %w: the change at position %d comes behind that at %d", c.Key, ErrInvalid, c.Position, last)
		}
		last = c.Position
	}
	filed := make(map[Key]uint64, len(f.Filed))
	for i := range f.Filed {
		c := f.Filed[i]
		c.Data, c.Err = nil, nil // what they say does not count
		if err := c.checkImport(0); err != nil {
			return fmt.Errorf("%s: position %d: %w", c.Key, c.Position, err)
		}
		if c.Position <= filed[c.Key] {
			return fmt.Errorf("%s: %w: the change at position %d is filed behind that at %d", c.Key, ErrInvalid, c.Position, filed[c.Key])
		}
		filed[c.Key] = c.Position
	}
	return nil
}
