package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/twinsrv/twinsrv/migrations"
)

// Migration is one step of the schema that Migrate has applied.
type Migration struct {
	Version int64
	Name    string // of the file, in package migrations
	Took    time.Duration
}

// Migrations says what Migrate did.
type Migrations struct {
	Schema  string
	Applied []Migration // in order; none when the schema was up to date
	Version int64       // of the schema afterwards
}

// Migrate brings the schema up to date and says what it did. It does no
// harm while a server serves the store, but commits wait as long as a step of it
// locks their table, and fail when that exceeds their timeout. Several may run at
// once: each waits for the other under a lock of its session. It fails with ErrSchema when the schema is
// newer than the program, having changed nothing. Which schema the URL says, as
// in Config.Schema; ctx alone bounds how long it takes.
func Migrate(ctx context.Context, url string) (Migrations, error) {
	cfg := Config{}.withDefaults()
	t, err := parse(url, cfg)
	if err != nil {
		return Migrations{}, err
	}
	c, err := t.connect(ctx, baseSession(cfg))
	if err != nil {
		return Migrations{}, fmt.Errorf("%s: migrate: %w", t.where, err)
	}
	defer func() { _ = closeQuietly(c) }()
	if _, err := checkServer(ctx, c); err != nil {
		return Migrations{}, fmt.Errorf("%s: migrate: %w", t.where, err)
	}
	m, err := t.migrate(ctx, c, false)
	if err != nil {
		return m, fmt.Errorf("%s: migrate: %w", t.where, err)
	}
	return m, nil
}

// migrate brings the schema up to date, or with only says whether it is. It
// looks by c and works by connections of its own.
func (t target) migrate(ctx context.Context, c *pgx.Conn, only bool) (m Migrations, err error) {
	m.Schema = t.schema
	s := baseSession(Config{}.withDefaults())
	for _, bound := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		s[bound] = "0"
	}
	db := stdlib.OpenDB(*t.pool.ConnConfig.Copy(), stdlib.OptionAfterConnect(s.apply)) // connects when it is used
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return m, err
	}
	newest := p.ListSources()[len(p.ListSources())-1].Version
	if m.Version, err = version(ctx, c); err != nil {
		return m, err
	}
	switch {
	case m.Version > newest:
		return m, fmt.Errorf("%w: it has version %d and this program knows %d: use a newer program", ErrSchema, m.Version, newest)
	case m.Version == newest:
		return m, nil
	case only:
		return m, fmt.Errorf("%w: it has version %d and this program needs %d: run `twinsrv store migrate`", ErrSchema, m.Version, newest)
	}
	// goose's own lock of the session comes too late: it looks for its table, and
	// makes it, before.
	unlock, err := t.lockMigrations(ctx, db)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	results, err := p.Up(ctx)
	for _, r := range results {
		m.Applied = append(m.Applied, Migration{Version: r.Source.Version, Name: r.Source.Path, Took: r.Duration})
		m.Version = r.Source.Version
	}
	if err != nil {
		return m, err
	}
	m.Version = max(m.Version, newest) // another process may have applied them
	return m, nil
}

// version reads the schema's version without changing anything; 0 if it has
// none.
func version(ctx context.Context, c *pgx.Conn) (v int64, err error) {
	var there bool
	err = c.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1)`,
		goose.DefaultTablename).Scan(&there)
	if err == nil && there {
		err = c.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&v)
	}
	return v, err
}

// lockMigrations lets one process at a time migrate the schema, which it
// creates. The others wait as long as the context allows.
func (t target) lockMigrations(ctx context.Context, db *sql.DB) (unlock func() error, err error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, t.lockKey("migrations")); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for other migrations: %w", err), c.Close())
	}
	unlock = func() error {
		// The lock is the session's: it must not go back to the pool with it.
		_, err := c.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, t.lockKey("migrations"))
		return errors.Join(err, c.Close())
	}
	// CREATE SCHEMA IF NOT EXISTS asks for the right to create also when the
	// schema is there.
	var there bool
	err = c.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, t.schema).Scan(&there)
	if err == nil && !there {
		_, err = c.ExecContext(ctx, `CREATE SCHEMA `+pgx.Identifier{t.schema}.Sanitize())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create the schema: %w", err), unlock())
	}
	return unlock, nil
}
