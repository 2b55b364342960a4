package persisttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Fixture is an open, empty store, and what the suite may do with it.
type Fixture struct {
	Store persist.PersistenceService

	// Reopen opens the same data again after the suite has closed the last
	// store it was given. It may be called many times. It must not be nil.
	Reopen func(t *testing.T) persist.PersistenceService

	// Damage makes the stored record of a key unreadable, but for its key. It is
	// called while the store is closed. nil skips the tests that need it.
	Damage func(t *testing.T, key persist.Key)

	// DamageRow makes the value of a row unreadable; the row says which by its
	// Kind, Key and ID. DamageChange makes a change, as the store handed it out,
	// unreadable in the journal, but for its position. Both are called while the
	// store is closed. nil skips the tests that need it.
	DamageRow    func(t *testing.T, row persist.Row)
	DamageChange func(t *testing.T, change persist.Change)

	// Restore makes a new store of what Backup has written, beside the first,
	// which may be open meanwhile. It must be set for stores that implement
	// persist.Backuper, and is not used for others.
	Restore func(t *testing.T, backup io.Reader) persist.PersistenceService

	// MaxRecord is the most bytes that the store takes as one state. 0 skips
	// the test of the limit; 1 MiB must work in any case.
	MaxRecord int
}

// Run tests that a store does what the documentation of
// persist.PersistenceService says, in subtests named after what they test.
// fresh is called once or more by each of them and returns a store of its own
// each time. The suite closes the stores; fresh cleans up the rest with
// t.Cleanup.
//
// Abilities that are interfaces of their own (persist.Reopener, Importer,
// Backuper, TellingBackuper, Compacter, Folder) are tested where the store has them.
//
// Errors are compared by errors.Is. Positions and lives are compared by their
// order, since stores may leave gaps.
func Run(t *testing.T, fresh func(t *testing.T) Fixture) {
	for _, group := range [][]test{
		creating, continuing, deleting, journal, trimming, rows, listing, counting, damage, opening, together, importing, backing, compacting, folding,
	} {
		for _, test := range group {
			t.Run(test.name, func(t *testing.T) {
				s := newSuite(t, fresh)
				defer s.end()
				test.run(s)
			})
		}
	}
	t.Run("model", func(t *testing.T) { runModel(t, fresh) })
	t.Run("folding model", func(t *testing.T) { runFolding(t, fresh) })
}

type test struct {
	name string
	run  func(s *suite)
}

// suite is one subtest with its store.
type suite struct {
	*require.Assertions
	t     *testing.T
	ctx   context.Context
	fresh func(t *testing.T) Fixture
	fix   Fixture
	store persist.PersistenceService
}

func newSuite(t *testing.T, fresh func(t *testing.T) Fixture) *suite {
	fix := fresh(t)
	return &suite{Assertions: require.New(t), t: t, ctx: context.Background(), fresh: fresh, fix: fix, store: fix.Store}
}

func (s *suite) end() { _ = s.store.Close() }

// reopen closes the store and opens its data again.
func (s *suite) reopen() {
	s.NoError(s.store.Close())
	s.store = s.fix.Reopen(s.t)
}

// How long a condition is waited for, and how often it is looked at.
const (
	waitAtMost = 20 * time.Second
	waitStep   = time.Millisecond
)

// rooms names an entity.
func rooms(name string) persist.Key { return persist.Key{Pod: "rooms", Name: name} }

// at is the time of everything that the suite writes, with all its digits.
func at(revision uint64) time.Time {
	return time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC).Add(time.Duration(revision) * time.Second)
}

func record(revision uint64, state string) *snapshot.Record {
	return &snapshot.Record{Revision: revision, Reserved: revision, Changed: at(revision), Schema: 3, Codec: "json", State: []byte(state)}
}

func change(revision uint64, kind, state string) persist.Change {
	c := persist.Change{Revision: revision, Time: at(revision), Type: kind, Schema: 3, Codec: "json"}
	if state != "" {
		c.Data = []byte(state)
	}
	return c
}

// create is a unit that makes an entity of revision 1.
func create(k persist.Key, state string) persist.Unit {
	return persist.Unit{Key: k, Record: record(1, state), Changes: []persist.Change{change(1, "made", state)}}
}

// step is a unit that continues an entity by one revision.
func step(k persist.Key, life, expect uint64, state string) persist.Unit {
	return persist.Unit{Key: k, Life: life, Expect: expect, Record: record(expect+1, state),
		Changes: []persist.Change{change(expect+1, "changed", state)}}
}

