package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

const rowColumns = `kind, pod, name, id, sum, value`

// The first condition finds the place in the index, the second is exact.
const rowsSQL = `
	SELECT ` + rowColumns + ` FROM entity_rows
	WHERE (kind, pod, name, substring(id, 1, 512)) >= ($1, $2, $3, substring($4::bytea, 1, 512)) AND kind <= $5
		AND ($6 OR (convert_to(kind, 'UTF8'), convert_to(pod, 'UTF8'), convert_to(name, 'UTF8'), id) > ($7::bytea, $8::bytea, $9::bytea, $10::bytea))
	ORDER BY kind, pod, name, substring(id, 1, 512), id LIMIT $11`

// Rows implements persist.PersistenceService.
func (s *Store) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	if !storable(kind) {
		return nil, s.serving(ctx)
	}
	from, through := persist.Row{Kind: kind}, kind
	if after != nil {
		from = *after
	}
	if kind == "" {
		through = "~" // a kind begins with a letter
	} else {
		from.Kind = kind
	}
	rows, err := s.rows(ctx, rowsSQL, head(from.Kind), head(from.Key.Pod), head(from.Key.Name), []byte(from.ID), through,
		after == nil, []byte(from.Kind), []byte(from.Key.Pod), []byte(from.Key.Name), []byte(from.ID), int64(limitOr(limit)))
	if err != nil {
		return nil, fmt.Errorf("rows of kind %q: %w", kind, err)
	}
	return rows, nil
}

// RowsOf implements persist.PersistenceService.
func (s *Store) RowsOf(ctx context.Context, key persist.Key) ([]persist.Row, error) {
	if key.Check() != nil || !storable(key.Pod, key.Name) {
		return nil, s.serving(ctx)
	}
	rows, err := s.rows(ctx, `
		SELECT `+rowColumns+` FROM entity_rows WHERE pod = $1 AND name = $2 ORDER BY kind, id`, key.Pod, key.Name)
	if err != nil {
		return nil, fmt.Errorf("rows of %s: %w", key, err)
	}
	return rows, nil
}

func (s *Store) rows(ctx context.Context, sql string, args ...any) ([]persist.Row, error) {
	var all []persist.Row
	err := s.read(ctx, func() { all = nil }, func(rows pgx.Rows) error {
		var r persist.Row
		var id []byte
		var sum int64
		if err := rows.Scan(&r.Kind, &r.Key.Pod, &r.Key.Name, &id, &sum, &r.Value); err != nil {
			return err
		}
		r.ID = string(id)
		if got := rowSum(&r); got != sum {
			r.Value = nil
			r.Err = fmt.Errorf("row %s of %s: its checksum is %08x, its columns give %08x: %w",
				strings.ToValidUTF8(r.Kind+" "+r.ID, "?"), r.Key, sum, got, snapshot.ErrCorrupt)
		}
		all = append(all, r)
		return nil
	}, sql, args...)
	return all, err
}
