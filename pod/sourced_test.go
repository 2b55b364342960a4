package pod_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// purse is an event-sourced account.
type purse struct {
	Owner   string         `json:"owner"`
	Balance int            `json:"balance"`
	Log     []string       `json:"log"`
	By      map[string]int `json:"by"`
}

type (
	fill struct { // raises as many events as it has IDs
		IDs    []string
		Amount int
	}
	take struct {
		ID string
		N  int
	}
	cheat   struct{}            // changes the state itself
	fumble  struct{ ID string } // raises, then fails
	nothing struct{}            // raises nothing
	pay     struct{ ID, To string }
	balance struct{}

	filled struct {
		ID     string `json:"id"`
		Amount int    `json:"amount"`
	}
	emptied struct {
		ID string `json:"id"`
		N  int    `json:"n"`
	}
)

func purses(edit func(*entity.Sourced[purse])) entity.Sourced[purse] {
	t := entity.Sourced[purse]{
		Name: "purses",
		New:  func(name string) purse { return purse{Owner: name} },
		Commands: entity.Handlers[purse]{
			"put": entity.Reply(func(c *entity.Context, p *purse, m fill) (int, error) {
				for _, id := range m.IDs {
					c.Raise(filled{id, m.Amount})
				}
				return p.Balance, nil
			}),
			"take": entity.On(func(c *entity.Context, p *purse, m take) error {
				if p.Balance < m.N {
					return entity.Rejectf("it has %d", p.Balance)
				}
				c.Raise(emptied(m))
				return nil
			}),
			"cheat": entity.On(func(_ *entity.Context, p *purse, _ cheat) error { p.Balance += 1000; return nil }),
			"fumble": entity.On(func(c *entity.Context, _ *purse, m fumble) error {
				c.Raise(filled{m.ID, 1})
				return errors.New("on purpose")
			}),
			"nothing": entity.On(func(*entity.Context, *purse, nothing) error { return nil }),
			"pay": entity.On(func(c *entity.Context, _ *purse, m pay) error {
				c.Raise(emptied{m.ID, 1})
				c.SendOnce("purses", m.To, fill{[]string{m.ID}, 1})
				return nil
			}),
			"balance": entity.Query(func(_ *entity.Context, p *purse, _ balance) (int, error) { return p.Balance, nil }),
		},
		Events: entity.Events[purse]{
			"filled": entity.Apply(func(p *purse, e filled) {
				p.Balance += e.Amount
				p.note(e.ID)
			}),
			"emptied": entity.Apply(func(p *purse, e emptied) { p.Balance -= e.N; p.note(e.ID) }),
		},
		SnapshotEvery: 5,
	}
	if edit != nil {
		edit(&t)
	}
	return t
}

func (p *purse) note(id string) {
	p.Log = append(p.Log, id)
	if p.By == nil {
		p.By = map[string]int{}
	}
	p.By[id]++
}

// till is a world of purses.
type till struct {
	*world
	p *pod.Handle[purse]
}

func newTill(t testing.TB, seed uint64, store persist.PersistenceService, typ entity.Sourced[purse], cfg pod.Config) *till {
	x := &till{world: emptyWorld(t, seed, store, cfg)}
	var err error
	x.p, err = pod.Start(x.pods, typ)
	x.must(err)
	return x
}

func (x *till) send(name string, msg any) *actor.Promise { return x.sendTo(x.p.Ref(name), msg) }

func (x *till) ask(name string, msg any) (any, error) { return x.wait(x.send(name, msg)) }

func (x *till) get(name string) pod.TypedView[purse] {
	x.t.Helper()
	v, err := x.p.Get(context.Background(), name)
	x.must(err)
	return v
}

