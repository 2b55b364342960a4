package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// read runs a query and calls fn for each row of its answer. What a transaction
// has written is seen once it is durable, not before. A connection that turns
// out to be lost is replaced, once: fn must be able to begin again after reset.
func (s *Store) read(ctx context.Context, reset func(), fn func(rows pgx.Rows) error, sql string, args ...any) error {
	if err := s.serving(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	err := s.query(ctx, fn, sql, args)
	if err != nil && ended(err) && ctx.Err() == nil {
		s.readers.Reset()
		reset()
		err = s.query(ctx, fn, sql, args)
	}
	if err != nil {
		return s.unavailable(err)
	}
	return nil
}

func (s *Store) query(ctx context.Context, fn func(rows pgx.Rows) error, sql string, args []any) error {
	rows, err := s.readers.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// storable says whether text can be in a column at all.
func storable(texts ...string) bool {
	for _, t := range texts {
		if strings.IndexByte(t, 0) >= 0 || !utf8.ValidString(t) {
			return false
		}
	}
	return true
}

// head returns the longest beginning of s that can be in a column. What is
// behind s, byte by byte, is not before its head.
func head(s string) string {
	for i, r := range s {
		if r == 0 {
			return s[:i]
		}
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return s[:i]
			}
		}
	}
	return s
}

// highestNames is behind every name: as many bytes of the highest character as a
// name may have.
const highestNames = 256

func highest() string { return strings.Repeat("\U0010FFFF", highestNames) }

// position gives a number to the server; none there is over the highest int64.
func position(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// Load implements persist.PersistenceService.
func (s *Store) Load(ctx context.Context, key persist.Key) (snapshot.Record, error) {
	if key.Check() != nil || !storable(key.Pod, key.Name) {
		if err := s.serving(ctx); err != nil {
			return snapshot.Record{}, err
		}
		return snapshot.Record{}, fmt.Errorf("%s: %w", key, persist.ErrNotFound)
	}
	var r snapshot.Record
	unread := persist.ErrNotFound
	err := s.read(ctx, func() {}, func(rows pgx.Rows) error {
		var life, revision int64
		var envelope []byte
		if err := rows.Scan(&life, &revision, &envelope); err != nil {
			return err
		}
		r, unread = openRecord(life, revision, envelope)
		return nil
	}, `SELECT life, revision, record FROM records WHERE pod = $1 AND name = $2`, key.Pod, key.Name)
	if err == nil {
		err = unread
	}
	if err != nil {
		return snapshot.Record{}, fmt.Errorf("%s: %w", key, err)
	}
	return r, nil
}

// The page is chosen by the sizes of the states before anything of them is sent;
// the window counts those before each item. The conditions on text find the place
// in the index, those on bytes are exact also where a bound is no valid text.
const listSQL = `
	SELECT name, life, revision, record, n FROM (
		SELECT name, life, revision, record, count(*) OVER () AS n, row_number() OVER names AS i,
			coalesce(sum(size) OVER (names ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
		FROM (
			SELECT name, life, revision, record, size FROM records
			WHERE pod = $1 AND name >= $2 AND name <= $3
				AND ($4::bytea = '' OR convert_to(name, 'UTF8') > $4::bytea)
				AND substring(convert_to(name, 'UTF8'), 1, length($5::bytea)) = $5::bytea
			ORDER BY name LIMIT $6 + 1) candidates
		WINDOW names AS (ORDER BY name)) page
	WHERE i <= $6 AND (i = 1 OR before < $7) ORDER BY name`

// List implements persist.PersistenceService.
func (s *Store) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	o = o.WithDefaults()
	if !storable(pod) {
		return persist.Page{}, s.serving(ctx)
	}
	var page persist.Page
	n := int64(0)
	err := s.read(ctx, func() { page.Items, n = nil, 0 }, func(rows pgx.Rows) error {
		var item persist.Item
		var life, revision int64
		var envelope []byte
		if err := rows.Scan(&item.Name, &life, &revision, &envelope, &n); err != nil {
			return err
		}
		r, err := openRecord(life, revision, envelope)
		if err != nil {
			item.Err = fmt.Errorf("%s/%s: %w", pod, item.Name, err)
		}
		item.Record = r
		page.Items = append(page.Items, item)
		return nil
	}, listSQL, pod, max(head(o.Prefix), head(o.After)), head(o.Prefix)+highest(),
		[]byte(o.After), []byte(o.Prefix), int64(min(o.Limit, math.MaxInt32)), int64(o.MaxBytes))
	if err != nil {
		return persist.Page{}, fmt.Errorf("list of %s: %w", pod, err)
	}
	page.More = n > int64(len(page.Items))
	return page, nil
}

// Pods implements persist.PersistenceService.
func (s *Store) Pods(ctx context.Context) ([]string, error) {
	var pods []string
	// One look into the index for each pod, however many records it has.
	err := s.read(ctx, func() { pods = nil }, func(rows pgx.Rows) error {
		var pod string
		err := rows.Scan(&pod)
		pods = append(pods, pod)
		return err
	}, `WITH RECURSIVE p AS (
			SELECT min(pod) AS pod FROM records
			UNION ALL
			SELECT (SELECT min(r.pod) FROM records r WHERE r.pod > p.pod) FROM p WHERE p.pod IS NOT NULL)
		SELECT pod FROM p WHERE pod IS NOT NULL ORDER BY pod`)
	if err != nil {
		return nil, fmt.Errorf("list of pods: %w", err)
	}
	return pods, nil
}

// Position implements persist.PersistenceService.
func (s *Store) Position(ctx context.Context) (uint64, error) {
	p := int64(-1)
	err := s.read(ctx, func() {}, func(rows pgx.Rows) error { return rows.Scan(&p) }, `SELECT position FROM store`)
	if err == nil && p < 0 {
		err = s.unavailable(errors.New("the table store has lost its row"))
	}
	if err != nil {
		return 0, fmt.Errorf("position: %w", err)
	}
	return uint64(p), nil
}
