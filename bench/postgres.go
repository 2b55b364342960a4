package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/persist/postgres"
	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
)

// upserts is how many a reference does between two looks at the clock.
const upserts = 1024

// onPostgres measures durable commands on a PostgreSQL server that is started
// for it, and for reference upserts of the same states: one after the other, and
// from 256 goroutines on 64 connections.
func onPostgres() []measurement {
	if pgtest.Missing() != "" {
		return nil
	}
	against := func(name string, goroutines, connections int) measurement {
		return measurement{
			lines: []string{name},
			ours: func(_ string, period time.Duration) ([]float64, error) {
				return onCluster(func(ctx context.Context, url string) (float64, error) {
					store, err := postgres.Open(ctx, url, postgres.Config{})
					if err != nil {
						return 0, err
					}
					return commands(store, manyEntities, period, meterName)
				})
			},
			reference: func(_ string, period time.Duration) ([]float64, error) {
				return onCluster(func(ctx context.Context, url string) (float64, error) {
					return upsertRate(ctx, url, goroutines, connections, period)
				})
			},
		}
	}
	return []measurement{against("stores/postgres-256-to-sequential", 1, 1), against("stores/postgres-256-to-crowd", manyEntities, 64)}
}

// onCluster runs f with a database of a new server.
func onCluster(f func(ctx context.Context, url string) (float64, error)) (values []float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cluster, err := pgtest.Start(ctx, pgtest.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	url, err := cluster.Database(ctx, "")
	if err != nil {
		return nil, err
	}
	return one(f(ctx, url))
}

func upsertRate(ctx context.Context, url string, goroutines, connections int, period time.Duration) (float64, error) {
	naive, err := pgtest.NewNaive(ctx, url, connections, false)
	if err != nil {
		return 0, err
	}
	defer naive.Close()
	of := func(i int) (name, state string) {
		return meterName(i % manyEntities), fmt.Sprintf(`{"count":%d,"celsius":%d.5,"place":"building 7, floor 3, room %d","operator":"the operator of this meter"}`, i, i%40, i%manyEntities)
	}
	if err := naive.Run(ctx, goroutines, manyEntities, of); err != nil {
		return 0, err
	}
	begin, done := time.Now(), 0
	for time.Since(begin) < period {
		if err := naive.Run(ctx, goroutines, upserts, of); err != nil {
			return 0, err
		}
		done += upserts
	}
	return float64(done) / time.Since(begin).Seconds(), nil
}
