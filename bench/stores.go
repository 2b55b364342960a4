package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/jsonfile"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

const (
	million  = 1_000_000
	thousand = 1_000
	// manyEntities is how many commands are outstanding, each of an entity of
	// its own.
	manyEntities = 256
)

// onStores measures what a store makes of the same durable commands. Each
// reference is what one would write first on the same ground.
func onStores() []measurement {
	out := []measurement{onMillion()}
	for _, n := range []int{1, manyEntities} {
		out = append(out, measurement{
			lines: []string{fmt.Sprintf("stores/jsonfile-%d", n)},
			ours: func(dir string, period time.Duration) ([]float64, error) {
				store, err := jsonfile.Open(filepath.Join(dir, "ours"), jsonfile.Config{})
				if err != nil {
					return nil, err
				}
				return one(commands(store, n, period, meterName))
			},
			reference: func(dir string, period time.Duration) ([]float64, error) { return one(files(dir, n, period)) },
		})
	}
	return out
}

// onMillion measures commands to entities that lie far apart in a store that
// has a million, and the same writes to a bbolt file with as many keys.
func onMillion() measurement {
	var base string
	return measurement{
		lines: []string{"stores/bolt-million-256"},
		setup: func(dir string) error {
			base = dir
			return errors.Join(fillStore(boltPath(dir), million), fillPlain(plainPath(dir), million))
		},
		ours: func(_ string, period time.Duration) ([]float64, error) {
			store, err := bolt.Open(boltPath(base), bolt.Config{})
			if err != nil {
				return nil, err
			}
			return one(commands(store, manyEntities, period, farApart))
		},
		reference: func(_ string, period time.Duration) ([]float64, error) {
			return one(plainWrites(plainPath(base), manyEntities, period, farApart))
		},
	}
}

func boltPath(dir string) string  { return filepath.Join(dir, "ours.db") }
func plainPath(dir string) string { return filepath.Join(dir, "plain.db") }

// farApart names the entity of one of 256 who write to a million.
func farApart(who int) string { return millionth(who * (million / manyEntities)) }

func millionth(i int) string { return fmt.Sprintf("meter-%07d", i) }

// fillStore makes a store with n entities.
func fillStore(path string, n int) (err error) {
	store, err := bolt.Open(path, bolt.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	codec := snapshot.Msgpack()
	const chunk = 10_000
	for from := 0; from < n; from += chunk {
		units := make([]persist.Unit, 0, chunk)
		for i := from; i < min(from+chunk, n); i++ {
			state, err := codec.Append(nil, new(newMeter(millionth(i))))
			if err != nil {
				return err
			}
			units = append(units, persist.Unit{
				Key:    persist.Key{Pod: "meters", Name: millionth(i)},
				Record: &snapshot.Record{Revision: 1, Reserved: 1, Changed: time.Now().UTC(), Codec: codec.Name(), State: state},
			})
		}
		if _, err := store.Commit(context.Background(), units); err != nil {
			return err
		}
	}
	return nil
}

// fillPlain makes a bbolt file with n records.
func fillPlain(path string, n int) (err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistArrayType})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	codec := snapshot.Msgpack()
	const chunk = 10_000
	for from := 0; from < n; from += chunk {
		err := db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("meters"))
			for i := from; i < min(from+chunk, n) && err == nil; i++ {
				var value []byte
				if value, err = plainRecord(codec, i, 0, new(newMeter(millionth(i)))); err == nil {
					err = bucket.Put([]byte(millionth(i)), value)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func plainRecord(codec snapshot.Codec, who, turn int, m *meter) ([]byte, error) {
	state, err := codec.Append(nil, m)
	r := snapshot.Record{
		Life: uint64(who) + 1, Revision: uint64(turn) + 1, Reserved: uint64(turn) + 1,
		Changed: time.Now().UTC(), Codec: codec.Name(), State: state,
	}
	return r.Append(nil), err
}

// meters is the type of the measured entities.
func meters() entity.Type[meter] {
	return entity.Type[meter]{
		Name: "meters",
		Init: func(_ context.Context, name string) (meter, error) { return newMeter(name), nil },
		Handlers: entity.Handlers[meter]{
			"tick": entity.On(func(_ *entity.Context, m *meter, t tick) error {
				m.tick(t)
				return nil
			}),
			"read": entity.Query(func(_ *entity.Context, m *meter, _ read) (float64, error) { return m.Celsius, nil }),
		},
	}
}

// read asks a meter for its temperature.
type read struct{}

// withPods runs f with the pods of a store, and closes both.
func withPods(store persist.PersistenceService, cfg pod.Config, f func(ctx context.Context, all *pod.Pods, h *pod.Handle[meter]) error) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	defer func() { err = errors.Join(err, store.Close()) }()
	sys := actor.NewSystem("bench", actor.Config{})
	defer func() { err = errors.Join(err, sys.Stop(ctx)) }()
	all, err := pod.Open(sys, store, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.Close(ctx)) }()
	h, err := pod.Start(all, meters())
	if err != nil {
		return err
	}
	return f(ctx, all, h)
}

// commands sends durable commands to n entities on a store, one outstanding
// each, and closes the store.
func commands(store persist.PersistenceService, n int, period time.Duration, name func(who int) string) (rate float64, err error) {
	err = withPods(store, pod.Config{}, func(ctx context.Context, _ *pod.Pods, h *pod.Handle[meter]) (err error) {
		rate, err = crowd(n, period, func(who, turn int) error {
			_, err := entity.Ask[entity.Ack](ctx, h.Ref(name(who)), tick{Celsius: float64(turn)})
			return err
		})
		return err
	})
	return rate, err
}

// plainWrites writes records from n goroutines, each in a transaction of its
// own.
func plainWrites(path string, n int, period time.Duration, name func(who int) string) (rate float64, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistArrayType})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	bucket, codec := []byte("meters"), snapshot.Msgpack()
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
	if err != nil {
		return 0, err
	}
	all := make([]meter, n)
	return crowd(n, period, func(who, turn int) error {
		name, m := name(who), &all[who]
		if turn == 0 {
			*m = newMeter(name)
		}
		m.tick(tick{Celsius: float64(turn)})
		value, err := plainRecord(codec, who, turn, m)
		if err != nil {
			return err
		}
		return db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(name), value) })
	})
}

// files writes records from n goroutines, each as a file that replaces the one
// before it, durably.
func files(dir string, n int, period time.Duration) (float64, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = folder.Close() }()
	codec := snapshot.JSON()
	all := make([]meter, n)
	return crowd(n, period, func(who, turn int) error {
		m := &all[who]
		if turn == 0 {
			*m = newMeter(meterName(who))
		}
		m.tick(tick{Celsius: float64(turn)})
		state, err := codec.Append(nil, m)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, meterName(who)+".json")
		return errors.Join(writeSynced(path+".new", state), os.Rename(path+".new", path), folder.Sync())
	})
}

func writeSynced(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
