package patterns_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

// The messages that are published.
type (
	warm struct{ n int }
	cold struct{ n int }
)

func (w warm) String() string { return fmt.Sprint("warm ", w.n) }

func TestPubSubByType(t *testing.T) {
	w := oneWorld(t)
	bus := w.spawn("bus", patterns.PubSub(patterns.PubSubConfig{}))
	a, b, c, d := w.recorder("a"), w.recorder("b"), w.recorder("c"), w.recorder("d")
	bus.TellFrom(patterns.SubscribeTo[warm](), a.ref)
	bus.TellFrom(patterns.SubscribeTo[warm](), a.ref) // once is enough
	bus.TellFrom(patterns.SubscribeTo[fmt.Stringer](), a.ref)
	require.Nil(t, w.answer(bus, patterns.Subscribe{Type: reflect.TypeFor[cold](), Ref: b.ref}))
	bus.TellFrom(patterns.SubscribeTo[fmt.Stringer](), c.ref)
	bus.TellFrom(patterns.Subscribe{}, d.ref)
	publisher := w.recorder("publisher")
	bus.TellFrom(warm{1}, publisher.ref)
	require.Equal(t, patterns.Published{Told: 2}, w.answer(bus, cold{2}))
	require.Equal(t, patterns.Published{Told: 1}, w.answer(bus, nil))
	w.exec.Run()
	require.Equal(t, []warm{{1}}, of[warm](a))
	require.Equal(t, []cold{{2}}, of[cold](b))
	require.Equal(t, []warm{{1}}, of[warm](c))
	require.Len(t, a.got, 1)
	require.Len(t, b.got, 1)
	require.Len(t, c.got, 1)
	require.Len(t, d.got, 3)
	require.Same(t, publisher.ref, a.got[0].Sender, "the sender is kept")
	require.Nil(t, b.got[0].Sender)
	require.Nil(t, b.got[0].Reply, "an ask is the bus's to answer")

	bus.TellFrom(patterns.UnsubscribeFrom[warm](), a.ref)
	require.Equal(t, patterns.Published{Told: 3}, w.answer(bus, warm{3}), "by the interface still")
	bus.TellFrom(patterns.UnsubscribeFrom[fmt.Stringer](), a.ref)
	bus.TellFrom(patterns.Unsubscribe{}, d.ref)
	require.Equal(t, patterns.Published{Told: 1}, w.answer(bus, warm{4}))
	bus.TellFrom(patterns.UnsubscribeFrom[cold](), publisher.ref) // never was one
	require.Equal(t, patterns.Published{Told: 1}, w.answer(bus, cold{4}))
	bus.TellFrom(patterns.SubscribeTo[cold](), a.ref)
	require.Equal(t, patterns.Published{Told: 2}, w.answer(bus, cold{5}), "from now on")
	bus.TellFrom(patterns.SubscribeTo[warm](), a.ref)
	require.Equal(t, patterns.Published{Told: 2}, w.answer(bus, warm{5}))
	bus.TellFrom(patterns.UnsubscribeFrom[warm](), a.ref)
	require.Equal(t, patterns.Published{Told: 1}, w.answer(bus, warm{6}), "no more, but of the other type")
	require.Equal(t, patterns.Published{Told: 2}, w.answer(bus, cold{6}))
	require.Empty(t, w.dead)

	who := w.ask(bus, patterns.SubscribeTo[warm]())
	w.exec.Run()
	require.ErrorIs(t, who.err, actor.ErrInvalid)
	who = w.ask(bus, patterns.Subscribe{Ref: bus})
	w.exec.Run()
	require.ErrorIs(t, who.err, actor.ErrInvalid, "or messages would go round for ever")
	require.Equal(t, patterns.Published{Told: 1}, w.answer(bus, warm{7}))
}

func TestPubSubForgetsSubscribersThatStop(t *testing.T) {
	w := oneWorld(t)
	bus := w.spawn("bus", patterns.PubSub(patterns.PubSubConfig{}))
	a, b := w.recorder("a"), w.recorder("b")
	for _, r := range []*recorder{a, b} {
		bus.TellFrom(patterns.SubscribeTo[warm](), r.ref)
	}
	w.exec.Run()
	a.ref.Stop()
	w.exec.Run()
	require.Equal(t, patterns.Published{Told: 1}, w.answer(bus, warm{1}))
	// One that had stopped before it was subscribed.
	bus.Tell(patterns.Subscribe{Ref: a.ref})
	w.exec.Run()
	require.Equal(t, patterns.Published{Told: 1}, w.answer(bus, warm{2}))
	require.Empty(t, w.dead)
}

