package persisttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

// The suite must fail for stores that break a promise. A failing subtest fails
// its parent, so that the suite runs in another process, which is this binary
// with the broken store's name in a variable.
const brokenVariable = "PERSISTTEST_BROKEN"

// broken is a store that does one thing wrong.
type broken struct {
	*persisttest.Memory
	how string
	// lost is what an acknowledged commit has not written when the store is
	// opened again.
	lost    map[persist.Key]bool
	deleted []persist.Key
	kept    map[persist.Key][]byte
	pods    map[string]bool
	mu      sync.Mutex // for pods: writers run together
	// last is the last position; positions are counted anew behind from.
	last, from uint64
	twice      []uint64 // the positions of what was filed
}

func newBroken(m *persisttest.Memory, how string) *broken {
	return &broken{Memory: m, how: how, lost: map[persist.Key]bool{}, kept: map[persist.Key][]byte{}, pods: map[string]bool{}}
}

// wrongs names each way of being broken, with the subtests that must notice.
func wrongs() map[string][]string {
	all := map[string][]string{
		"acknowledges before it applies":  {"what was acknowledged is there after reopening", "model"},
		"ignores the expected revision":   {"a stale revision conflicts", "model"},
		"ignores the life":                {"another life conflicts", "model"},
		"ignores life 0":                  {"units of one key see the earlier ones of the call", "model"},
		"creates over what exists":        {"create conflicts with an existing entity", "of concurrent creations one wins"},
		"refuses all for one":             {"an invalid unit fails alone"},
		"accepts NUL":                     {"bad names are refused and lose nobody"},
		"merges a/b and a%2Fb":            {"names of every kind stay apart"},
		"keeps rows of the deleted":       {"rows go with their entity and no other", "model"},
		"logs in reverse":                 {"the log has every change in the order of commit", "model"},
		"pages include their start":       {"a list has the names in byte order, page by page"},
		"ignores prefixes":                {"a list is restricted to a prefix"},
		"gives positions again":           {"positions go on after reopening", "a position spent on a deleted life is not given again"},
		"shows the unreadable as absent":  {"an unreadable record is an error, never absent"},
		"serves after closing":            {"a closed store is unavailable"},
		"works for the cancelled":         {"a cancelled call does nothing"},
		"force needs a record":            {"force of an absent key changes nothing"},
		"trims too much":                  {"trim drops the oldest changes and nothing else", "model"},
		"keeps the caller's bytes":        {"bytes stay their owner's"},
		"forgets the time's nanoseconds":  {"create gives the record back as it was"},
		"forgets changes of earlier life": {"changes are read by life and from a revision"},
		"forgets what is an event":        {"an event comes back as one", "trim keeps the events of a life that has its record, and drops the states", "model"},
		"trims from the start":            {"trim goes on behind its cursor", "model"},
		"trims beyond its limit":          {"trim looks at no more than its limit", "trim goes on behind its cursor"},
		"says that trim saw all":          {"trim goes on behind its cursor", "trim looks at no more than its limit"},
		"trims nothing of the dead":       {"trim drops the events of a life that is over"},
		"counts pods of the dead":         {"pods are those that have records, in byte order", "model"},
		"forgets the position":            {"the position rises and is never forgotten"},
		"knows one kind of rows":          {"rows of an entity come in the order of kind and ID", "model"},
		"pages every kind from its start": {"rows of every kind come in the order of kinds, page by page", "model"},
		"stops at a damaged row":          {"an unreadable row is told, and scanning goes on behind it"},
		"stops at a damaged change":       {"an unreadable change is told, and scanning goes on behind it"},
		"passes over a damaged row":       {"an unreadable row is told, and scanning goes on behind it"},
		"passes over a damaged change":    {"an unreadable change is told, and scanning goes on behind it"},
		"gives the imported new lives":    {"import takes everything as it is", "an imported entity goes on with its life and revision"},
		"ignores the imported position":   {"behind an import positions go on above it"},
		"imports the unreadable":          {"import refuses what must not be stored"},
		"imports what is new alone":       {"import replaces records, rows and changes", "import repairs what is missing or cannot be read"},
		"backs up no rows":                {"a backup has everything"},
		"backs up halves":                 {"a backup during commits has what was acknowledged before, and no half of anything"},
		"backs up late":                   {"a backup has everything"},
		"tells too early of a backup":     {"a backup has nothing that comes after it told that it has begun"},
	}
	maps.Copy(all, foldingWrongs())
	return all
}

