package pod_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// bounded is a document pod that refuses much: names, first messages, states.
var bounded = pod.Definition{
	Type: "document", Create: pod.CreateDefinition{By: []string{"set", "merge"}, Names: "n[0-9]"},
	Schema: json.RawMessage(`{"properties":{"n":{"type":"integer"}}}`),
}

// TestAdmitSaysWhatTheRealWaySays: what would be refused is refused by Admit with
// the same words, and what is admitted is not refused; whatever is in memory, and
// nothing comes to be, or into memory, by asking.
func TestAdmitSaysWhatTheRealWaySays(t *testing.T) {
	refused, admitted := 0, 0
	forSeeds(t, 40, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewMemory(), ledgers(func(d *entity.Type[ledger]) { d.Create.By = []string{"add"} }), pod.Config{MaxState: 200})
		defer w.close()
		docs, _, _, err := w.pods.Declare(bg, "docs", bounded)
		w.must(err)
		draw := func(n uint64) uint64 { return w.sys.Uint64() % n }
		for range 60 {
			p, name := docs, fmt.Sprint("n", draw(3))
			if draw(3) == 0 {
				p = w.h.Pod
			}
			if draw(12) == 0 {
				name = []string{"other", "", ".", "n1\n"}[draw(4)]
			}
			tag := entity.ETag{Life: draw(30), Revision: draw(4)}
			if v, err := p.Get(bg, name); err == nil && draw(2) == 0 {
				tag = v.ETag()
			}
			again := message(w, p, tag)
			if draw(2) == 0 {
				w.send(name, entity.Passivate())
				w.sendTo(docs.Ref(name), entity.Passivate())
				w.exec.RunFor(time.Second)
			}
			active := w.pods.Active()
			says := p.Admit(bg, name, again())
			require.Equal(t, active, w.pods.Active(), "seed %d", seed)
			_, got := w.wait(w.sendTo(p.Ref(name), again()))
			if says == nil {
				require.NoError(t, got, "seed %d: %s", seed, name)
				admitted++
				continue
			}
			require.Error(t, got, "seed %d: %s: %v", seed, name, says)
			require.Equal(t, got.Error(), says.Error(), "seed %d", seed)
			refused++
		}
	})
	require.NotZero(t, refused)
	require.NotZero(t, admitted)
}

// message makes a message of one of many kinds, as often as it is called.
func message(w *world, p *pod.Pod, tag entity.ETag) func() any {
	draw := func(n uint64) uint64 { return w.sys.Uint64() % n }
	kinds := []any{add{"a"}, peek{}, touch{"b"}, entity.Merge{}}
	if p != w.h.Pod {
		kinds = []any{
			entity.Merge{"n": 1}, entity.Merge{"n": "one"}, entity.Merge{"n": nil, "x": map[string]any{"y": 1}},
			entity.Set{Pointer: "", Value: map[string]any{"n": draw(3)}}, entity.Set{Pointer: "/x", Value: strings.Repeat("x", int(draw(400)))},
			entity.Set{Pointer: "/n/m", Value: 1}, entity.Remove{Pointer: "/x"}, entity.Remove{Pointer: "x"},
			entity.Patch{{Op: "add", Path: "/l", Value: []any{}}, {Op: "add", Path: "/l/-", Value: draw(9)}},
			entity.Patch{{Op: "test", Path: "/n", Value: 1}}, add{"a"},
		}
	}
	kind, odd, life := kinds[draw(uint64(len(kinds)))], draw(10), draw(2)*draw(50)
	return func() any {
		m, err := p.Spec().Wrap(kind)
		if err != nil {
			return kind
		}
		switch odd {
		case 0:
			m.If.Match = []entity.ETag{tag}
		case 1:
			m.If.NoneMatch = []entity.ETag{tag}
		case 2:
			m.If.Absent = true
		case 3:
			m.If.Exists = true
		case 4:
			m.NoCreate = true
		case 5:
			m.Life = life
		case 6:
			return entity.Delete(entity.Condition{Match: []entity.ETag{tag}})
		case 7:
			return unconditional()
		case 8:
			m.If.Where = odds{}
		}
		return m
	}
}

// odds holds for odd revisions.
type odds struct{}

