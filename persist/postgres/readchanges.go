package postgres

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/twinsrv/twinsrv/persist"
)

const changeColumns = `position, pod, name, life, revision, event, change`

const changesSQL = `
	SELECT ` + changeColumns + ` FROM changes
	WHERE ` + ofEntity + ` AND ($3 = 0 OR life = $3) AND revision >= $4
	ORDER BY life, revision, position LIMIT $5`

// Changes implements persist.PersistenceService.
func (s *Store) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	if key.Check() != nil || !storable(key.Pod, key.Name) || life > math.MaxInt64 || from > math.MaxInt64 {
		return nil, s.serving(ctx)
	}
	changes, err := s.changes(ctx, changesSQL, key.Pod, key.Name, int64(life), int64(from), int64(limitOr(limit)))
	if err != nil {
		return nil, fmt.Errorf("changes of %s: %w", key, err)
	}
	return changes, nil
}

// NextLife implements persist.LifeFinder.
func (s *Store) NextLife(ctx context.Context, key persist.Key, after uint64) (uint64, error) {
	if key.Check() != nil || !storable(key.Pod, key.Name) || after > math.MaxInt64 {
		return 0, s.serving(ctx)
	}
	var life int64
	err := s.read(ctx, func() { life = 0 }, func(rows pgx.Rows) error { return rows.Scan(&life) },
		`SELECT life FROM changes WHERE `+ofEntity+` AND life > $3 ORDER BY life, revision, position LIMIT 1`,
		key.Pod, key.Name, int64(after))
	if err != nil {
		return 0, fmt.Errorf("lives of %s: %w", key, err)
	}
	return uint64(life), nil
}

// Log implements persist.PersistenceService.
func (s *Store) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	changes, err := s.changes(ctx, `
		SELECT `+changeColumns+` FROM changes WHERE position > $1 ORDER BY position LIMIT $2`,
		position(after), int64(limitOr(limit)))
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return changes, nil
}

func (s *Store) changes(ctx context.Context, sql string, args ...any) ([]persist.Change, error) {
	var changes []persist.Change
	err := s.read(ctx, func() { changes = nil }, func(rows pgx.Rows) error {
		var c persist.Change
		var position, life, revision int64
		var sealed []byte
		if err := rows.Scan(&position, &c.Key.Pod, &c.Key.Name, &life, &revision, &c.Event, &sealed); err != nil {
			return err
		}
		c.Position, c.Life, c.Revision = uint64(position), uint64(life), uint64(revision)
		if err := openChange(&c, sealed); err != nil {
			c.Err = fmt.Errorf("position %d of %s: %w", c.Position, c.Key, err)
		}
		changes = append(changes, c)
		return nil
	}, sql, args...)
	return changes, err
}
