package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/twinsrv/twinsrv/persist"
)

const defaultLimit = 100 // of a page whose limit is not given

func limitOr(limit int) int {
	if limit <= 0 {
		return defaultLimit
	}
	return limit
}

// Trim implements persist.PersistenceService. What it drops gives its room back
// to the table when the server vacuums, as it does by itself.
// A failure that wraps persist.ErrUnknown may have dropped it all.
func (s *Store) Trim(ctx context.Context, after, through uint64, limit int) (persist.Trimmed, error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return persist.Trimmed{}, err
	}
	defer end()
	through = min(through, s.next-1)
	t := persist.Trimmed{Through: max(after, through)}
	if after >= through {
		return t, nil
	}
	limit = limitOr(limit)
	if err := s.checkWriter(ctx); err != nil {
		return persist.Trimmed{}, s.unavailable(err)
	}
	b := &pgx.Batch{}
	b.Queue(beginStatement)
	b.Queue(fenceStatement, s.epoch, int64(s.next-1), int64(s.next-1))
	trim := b.Queue(trimStatement, int64(after), int64(through), int64(limit))
	b.Queue(commitStatement)
	var gone, seen, last int64
	trim.QueryRow(func(row pgx.Row) error { return row.Scan(&gone, &seen, &last) })
	if err := s.writer.SendBatch(ctx, b).Close(); err != nil {
		how := committing
		if pgconn.SafeToRetry(err) {
			how = unsent
		}
		return persist.Trimmed{}, s.unavailableOr(s.classify(ctx, err, how))
	}
	t.Dropped = int(gone)
	if seen == int64(limit) {
		t.Through = uint64(last)
	}
	return t, nil
}