func (odds) String() string { return "an odd revision" }
func (odds) Holds(_, revision uint64, _ time.Time, _, _ string, _ []byte) (bool, error) {
	return revision%2 == 1, nil
}

// TestAdmitComesBehindWhatWaits: what a message before it will change is not
// refused, and an entity that is busy holds nobody up.
func TestAdmitComesBehindWhatWaits(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(func(d *entity.Type[ledger]) { d.Create.By = []string{"add"} }), pod.Config{})
	defer w.close()
	require.ErrorIs(t, w.h.Admit(bg, "x", touch{"1"}), entity.ErrNotFound)
	w.send("x", add{"0"})
	w.must(w.h.Admit(bg, "x", touch{"1"}))
	w.send("x", unconditional())
	require.ErrorIs(t, w.h.Admit(bg, "x", exactly(w, entity.ETag{Life: 1, Revision: 9})), entity.ErrNotFound, "it will be gone")

	_, err := w.ask("y", add{"0"})
	w.must(err)
	release := w.sys.NewPromise()
	store.Pause = func(ctx context.Context) error { _, err := release.Wait(ctx); return err }
	w.send("y", add{"1"})
	before := w.sys.Now()
	w.must(w.h.Admit(bg, "y", exactly(w, entity.ETag{Life: 1, Revision: 1})))
	require.Equal(t, time.Second, w.sys.Now().Sub(before), "nobody knows yet")
	store.Pause = nil
	release.Complete(nil)
}

// exactly is a message for one revision.
func exactly(w *world, tag entity.ETag) *entity.Message {
	m, err := w.h.Spec().Wrap(touch{"t"})
	w.must(err)
	m.If.Match = []entity.ETag{tag}
	return m
}

// TestAdmitKnowsRepeats: a message that was answered is answered again, whatever
// it is conditional on.
func TestAdmitKnowsRepeats(t *testing.T) {
	for _, durability := range []entity.Durability{entity.Sync(), entity.Async(time.Hour)} {
		w := newWorld(t, 1, persisttest.NewMemory(), ledgers(func(d *entity.Type[ledger]) { d.Durability = durability }), pod.Config{})
		first := func(id string) *entity.Message {
			m, err := w.h.Spec().Wrap(entity.WithID(id, add{"a"}))
			w.must(err)
			m.If.Absent = true
			return m
		}
		_, err := w.ask("x", first("one"))
		w.must(err)
		for range 2 { // in memory, and not
			w.must(w.h.Admit(bg, "x", first("one")))
			require.ErrorIs(t, w.h.Admit(bg, "x", first("two")), entity.ErrStale)
			other, err := w.h.Spec().Wrap(entity.WithID("one", add{"b"}))
			w.must(err)
			if !durability.IsAsync() || w.pods.Active() == 0 { // else the store has no answer yet, and nothing has
				require.ErrorIs(t, w.h.Admit(bg, "x", other), entity.ErrReused)
			}
			other.If.Absent = true
			require.ErrorIs(t, w.h.Admit(bg, "x", other), entity.ErrReused)
			w.send("x", entity.Passivate())
			w.exec.RunFor(time.Second)
			require.Zero(t, w.pods.Active())
		}
		w.close()
	}
}

