package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/snapshot"
)

const (
	eventGroup   = 256     // events of as many entities in a commit
	replayEvents = 100_000 // of one entity
)

// journals measures events: appended in groups, each with its entity's record,
// and read again in order. The reference of both appends the same bytes to one
// bucket by number.
func journals() []measurement {
	var base string
	return []measurement{
		{lines: []string{"journal/append-256"}, ours: appendEvents, reference: plainAppend},
		{
			lines: []string{"journal/replay"},
			setup: func(dir string) error {
				base = dir
				return fillEvents(boltPath(dir))
			},
			ours: func(_ string, period time.Duration) ([]float64, error) {
				return one(replayEventsOf(boltPath(base), period))
			},
			reference: plainAppend,
		},
	}
}

func eventData(i int) []byte { return fmt.Appendf(nil, `{"id":"event-%012d","celsius":21.5}`, i) }

// eventUnit is one event of an entity at a revision.
func eventUnit(name string, life, revision uint64, data []byte) persist.Unit {
	now := time.Now().UTC()
	return persist.Unit{
		Key: persist.Key{Pod: "meters", Name: name}, Life: life, Expect: revision - 1,
		Record:  &snapshot.Record{Life: life, Revision: revision, Reserved: revision, Changed: now, Codec: "json"},
		Changes: []persist.Change{{Revision: revision, Time: now, Type: "measured", Codec: "json", Data: data, Event: true}},
	}
}

func appendEvents(dir string, period time.Duration) (_ []float64, err error) {
	store, err := bolt.Open(boltPath(dir), bolt.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	lives := make([]uint64, eventGroup)
	rate, err := crowd(1, period, func(_, turn int) error {
		units := make([]persist.Unit, eventGroup)
		for i := range units {
			units[i] = eventUnit(meterName(i), lives[i], uint64(turn)+1, eventData(turn))
		}
		outcomes, err := store.Commit(context.Background(), units)
		for i, o := range outcomes {
			lives[i] = o.Life
			err = errors.Join(err, o.Err)
		}
		return err
	})
	return []float64{rate * eventGroup}, err
}

func plainAppend(dir string, period time.Duration) (_ []float64, err error) {
	db, err := bbolt.Open(plainPath(dir), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistArrayType})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rate, err := crowd(1, period, func(_, turn int) error { return plainEvents(db, turn*eventGroup, eventGroup) })
	return []float64{rate * eventGroup}, err
}

// plainEvents appends n events to a bucket in one transaction.
func plainEvents(db *bbolt.DB, from, n int) error {
	return db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists([]byte("events"))
		if err != nil {
			return err
		}
		bucket.FillPercent = 1
		for i := from; i < from+n && err == nil; i++ {
			err = bucket.Put(binary.BigEndian.AppendUint64(nil, uint64(i)), eventData(i))
		}
		return err
	})
}

// fillEvents makes a store with one entity of many events.
func fillEvents(path string) (err error) {
	store, err := bolt.Open(path, bolt.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var life uint64
	for from := uint64(0); from < replayEvents; from += eventGroup {
		now := time.Now().UTC()
		last := min(from+eventGroup, replayEvents)
		u := persist.Unit{
			Key: persist.Key{Pod: "meters", Name: "one"}, Life: life, Expect: from,
			Record: &snapshot.Record{Life: life, Revision: last, Reserved: last, Changed: now, Codec: "json"},
		}
		for r := from + 1; r <= last; r++ {
			u.Changes = append(u.Changes, persist.Change{Revision: r, Time: now, Type: "measured", Codec: "json", Data: eventData(int(r)), Event: true})
		}
		o, err := store.Commit(context.Background(), []persist.Unit{u})
		if err = errors.Join(err, o[0].Err); err != nil {
			return err
		}
		life = o[0].Life
	}
	return nil
}

// replayEventsOf reads all events of the entity, page by page as a recovery
// does.
func replayEventsOf(path string, period time.Duration) (rate float64, err error) {
	store, err := bolt.Open(path, bolt.Config{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	key := persist.Key{Pod: "meters", Name: "one"}
	rate, err = crowd(1, period, func(int, int) error {
		n := 0
		for from, life := uint64(1), uint64(0); ; {
			page, err := store.Changes(context.Background(), key, life, from, eventGroup)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			n += len(page)
			life, from = page[0].Life, page[len(page)-1].Revision+1
		}
		return expect(n)
	})
	return rate * replayEvents, err
}

func expect(n int) error {
	if n < replayEvents {
		return fmt.Errorf("%d events were read, not %d", n, replayEvents)
	}
	return nil
}
