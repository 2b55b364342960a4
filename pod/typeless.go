package pod

import (
	"context"
	"fmt"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// typeless makes what the store gave for a key a record with its state, without
// the pod's type. The record of an event-sourced entity holds none: its snapshot
// does, if that is of the same revision. What came behind it the type alone can
// apply, so the error is a *typelessError.
func (p *Pod) typeless(ctx context.Context, key persist.Key, r snapshot.Record) (snapshot.Record, error) {
	if len(r.State) > 0 {
		return r, nil
	}
	rows, err := p.store().RowsOf(ctx, key)
	if err != nil {
		return r, fmt.Errorf("read the snapshot of %s: %w", key, err)
	}
	for _, row := range rows {
		if row.Kind != entity.SnapshotRows || row.Err != nil {
			continue
		}
		if s, err := snapshot.Parse(row.Value); err == nil && s.Life == r.Life && s.Revision == r.Revision {
			r.State, r.Codec, r.Schema = s.State, s.Codec, s.Schema
			return r, nil
		}
	}
	_, why := p.writable()
	return r, &typelessError{key: key, revision: r.Revision, why: why}
}

// typelessError says that an entity cannot be shown by a program that does not
// have its type. To this program it is quarantined.
type typelessError struct {
	key      persist.Key
	revision uint64
	why      error // wraps ErrReadOnly; nil if the type came meanwhile
}

func (e *typelessError) Error() string {
	text := fmt.Sprintf("%s is event-sourced and has no snapshot of its revision %d, so that only its type can make its state", e.key, e.revision)
	if e.why == nil {
		return text + ", which this program has now; read it again"
	}
	return text + ": " + e.why.Error()
}

// Unwrap returns ErrReadOnly and entity.ErrQuarantined.
func (e *typelessError) Unwrap() []error { return []error{ErrReadOnly, entity.ErrQuarantined} }