func (b *broken) Commit(ctx context.Context, units []persist.Unit) ([]persist.Outcome, error) {
	units = slices.Clone(units)
	switch b.how {
	case "works for the cancelled":
		ctx = context.WithoutCancel(ctx)
	case "refuses all for one":
		for _, u := range units {
			if strings.Contains(u.Key.Name, "\x00") {
				return nil, persist.ErrInvalid
			}
		}
	}
	for i := range units {
		if err := b.spoil(ctx, &units[i]); err != nil {
			return nil, err
		}
	}
	o, err := b.Memory.Commit(ctx, units)
	if b.how == "acknowledges before it applies" && err == nil {
		for i, u := range units {
			if o[i].Err == nil {
				b.lost[u.Key] = i == len(units)-1
			}
		}
	}
	for i, u := range units {
		if err != nil || o[i].Err != nil {
			continue
		}
		b.last = max(b.last, o[i].Position)
		b.mu.Lock()
		b.pods[u.Key.Pod] = true
		b.mu.Unlock()
		if b.how == "gives positions again" {
			o[i].Position -= b.from
			o[i].Life = min(o[i].Life, o[i].Position)
		}
		if u.Delete {
			b.deleted = append(b.deleted, u.Key)
		} else if b.how == "keeps the caller's bytes" && u.Record != nil {
			b.kept[u.Key] = u.Record.State
		}
	}
	return o, err
}

// spoil changes a unit into what a broken store makes of it.
func (b *broken) spoil(ctx context.Context, u *persist.Unit) error {
	r, err := b.Memory.Load(ctx, u.Key)
	switch b.how {
	case "ignores the expected revision":
		if err == nil && u.Expect > 0 && u.Life == r.Life && (u.Record == nil || u.Record.Revision > r.Revision || len(u.Changes) == 0) {
			u.Expect = r.Revision
		} else if err == nil && u.Record != nil && u.Expect > 0 && u.Life == r.Life {
			return fmt.Errorf("%w: goes back", persist.ErrInvalid)
		}
	case "ignores the life":
		if err == nil && u.Expect == r.Revision {
			u.Life = r.Life
		}
	case "ignores life 0":
		if u.Life == 0 && u.Expect > 0 {
			u.Life = 1 << 62
		}
	case "creates over what exists":
		if err == nil && u.Expect == 0 && u.Record != nil && u.Record.Revision >= r.Revision {
			u.Life, u.Expect, u.Changes = r.Life, r.Revision, nil
		}
	case "accepts NUL":
		u.Key.Name = strings.ReplaceAll(u.Key.Name, "\x00", "")
	case "merges a/b and a%2Fb":
		u.Key.Name = strings.ReplaceAll(u.Key.Name, "%2F", "/")
	case "force needs a record":
		if u.Force && err != nil {
			u.Force = false
		}
	case "forgets what is an event":
		u.Changes = slices.Clone(u.Changes)
		for i := range u.Changes {
			u.Changes[i].Event = false
		}
	case "forgets the time's nanoseconds":
		if u.Record != nil {
			r := *u.Record
			r.Changed = r.Changed.Truncate(1000)
			u.Record = &r
		}
	}
	return nil
}

func (b *broken) Load(ctx context.Context, k persist.Key) (snapshot.Record, error) {
	if b.how == "merges a/b and a%2Fb" {
		k.Name = strings.ReplaceAll(k.Name, "%2F", "/")
	}
	r, err := b.Memory.Load(ctx, k)
	if kept, ok := b.kept[k]; ok && err == nil {
		r.State = kept
	}
	if b.how == "shows the unreadable as absent" && err != nil {
		err = fmt.Errorf("%s: %w", k, persist.ErrNotFound)
	}
	if b.how == "serves after closing" && err != nil {
		err = fmt.Errorf("%s: %w", k, persist.ErrNotFound)
	}
	return r, err
}

