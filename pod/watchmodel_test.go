package pod_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// booked is a store that notes every change that has become durable.
type booked struct {
	persist.PersistenceService
	mu      sync.Mutex
	changes []persist.Change
	mark    uint64

	positions map[uint64]bool
}

func (b *booked) Commit(ctx context.Context, units []persist.Unit) ([]persist.Outcome, error) {
	outcomes, err := b.PersistenceService.Commit(ctx, units)
	if err != nil {
		return outcomes, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, u := range units {
		if outcomes[i].Err != nil || u.Key.Pod[0] == '$' {
			continue
		}
		for j, c := range u.Changes {
			c.Key, c.Life = u.Key, outcomes[i].Life
			c.Position = outcomes[i].Position - uint64(len(u.Changes)-1-j)
			c.Data = slices.Clone(c.Data)
			b.changes = append(b.changes, c)
			if b.positions == nil {
				b.positions = map[uint64]bool{}
			}
			b.positions[c.Position] = true
		}
	}
	return outcomes, nil
}

func (b *booked) Trim(ctx context.Context, after, through uint64, limit int) (persist.Trimmed, error) {
	b.mu.Lock()
	b.mark = max(b.mark, through)
	b.mu.Unlock()
	return b.PersistenceService.Trim(ctx, after, through, limit)
}

func (b *booked) all() ([]persist.Change, uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.changes), b.mark
}

func (b *booked) has(position uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.positions[position]
}

// client watches, is cut off at random, and resumes.
type client struct {
	sys    *actor.System
	pods   *pod.Pods
	book   *booked
	draw   func(n uint64) uint64
	pause  func()
	req    pod.WatchRequest
	odd    bool // watches entities whose number is odd
	start  uint64
	events []pod.Event
	resume int
	wrong  []string
	reads  func(pod.Event) error // what a read must show
}

func (c *client) fail(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// run watches until everything through a position that target names, when it is
// not 0, was shown.
func (c *client) run(ctx context.Context, target func() uint64) {
	first := true
	var at uint64
	for {
		req := c.req
		if !first {
			req.Resume, req.After = true, at
		}
		w, err := c.pods.Watch(ctx, req)
		if errors.Is(err, persist.ErrUnavailable) {
			c.pause()
			continue
		}
		if err != nil {
			c.fail("watch behind %d: %v", at, err)
			return
		}
		if first {
			c.start, at = w.Position(), w.Position()
		}
		first = false
		for left := c.draw(40); left > 0; left-- {
			if c.draw(4) == 0 {
				c.pause()
			}
			short, cancel := c.sys.WithTimeout(ctx, 20_000_000)
			e, err := w.Next(short)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				c.fail("next: %v", err)
				w.Close()
				return
			}
			if err == nil {
				c.take(e, at)
				at = e.ID
			} else if w.Position() < at {
				c.fail("position %d behind the event %d", w.Position(), at)
			} else if c.draw(2) == 0 {
				at = w.Position()
			}
			if t := target(); t != 0 && w.Position() >= t && err != nil {
				w.Close()
				return
			}
		}
		w.Close()
		c.resume++
	}
}

func (c *client) take(e pod.Event, at uint64) {
	c.events = append(c.events, e)
	switch {
	case e.ID < at:
		c.fail("event %d behind %d", e.ID, at)
	case e.Kind == pod.EventGap:
		if e.From < at || e.To <= e.From || e.ID != e.To {
			c.fail("gap from %d to %d, id %d, behind %d", e.From, e.To, e.ID, at)
		}
		return
	case e.ID != e.Position || e.Position <= at:
		c.fail("event %d at %d behind %d", e.ID, e.Position, at)
	case !c.book.has(e.Position):
		c.fail("event %d is shown before it is durable", e.Position)
	}
	if c.reads != nil {
		if err := c.reads(e); err != nil {
			c.fail("event %d: %v", e.Position, err)
		}
	}
}

