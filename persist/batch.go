package persist

import (
	"fmt"
	"math"
)

// Check says, with an error that wraps ErrInvalid and names the key, why no store
// may take the batch, or returns nil. No state, change or row may have more than
// maxValue bytes.
func (b *Batch) Check(maxValue int) error {
	if b.Position == math.MaxUint64 {
		return fmt.Errorf("%w: no position is above %d", ErrInvalid, b.Position)
	}
	for i := range b.Records {
		r := &b.Records[i]
		u := Unit{Key: r.Key, Record: &r.Record}
		if err := u.Check(maxValue); err != nil {
			return fmt.Errorf("%s: %w", r.Key, err)
		}
		if r.Record.Life == 0 || r.Record.Life == math.MaxUint64 {
			return fmt.Errorf("%s: %w: a record of life %d", r.Key, ErrInvalid, r.Record.Life)
		}
	}
	for i := range b.Changes {
		if err := b.Changes[i].checkImport(maxValue); err != nil {
			return fmt.Errorf("%s: position %d: %w", b.Changes[i].Key, b.Changes[i].Position, err)
		}
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		u := Unit{Key: r.Key, Expect: 1, Rows: []RowOp{{Kind: r.Kind, ID: r.ID, Value: r.Value}}}
		if err := u.Check(maxValue); err != nil {
			return fmt.Errorf("%s: %w", r.Key, err)
		}
		if r.Err != nil {
			return fmt.Errorf("%s: %w: a row that cannot be read: %w", r.Key, ErrInvalid, r.Err)
		}
	}
	return nil
}

// checkImport tests a change that comes with its life and position.
func (c *Change) checkImport(maxValue int) error {
	switch {
	case c.Err != nil:
		return fmt.Errorf("%w: a change that cannot be read: %w", ErrInvalid, c.Err)
	case c.Position == 0 || c.Position == math.MaxUint64 || c.Life == 0 || c.Life == math.MaxUint64:
		return fmt.Errorf("%w: a change of life %d at position %d", ErrInvalid, c.Life, c.Position)
	case len(c.Data) > maxValue:
		return fmt.Errorf("%w: the change has %d bytes, at most %d are kept", ErrInvalid, len(c.Data), maxValue)
	}
	return c.Key.Check()
}
