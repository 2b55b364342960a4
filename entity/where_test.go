package entity_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// seen is what a predicate was told.
type seen struct {
	life, revision uint64
	changed        time.Time
	name, codec    string
	state          string
}

// predicate is a Predicate made of a function.
type predicate struct {
	text  string
	holds func(seen) (bool, error)
}

func (p predicate) Holds(life, revision uint64, changed time.Time, name, codec string, state []byte) (bool, error) {
	return p.holds(seen{life, revision, changed, name, codec, string(state)})
}

func (p predicate) String() string { return p.text }

func always(b bool) predicate {
	return predicate{fmt.Sprint(b), func(seen) (bool, error) { return b, nil }}
}

// world is pods on the seeded executor.
type world struct {
	t    *testing.T
	exec *actortest.Seeded
	sys  *actor.System
	pods *pod.Pods
}

func newWorld(t *testing.T, seed uint64, store persist.PersistenceService) *world {
	w := &world{t: t, exec: actortest.NewSeeded(seed)}
	w.sys = actor.NewSystem("test", actor.Config{Executor: w.exec})
	if s, is := store.(*persisttest.CrashStore); is {
		s.Pause = func(ctx context.Context) error {
			return w.sys.Sleep(ctx, time.Duration(w.sys.Uint64()%3)*time.Millisecond)
		}
	}
	var err error
	w.pods, err = pod.Open(w.sys, store, pod.Config{})
	require.NoError(t, err)
	return w
}

func (w *world) close() {
	w.t.Helper()
	ctx, cancel := w.sys.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(w.t, w.pods.Close(ctx))
	require.NoError(w.t, w.sys.Stop(ctx))
	w.exec.Close()
}

func (w *world) declare(name string, d pod.Definition) *pod.Pod {
	w.t.Helper()
	d.Type = entity.KindDocument
	p, _, _, err := w.pods.Declare(context.Background(), name, d)
	require.NoError(w.t, err)
	return p
}

// where binds a value and gives it a condition.
func (w *world) where(pod string, v any, p entity.Predicate) *entity.Message {
	w.t.Helper()
	m, err := w.pods.Wrap(pod, v)
	require.NoError(w.t, err)
	m.If.Where = p
	return m
}

func (w *world) state(p *pod.Pod, name string) string {
	w.t.Helper()
	v, err := p.Get(context.Background(), name)
	require.NoError(w.t, err)
	b, err := v.JSON()
	require.NoError(w.t, err)
	return string(b)
}

// TestWhere: a predicate decides over messages and deletions of entities of
// every durability, and is told what there is to tell.
func TestWhere(t *testing.T) {
	for _, durability := range []string{"sync", "async:1s", "volatile"} {
		t.Run(durability, func(t *testing.T) {
			w := newWorld(t, 1, persisttest.NewMemory())
			defer w.close()
			ctx := context.Background()
			docs := w.declare("docs", pod.Definition{Durability: durability})
			set := func(n int) any { return entity.Set{Pointer: "/n", Value: n} }

			_, err := docs.Ask(ctx, "x", w.where("docs", set(1), always(true)))
			require.ErrorIs(t, err, entity.ErrCondition, "an absent entity has no state")
			require.NotErrorIs(t, err, entity.ErrStale)
			_, err = docs.Get(ctx, "x")
			require.ErrorIs(t, err, entity.ErrNotFound)
			_, err = docs.Ask(ctx, "x", w.where("docs", entity.Remove{Pointer: "/n"}, always(true)))
			require.ErrorIs(t, err, entity.ErrNotFound)
			_, err = docs.Delete(ctx, "x", entity.Condition{Where: always(true)})
			require.ErrorIs(t, err, entity.ErrNotFound)

			_, err = docs.Ask(ctx, "x", set(1))
			require.NoError(t, err)
			v, err := docs.Get(ctx, "x")
			require.NoError(t, err)
			require.WithinDuration(t, w.sys.Now(), v.Changed, time.Second)
			var told seen
			_, err = docs.Ask(ctx, "x", w.where("docs", set(2), predicate{"all of it", func(s seen) (bool, error) { told = s; return true, nil }}))
			require.NoError(t, err)
			require.Equal(t, seen{v.Life, v.Revision, v.Changed, "x", "json", `{"n":1}`}, told)
			require.Equal(t, `{"n":2}`, w.state(docs, "x"))

			_, err = docs.Ask(ctx, "x", w.where("docs", set(3), always(false)))
			require.ErrorIs(t, err, entity.ErrCondition)
			require.NotErrorIs(t, err, entity.ErrStale)
			require.ErrorContains(t, err, "false does not hold")
			boom := errors.New("too costly")
			_, err = docs.Ask(ctx, "x", w.where("docs", set(3), predicate{"1 == 1", func(seen) (bool, error) { return true, boom }}))
			require.ErrorIs(t, err, boom)
			require.NotErrorIs(t, err, entity.ErrCondition)
			_, err = docs.Ask(ctx, "x", w.where("docs", set(3), predicate{"?", func(seen) (bool, error) { panic("on purpose") }}))
			require.ErrorContains(t, err, "on purpose")
			require.Equal(t, `{"n":2}`, w.state(docs, "x"))

			stale := w.where("docs", set(3), predicate{"?", func(seen) (bool, error) { t.Error("it is judged last"); return true, nil }})
			stale.If.Match = []entity.ETag{{Life: 1, Revision: 99}}
			_, err = docs.Ask(ctx, "x", stale)
			require.ErrorIs(t, err, entity.ErrStale)

			_, err = docs.Delete(ctx, "x", entity.Condition{Where: always(false)})
			require.ErrorIs(t, err, entity.ErrCondition)
			require.Equal(t, `{"n":2}`, w.state(docs, "x"))
			_, err = docs.Delete(ctx, "x", entity.Condition{Where: predicate{"n == 2", func(s seen) (bool, error) { return s.state == `{"n":2}`, nil }}})
			require.NoError(t, err)
			_, err = docs.Get(ctx, "x")
			require.ErrorIs(t, err, entity.ErrNotFound)
		})
	}
}

