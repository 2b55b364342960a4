package pod_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// ledger is an entity that remembers every message it accepted.
type ledger struct {
	Log []string       `json:"log"`
	By  map[string]int `json:"by"`
}

type (
	add    struct{ ID string }       // accepted, creates
	refuse struct{ ID string }       // changes the state, then rejects
	crash  struct{ ID string }       // changes the state, then panics
	spoil  struct{ ID string }       // changes the state, then fails
	touch  struct{ ID string }       // accepted, changes nothing
	peek   struct{}                  // query: the log
	shares struct{ ID string }       // reply: a map of the state itself
	tally  struct{ Name, ID string } // accepted, and told on to another ledger
	set    struct{ V int }           // the state is this number alone
	piped  struct{ ID string }       // what work that was started brings
)

func (l *ledger) accept(id string) {
	l.Log = append(l.Log, id)
	if l.By == nil {
		l.By = map[string]int{}
	}
	l.By[id]++
}

func ledgers(edit func(*entity.Type[ledger])) entity.Type[ledger] {
	t := entity.Type[ledger]{
		Name: "ledgers",
		Handlers: entity.Handlers[ledger]{
			"add": entity.On(func(_ *entity.Context, l *ledger, m add) error { l.accept(m.ID); return nil }),
			"refuse": entity.On(func(_ *entity.Context, l *ledger, m refuse) error {
				l.accept(m.ID)
				return entity.Rejectf("not %s", m.ID)
			}),
			"crash": entity.On(func(_ *entity.Context, l *ledger, m crash) error { l.accept(m.ID); panic("on purpose") }),
			"spoil": entity.On(func(_ *entity.Context, l *ledger, m spoil) error {
				l.accept(m.ID)
				return errors.New("on purpose")
			}),
			"touch": entity.On(func(*entity.Context, *ledger, touch) error { return nil }),
			"peek":  entity.Query(func(_ *entity.Context, l *ledger, _ peek) ([]string, error) { return l.Log, nil }),
			"shares": entity.Reply(func(_ *entity.Context, l *ledger, m shares) (map[string]int, error) {
				l.accept(m.ID)
				return l.By, nil
			}),
			"tally": entity.On(func(c *entity.Context, l *ledger, m tally) error {
				l.accept(m.ID)
				c.Send("ledgers", m.Name, add{m.ID})
				if m.ID == "fail" {
					return errors.New("after sending")
				}
				return nil
			}),
			"set":   entity.On(func(_ *entity.Context, l *ledger, m set) error { l.By = map[string]int{"v": m.V}; return nil }),
			"piped": entity.On(func(_ *entity.Context, l *ledger, m piped) error { l.accept(m.ID); return nil }),
		},
	}
	if edit != nil {
		edit(&t)
	}
	return t
}

// world is pods on the seeded executor.
type world struct {
	t     testing.TB
	seed  uint64
	exec  *actortest.Seeded
	sys   *actor.System
	store persist.PersistenceService
	pods  *pod.Pods
	h     *pod.Handle[ledger]
}

func newWorld(t testing.TB, seed uint64, store persist.PersistenceService, typ entity.Type[ledger], cfg pod.Config) *world {
	w := emptyWorld(t, seed, store, cfg)
	var err error
	w.h, err = pod.Start(w.pods, typ)
	w.must(err)
	return w
}

// emptyWorld has no pods yet. Commits of stores that can pause take up to two
// milliseconds.
func emptyWorld(t testing.TB, seed uint64, store persist.PersistenceService, cfg pod.Config) *world {
	w := &world{t: t, seed: seed, exec: actortest.NewSeeded(seed), store: store}
	w.sys = actor.NewSystem("test", actor.Config{Executor: w.exec})
	pause := func(ctx context.Context) error {
		return w.sys.Sleep(ctx, time.Duration(w.sys.Uint64()%3)*time.Millisecond)
	}
	switch s := store.(type) {
	case *persisttest.CrashStore:
		s.Pause = pause
	case *persisttest.FaultStore:
		s.Pause = pause
	}
	var err error
	w.pods, err = pod.Open(w.sys, store, cfg)
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	require.NoError(w.t, err, "seed %d", w.seed)
}

// close ends the world in order.
func (w *world) close() {
	w.t.Helper()
	ctx, cancel := w.sys.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w.must(w.pods.Close(ctx))
	w.must(w.sys.Stop(ctx))
	w.exec.Close()
}

// kill ends the world as a crash does.
func (w *world) kill() { w.exec.Close() }

// send posts a message and returns its promise.
func (w *world) send(name string, msg any) *actor.Promise { return w.sendTo(w.h.Ref(name), msg) }

func (w *world) sendTo(to entity.Ref, msg any) *actor.Promise {
	p := w.sys.NewPromise()
	if err := to.Post(actor.Message{Payload: msg, Reply: p}); err != nil {
		p.Fail(err)
	}
	return p
}

func (w *world) wait(p *actor.Promise) (any, error) {
	ctx, cancel := w.sys.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return p.Wait(ctx)
}

func (w *world) ask(name string, msg any) (any, error) { return w.wait(w.send(name, msg)) }

func (w *world) log(name string) []string {
	w.t.Helper()
	v, err := w.h.Get(context.Background(), name)
	w.must(err)
	return v.State.Log
}

// ids returns prefix0 ... prefix(n-1).
func ids(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i)
	}
	return out
}

// only returns the elements of log that are in want, in log's order.
func only(log, want []string) []string {
	return slices.DeleteFunc(slices.Clone(log), func(s string) bool { return !slices.Contains(want, s) })
}

// forSeeds runs a test under n seeds and says how to run a failing one alone.
func forSeeds(t *testing.T, n int, f func(t *testing.T, seed uint64)) {
	t.Helper()
	n = max(n/raceDivisor, 1)
	if testing.Short() {
		n = max(n/10, 1)
	}
	for seed := range uint64(n) {
		f(t, seed)
		if t.Failed() {
			t.Fatalf("failed with seed %d", seed)
		}
	}
}