func (b *broken) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	switch {
	case b.how == "pages include their start" && o.After != "":
		o.After = o.After[:len(o.After)-1]
	case b.how == "ignores prefixes":
		o.Prefix = ""
	}
	return b.Memory.List(ctx, pod, o)
}

func (b *broken) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	c, err := b.Memory.Log(ctx, after, limit)
	if b.how == "logs in reverse" {
		slices.Reverse(c)
	}
	for _, change := range c {
		if change.Err != nil && b.how == "stops at a damaged change" {
			return nil, change.Err
		}
	}
	if b.how == "passes over a damaged change" {
		c = slices.DeleteFunc(c, func(c persist.Change) bool { return c.Err != nil })
	}
	return c, err
}

func (b *broken) Changes(ctx context.Context, k persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	if b.how == "forgets changes of earlier life" && life == 0 {
		if r, err := b.Memory.Load(ctx, k); err == nil {
			life = r.Life
		}
	}
	changes, err := b.Memory.Changes(ctx, k, life, from, limit)
	return b.repeated(changes), err
}

func (b *broken) Trim(ctx context.Context, after, through uint64, limit int) (persist.Trimmed, error) {
	switch b.how {
	case "trims too much":
		through++
	case "trims from the start":
		after = 0
	case "trims beyond its limit":
		limit++
	case "trims nothing of the dead":
		return persist.Trimmed{Through: through}, nil
	}
	t, err := b.Memory.Trim(ctx, after, through, limit)
	if b.how == "says that trim saw all" {
		t.Through = max(after, through)
	}
	return t, err
}

func (b *broken) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	if b.how == "pages every kind from its start" && after != nil && kind == "" {
		after = &persist.Row{Kind: after.Kind}
	}
	rows, err := b.Memory.Rows(ctx, kind, after, limit)
	if b.how == "keeps rows of the deleted" && err == nil && after == nil {
		for _, k := range b.deleted {
			rows = append(rows, persist.Row{Kind: kind, Key: k, ID: "old"})
		}
	}
	for _, r := range rows {
		if r.Err != nil && b.how == "stops at a damaged row" {
			return nil, r.Err
		}
	}
	if b.how == "passes over a damaged row" {
		rows = slices.DeleteFunc(rows, func(r persist.Row) bool { return r.Err != nil })
	}
	return rows, err
}

func (b *broken) RowsOf(ctx context.Context, k persist.Key) ([]persist.Row, error) {
	rows, err := b.Memory.RowsOf(ctx, k)
	if b.how == "knows one kind of rows" {
		rows = slices.DeleteFunc(rows, func(r persist.Row) bool { return r.Kind != rows[0].Kind })
	}
	return rows, err
}

func (b *broken) Pods(ctx context.Context) ([]string, error) {
	pods, err := b.Memory.Pods(ctx)
	if b.how == "counts pods of the dead" && err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		pods = slices.Sorted(maps.Keys(b.pods))
	}
	return pods, err
}

func (b *broken) Position(ctx context.Context) (uint64, error) {
	p, err := b.Memory.Position(ctx)
	if b.how == "forgets the position" && err == nil {
		p = 0
		log, _ := b.Memory.Log(ctx, 0, 1000)
		for _, c := range log {
			p = c.Position
		}
	}
	return p, err
}

func (b *broken) Import(ctx context.Context, batch persist.Batch) error {
	switch b.how {
	case "gives the imported new lives":
		batch.Records = slices.Clone(batch.Records)
		for i := range batch.Records {
			batch.Records[i].Record.Life++
		}
	case "ignores the imported position":
		batch.Position = 0
	case "imports the unreadable":
		batch.Rows, batch.Changes = slices.Clone(batch.Rows), slices.Clone(batch.Changes)
		for i := range batch.Rows {
			batch.Rows[i].Err = nil
		}
		for i := range batch.Changes {
			batch.Changes[i].Err = nil
		}
	case "imports what is new alone":
		batch.Records = slices.DeleteFunc(slices.Clone(batch.Records), func(r persist.Stored) bool {
			_, err := b.Memory.Load(ctx, r.Key)
			return !errors.Is(err, persist.ErrNotFound)
		})
	}
	return b.Memory.Import(ctx, batch)
}