// TestSourcedCommands: what events make is the state; what raised nothing
// changed nothing, and a handler cannot go round its events.
func TestSourcedCommands(t *testing.T) {
	store := persisttest.NewMemory()
	x := newTill(t, 1, store, purses(nil), pod.Config{})
	defer x.close()

	_, err := x.ask("a", nothing{})
	x.must(err)
	_, err = x.p.Get(t.Context(), "a")
	require.ErrorIs(t, err, entity.ErrNotFound, "no event, no entity")
	_, err = x.ask("a", balance{})
	require.ErrorIs(t, err, entity.ErrNotFound)

	v, err := x.ask("a", fill{ids("i", 3), 7})
	x.must(err)
	require.Equal(t, 21, v, "the handler sees what it has raised")
	got := x.get("a")
	require.Equal(t, uint64(3), got.Revision, "each event is a revision")
	require.Equal(t, purse{Owner: "a", Balance: 21, Log: ids("i", 3), By: map[string]int{"i0": 1, "i1": 1, "i2": 1}}, got.State)

	for _, m := range []any{cheat{}, fumble{"f"}, take{"t", 1000}} {
		_, err = x.ask("a", m)
		require.Error(t, err)
	}
	_, err = x.ask("a", cheat{})
	require.ErrorContains(t, err, "Raise")
	ack, err := x.ask("a", nothing{})
	x.must(err)
	require.Equal(t, uint64(3), ack.(entity.Ack).Revision)
	require.Equal(t, got, x.get("a"))
	v, err = x.ask("a", balance{})
	x.must(err)
	require.Equal(t, 21, v)

	_, err = x.ask("a", take{"t", 1})
	x.must(err)
	changes, err := store.Changes(t.Context(), persist.Key{Pod: "purses", Name: "a"}, 0, 0, 100)
	x.must(err)
	var kinds []string
	for _, c := range changes {
		require.True(t, c.Event)
		kinds = append(kinds, fmt.Sprint(c.Revision, c.Type))
	}
	require.Equal(t, []string{"1filled", "2filled", "3filled", "4emptied"}, kinds)

	_, err = x.ask("a", entity.Delete(entity.Condition{}))
	x.must(err)
	_, err = x.ask("a", fill{[]string{"new"}, 1})
	x.must(err)
	require.Equal(t, []string{"new"}, x.get("a").State.Log, "a new life starts anew")
}

// TestSourcedRecovery: a state is its snapshot and exactly the events behind
// it, whatever is left of record and snapshot.
func TestSourcedRecovery(t *testing.T) {
	key := persist.Key{Pod: "purses", Name: "a"}
	for name, spoil := range map[string]func(t *testing.T, s *persisttest.Memory){
		"nothing":        func(*testing.T, *persisttest.Memory) {},
		"no record":      func(t *testing.T, s *persisttest.Memory) { forceAway(t, s, key) },
		"corrupt record": func(t *testing.T, s *persisttest.Memory) { s.Damage(key) },
		"corrupt snapshot": func(t *testing.T, s *persisttest.Memory) {
			s.DamageRow(persist.Row{Kind: "snapshot", Key: key, ID: "state"})
		},
		"no snapshot": func(t *testing.T, s *persisttest.Memory) {
			r, err := s.Load(t.Context(), key)
			require.NoError(t, err)
			o, err := s.Commit(t.Context(), []persist.Unit{{Key: key, Life: r.Life, Expect: r.Revision,
				Rows: []persist.RowOp{{Kind: "snapshot", ID: "state", Delete: true}}}})
			require.NoError(t, err)
			require.NoError(t, o[0].Err)
		},
	} {
		for _, n := range []int{1, 4, 5, 6, 17, 600} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				store := persisttest.NewMemory()
				x := newTill(t, 1, store, purses(nil), pod.Config{})
				for i := range n {
					_, err := x.ask("a", fill{[]string{fmt.Sprint("i", i)}, 1})
					x.must(err)
				}
				want := x.get("a")
				x.kill()
				spoil(t, store)

				x = newTill(t, 2, store, purses(nil), pod.Config{})
				defer x.close()
				require.Equal(t, want, x.get("a"), "read without waking it")
				page, _, err := x.p.List(t.Context(), persist.ListOptions{})
				x.must(err)
				if name != "no record" { // a listing shows records
					require.Len(t, page, 1)
					require.Equal(t, want, page[0])
				}
				v, err := x.ask("a", fill{[]string{"more"}, 1})
				x.must(err)
				require.Equal(t, n+1, v)
				got := x.get("a")
				require.Equal(t, want.Life, got.Life)
				require.Equal(t, want.Revision+1, got.Revision)
				require.Empty(t, x.pods.Quarantined())
			})
		}
	}
}