type purse struct {
	Cents int `json:"cents"`
}

type (
	spend struct{ Cents int }
	spent struct{ Cents int }
)

// TestWhereOfSourced: the state is the one that the events make.
func TestWhereOfSourced(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory())
	defer w.close()
	purses, err := pod.Start(w.pods, entity.Sourced[purse]{
		Name: "purses",
		Commands: entity.Handlers[purse]{"spend": entity.On(func(c *entity.Context, _ *purse, m spend) error {
			c.Raise(spent(m))
			return nil
		})},
		Events: entity.Events[purse]{"spent": entity.Apply(func(p *purse, e spent) { p.Cents -= e.Cents })},
	})
	require.NoError(t, err)
	ctx := context.Background()
	_, err = purses.Ask(ctx, "p", w.where("purses", spend{1}, always(true)))
	require.ErrorIs(t, err, entity.ErrCondition)
	_, err = purses.Ask(ctx, "p", spend{1})
	require.NoError(t, err)
	first, err := purses.Get(ctx, "p")
	require.NoError(t, err)
	for round := range 2 { // the second time after recovery
		var told seen
		_, err = purses.Ask(ctx, "p", w.where("purses", spend{1}, predicate{"?", func(s seen) (bool, error) { told = s; return false, nil }}))
		require.ErrorIs(t, err, entity.ErrCondition)
		require.Equal(t, seen{first.Life, 1, first.Changed, "p", "msgpack", "\x81\xa5cents\xff"}, told)
		if round == 0 {
			_, err = purses.Ask(ctx, "p", entity.Passivate())
			require.NoError(t, err)
		}
	}
}

// TestWhereIsOneStepWithTheTurn: of many senders that add one below ten, ten
// succeed, however commits and turns overlap.
func TestWhereIsOneStepWithTheTurn(t *testing.T) {
	for seed := range uint64(30) {
		w := newWorld(t, seed, persisttest.NewCrashStore())
		durability := []string{"sync", "async:5ms"}[seed%2]
		docs := w.declare("docs", pod.Definition{Durability: durability})
		_, err := docs.Ask(context.Background(), "x", entity.Set{Pointer: "/list", Value: []any{}})
		require.NoError(t, err)
		below := predicate{"size(list) < 10", func(s seen) (bool, error) {
			var state struct{ List []any }
			err := json.Unmarshal([]byte(s.state), &state)
			return len(state.List) < 10, err
		}}
		var asked []*actor.Promise
		for i := range 40 {
			p := w.sys.NewPromise()
			m := w.where("docs", entity.Set{Pointer: "/list/-", Value: i}, below)
			require.NoError(t, docs.Ref("x").Post(actor.Message{Payload: m, Reply: p}))
			asked = append(asked, p)
		}
		met := 0
		for _, p := range asked {
			_, err := p.Wait(context.Background())
			if err == nil {
				met++
				continue
			}
			require.ErrorIs(t, err, entity.ErrCondition)
		}
		require.Equal(t, 10, met, "seed %d", seed)
		require.Equal(t, `{"list":[0,1,2,3,4,5,6,7,8,9]}`, w.state(docs, "x"))
		w.close()
	}
}