func (b *broken) Backup(ctx context.Context, w io.Writer) error {
	if b.how != "backs up late" {
		return b.Memory.Backup(ctx, w)
	}
	_, err := b.Commit(ctx, []persist.Unit{{Key: room("later"), Record: &snapshot.Record{Revision: 1}}})
	return errors.Join(err, b.Memory.Backup(ctx, w))
}

func (b *broken) BackupTelling(ctx context.Context, w io.Writer, begun func()) error {
	if b.how != "tells too early of a backup" {
		return b.Memory.BackupTelling(ctx, w, begun)
	}
	before, err := b.Position(ctx)
	begun()
	for now := before; err == nil && now == before; {
		runtime.Gosched() // somebody commits meanwhile
		now, err = b.Position(ctx)
	}
	return errors.Join(err, b.Memory.Backup(ctx, w))
}

// restoreWrongly spoils what is restored from a backup.
func restoreWrongly(t *testing.T, how string, backup io.Reader) persist.PersistenceService {
	m, err := persisttest.Restore(ctx, backup)
	require.NoError(t, err)
	rows, err := m.Rows(ctx, "", nil, 1000)
	require.NoError(t, err)
	for i, r := range rows {
		if how == "backs up halves" && i > 0 || how != "backs up halves" && how != "backs up no rows" {
			continue
		}
		record, err := m.Load(ctx, r.Key)
		require.NoError(t, err)
		commit(t, m, persist.Unit{Key: r.Key, Life: record.Life, Expect: record.Revision, Rows: []persist.RowOp{{Kind: r.Kind, ID: r.ID, Delete: true}}})
	}
	return m
}

// again opens the broken store's data again.
func (b *broken) again() *broken {
	n := newBroken(b.Memory.Again(), b.how)
	n.deleted, n.from, n.pods, n.twice = b.deleted, b.last, b.pods, b.twice
	for k, lost := range b.lost {
		if lost {
			_, _ = n.Memory.Commit(context.Background(), []persist.Unit{{Key: k, Delete: true, Force: true}})
		}
	}
	return n
}

func TestBrokenStore(t *testing.T) {
	how := os.Getenv(brokenVariable)
	if how == "" {
		t.Skip("it is run by TestTheSuiteNoticesBrokenStores, as another process")
	}
	persisttest.Run(t, func(t *testing.T) persisttest.Fixture {
		b := newBroken(persisttest.NewMemory(), how)
		return persisttest.Fixture{
			Store:  b,
			Reopen: func(*testing.T) persist.PersistenceService { b = b.again(); return b },
			Damage: func(_ *testing.T, k persist.Key) { b.Damage(k) },

			DamageRow:    func(_ *testing.T, r persist.Row) { b.DamageRow(r) },
			DamageChange: func(_ *testing.T, c persist.Change) { b.DamageChange(c) },
			Restore:      func(t *testing.T, r io.Reader) persist.PersistenceService { return restoreWrongly(t, how, r) },
		}
	})
}

func TestTheSuiteNoticesBrokenStores(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	for how, noticed := range wrongs() {
		for _, name := range noticed {
			if strings.HasSuffix(name, "model") && testing.Short() {
				continue
			}
			pattern := "^TestBrokenStore$/^" + regexp.QuoteMeta(strings.ReplaceAll(name, " ", "_")) + "$"
			cmd := exec.Command(exe, "-test.run", pattern, "-rapid.nofailfile", "-rapid.shrinktime=1ms")
			cmd.Env = append(os.Environ(), brokenVariable+"="+how)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "%q does not notice a store that %s", name, how)
			assert.Contains(t, string(out), "--- FAIL: TestBrokenStore", "%q for a store that %s", name, how)
			assert.NotContains(t, string(out), "panic:", "%q for a store that %s", name, how)
		}
	}
}