// TestSourcedMissingEvent: a journal with a gap is no state.
func TestSourcedMissingEvent(t *testing.T) {
	key := persist.Key{Pod: "purses", Name: "a"}
	store := persisttest.NewMemory()
	x := newTill(t, 1, store, purses(nil), pod.Config{})
	_, err := x.ask("a", fill{ids("i", 3), 1})
	x.must(err)
	x.kill()
	changes, err := store.Changes(t.Context(), key, 0, 0, 10)
	require.NoError(t, err)
	store.DamageChange(changes[1])
	x = newTill(t, 2, store, purses(nil), pod.Config{})
	defer x.close()
	_, err = x.p.Get(t.Context(), "a")
	require.ErrorIs(t, err, entity.ErrQuarantined)
	_, err = x.ask("a", fill{ids("j", 1), 1})
	require.ErrorIs(t, err, entity.ErrQuarantined)
	require.Len(t, x.pods.Quarantined(), 1)
	_, err = x.ask("a", entity.Retry())
	require.ErrorIs(t, err, entity.ErrQuarantined)
	_, err = x.ask("a", entity.Delete(entity.Condition{}))
	x.must(err)
	_, err = x.ask("a", fill{ids("j", 1), 1})
	x.must(err)
}

// TestSnapshotSparesEvents: a recovery reads the events behind the snapshot
// alone; a rebuild reads all.
func TestSnapshotSparesEvents(t *testing.T) {
	key := persist.Key{Pod: "purses", Name: "a"}
	store := persisttest.NewMemory()
	x := newTill(t, 1, store, purses(nil), pod.Config{})
	for i := range 7 { // a snapshot at 5, or 6 since the first commit cannot have one
		_, err := x.ask("a", fill{[]string{fmt.Sprint("i", i)}, 1})
		x.must(err)
	}
	x.kill()
	changes, err := store.Changes(t.Context(), key, 0, 0, 10)
	require.NoError(t, err)
	store.DamageChange(changes[2])
	x = newTill(t, 2, store, purses(nil), pod.Config{})
	defer x.close()
	require.Equal(t, 7, x.get("a").State.Balance)
	_, err = x.ask("a", fill{ids("j", 1), 1})
	x.must(err)
	_, err = x.ask("a", entity.Rebuild())
	require.ErrorIs(t, err, entity.ErrQuarantined)
}

// forceAway removes a record as a store may lose it: without a word in the
// journal.
func forceAway(t *testing.T, s *persisttest.Memory, key persist.Key) {
	o, err := s.Commit(t.Context(), []persist.Unit{{Key: key, Delete: true, Force: true}})
	require.NoError(t, err)
	require.NoError(t, o[0].Err)
}

// TestSourcedEvolves: events and snapshots of older versions are carried
// forward, and newer ones are refused.
func TestSourcedEvolves(t *testing.T) {
	store := persisttest.NewMemory()
	x := newTill(t, 1, store, purses(nil), pod.Config{})
	_, err := x.ask("a", fill{ids("i", 12), 2})
	x.must(err)
	x.close()

	type filled2 struct {
		ID    string `json:"id"`
		Cents int    `json:"cents"`
	}
	next := purses(func(t *entity.Sourced[purse]) {
		t.Version = 1 // its snapshots are made again from the events, in cents
		t.Events["filled"] = entity.Apply(func(p *purse, e filled2) { p.Balance += e.Cents; p.note(e.ID) }).
			At(1, snapshot.Upgrades{0: func(s map[string]any) error {
				s["cents"] = s["amount"].(int64) * 100
				return nil
			}})
		t.Commands["put"] = entity.On(func(c *entity.Context, _ *purse, m fill) error {
			for _, id := range m.IDs {
				c.Raise(filled2{id, m.Amount * 100})
			}
			return nil
		})
	})
	x = newTill(t, 2, store, next, pod.Config{})
	require.Equal(t, 2400, x.get("a").State.Balance)
	_, err = x.ask("a", fill{ids("j", 1), 3})
	x.must(err)
	require.Equal(t, 2700, x.get("a").State.Balance)
	x.close()

	x = newTill(t, 3, store, purses(nil), pod.Config{}) // the older program
	defer x.close()
	_, err = x.p.Get(t.Context(), "a")
	require.ErrorIs(t, err, entity.ErrQuarantined)
	require.ErrorIs(t, err, snapshot.ErrNewer)
}

