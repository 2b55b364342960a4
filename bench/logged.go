package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/commitlog"
)

// onLog measures commands to entities that lie far apart among a million, with a
// commit log in front of bolt. The reference of many commands is one transaction
// for each snapshot, and a bare log that takes as many bytes in groups of half of
// them: while one half is synced, the other is at work. That of few is bolt
// without a log.
func onLog() []measurement {
	const halfOfThem = manyEntities / 2
	var base string
	setup := func(dir string) error {
		base = dir
		return errors.Join(fillStore(boltPath(dir), million), fillPlain(plainPath(dir), million))
	}
	logged := func(n int) func(string, time.Duration) ([]float64, error) {
		return func(_ string, period time.Duration) ([]float64, error) {
			store, err := openLogged(base)
			if err != nil {
				return nil, err
			}
			return one(commands(store, n, period, farApart))
		}
	}
	out := []measurement{{
		lines: []string{"log/million-256"},
		setup: setup, ours: logged(manyEntities),
		reference: func(_ string, period time.Duration) ([]float64, error) {
			return one(plainWrites(plainPath(base), manyEntities, period, farApart))
		},
	}}
	out = append(out, measurement{
		lines: []string{"log/million-256-to-bare"},
		setup: setup, ours: logged(manyEntities),
		reference: func(dir string, period time.Duration) ([]float64, error) {
			groups, err := bareLog(dir, make([]byte, halfOfThem*logUnit), period)
			return one(groups*halfOfThem, err)
		},
	})
	for _, n := range []int{1, 16, manyEntities} {
		out = append(out, measurement{
			lines: []string{fmt.Sprintf("log/without-%d", n)},
			setup: setup, ours: logged(n),
			reference: func(_ string, period time.Duration) ([]float64, error) {
				store, err := bolt.Open(boltPath(base), bolt.Config{})
				if err != nil {
					return nil, err
				}
				return one(commands(store, n, period, farApart))
			},
		})
	}
	return out
}

// openLogged opens a store with a log in front.
func openLogged(dir string) (*commitlog.Store, error) {
	behind, err := bolt.Open(boltPath(dir), bolt.Config{CommitLog: true})
	if err != nil {
		return nil, err
	}
	return commitlog.Open(filepath.Join(dir, "log"), behind, commitlog.Config{})
}
