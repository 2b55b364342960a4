package persist

import (
	"context"
	"errors"
	"fmt"
)

// Folder is implemented by stores that a commit log can stand in front of. The
// log decides what becomes of units and makes it durable; the store takes it
// over later, in larger steps. While a log stands in front of a store, nothing
// but the log writes to it.
type Folder interface {
	PersistenceService

	// Heads returns what is stored of each key, in the order of the keys. An
	// error is of the whole call.
	Heads(ctx context.Context, keys []Key) ([]Head, error)

	// Fold makes a batch durable, in one step. One that was folded before, in
	// whole or as part of a larger one, may be folded again as long as nothing
	// was trimmed since. Errors are those of Commit; after ErrUnknown the same
	// batch is folded again once the store is reopened. Instead of waiting for a
	// backup it, and whatever else writes, fails with a BusyError.
	Fold(ctx context.Context, f Fold) error

	// Mark returns the mark of the last batch that had one; the zero Mark when
	// no log ever stood in front of the store.
	Mark(ctx context.Context) (Mark, error)
}

// Mark says how far a commit log is folded into a store.
type Mark struct {
	// Log is the log's own number, which tells it from every other log.
	Log uint64
	// Through is the number of the last group of which everything is folded.
	Through uint64
	// Reached is a group that the log had, durably, when the mark was made: a log
	// that ends before it has lost what it had. 0 says nothing, and when the log
	// is detached it does not count and need not be kept.
	Reached uint64
	// Detached says that the log has let the store go: it holds nothing that the
	// store does not, and the store may be used without it.
	Detached bool
}

// Fold is a part of what a commit log hands to the store behind it. Its lives,
// revisions and positions are final.
type Fold struct {
	// Deleted are keys whose record and rows are removed, before everything
	// else in the batch is written.
	Deleted []Key
	// RowsGone are rows that are removed; only Kind, Key and ID count.
	RowsGone []Row
	// Filed are changes that Batch.Changes of this or earlier batches had and
	// that are now listed under their entities; their Data is not looked at.
	// A change is in the log, for Log and Trim, from the batch that has it in
	// Changes on, and for the store's own Changes from that which has it here.
	// Those of one entity come in order, also from batch to batch. (A store that
	// has lost the list of an entity's changes makes it anew from the log, and
	// then shows also those that are not filed.)
	Filed []Change
	// Batch is written as Importer says, but that its Changes, which come in
	// the order of positions, go into the log alone.
	Batch
	// Mark, if it is not zero, is stored with the batch.
	Mark Mark
}

// Head is what a store has of an entity, as far as it decides about units.
type Head struct {
	Exists         bool
	Life, Revision uint64
	// Err says why no unit but a forced deletion can continue the entity: its
	// record cannot be read, or, wrapping ErrInvalid, a commit of it would meet
	// damage.
	Err error
}

// Admits says whether a checked unit can follow what is stored: nil, or an error
// that wraps ErrConflict or what Head.Err wraps. created is the life that an
// earlier unit of the same Commit call began for the key, 0 if none did.
func (h *Head) Admits(u *Unit, created uint64) error {
	switch {
	case u.Force:
		return nil
	case errors.Is(h.Err, ErrInvalid):
		return h.Err // what exists cannot be told, or does not matter
	case u.Expect == 0 && !h.Exists:
		return h.Err
	case u.Expect == 0:
		return fmt.Errorf("%w: it exists already", ErrConflict)
	case !h.Exists:
		return fmt.Errorf("%w: it does not exist", ErrConflict)
	case h.Err != nil:
		return fmt.Errorf("%w: the stored record cannot be read: %w", ErrConflict, h.Err)
	}
	life := u.Life
	if life == 0 {
		if life = created; life == 0 {
			return fmt.Errorf("%w: no earlier unit of the call created it, and no life is given", ErrConflict)
		}
	}
	if h.Life != life || h.Revision != u.Expect {
		return fmt.Errorf("%w: life %d revision %d is stored, the unit expects %d and %d",
			ErrConflict, h.Life, h.Revision, life, u.Expect)
	}
	return nil
}