// TestRebuild: a state that was folded by an Apply that was wrong is folded
// anew from all events.
func TestRebuild(t *testing.T) {
	store := persisttest.NewMemory()
	x := newTill(t, 1, store, purses(func(t *entity.Sourced[purse]) {
		t.Events["filled"] = entity.Apply(func(p *purse, e filled) { p.Balance += 2 * e.Amount })
	}), pod.Config{})
	_, err := x.ask("a", fill{ids("i", 7), 1})
	x.must(err)
	x.close()

	x = newTill(t, 2, store, purses(nil), pod.Config{})
	defer x.close()
	require.Equal(t, 14, x.get("a").State.Balance, "as its snapshot says")
	ack, err := x.ask("a", entity.Rebuild())
	x.must(err)
	require.Equal(t, uint64(7), ack.(entity.Ack).Revision)
	require.Equal(t, 7, x.get("a").State.Balance)
	_, err = x.ask("a", entity.Passivate())
	x.must(err)
	require.Equal(t, 7, x.get("a").State.Balance)
	_, err = x.ask("b", entity.Rebuild())
	require.ErrorIs(t, err, entity.ErrNotFound)
}

// TestSourcedOverCrashes: random commands, snapshots by count and on leaving,
// power cuts: the state is the fold of the acknowledged events, of others only
// whole commands follow; payments between purses conserve what is there.
func TestSourcedOverCrashes(t *testing.T) {
	forSeeds(t, 400, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 3))
		store := persisttest.NewCrashStore()
		typ := purses(func(t *entity.Sourced[purse]) {
			t.SnapshotEvery = 1 + rng.IntN(8)
			t.SnapshotAfter = time.Duration(rng.IntN(3)) * 10 * time.Millisecond
		})
		cfg := pod.Config{IdleAfter: 15 * time.Millisecond}
		x := newTill(t, seed, store, typ, cfg)
		acked, sent := []string{}, 0
		for round := range 5 {
			type under struct {
				id    string
				reply *actor.Promise
			}
			var asked []under
			for i := range 12 {
				id := fmt.Sprint("p", round, ".", i)
				switch rng.IntN(4) {
				case 0:
					x.send("b", fumble{id})
				case 1:
					x.exec.RunFor(time.Duration(rng.IntN(40)) * time.Millisecond)
				default:
					asked = append(asked, under{id, x.send("a", pay{id, "b"})})
					sent++
				}
			}
			for range rng.IntN(150) {
				x.exec.Step()
			}
			for _, u := range asked {
				if u.reply.Done() {
					if _, err := x.wait(u.reply); err == nil {
						acked = append(acked, u.id)
					}
				}
			}
			store = store.Crash(rng.Uint64())
			x.kill()
			x = newTill(t, seed*10+uint64(round)+1, store, typ, cfg)
		}
		x.exec.RunFor(10 * time.Second)
		if sent == 0 || len(acked) == 0 {
			x.close()
			return
		}
		a, b := x.get("a").State, x.get("b").State
		require.Zero(t, a.Balance+b.Balance, "seed %d", seed)
		require.Equal(t, a.Log, b.Log, "seed %d: each payment arrived once, in order", seed)
		require.Equal(t, acked, only(a.Log, acked), "seed %d", seed)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(a.Log))), len(a.Log), "seed %d: none twice", seed)
		x.close()
	})
}

// TestSourcedDefinitions: what cannot work is refused at the start.
func TestSourcedDefinitions(t *testing.T) {
	for want, edit := range map[string]func(*entity.Sourced[purse]){
		"is empty":         func(t *entity.Sourced[purse]) { t.Events["none"] = entity.Event[purse]{} },
		"the same Go type": func(t *entity.Sourced[purse]) { t.Events["also"] = t.Events["filled"] },
		"cannot be the name of an event": func(t *entity.Sourced[purse]) {
			t.Events["deleted"] = entity.Apply(func(*purse, struct{ A int }) {})
		},
		"event \"filled\": the upgrade from schema version 1": func(t *entity.Sourced[purse]) {
			t.Events["filled"] = t.Events["filled"].At(1, snapshot.Upgrades{1: nil})
		},
		"Upgrades of purses: the upgrade from schema version 0": func(t *entity.Sourced[purse]) { t.Upgrades = snapshot.Upgrades{0: nil} },
		"event \"odd\"": func(t *entity.Sourced[purse]) { t.Events["odd"] = entity.Apply(func(*purse, struct{ f func() }) {}) },
	} {
		_, err := purses(edit).Spec()
		require.ErrorIs(t, err, entity.ErrDefinition)
		require.ErrorContains(t, err, want)
	}
}