func TestPubSubWaitsForNoSlowSubscriber(t *testing.T) {
	w := oneWorld(t)
	bus := w.spawn("bus", patterns.PubSub(patterns.PubSubConfig{Backlog: 5}))
	slow := func(name string, m actor.Mailbox) *actor.Ref {
		p := patterns.Null()
		p.Held, p.Mailbox = true, m
		r := w.spawn(name, p)
		bus.TellFrom(patterns.SubscribeTo[warm](), r)
		return r
	}
	unbounded := slow("unbounded", actor.Mailbox{})
	full := slow("full", actor.Mailbox{Capacity: 2, Policy: actor.Fail})
	blocks := slow("blocks", actor.Mailbox{Capacity: 3, Policy: actor.Block})
	quick := w.recorder("quick")
	bus.TellFrom(patterns.SubscribeTo[warm](), quick.ref)
	for n := range 10 {
		w.answer(bus, warm{n})
		w.exec.Run()
	}
	require.Len(t, quick.got, 10)
	require.Equal(t, 5, unbounded.MailboxLen())
	require.Equal(t, 2, full.MailboxLen())
	require.Equal(t, 3, blocks.MailboxLen())
	missed := map[string]int{}
	for _, z := range deadOf[warm](w) {
		require.ErrorIs(t, z.Reason, actor.ErrMailboxFull)
		missed[z.To]++
	}
	require.Equal(t, map[string]int{"/user/unbounded": 5, "/user/full": 8, "/user/blocks": 7}, missed)
	require.Equal(t, patterns.Published{Told: 1, Missed: 3}, w.answer(bus, warm{10}))
}

// Subscribers come, go and stop while others publish: each gets, in order and
// once, what was published while it was subscribed, and nothing else.
func TestPubSubUnderSeeds(t *testing.T) {
	underSeeds(t, func(w *world) {
		bus := w.spawn("bus", patterns.PubSub(patterns.PubSubConfig{}))
		publishers := []*recorder{w.recorder("p"), w.recorder("q")}
		steady, picky := w.recorder("steady"), w.recorder("picky")
		w.answer(bus, patterns.Subscribe{Ref: steady.ref})
		w.answer(bus, patterns.Subscribe{Ref: picky.ref, Type: reflect.TypeFor[warm]()})
		var fickle []*recorder
		for i := range 4 {
			r := w.recorder(fmt.Sprint("fickle-", i))
			fickle = append(fickle, r)
			for range 3 {
				w.later(time.Second, func() { bus.TellFrom(patterns.SubscribeTo[warm](), r.ref) })
				w.later(time.Second, func() { bus.TellFrom(patterns.UnsubscribeFrom[warm](), r.ref) })
			}
			if w.IntN(2) == 0 {
				w.later(time.Second, r.ref.Stop)
			}
		}
		n := 0
		for range 40 {
			p := publishers[w.IntN(2)].ref
			w.later(time.Second, func() {
				n++
				if w.IntN(3) == 0 {
					bus.TellFrom(cold{n}, p)
				} else {
					bus.TellFrom(warm{n}, p)
				}
			})
		}
		w.exec.Run()
		require.Len(w.t, steady.got, 40)
		require.Equal(w.t, of[warm](steady), of[warm](picky))
		require.Empty(w.t, of[cold](picky))
		for _, r := range append(fickle, steady) {
			last := map[*actor.Ref]int{}
			for _, m := range r.got {
				at, ok := m.Payload.(warm)
				if !ok {
					require.Same(w.t, steady, r)
					at.n = m.Payload.(cold).n
				}
				require.NotNil(w.t, m.Sender)
				require.Greater(w.t, at.n, last[m.Sender])
				last[m.Sender] = at.n
			}
		}
		// Whoever has stopped is no subscriber.
		alive := 2
		for _, r := range fickle {
			if !r.ref.Stopped() {
				alive++
			}
		}
		require.LessOrEqual(w.t, w.answer(bus, warm{n + 1}).(patterns.Published).Told, alive)
	})
}