// check compares what was seen with what became durable.
func (c *client) check(t testing.TB) {
	t.Helper()
	require.Empty(t, c.wrong)
	truth, mark := c.book.all()
	last := map[string]persist.Change{}
	gap := func(position uint64) bool {
		return slices.ContainsFunc(c.events, func(e pod.Event) bool {
			return e.Kind == pod.EventGap && position > e.From && position <= e.To
		})
	}
	seen := slices.DeleteFunc(slices.Clone(c.events), func(e pod.Event) bool { return e.Kind == pod.EventGap })
	for _, e := range seen {
		require.False(t, gap(e.Position), "position %d was shown and lies in a gap", e.Position)
	}
	for i := range truth {
		ch := &truth[i]
		id := fmt.Sprint(ch.Key, ch.Life)
		before, known := last[id]
		last[id] = *ch
		if !c.wants(ch) || ch.Position <= c.start || gap(ch.Position) {
			continue
		}
		kind, unsure := c.expected(ch, before, known, mark)
		shown := len(seen) > 0 && seen[0].Position == ch.Position
		if kind == "" && (!shown || unsure && seen[0].Unsure) {
			if shown {
				seen = seen[1:]
			}
			continue
		}
		require.True(t, shown, "%s revision %d (%s) at position %d was not shown as %q; next is %+v", ch.Key, ch.Revision, ch.Type, ch.Position, kind, first(seen))
		e := seen[0]
		seen = seen[1:]
		require.Equal(t, kind, e.Kind, "at position %d", ch.Position)
		require.True(t, unsure || !e.Unsure)
		require.Equal(t, persist.Key{Pod: e.Pod, Name: e.Name}, ch.Key)
		require.Equal(t, []any{ch.Life, ch.Revision, ch.Type}, []any{e.Life, e.Revision, e.Type})
		require.True(t, ch.Time.Equal(e.Time))
		if !ch.Event && kind != pod.EventDeleted {
			require.JSONEq(t, string(jsonState(t, ch)), string(e.State))
		}
		require.True(t, json.Valid(e.JSON()))
	}
	require.Empty(t, seen)
}

func first(seen []pod.Event) any {
	if len(seen) == 0 {
		return "nothing"
	}
	return seen[0]
}

func (c *client) wants(ch *persist.Change) bool {
	return (c.req.Pods == nil || slices.Contains(c.req.Pods, ch.Key.Pod)) && (c.req.Name == "" || c.req.Name == ch.Key.Name)
}

// expected is what is to be said of a change; unsure, that the state before may
// not have been known.
func (c *client) expected(ch *persist.Change, before persist.Change, known bool, mark uint64) (kind pod.EventKind, unsure bool) {
	end := ch.Type == "deleted"
	switch {
	case !c.odd && end:
		return pod.EventDeleted, false
	case !c.odd || !end && isOdd(ch):
		return pod.EventChanged, false
	}
	unsure = known && before.Position <= mark
	switch {
	case !known || !isOdd(&before):
		return "", unsure
	case end:
		return pod.EventDeleted, unsure
	}
	return pod.EventLeft, unsure
}

// isOdd is oddView for a change of a ledger.
func isOdd(ch *persist.Change) bool {
	var l ledger
	if snapshot.Msgpack().Decode(ch.Data, &l) != nil {
		return false
	}
	return l.By["v"]%2 == 1
}

func oddView(v *pod.View) (bool, error) {
	b, err := v.JSON()
	if err != nil {
		return false, err
	}
	var l ledger
	if err := json.Unmarshal(b, &l); err != nil {
		return false, err
	}
	return l.By["v"]%2 == 1, nil
}

func jsonState(t testing.TB, ch *persist.Change) []byte {
	t.Helper()
	codec, err := snapshot.CodecByName(ch.Codec)
	require.NoError(t, err)
	b, err := codec.ToJSON(ch.Data)
	require.NoError(t, err)
	return b
}

// readsShow says that reads are not behind what is watched.
func readsShow(pods *pod.Pods) func(pod.Event) error {
	return func(e pod.Event) error {
		p, err := pods.Pod(e.Pod)
		if err != nil {
			return err
		}
		v, err := p.Get(context.Background(), e.Name)
		switch {
		case errors.Is(err, entity.ErrNotFound):
			return nil // deleted meanwhile
		case err != nil:
			return err
		case v.Life < e.Life || v.Life == e.Life && v.Revision < e.Revision:
			return fmt.Errorf("%s/%s: a read shows life %d, revision %d, the watch %d, %d", e.Pod, e.Name, v.Life, v.Revision, e.Life, e.Revision)
		case v.Life == e.Life && e.Kind == pod.EventDeleted:
			return fmt.Errorf("%s/%s: a read shows what was deleted", e.Pod, e.Name)
		}
		return nil
	}
}

// scopes are requests of every shape.
func scopes(n uint64) (r pod.WatchRequest, odd bool) {
	switch n % 6 {
	case 0:
	case 1:
		r.Pods = []string{"ledgers"}
	case 2:
		r.Pods, r.Name = []string{"ledgers"}, "x"
	case 3:
		r.Pods = []string{"purses", "ledgers"}
	case 4:
		r.Pods, r.Match, odd = []string{"ledgers"}, oddView, true
	case 5:
		r.Pods, r.Name, r.Match, odd = []string{"ledgers"}, "y", oddView, true
	}
	return r, odd
}
