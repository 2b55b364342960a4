package postgres

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/migrations"
	"github.com/twinsrv/twinsrv/persist"
)

// olderURL returns the URL of a new schema of an older version, without data.
func olderURL(t *testing.T, version int64) string {
	t.Helper()
	url := freshURL(t)
	target, err := parse(url, Config{}.withDefaults())
	require.NoError(t, err)
	execSQL(t, url, `CREATE SCHEMA `+target.schema)
	db := stdlib.OpenDB(*target.pool.ConnConfig.Copy())
	defer func() { require.NoError(t, db.Close()) }()
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	require.NoError(t, err)
	_, err = p.UpTo(ctx, version)
	require.NoError(t, err)
	return url
}

// A store of an older schema has all that it had once it is brought up to date,
// and goes on from there.
func TestAnOlderSchemaIsCarriedOver(t *testing.T) {
	t.Parallel()
	now := freshURL(t)
	s := mustOpen(t, now, Config{})
	a := mustCommit(t, s, create(rooms("a"), `{"celsius":20}`))[0]
	u := step(rooms("a"), a.Life, 1, `{"celsius":21}`)
	u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("x")}}
	mustCommit(t, s, u)
	b := mustCommit(t, s, create(rooms("b"), `{}`))[0]
	mustCommit(t, s, persist.Unit{Key: rooms("b"), Life: b.Life, Expect: 1, Delete: true, Changes: []persist.Change{{Revision: 2, Type: "deleted"}}})
	mustCommit(t, s, create(rooms("b"), `{"celsius":5}`))

	older := olderURL(t, 1)
	for _, table := range []string{"records", "changes", "entity_rows"} {
		execSQL(t, older, fmt.Sprintf(`INSERT INTO %s SELECT * FROM %s.%s`, table, s.target.schema, table))
	}
	execSQL(t, older, fmt.Sprintf(`UPDATE store SET position = n.position FROM %s.store n`, s.target.schema))
	_, err := Open(ctx, older, Config{NoMigrate: true})
	require.ErrorIs(t, err, ErrSchema)
	require.ErrorContains(t, err, "version 1 and this program needs 2")

	got := mustOpen(t, older, Config{})
	require.Equal(t, contents(t, s), contents(t, got))
	next := step(rooms("a"), a.Life, 2, `{"celsius":22}`)
	require.Equal(t, mustCommit(t, s, next), mustCommit(t, got, next))
	require.Equal(t, contents(t, s), contents(t, got))
	require.Equal(t, int64(3), ask[int64](t, older, `SELECT count(*) FROM history('rooms', 'a')`))
	require.Equal(t, int64(3), ask[int64](t, older, `SELECT count(*) FROM history('rooms', 'b')`))
	require.Zero(t, ask[int64](t, older, `SELECT count(*) FROM history('room', 'sb')`))
}

// contents reads a store of rooms a and b.
func contents(t *testing.T, s *Store) (all []any) {
	t.Helper()
	page, err := s.List(ctx, "rooms", persist.ListOptions{})
	require.NoError(t, err)
	log, err := s.Log(ctx, 0, 100)
	require.NoError(t, err)
	rows, err := s.Rows(ctx, "", nil, 100)
	require.NoError(t, err)
	all = append(all, page, log, rows)
	for _, name := range []string{"a", "b"} {
		changes, err := s.Changes(ctx, rooms(name), 0, 0, 100)
		require.NoError(t, err)
		require.NotEmpty(t, changes)
		all = append(all, changes)
	}
	return all
}

// An entity's changes are found by the index, in its order, and by no other way.
func TestAnEntitysChangesAreFoundByTheIndex(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	mustOpen(t, url, Config{})
	execSQL(t, url, `INSERT INTO changes (position, pod, name, life, revision, event, change)
		SELECT i, 'rooms', 'r' || i % 1000, 1, i, false, '' FROM generate_series(1, 20000) i`)
	execSQL(t, url, `ANALYZE changes`)
	plan := ask[string](t, url, `EXPLAIN (FORMAT JSON)`+changesSQL, "rooms", "r7", int64(1), int64(3), int64(10))
	require.Contains(t, plan, "changes_history")
	require.NotContains(t, plan, "Seq Scan")
	require.Regexp(t, `"Filter": .*pod = .*name = `, plan, "two entities may have one number")
}
