package commitlog_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/commitlog/logtest"
	"github.com/twinsrv/twinsrv/persist/memory"
)

// TestEverybodyAtOnce has writers, readers, trims and backups beside the folding.
func TestEverybodyAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	cfg := commitlog.Config{SegmentSize: 64 << 10, FoldAfter: time.Millisecond, FoldKeys: 7}
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		cfg := cfg
		cfg.Disk = logtest.New()
		behind := memory.Open(memory.Config{})
		s, err := commitlog.Open("log", behind, cfg)
		require.NoError(t, err)
		c := &crowd{T: t, s: s}
		c.work()
		require.NoError(t, s.Close())
		c.check(behind.Fork())
	})
	t.Run("bolt", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		c := &crowd{T: t, s: inFrontOfBolt(t, dir, cfg), dir: dir}
		c.work()
		require.NoError(t, c.s.Close())
		s := inFrontOfBolt(t, dir, commitlog.Config{})
		c.check(s)
		require.NoError(t, s.Close())
	})
}

// work goes on for a while.
func (c *crowd) work() {
	for i := range c.acked {
		c.make(i)
	}
	ctx, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	for i := range c.acked {
		c.run(func() { c.write(ctx, i) })
	}
	for range 2 {
		c.run(func() { c.list(ctx) })
	}
	c.run(func() { c.rows(ctx) })
	c.run(func() { c.tail(ctx) })
	if c.dir != "" {
		c.run(func() { c.backUp(ctx) })
	}
	c.running.Wait()
	require.False(c, c.Failed())
	c.Logf("%d commits, %d lists, %d backups", c.commits.Load(), c.lists.Load(), c.backups.Load())
	require.Positive(c, c.commits.Load())
}

// check tests that a store has what was acknowledged.
func (c *crowd) check(s persist.PersistenceService) {
	for name, revision := range c.ackedBy() {
		r, err := s.Load(ctx, persist.Key{Pod: "rooms", Name: name})
		require.NoError(c, err)
		require.Equal(c, revision, r.Revision)
	}
}

const crowdNames = 8

// crowd writes and reads at once. Entity j of writer i exists throughout, with a
// row that has its revision; those called "now and then" come and go.
type crowd struct {
	*testing.T
	s       *commitlog.Store
	dir     string
	running sync.WaitGroup
	lives   [3][crowdNames]uint64
	acked   [3][crowdNames]atomic.Uint64

	commits, lists, backups atomic.Int64
}

func crowdKey(i, j int) persist.Key {
	return persist.Key{Pod: "rooms", Name: fmt.Sprintf("e%d-%d", j, i)}
}

func (c *crowd) ok(err error) bool {
	if err != nil {
		c.Error(err)
	}
	return err == nil
}

func (c *crowd) run(fn func()) {
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		fn()
	}()
}

func (c *crowd) unit(i, j int, revision uint64) persist.Unit {
	state := fmt.Appendf(bytes.Repeat([]byte("."), 300), "%d", revision)
	return persist.Unit{Key: crowdKey(i, j), Life: c.lives[i][j], Expect: revision - 1,
		Record:  &record{Revision: revision, Changed: at(1), Codec: "json", State: state},
		Changes: []persist.Change{{Revision: revision, Type: "changed", Time: at(1), Codec: "json", Data: state}},
		Rows:    []persist.RowOp{{Kind: "outbox", ID: "last", Value: fmt.Append(nil, revision)}}}
}

func (c *crowd) make(i int) {
	for j := range crowdNames {
		got, err := c.s.Commit(ctx, []persist.Unit{c.unit(i, j, 1)})
		require.NoError(c, err)
		c.lives[i][j] = got[0].Life
		c.acked[i][j].Store(1)
	}
}

// write steps its entities, and makes and deletes another one.
func (c *crowd) write(ctx context.Context, i int) {
	life := uint64(0)
	for n := 0; ctx.Err() == nil; n++ {
		j := n % crowdNames
		units := []persist.Unit{c.unit(i, j, c.acked[i][j].Load()+1)}
		u := persist.Unit{Key: persist.Key{Pod: "rooms", Name: fmt.Sprint("now and then ", i)}}
		if life == 0 {
			u.Record = &record{Revision: 1, Changed: at(1), Codec: "json", State: []byte("s")}
			u.Rows = []persist.RowOp{{Kind: "inbox", ID: "1", Value: []byte("v")}}
		} else {
			u.Delete, u.Force, u.Life, u.Expect = true, n%100 == 99, life, 1
		}
		got, err := c.s.Commit(context.Background(), append(units, u))
		if !c.ok(err) || !c.ok(got[0].Err) || !c.ok(got[1].Err) {
			return
		}
		if life = got[1].Life; u.Delete {
			life = 0
		}
		c.acked[i][j].Add(1)
		c.commits.Add(1)
		r, err := c.s.Load(context.Background(), crowdKey(i, j))
		if !c.ok(err) || !assert.Equal(c, units[0].Expect+1, r.Revision) {
			return
		}
	}
}

