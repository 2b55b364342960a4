package main

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/snapshot"
)

const logUnit = 600 // bytes that a command of a meter takes in the log

// logs measures commits alone, of one unit and of 128, against logs that sync as
// many bytes: a bare file that is written from front to back and then again,
// raft-wal, and Pebble's log without its tables.
func logs() []measurement {
	var out []measurement
	for _, units := range []int{1, 128} {
		for name, reference := range map[string]func(string, []byte, time.Duration) (float64, error){
			"bare": bareLog, "raft-wal": raftLog, "pebble": pebbleLog,
		} {
			out = append(out, measurement{
				lines: []string{"log/append-" + strconv.Itoa(units) + "-" + name},
				ours:  func(dir string, period time.Duration) ([]float64, error) { return one(commitLog(dir, units, period)) },
				reference: func(dir string, period time.Duration) ([]float64, error) {
					return one(reference(dir, make([]byte, units*logUnit), period))
				},
			})
		}
	}
	return out
}

// repeat calls fn for about period and returns how often a second.
func repeat(period time.Duration, fn func(i uint64) error) (float64, error) {
	start, n := time.Now(), uint64(0)
	for time.Since(start) < period {
		n++
		if err := fn(n); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(start).Seconds(), nil
}

// commitLog commits units of as many entities, in front of a store in memory.
func commitLog(dir string, n int, period time.Duration) (rate float64, err error) {
	s, err := commitlog.Open(filepath.Join(dir, "log"), memory.Open(memory.Config{}), commitlog.Config{SegmentSize: usedSegment})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := use(s); err != nil {
		return 0, err
	}
	units, state := make([]persist.Unit, n), make([]byte, logUnit-80)
	for i := range units {
		units[i].Key = persist.Key{Pod: "meters", Name: meterName(i)}
	}
	return repeat(period, func(turn uint64) error {
		for i := range units {
			binary.BigEndian.PutUint64(state, turn) // another one each time
			u := &units[i]
			u.Expect, u.Record = turn-1, &snapshot.Record{Revision: turn, Reserved: turn, Codec: "msgpack", State: state}
			u.Changes = []persist.Change{{Revision: turn, Type: "tick", Codec: "msgpack", Data: state}}
		}
		outcomes, err := s.Commit(context.Background(), units)
		for i := range outcomes {
			err = errors.Join(err, outcomes[i].Err)
			units[i].Life = outcomes[i].Life
		}
		return err
	})
}

// usedSegment is small, so that all segments have been written once, as those of
// a log that has served for a minute, before anything is measured.
const usedSegment = 8 << 20

func use(s *commitlog.Store) error {
	state := make([]byte, 1<<20)
	for i := range 3*usedSegment>>20 + 1 {
		_, err := s.Commit(context.Background(), []persist.Unit{{
			Key: persist.Key{Pod: "warm", Name: strconv.Itoa(i)}, Record: &snapshot.Record{Revision: 1, State: state}}})
		if err != nil {
			return err
		}
	}
	return s.Fold(context.Background())
}

func bareLog(dir string, b []byte, period time.Duration) (rate float64, err error) {
	const size = 64 << 20
	f, err := os.Create(filepath.Join(dir, "bare"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for at := int64(0); at < size; at += 1 << 20 {
		if _, err := f.WriteAt(make([]byte, 1<<20), at); err != nil {
			return 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return repeat(period, func(i uint64) error {
		if _, err := f.WriteAt(b, int64(i)*int64(len(b))%(size-int64(len(b)))); err != nil {
			return err
		}
		return f.Sync()
	})
}

func raftLog(dir string, b []byte, period time.Duration) (rate float64, err error) {
	w, err := wal.Open(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return repeat(period, func(i uint64) error {
		if err := w.StoreLogs([]*raft.Log{{Index: i, Term: 1, Data: b}}); err != nil {
			return err
		}
		if i > 2000 && i%1000 == 0 {
			return w.DeleteRange(1, i-2000)
		}
		return nil
	})
}

func pebbleLog(dir string, b []byte, period time.Duration) (rate float64, err error) {
	db, err := pebble.Open(dir, &pebble.Options{Logger: silent{}, MemTableSize: 64 << 20})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return repeat(period, func(uint64) error { return db.LogData(b, pebble.Sync) })
}

// silent is Pebble's logger.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, _ ...any) {
	panic("pebble: " + format)
}
