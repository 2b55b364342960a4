package pod_test

import (
	"context"
	"errors"
	"runtime"
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

func TestManagerOutlivesUnknownMessages(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(async), pod.Config{})
	defer w.kill()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	_, err = w.ask("x", add{"b"})
	w.must(err)
	w.must(w.sys.Send("/user/pods/ledgers", actor.Message{Payload: "hello"}))
	w.exec.RunFor(5 * time.Second)
	if l := w.log("x"); !slices.Equal(l, []string{"a", "b"}) {
		t.Errorf("one unknown message to the manager: acknowledged changes lost: %v", l)
	}
	for range 6 {
		w.must(w.sys.Send("/user/pods/ledgers", actor.Message{Payload: "hello"}))
		w.exec.RunFor(2 * time.Second)
	}
	_, err = w.ask("y", add{"c"})
	require.NoError(t, err, "the pod is dead")
}

type fragile string

func (f fragile) MarshalText() ([]byte, error) {
	if f == "boom" {
		panic("on purpose")
	}
	if f == "exit" {
		runtime.Goexit()
	}
	return []byte(f), nil
}

func (f *fragile) UnmarshalText(b []byte) error { *f = fragile(b); return nil }

type vase struct {
	F fragile `json:"f"`
	N int     `json:"n"`
}

type (
	put   struct{ F string }
	count struct{}
	bring struct{ F fragile }
	fetch struct{ F string }
)

var vases = entity.Type[vase]{Name: "vases", Handlers: entity.Handlers[vase]{
	"put":   entity.On(func(_ *entity.Context, v *vase, m put) error { v.F = fragile(m.F); v.N++; return nil }),
	"count": entity.Reply(func(_ *entity.Context, v *vase, _ count) (int, error) { v.N++; return v.N, nil }),
	"bring": entity.On(func(_ *entity.Context, v *vase, m bring) error { v.F = m.F; return nil }),
	"fetch": entity.On(func(c *entity.Context, v *vase, m fetch) error {
		c.PipeTo(func(context.Context) (any, error) { return bring{fragile(m.F)}, nil })
		return nil
	}),
}}

func TestPanicInEncodingIsTheHandlers(t *testing.T) {
	forSeeds(t, 30, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
		defer w.kill()
		h, err := pod.Start(w.pods, vases)
		w.must(err)
		send := func(msg any) *actor.Promise {
			p := w.sys.NewPromise()
			if err := h.Ref("v").Post(actor.Message{Payload: msg, Reply: p}); err != nil {
				p.Fail(err)
			}
			return p
		}
		_, err = w.wait(send(put{"a"}))
		w.must(err)
		a, b, c := send(count{}), send(put{"boom"}), send(count{})
		_, err = w.wait(a)
		require.NoError(t, err, "seed %d: the turn before the bad one", seed)
		_, err = w.wait(b)
		var failed *entity.HandlerError
		require.ErrorAs(t, err, &failed)
		v, err := w.wait(c)
		require.NoError(t, err, "seed %d: the turn behind the bad one", seed)
		require.Equal(t, 3, v)
	})
}

func TestManyPanicsInEncoding(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
	defer w.kill()
	h, err := pod.Start(w.pods, vases)
	w.must(err)
	ask := func(msg any) (any, error) {
		p := w.sys.NewPromise()
		if err := h.Ref("v").Post(actor.Message{Payload: msg, Reply: p}); err != nil {
			return nil, err
		}
		return w.wait(p)
	}
	_, err = ask(put{"a"})
	w.must(err)
	start := w.sys.Now()
	for range 20 {
		_, err = ask(put{"boom"})
		require.Error(t, err)
	}
	t.Logf("20 failures took %v", w.sys.Now().Sub(start))
	_, err = ask(count{})
	w.must(err)
	ctx, cancel := w.sys.WithTimeout(bg, time.Minute)
	defer cancel()
	require.NoError(t, w.pods.Close(ctx))
}