// ackedBy is what is acknowledged at this moment.
func (c *crowd) ackedBy() map[string]uint64 {
	all := map[string]uint64{}
	for i := range c.acked {
		for j := range c.acked[i] {
			all[crowdKey(i, j).Name] = c.acked[i][j].Load()
		}
	}
	return all
}

// list must find each entity that exists throughout, not before what was
// acknowledged, and no other.
func (c *crowd) list(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		runtime.Gosched()
		before := c.ackedBy()
		seen := map[string]uint64{}
		for after := ""; ; {
			page, err := c.s.List(context.Background(), "rooms", persist.ListOptions{After: after, Limit: 1 + n%7})
			if !c.ok(err) {
				return
			}
			for _, it := range page.Items {
				seen[it.Name], after = it.Record.Revision, it.Name
			}
			if !page.More {
				break
			}
		}
		for name, revision := range before {
			if !assert.GreaterOrEqual(c, seen[name], revision, name) {
				return
			}
			delete(seen, name)
		}
		for name := range seen {
			if !assert.True(c, strings.HasPrefix(name, "now and then "), name) {
				return
			}
		}
		pods, err := c.s.Pods(context.Background())
		if !c.ok(err) || !assert.Equal(c, []string{"rooms"}, pods) {
			return
		}
		c.lists.Add(1)
	}
}

func (c *crowd) rows(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		runtime.Gosched()
		before := c.ackedBy()
		seen := map[string]uint64{}
		for after := (*persist.Row)(nil); ; {
			rows, err := c.s.Rows(context.Background(), "outbox", after, 1+n%7)
			if !c.ok(err) {
				return
			}
			for i := range rows {
				var revision uint64
				_, err := fmt.Sscan(string(rows[i].Value), &revision)
				if !c.ok(err) {
					return
				}
				seen[rows[i].Key.Name] = revision
			}
			if len(rows) < 1+n%7 {
				break
			}
			after = &rows[len(rows)-1]
		}
		if !assert.Len(c, seen, len(before)) {
			return
		}
		for name, revision := range before {
			if !assert.GreaterOrEqual(c, seen[name], revision, name) {
				return
			}
		}
	}
}

// tail follows the log, in which no revision is left out, and trims behind itself.
func (c *crowd) tail(ctx context.Context) {
	after, trimmed := uint64(0), uint64(0)
	last, place := map[string]uint64{}, map[string]uint64{}
	for ctx.Err() == nil {
		runtime.Gosched()
		log, err := c.s.Log(context.Background(), after, 50)
		if !c.ok(err) {
			return
		}
		for i := range log {
			ch := &log[i]
			if !assert.Greater(c, ch.Position, after) || !assert.Equal(c, last[ch.Key.Name]+1, ch.Revision, ch.Key.Name) {
				return
			}
			after, last[ch.Key.Name], place[ch.Key.Name] = ch.Position, ch.Revision, ch.Position
		}
		key := crowdKey(0, int(after%crowdNames))
		changes, err := c.s.Changes(context.Background(), key, 0, last[key.Name], 1000)
		if !c.ok(err) {
			return
		}
		first := last[key.Name]
		if place[key.Name] <= trimmed && len(changes) > 0 {
			first = changes[0].Revision
		}
		for i := range changes {
			if !assert.Equal(c, first+uint64(i), changes[i].Revision) {
				return
			}
		}
		if after > trimmed+300 {
			t, err := c.s.Trim(context.Background(), trimmed, after-200, 1000)
			if !c.ok(err) {
				return
			}
			trimmed = t.Through
		}
	}
}

// backUp writes backups, in which all is that was acknowledged before.
func (c *crowd) backUp(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		runtime.Gosched()
		before := c.ackedBy()
		var b bytes.Buffer
		if !c.ok(c.s.Backup(context.Background(), &b)) {
			return
		}
		path := filepath.Join(c.dir, fmt.Sprint("restored", n))
		if !c.ok(bolt.Restore(path, &b)) {
			return
		}
		restored, err := bolt.Open(path, bolt.Config{})
		if !c.ok(err) {
			return
		}
		for i := range c.acked {
			for j := range c.acked[i] {
				k := crowdKey(i, j)
				r, err := restored.Load(context.Background(), k)
				if !c.ok(err) || !assert.GreaterOrEqual(c, r.Revision, before[k.Name]) {
					return
				}
			}
		}
		if !c.ok(restored.Close()) {
			return
		}
		c.backups.Add(1)
	}
}