// TestAdmitOfIDsSaysWhatTheRealWaySays: ids that were used before, for the same
// message or another one, are judged as the entity judges them: within the window
// and behind it, when others have pushed them out, in and out of memory, after the
// entity was deleted and made again, and over restarts.
func TestAdmitOfIDsSaysWhatTheRealWaySays(t *testing.T) {
	said := map[string]int{}
	for name, durability := range map[string]entity.Durability{"sync": entity.Sync(), "async": entity.Async(5 * time.Millisecond)} {
		forSeeds(t, 40, func(t *testing.T, seed uint64) {
			store := persisttest.NewMemory()
			typ := ledgers(func(d *entity.Type[ledger]) {
				d.Durability, d.Create.By = durability, []string{"add"}
				d.Repeats = entity.Window{Count: 3, For: time.Minute}
			})
			open := func() *world { return newWorld(t, seed, store, typ, pod.Config{}) }
			w := open()
			defer func() { w.close() }()
			for range 60 {
				draw := func(n uint64) uint64 { return w.sys.Uint64() % n }
				entityName := fmt.Sprint("n", draw(2))
				switch draw(10) {
				case 0:
					_, _ = w.ask(entityName, unconditional())
				case 1:
					_, _ = w.ask(entityName, entity.Passivate())
				case 2:
					w.exec.RunFor(time.Duration(draw(90)) * time.Second)
				case 3:
					if draw(3) == 0 {
						w.close()
						w = open()
					}
				}
				body := []any{add{"a"}, add{"b"}, touch{"a"}, refuse{"a"}}[draw(4)]
				id, absent, stale := fmt.Sprint("id", draw(5)), draw(6) == 0, draw(6) == 0
				made := func() *entity.Message {
					m, err := w.h.Spec().Wrap(entity.WithID(id, body))
					w.must(err)
					if m.If.Absent = absent; stale {
						m.If.Match = []entity.ETag{{Life: 1, Revision: 99}}
					}
					return m
				}
				active := w.pods.Active()
				says := w.h.Admit(bg, entityName, made())
				require.Equal(t, active, w.pods.Active(), "seed %d", seed)
				_, got := w.ask(entityName, made())
				told := fmt.Sprintf("%s, seed %d: %s %s %T%v absent %t stale %t", name, seed, entityName, id, body, body, absent, stale)
				if says != nil {
					require.EqualError(t, got, says.Error(), told)
					for what, err := range map[string]error{"reused": entity.ErrReused, "stale": entity.ErrStale, "not found": entity.ErrNotFound} {
						if errors.Is(got, err) {
							said[what]++
						}
					}
					continue
				}
				if rejected := (*entity.RejectedError)(nil); !errors.As(got, &rejected) {
					require.NoError(t, got, told)
				}
				said["admitted"]++
			}
		})
	}
	for _, what := range []string{"reused", "stale", "not found", "admitted"} {
		require.True(t, said[what] > 0 || testing.Short(), what)
	}
}

// TestAdmitMeetsDamagedAnswers: an entity whose answers cannot be read takes
// nothing, and one that is in memory already goes on.
func TestAdmitMeetsDamagedAnswers(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.close()
	_, err := w.ask("x", entity.WithID("one", add{"a"}))
	w.must(err)
	store.DamageRow(persist.Row{Kind: "answer", Key: persist.Key{Pod: "ledgers", Name: "x"}, ID: "one"})
	w.must(w.h.Admit(bg, "x", entity.WithID("one", add{"a"})))
	require.ErrorIs(t, w.h.Admit(bg, "x", entity.WithID("one", add{"b"})), entity.ErrReused, "it is in memory")
	_, err = w.ask("x", entity.Passivate())
	w.must(err)
	for _, id := range []string{"one", "two"} {
		require.ErrorIs(t, w.h.Admit(bg, "x", entity.WithID(id, add{"a"})), entity.ErrQuarantined, id)
	}
	_, err = w.ask("x", entity.WithID("two", add{"a"}))
	require.ErrorIs(t, err, entity.ErrQuarantined)
}

// TestAdmitWhereNothingIsTaken: of quarantined entities only what removes them is
// admitted; nothing of pods that end.
func TestAdmitWhereNothingIsTaken(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	_, err := w.ask("x", add{"a"})
	w.must(err)
	_, err = w.ask("x", entity.Passivate())
	w.must(err)
	store.Damage(persist.Key{Pod: "ledgers", Name: "x"})
	for range 2 { // not in memory, and in it
		require.ErrorIs(t, w.h.Admit(bg, "x", add{"b"}), entity.ErrQuarantined)
		w.must(w.h.Admit(bg, "x", unconditional()))
		require.ErrorIs(t, w.h.Admit(bg, "x", entity.Delete(entity.Condition{Where: odds{}})), entity.ErrQuarantined)
		_, _ = w.ask("x", add{"b"})
	}
	require.ErrorIs(t, w.h.Admit(bg, "y", entity.Merge{}), entity.ErrUnknownMessage)
	require.ErrorIs(t, w.h.Admit(bg, "", add{"b"}), entity.ErrName)
	w.close()
	require.ErrorIs(t, w.h.Admit(bg, "y", add{"b"}), pod.ErrStopping)
}
