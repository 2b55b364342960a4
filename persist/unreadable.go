package persist

import (
	"context"
	"fmt"
)

// Unreadable is what FindUnreadable has found.
type Unreadable struct {
	// Problems are the first parts that cannot be read.
	Problems []Problem
	// Records, Rows and Changes count all of them.
	Records, Rows, Changes int
}

// Count is how many parts cannot be read.
func (u *Unreadable) Count() int { return u.Records + u.Rows + u.Changes }

// FindUnreadable reads everything in a store and reports what cannot be read,
// damaged or written by a newer program, and nothing else of what Check does:
// its memory does not grow with the store. At most so many parts are listed; 0
// means 1,000. Its error says that it could not read to the end.
func FindUnreadable(ctx context.Context, s PersistenceService, most int) (Unreadable, error) {
	if most <= 0 {
		most = 1000
	}
	f := finding{most: most}
	err := walkPods(ctx, s, Key{}, f.records)
	if err == nil {
		err = walkRows(ctx, s, nil, f.rows)
	}
	if err == nil {
		err = walkLog(ctx, s, 0, f.changes)
	}
	if err != nil {
		return f.found, fmt.Errorf("look for what cannot be read: %w", err)
	}
	return f.found, nil
}

// finding is one call of FindUnreadable.
type finding struct {
	most  int
	found Unreadable
}

func (f *finding) add(n *int, p Problem) {
	*n++
	if len(f.found.Problems) < f.most {
		f.found.Problems = append(f.found.Problems, p)
	}
}

func (f *finding) records(pod string, items []Item) error {
	for i := range items {
		if err := items[i].Err; err != nil {
			f.add(&f.found.Records, recordProblem(Key{Pod: pod, Name: items[i].Name}, err))
		}
	}
	return nil
}

func (f *finding) rows(rows []Row) error {
	for i := range rows {
		if rows[i].Err != nil {
			f.add(&f.found.Rows, rowProblem(&rows[i]))
		}
	}
	return nil
}

func (f *finding) changes(changes []Change) error {
	for i := range changes {
		if changes[i].Err != nil {
			f.add(&f.found.Changes, changeProblem(&changes[i]))
		}
	}
	return nil
}
