package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// What the journal costs beside what bbolt does for the same bytes: an event of
// 200 bytes, and (in the store) the entity's record, its index and the checks.
const (
	benchGroup    = 256 // events in a commit
	benchEntities = 1024
	benchJournal  = 100_000 // events that are replayed
)

func benchEvent() []byte { return bytes.Repeat([]byte("e"), 200) }

// journalWriter appends events of many entities in groups.
type journalWriter struct {
	s         *Store
	lives     []uint64
	revisions []uint64
	at        int
	state     []byte
}

func newJournalWriter(b *testing.B, s *Store) *journalWriter {
	return &journalWriter{s: s, lives: populate(b, s, benchEntities), revisions: ones(benchEntities), state: bytes.Repeat([]byte("s"), 200)}
}

func ones(n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

func (w *journalWriter) append(b *testing.B, data []byte) {
	units := make([]persist.Unit, benchGroup)
	for i := range units {
		e := w.at % benchEntities
		w.at++
		r := w.revisions[e]
		w.revisions[e]++
		units[i] = persist.Unit{
			Key: rooms(fmt.Sprintf("tower-%d-%d", e%100, e)), Life: w.lives[e], Expect: r, Record: record(r+1, string(w.state)),
			Changes: []persist.Change{{Revision: r + 1, Type: "measured", Codec: "json", Data: data, Event: true}},
		}
	}
	o, err := w.s.Commit(ctx, units)
	if err != nil || o[0].Err != nil {
		b.Fatal(err, o[0].Err)
	}
}

// bareAppend puts the same events under rising numbers into a bbolt file.
func bareAppend(b *testing.B, db *bbolt.DB, next *uint64, data []byte) {
	err := db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists([]byte("log"))
		if err != nil {
			return err
		}
		bucket.FillPercent = logFill
		for range benchGroup {
			*next++
			if err := bucket.Put(binary.BigEndian.AppendUint64(nil, *next), data); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func bareFile(b *testing.B) *bbolt.DB {
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "bare.db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistArrayType})
	require.NoError(b, err)
	b.Cleanup(func() { _ = db.Close() })
	return db
}

// BenchmarkJournalAppend appends groups of 256 events: through the store, each
// with its entity's record, and to a bare file.
func BenchmarkJournalAppend(b *testing.B) {
	data := benchEvent()
	b.Run("store", func(b *testing.B) {
		w := newJournalWriter(b, tempStore(b))
		for b.Loop() {
			w.append(b, data)
		}
		b.ReportMetric(float64(b.N*benchGroup)/b.Elapsed().Seconds(), "events/s")
	})
	b.Run("bare", func(b *testing.B) {
		db, next := bareFile(b), uint64(0)
		for b.Loop() {
			bareAppend(b, db, &next, data)
		}
		b.ReportMetric(float64(b.N*benchGroup)/b.Elapsed().Seconds(), "events/s")
	})
}

// BenchmarkJournalReplay reads 100,000 events: all of them by position, those
// of each entity as a recovery does, and all values of a bare file.
func BenchmarkJournalReplay(b *testing.B) {
	data := benchEvent()
	s := tempStore(b)
	w := newJournalWriter(b, s)
	db, next := bareFile(b), uint64(0)
	for w.at < benchJournal {
		w.append(b, data)
		bareAppend(b, db, &next, data)
	}
	per := func(b *testing.B, events int) {
		b.ReportMetric(float64(b.N*events)/b.Elapsed().Seconds(), "events/s")
	}
	b.Run("log", func(b *testing.B) {
		events := 0
		for b.Loop() {
			events = 0
			for after := uint64(0); ; {
				changes, err := s.Log(ctx, after, 1000)
				if err != nil {
					b.Fatal(err)
				}
				if len(changes) == 0 {
					break
				}
				events += len(changes)
				after = changes[len(changes)-1].Position
			}
		}
		per(b, events)
	})
	b.Run("entities", func(b *testing.B) {
		events := 0
		for b.Loop() {
			events = 0
			for e := range benchEntities {
				changes, err := s.Changes(ctx, rooms(fmt.Sprintf("tower-%d-%d", e%100, e)), w.lives[e], 2, 1000)
				if err != nil {
					b.Fatal(err)
				}
				events += len(changes)
			}
		}
		per(b, events)
	})
	b.Run("bare", func(b *testing.B) {
		events, size := 0, 0
		for b.Loop() {
			events = 0
			err := db.View(func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte("log")).ForEach(func(_, v []byte) error {
					events++
					size += len(bytes.Clone(v)) // who replays keeps what he reads
					return nil
				})
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		per(b, events)
		_ = size
	})
}
