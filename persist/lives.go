package persist

import (
	"context"
	"fmt"
)

// maxLifeScan is how many changes are read at most, to find a life, of a store
// that is no LifeFinder.
const maxLifeScan = 1 << 14

// NextLife returns the first life of an entity, behind one, that the journal has
// changes of; 0 if there is none. Of a store that is no LifeFinder it reads all
// that is before, and fails if that is more than 16,384 changes.
func NextLife(ctx context.Context, store PersistenceService, key Key, after uint64) (uint64, error) {
	if f, is := store.(LifeFinder); is {
		return f.NextLife(ctx, key, after)
	}
	for n := 1; ; n *= 4 {
		changes, err := store.Changes(ctx, key, 0, 0, n)
		if err != nil {
			return 0, fmt.Errorf("read the changes of %s: %w", key, err)
		}
		for i := range changes {
			if changes[i].Life > after {
				return changes[i].Life, nil
			}
		}
		switch {
		case len(changes) < n:
			return 0, nil
		case n >= maxLifeScan:
			return 0, fmt.Errorf("%s: the life behind %d lies behind more than %d changes, and the store does not find lives", key, after, n)
		}
	}
}