// remove is a unit that deletes an entity and says so in the journal.
func remove(k persist.Key, life, expect uint64) persist.Unit {
	return persist.Unit{Key: k, Life: life, Expect: expect, Delete: true,
		Changes: []persist.Change{{Revision: expect + 1, Time: at(expect + 1), Type: "deleted"}}}
}

// commit commits units and returns their outcomes; the call must succeed.
func (s *suite) commit(units ...persist.Unit) []persist.Outcome {
	s.t.Helper()
	o, err := s.store.Commit(s.ctx, units)
	s.NoError(err)
	s.Len(o, len(units), "one outcome for each unit")
	return o
}

// applied commits units that must all be applied.
func (s *suite) applied(units ...persist.Unit) []persist.Outcome {
	s.t.Helper()
	o := s.commit(units...)
	for i := range o {
		s.NoError(o[i].Err, "unit %d", i)
	}
	return o
}

// refused commits one unit and requires its outcome to be the error.
func (s *suite) refused(u persist.Unit, target error) {
	s.t.Helper()
	o := s.commit(u)
	s.ErrorIs(o[0].Err, target)
	if u.Key.Name != "" {
		s.ErrorContains(o[0].Err, u.Key.String(), "the error names the key")
	}
}

// holds requires that an entity has exactly this state.
func (s *suite) holds(k persist.Key, life, revision uint64, state string) {
	s.t.Helper()
	r, err := s.store.Load(s.ctx, k)
	s.NoError(err)
	want := *record(revision, state)
	want.Life = life
	s.Equal(want, r)
}

func (s *suite) absent(k persist.Key) {
	s.t.Helper()
	_, err := s.store.Load(s.ctx, k)
	s.ErrorIs(err, persist.ErrNotFound)
	s.ErrorContains(err, k.String(), "the error names the key")
}

func (s *suite) log(after uint64, limit int) []persist.Change {
	s.t.Helper()
	c, err := s.store.Log(s.ctx, after, limit)
	s.NoError(err)
	return dataOrNil(c)
}

func (s *suite) changes(k persist.Key, life, from uint64, limit int) []persist.Change {
	s.t.Helper()
	c, err := s.store.Changes(s.ctx, k, life, from, limit)
	s.NoError(err)
	if life == 0 && from == 0 && limit >= 100 {
		s.lives(k, c)
	}
	return dataOrNil(c)
}

// lives requires that the lives of all of an entity's changes are found.
func (s *suite) lives(k persist.Key, all []persist.Change) {
	s.t.Helper()
	after := uint64(0)
	for _, c := range all {
		if c.Life == after {
			continue
		}
		next, err := persist.NextLife(s.ctx, s.store, k, after)
		s.NoError(err)
		s.Equal(c.Life, next, "the life behind %d", after)
		after = c.Life
	}
	next, err := persist.NextLife(s.ctx, s.store, k, after)
	s.NoError(err)
	s.Zero(next, "there is no life behind %d", after)
}

// dataOrNil makes no difference between data that is empty and none.
func dataOrNil(changes []persist.Change) []persist.Change {
	for i := range changes {
		if len(changes[i].Data) == 0 {
			changes[i].Data = nil
		}
	}
	return changes
}

func (s *suite) rows(kind string, after *persist.Row, limit int) []persist.Row {
	s.t.Helper()
	r, err := s.store.Rows(s.ctx, kind, after, limit)
	s.NoError(err)
	return r
}

// names lists a pod page by page.
func (s *suite) names(pod, prefix string, page int) []string {
	s.t.Helper()
	names := []string{}
	for after := ""; ; after = names[len(names)-1] {
		got, err := s.store.List(s.ctx, pod, persist.ListOptions{After: after, Prefix: prefix, Limit: page})
		s.NoError(err)
		s.LessOrEqual(len(got.Items), page)
		for _, item := range got.Items {
			s.True(item.Name > after, "%q is on the page behind %q", item.Name, after)
			names = append(names, item.Name)
		}
		if !got.More {
			return names
		}
		s.Len(got.Items, page, "a page with more behind it is full")
	}
}

// describe writes a change without its position, for comparing journals.
func describe(c persist.Change) string {
	return fmt.Sprintf("%s %d %s %s %s %t", c.Key, c.Revision, c.Type, c.Data, c.Time.UTC().Format(time.RFC3339Nano), c.Event)
}

func describeAll(changes []persist.Change) []string {
	out := []string{}
	for _, c := range changes {
		out = append(out, describe(c))
	}
	return out
}

// oneOf says whether the error is one of the targets.
func oneOf(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}