// TestWhereOfAnUnreadableOne: of what cannot be read no condition holds, and it
// is not deleted by one.
func TestWhereOfAnUnreadableOne(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store)
	defer w.close()
	ctx := context.Background()
	docs := w.declare("docs", pod.Definition{})
	_, err := docs.Ask(ctx, "x", entity.Set{Pointer: "/n", Value: 1})
	require.NoError(t, err)
	_, err = docs.Ask(ctx, "x", entity.Passivate())
	require.NoError(t, err)
	store.Damage(persist.Key{Pod: "docs", Name: "x"})
	_, err = docs.Ask(ctx, "x", w.where("docs", entity.Set{Pointer: "/n", Value: 2}, always(true)))
	require.ErrorIs(t, err, entity.ErrQuarantined)
	_, err = docs.Delete(ctx, "x", entity.Condition{Where: always(true)})
	require.ErrorIs(t, err, entity.ErrQuarantined)
	_, err = docs.Get(ctx, "x")
	require.ErrorIs(t, err, entity.ErrQuarantined)
	_, err = docs.Delete(ctx, "x", entity.Condition{})
	require.NoError(t, err)
	_, err = docs.Get(ctx, "x")
	require.ErrorIs(t, err, entity.ErrNotFound)
}

// TestWhereOfARepeat: a message that was handled is answered again, whatever the
// condition says by now.
func TestWhereOfARepeat(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory())
	defer w.close()
	ctx := context.Background()
	docs := w.declare("docs", pod.Definition{})
	_, err := docs.Ask(ctx, "x", entity.Set{Pointer: "/n", Value: 1})
	require.NoError(t, err)
	once := func() (any, error) {
		m := w.where("docs", entity.Set{Pointer: "/n", Value: 2}, predicate{"n == 1", func(s seen) (bool, error) { return s.state == `{"n":1}`, nil }})
		require.NoError(t, m.SetID("id"))
		return docs.Ask(ctx, "x", m)
	}
	first, err := once()
	require.NoError(t, err)
	again, err := once()
	require.NoError(t, err)
	require.Equal(t, first, again)
}

// TestReservationKeepsTheTime: what an asynchronous entity writes for itself
// does not change when its state was changed.
func TestReservationKeepsTheTime(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store)
	defer w.close()
	ctx := context.Background()
	docs := w.declare("docs", pod.Definition{Durability: "async:1s"})
	_, err := docs.Ask(ctx, "x", entity.Set{Pointer: "/n", Value: 1})
	require.NoError(t, err)
	before, err := docs.Get(ctx, "x")
	require.NoError(t, err)
	w.exec.RunFor(5 * time.Second)
	_, err = docs.Ask(ctx, "x", entity.Passivate())
	require.NoError(t, err)
	after, err := docs.Get(ctx, "x")
	require.NoError(t, err)
	require.Equal(t, before.Changed, after.Changed)
}

const celsius = `{"type":"object","properties":{"celsius":{"type":"number","maximum":60}},"required":["celsius"]}`