func TestPanicInAPipedResult(t *testing.T) {
	type wrap struct {
		M map[string]fragile
	}
	typ := vases
	typ.Handlers = entity.Handlers[vase]{
		"wrap": entity.On(func(_ *entity.Context, v *vase, m wrap) error { return nil }),
		"fetch": entity.On(func(c *entity.Context, v *vase, m fetch) error {
			v.N++
			c.PipeTo(func(context.Context) (any, error) { return wrap{map[string]fragile{"a": fragile(m.F)}}, nil })
			return nil
		}),
	}
	w := newWorld(t, 1, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
	defer w.close()
	h, err := pod.Start(w.pods, typ)
	w.must(err)
	require.NotPanics(t, func() {
		_, _ = h.Ask(bg, "v", fetch{"boom"})
		w.exec.RunFor(time.Second)
	}, "on the real executor this ends the process")
}

func TestPanicInAWatcher(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
	defer w.kill()
	w.pods.OnChange(func(c persist.Change) {
		if c.Revision == 2 {
			panic("on purpose")
		}
	})
	var ps []*actor.Promise
	for _, id := range ids("", 6) {
		ps = append(ps, w.send("x", add{id}))
	}
	for i, p := range ps {
		_, err := w.wait(p)
		require.NoError(t, err, "message %d", i)
	}
}

func TestInitThatLeaves(t *testing.T) {
	sys := actor.NewSystem("t", actor.Config{AskTimeout: 2 * time.Second})
	defer func() { require.NoError(t, sys.Stop(bg)) }()
	pods, err := pod.Open(sys, persisttest.NewMemory(), pod.Config{})
	require.NoError(t, err)
	h, err := pod.Start(pods, ledgers(func(d *entity.Type[ledger]) {
		d.Init = func(context.Context, string) (ledger, error) { runtime.Goexit(); return ledger{}, nil }
	}))
	require.NoError(t, err)
	_, err = h.Ask(bg, "x", add{"a"})
	if errors.Is(err, actor.ErrTimeout) {
		t.Errorf("Init that ends its goroutine: %v", err)
	}
	ctx, cancel := context.WithTimeout(bg, 2*time.Second)
	defer cancel()
	require.NoError(t, pods.Close(ctx))
}

type exit struct{}

func TestHandlerThatLeavesAmongOthers(t *testing.T) {
	sys := actor.NewSystem("t", actor.Config{AskTimeout: 2 * time.Second})
	defer func() { require.NoError(t, sys.Stop(bg)) }()
	store := persisttest.NewCrashStore()
	store.Pause = func(ctx context.Context) error { return sys.Sleep(ctx, 50*time.Millisecond) }
	pods, err := pod.Open(sys, store, pod.Config{})
	require.NoError(t, err)
	h, err := pod.Start(pods, ledgers(func(d *entity.Type[ledger]) {
		d.Handlers["exit"] = entity.On(func(c *entity.Context, l *ledger, m exit) error { runtime.Goexit(); return nil })
	}))
	require.NoError(t, err)
	_, err = h.Ask(bg, "x", add{"a"})
	require.NoError(t, err)
	send := func(msg any) *actor.Promise {
		p := sys.NewPromise()
		require.NoError(t, h.Ref("x").Post(actor.Message{Payload: msg, Reply: p}))
		return p
	}
	a, b, c := send(add{"b"}), send(exit{}), send(add{"c"})
	ctx, cancel := context.WithTimeout(bg, 3*time.Second)
	defer cancel()
	_, err = b.Wait(ctx)
	t.Logf("exit: %v", err)
	_, err = a.Wait(ctx)
	if err != nil {
		require.ErrorIs(t, err, persist.ErrUnknown, "the turn before")
	}
	ctx2, cancel2 := context.WithTimeout(bg, 3*time.Second)
	defer cancel2()
	if _, err = c.Wait(ctx2); err != nil {
		t.Errorf("the turn behind: %v", err)
	}
	ctx, cancel = context.WithTimeout(bg, 2*time.Second)
	defer cancel()
	require.NoError(t, pods.Close(ctx))
}

func TestPanicInAnUpgrade(t *testing.T) {
	mem := persisttest.NewMemory()
	w := newWorld(t, 1, mem, ledgers(nil), pod.Config{})
	for _, n := range []string{"a", "b"} {
		_, err := w.ask(n, add{"1"})
		w.must(err)
	}
	w.close()
	w = newWorld(t, 2, mem, ledgers(func(d *entity.Type[ledger]) {
		d.Version = 1
		d.Upgrades = panickyUpgrades()
	}), pod.Config{})
	defer w.close()
	require.NotPanics(t, func() { _, _ = w.h.Get(bg, "a") })
	require.NotPanics(t, func() { _, _ = w.h.Pod.List(bg, persist.ListOptions{}) })
	_, err := w.ask("a", peek{})
	require.ErrorIs(t, err, entity.ErrQuarantined)
}

func panickyUpgrades() snapshot.Upgrades {
	return snapshot.Upgrades{0: func(map[string]any) error { panic("on purpose") }}
}

func TestFailingUpgradeQuarantines(t *testing.T) {
	mem := persisttest.NewMemory()
	w := newWorld(t, 1, mem, ledgers(nil), pod.Config{})
	for _, n := range []string{"a", "b"} {
		_, err := w.ask(n, add{n})
		w.must(err)
	}
	w.close()
	w = newWorld(t, 2, mem, ledgers(func(d *entity.Type[ledger]) {
		d.Version = 1
		d.Upgrades = snapshot.Upgrades{0: func(s map[string]any) error {
			if l, _ := s["log"].([]any); len(l) > 0 && l[0] == "a" {
				return errors.New("on purpose")
			}
			return nil
		}}
	}), pod.Config{})
	defer w.close()
	_, err := w.ask("a", peek{})
	if !errors.Is(err, entity.ErrQuarantined) {
		t.Errorf("not quarantined: %v", err)
	}
	_, err = w.h.Pod.List(bg, persist.ListOptions{})
	if err != nil {
		t.Errorf("one bad record breaks the listing: %v", err)
	}
	_, err = w.ask("a", unconditional())
	if err != nil {
		t.Errorf("cannot be deleted: %v", err)
	}
	w.exec.RunFor(time.Second)
	require.Empty(t, w.pods.Quarantined())
}
