package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// durable measures commands a second of which each changes an entity's state
// and is durable when it is answered. Each entity has one command outstanding,
// so that nothing but entities among each other can share a commit. The
// reference is what one would write first: a transaction for each snapshot,
// from as many goroutines.
func durable() []measurement {
	var out []measurement
	for _, n := range []int{1, 16, 256} {
		out = append(out, measurement{
			lines:     []string{fmt.Sprintf("durable/%d", n)},
			ours:      func(dir string, period time.Duration) ([]float64, error) { return one(pods(dir, n, period)) },
			reference: func(dir string, period time.Duration) ([]float64, error) { return one(transactions(dir, n, period)) },
		})
	}
	return out
}

func one(value float64, err error) ([]float64, error) { return []float64{value}, err }

// meter is the state of the measured entities.
type meter struct {
	Count    int     `json:"count"`
	Celsius  float64 `json:"celsius"`
	Place    string  `json:"place"`
	Operator string  `json:"operator"`
}

type tick struct {
	Celsius float64 `json:"celsius"`
}

func newMeter(name string) meter {
	return meter{Place: "building 7, floor 3, room " + name, Operator: "the operator of this meter"}
}

func (m *meter) tick(t tick) {
	m.Count++
	m.Celsius = t.Celsius
}

func meterName(who int) string { return fmt.Sprintf("meter-%04d", who) }

// pods sends commands to n entities on a bolt store, one outstanding each.
func pods(dir string, n int, period time.Duration) (rate float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*period+30*time.Second)
	defer cancel()
	store, err := bolt.Open(filepath.Join(dir, "twinsrv.db"), bolt.Config{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	sys := actor.NewSystem("bench", actor.Config{})
	defer func() { err = errors.Join(err, sys.Stop(ctx)) }()
	all, err := pod.Open(sys, store, pod.Config{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, all.Close(ctx)) }()
	meters, err := pod.Start(all, entity.Type[meter]{
		Name: "meters",
		Init: func(_ context.Context, name string) (meter, error) { return newMeter(name), nil },
		Handlers: entity.Handlers[meter]{
			"tick": entity.On(func(_ *entity.Context, m *meter, t tick) error {
				m.tick(t)
				return nil
			}),
		},
	})
	if err != nil {
		return 0, err
	}
	return crowd(n, period, func(who, turn int) error {
		_, err := entity.Ask[entity.Ack](ctx, meters.Ref(meterName(who)), tick{Celsius: float64(turn)})
		return err
	})
}

// transactions writes the same records from n goroutines, each in a
// transaction of its own.
func transactions(dir string, n int, period time.Duration) (rate float64, err error) {
	db, err := bbolt.Open(filepath.Join(dir, "plain.db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	bucket, codec := []byte("meters"), snapshot.Msgpack()
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(bucket)
		return err
	})
	if err != nil {
		return 0, err
	}
	meters := make([]meter, n)
	write := func(who, turn int) error {
		name, m := meterName(who), &meters[who]
		if turn == 0 {
			*m = newMeter(name)
		}
		m.tick(tick{Celsius: float64(turn)})
		state, err := codec.Append(nil, m)
		if err != nil {
			return err
		}
		r := snapshot.Record{
			Life: uint64(who) + 1, Revision: uint64(turn) + 1, Reserved: uint64(turn) + 1,
			Changed: time.Now().UTC(), Codec: codec.Name(), State: state,
		}
		return db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(name), r.Append(nil)) })
	}
	return crowd(n, period, write)
}