// TestSchemaOfAPod: a pod's schema is kept, shown and changed; what does not fit
// is refused as soon as it changes, by whatever message.
func TestSchemaOfAPod(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store)
	ctx := context.Background()
	rooms := w.declare("rooms", pod.Definition{})
	for name, state := range map[string]map[string]any{"old": {"note": "no celsius"}, "good": {"celsius": 20}} {
		_, err := rooms.Ask(ctx, name, entity.Set{Value: state})
		require.NoError(t, err)
	}
	_, _, _, err := w.pods.Declare(ctx, "rooms", pod.Definition{Type: "document", Schema: json.RawMessage(`{"type":1}`)})
	require.ErrorIs(t, err, entity.ErrDefinition)
	require.ErrorContains(t, err, "at /type")
	require.Empty(t, rooms.Definition().Schema)

	_, _, changed, err := w.pods.Declare(ctx, "rooms", pod.Definition{Type: "document", Schema: json.RawMessage(celsius)})
	require.NoError(t, err)
	require.True(t, changed)
	_, _, changed, err = w.pods.Declare(ctx, "rooms", pod.Definition{Type: "document", Schema: json.RawMessage("\n" + celsius)})
	require.NoError(t, err)
	require.False(t, changed, "it is the same schema")
	require.JSONEq(t, celsius, string(rooms.Definition().Schema))

	unfit := func(name string, msg any) {
		t.Helper()
		_, err := rooms.Ask(ctx, name, msg)
		var e *entity.SchemaError
		require.ErrorAs(t, err, &e)
		var handler *entity.HandlerError
		require.False(t, errors.As(err, &handler))
	}
	for _, round := range []string{"as it was declared", "after a restart"} {
		for _, msg := range []any{
			entity.Set{Pointer: "/celsius", Value: "hot"},
			entity.Set{Value: map[string]any{}},
			entity.Merge{"celsius": 61},
			entity.Remove{Pointer: "/celsius"},
			entity.Patch{{Op: "replace", Path: "/celsius", Value: true}},
		} {
			unfit("good", msg)
		}
		unfit("new", entity.Merge{"note": "x"})
		_, err = rooms.Get(ctx, "new")
		require.ErrorIs(t, err, entity.ErrNotFound, round)
		require.Equal(t, `{"celsius":20}`, w.state(rooms, "good"))

		require.Equal(t, `{"note":"no celsius"}`, w.state(rooms, "old"))
		_, err = rooms.Ask(ctx, "old", entity.Merge{})
		require.NoError(t, err, "it changes nothing")
		unfit("old", entity.Merge{"note": "changed"})

		w.close()
		w = newWorld(t, 2, store)
		rooms, err = w.pods.Pod("rooms")
		require.NoError(t, err)
		require.JSONEq(t, celsius, string(rooms.Definition().Schema))
	}
	_, err = rooms.Ask(ctx, "old", entity.Merge{"note": "changed", "celsius": 1})
	require.NoError(t, err)
	w.declare("rooms", pod.Definition{})
	_, err = rooms.Ask(ctx, "old", entity.Merge{"celsius": nil})
	require.NoError(t, err)
	require.Empty(t, rooms.Definition().Schema)
	w.close()
}

// TestSchemaErrorIsRepeated: who asks again under the same id is told the same,
// also after a restart.
func TestSchemaErrorIsRepeated(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store)
	ctx := context.Background()
	rooms := w.declare("rooms", pod.Definition{Schema: json.RawMessage(celsius)})
	_, err := rooms.Ask(ctx, "r", entity.Merge{"celsius": 1})
	require.NoError(t, err)
	msg := entity.WithID("id", entity.Merge{"celsius": 61})
	var first, again *entity.SchemaError
	_, err = rooms.Ask(ctx, "r", msg)
	require.ErrorAs(t, err, &first)
	w.close()
	w = newWorld(t, 2, store)
	defer w.close()
	rooms = w.declare("rooms", pod.Definition{}) // it would be taken now
	_, err = rooms.Ask(ctx, "r", msg)
	require.ErrorAs(t, err, &again)
	require.Equal(t, first, again)
}

// TestPatchMessage: a patch is a message like others: it does not create, and is
// applied wholly or not at all.
func TestPatchMessage(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory())
	defer w.close()
	ctx := context.Background()
	docs := w.declare("docs", pod.Definition{})
	add := entity.Patch{{Op: "add", Path: "/a", Value: []any{1}}}
	_, err := docs.Ask(ctx, "x", add)
	require.ErrorIs(t, err, entity.ErrNotFound)
	_, err = docs.Ask(ctx, "x", entity.Merge{})
	require.NoError(t, err)
	_, err = docs.Ask(ctx, "x", add)
	require.NoError(t, err)
	var rejected *entity.RejectedError
	_, err = docs.Ask(ctx, "x", entity.Patch{{Op: "add", Path: "/a/0", Value: 0}, {Op: "test", Path: "/a/0", Value: 1}})
	require.ErrorAs(t, err, &rejected)
	require.Contains(t, rejected.Reason, "operation 1")
	_, err = docs.Ask(ctx, "x", entity.Patch{{Op: "copy", Path: "/a/-", From: "/a"}})
	require.NoError(t, err)
	require.Equal(t, `{"a":[1,[1]]}`, w.state(docs, "x"))

	deep := entity.Patch{}
	for range 700 {
		deep = append(deep, entity.PatchOperation{Op: "add", Path: "/b", Value: map[string]any{}}, entity.PatchOperation{Op: "move", From: "/a", Path: "/b/c"}, entity.PatchOperation{Op: "move", From: "/b", Path: "/a"})
	}
	for _, want := range []bool{true, false} {
		_, err = docs.Ask(ctx, "x", deep)
		if want {
			require.NoError(t, err)
			continue
		}
		require.ErrorAs(t, err, &rejected)
		require.Contains(t, rejected.Reason, "deeper than 1000 levels")
	}
}
