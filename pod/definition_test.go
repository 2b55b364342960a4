package pod_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

func documentPod(durability string) pod.Definition {
	return pod.Definition{Type: "document", Durability: durability}
}

// TestDeclaredPods: a declaration is durable, repeating it changes nothing, and
// changing it takes effect on entities that are in memory.
func TestDeclaredPods(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	ctx := context.Background()
	_, created, changed, err := w.pods.Declare(ctx, "notes", documentPod(""))
	w.must(err)
	require.True(t, created && changed)
	notes, created, changed, err := w.pods.Declare(ctx, "notes", documentPod("sync"))
	w.must(err)
	require.False(t, created || changed)
	_, err = notes.Ask(ctx, "n1", entity.Merge{"a": 1})
	w.must(err)
	notes, created, changed, err = w.pods.Declare(ctx, "notes", pod.Definition{Type: "document", Create: pod.CreateDefinition{By: []string{"set"}, Names: "n[0-9]"}})
	w.must(err)
	require.True(t, !created && changed)
	_, err = notes.Ask(ctx, "n2", entity.Merge{"a": 1})
	require.ErrorIs(t, err, entity.ErrNotFound)
	_, err = notes.Ask(ctx, "n10", entity.Set{Pointer: "/a"})
	require.ErrorIs(t, err, entity.ErrNotFound)
	_, err = notes.Ask(ctx, "n2", entity.Set{Pointer: "/a"})
	w.must(err)
	_, err = notes.Ask(ctx, "n1", entity.Merge{"b": 2})
	w.must(err)
	w.close()

	w = newWorld(t, 2, store, ledgers(nil), pod.Config{})
	defer w.close()
	notes, err = w.pods.Pod("notes")
	w.must(err)
	require.Equal(t, pod.CreateDefinition{By: []string{"set"}, Names: "n[0-9]"}, notes.Definition().Create)
	v, err := notes.Get(ctx, "n1")
	w.must(err)
	state, err := v.JSON()
	w.must(err)
	require.JSONEq(t, `{"a":1,"b":2}`, string(state))

	for name, d := range map[string]pod.Definition{
		"notes2": {Type: "typed"}, "Notes": documentPod(""), "notes3": documentPod("async:soon"),
		"notes4": {Type: "document", Create: pod.CreateDefinition{Names: "("}},
		"notes5": {Type: "document", Create: pod.CreateDefinition{Names: "a)|(b"}}, // the brackets around it would make it one
	} {
		_, _, _, err := w.pods.Declare(ctx, name, d)
		require.ErrorIs(t, err, entity.ErrDefinition, name)
	}
	_, _, _, err = w.pods.Declare(ctx, "ledgers", documentPod(""))
	require.ErrorIs(t, err, pod.ErrExists)
}

// TestSchemasThatNoDocumentFits: those of which that is plain are refused.
func TestSchemasThatNoDocumentFits(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{})
	defer w.close()
	for schema, fits := range map[string]bool{
		`false`: false, `{"type":"string"}`: false, `{"type":["string","null"]}`: false,
		`true`: true, `{}`: true, `{"type":"object"}`: true, `{"type":["null","object"]}`: true, `{"properties":{"type":false}}`: true,
	} {
		_, _, _, err := w.pods.Declare(t.Context(), "notes", pod.Definition{Type: "document", Schema: json.RawMessage(schema)})
		if fits {
			w.must(err)
			continue
		}
		require.ErrorIs(t, err, entity.ErrDefinition, schema)
		require.ErrorContains(t, err, "no document fits it")
	}
}

