package pgtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Naive is what a store is measured against: a table of the same shape, into
// which each snapshot is upserted by a statement and a transaction of its own.
type Naive struct {
	pool    *pgxpool.Pool
	journal bool
}

// NewNaive makes the tables in the schema "naive" of a database, anew. With
// journal each upsert also inserts a change. conns is the most connections that
// are used at once.
func NewNaive(ctx context.Context, url string, conns int, journal bool) (*Naive, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(conns)
	cfg.ConnConfig.RuntimeParams["search_path"] = "naive"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{
		`DROP SCHEMA IF EXISTS naive CASCADE`, `CREATE SCHEMA naive`,
		`CREATE TABLE records (pod text COLLATE "C", name text COLLATE "C", life bigint NOT NULL, revision bigint NOT NULL,
			changed timestamptz, size integer NOT NULL, state jsonb, record bytea NOT NULL, PRIMARY KEY (pod, name)) WITH (fillfactor = 80)`,
		`CREATE TABLE changes (position bigserial PRIMARY KEY, pod text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
			life bigint NOT NULL, revision bigint NOT NULL, event boolean NOT NULL, at timestamptz, type text, change bytea NOT NULL)`,
		`CREATE INDEX changes_entity ON changes (pod, name, life, revision)`,
	} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			pool.Close()
			return nil, err
		}
	}
	return &Naive{pool: pool, journal: journal}, nil
}

// Close closes the connections.
func (n *Naive) Close() { n.pool.Close() }

const (
	naiveUpsert = `
	INSERT INTO records (pod, name, life, revision, changed, size, state, record) VALUES ($1, $2, 1, $3, now(), $4, $5::jsonb, $6)
	ON CONFLICT (pod, name) DO UPDATE SET revision = excluded.revision, changed = excluded.changed, size = excluded.size,
		state = excluded.state, record = excluded.record`
	naiveJournal = `
	WITH c AS (INSERT INTO changes (pod, name, life, revision, event, at, type, change) VALUES ($1, $2, 1, $3, false, now(), 'changed', $6))`
)

// Upsert writes one snapshot durably.
func (n *Naive) Upsert(ctx context.Context, pod, name string, revision uint64, state string) error {
	sql := naiveUpsert
	if n.journal {
		sql = naiveJournal + naiveUpsert
	}
	_, err := n.pool.Exec(ctx, sql, pod, name, int64(revision), len(state), state, []byte(state))
	return err
}

// Run upserts as many snapshots of as many entities by goroutines that each wait
// for one at a time. The name and the state of the i-th are the caller's.
func (n *Naive) Run(ctx context.Context, goroutines, upserts int, of func(i int) (name, state string)) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, goroutines)
	for g := range goroutines {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= upserts || errs[g] != nil {
					return
				}
				name, state := of(i)
				if err := n.Upsert(ctx, "rooms", name, uint64(i+1), state); err != nil {
					errs[g] = fmt.Errorf("upsert %d: %w", i, err)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