// TestDroppedPods: only an empty pod is dropped, or one whose entities are
// dropped with it; both are durable.
func TestDroppedPods(t *testing.T) {
	forSeeds(t, 20, func(t *testing.T, seed uint64) {
		store := persisttest.NewCrashStore()
		w := newWorld(t, seed, store, ledgers(nil), pod.Config{})
		ctx := context.Background()
		notes, _, _, err := w.pods.Declare(ctx, "notes", documentPod("async:1s"))
		w.must(err)
		for _, name := range ids("n", 120) {
			_, err := notes.Ask(ctx, name, entity.Merge{"a": 1})
			w.must(err)
		}
		store.Damage(persist.Key{Pod: "notes", Name: "n50"})
		require.ErrorIs(t, w.pods.Drop(ctx, "notes", false), pod.ErrNotEmpty)
		_, err = notes.Ask(ctx, "n1", entity.Merge{"a": 2})
		w.must(err)
		require.ErrorIs(t, w.pods.Drop(ctx, "ledgers", true), pod.ErrReadOnly)
		require.ErrorIs(t, w.pods.Drop(ctx, "nothing", true), pod.ErrNoPod)
		w.must(w.pods.Drop(ctx, "notes", true))
		_, err = notes.Ask(ctx, "n1", entity.Merge{"a": 2})
		require.Error(t, err, "a handle of a dropped pod reaches nobody")
		_, err = w.pods.Pod("notes")
		require.ErrorIs(t, err, pod.ErrNoPod)
		again, created, _, err := w.pods.Declare(ctx, "notes", documentPod(""))
		w.must(err)
		require.True(t, created)
		page, err := again.List(ctx, persist.ListOptions{})
		w.must(err)
		require.Empty(t, page.Items)
		w.must(w.pods.Drop(ctx, "notes", false))
		w.close()
		w = newWorld(t, seed, store, ledgers(nil), pod.Config{})
		defer w.close()
		_, err = w.pods.Pod("notes")
		require.ErrorIs(t, err, pod.ErrNoPod)
	})
}

// TestPodsOfUnknownType: a store's typed pod whose type the program does not
// have can be read and takes no messages.
func TestPodsOfUnknownType(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	_, err := w.ask("x", add{"a"})
	w.must(err)
	w.close()
	other := ledgers(func(d *entity.Type[ledger]) { d.Name = "others" })
	w = newWorld(t, 2, store, other, pod.Config{})
	ctx := context.Background()
	p, err := w.pods.Pod("ledgers")
	w.must(err)
	require.Nil(t, p.Spec())
	require.Equal(t, "typed", p.Definition().Type)
	v, err := p.Get(ctx, "x")
	w.must(err)
	state, err := v.JSON()
	w.must(err)
	require.JSONEq(t, `{"log":["a"],"by":{"a":1}}`, string(state))
	page, err := p.List(ctx, persist.ListOptions{})
	w.must(err)
	require.Len(t, page.Items, 1)
	require.ErrorIs(t, p.Tell("x", add{"b"}), pod.ErrReadOnly)
	_, err = p.Delete(ctx, "x", entity.Condition{})
	require.ErrorIs(t, err, pod.ErrReadOnly)
	require.ErrorIs(t, w.pods.Drop(ctx, "ledgers", true), pod.ErrReadOnly)
	h, err := pod.Start(w.pods, ledgers(nil))
	w.must(err)
	_, err = h.Ask(ctx, "x", add{"b"})
	w.must(err)
	_, err = pod.Start(w.pods, ledgers(nil))
	require.ErrorIs(t, err, pod.ErrExists)
	w.close()
}

// TestClosingRefusesAndFinishes: once Close has begun nothing new is taken, and
// what was taken is answered.
func TestClosingRefusesAndFinishes(t *testing.T) {
	forSeeds(t, 100, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
		p := w.send("x", tally{Name: "y", ID: "a"})
		ctx, cancel := w.sys.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		w.must(w.pods.Close(ctx))
		_, err := w.wait(p)
		w.must(err)
		require.ErrorIs(t, w.h.Tell(ctx, "x", add{"b"}), pod.ErrStopping)
		for _, name := range []string{"x", "y"} {
			_, err = w.store.Load(ctx, persist.Key{Pod: "ledgers", Name: name})
			w.must(err)
		}
		w.must(w.sys.Stop(ctx))
		w.exec.Close()
	})
}
