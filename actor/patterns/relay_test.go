package patterns_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

// letter is a message with a key.
type letter struct {
	key string
	n   int
}

func (l letter) HashKey() string { return l.key }

// timed is an actor that keeps when letters came, and answers asks.
type timed struct {
	ref  *actor.Ref
	got  []actor.Message
	when []time.Time
}

func (w *world) timed(name string) *timed {
	r := &timed{}
	r.ref = w.spawn(name, actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		r.got = append(r.got, ctx.Message())
		r.when = append(r.when, ctx.Now())
		if ctx.Message().Reply != nil {
			ctx.Respond(msg)
		}
		return nil
	}))
	return r
}

func (r *timed) numbers(key string) (all []int) {
	for _, m := range r.got {
		if l := m.Payload.(letter); l.key == key {
			all = append(all, l.n)
		}
	}
	return all
}

func TestProxyPass(t *testing.T) {
	w := oneWorld(t)
	to, sender := w.timed("to"), w.recorder("sender")
	between := w.spawn("between", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		if err := msg.(patterns.Proxy).Pass(ctx); err != nil {
			ctx.Fail(err)
		}
		return nil
	}))
	between.TellFrom(patterns.Proxy{To: to.ref, Message: letter{n: 1}}, sender.ref)
	require.Equal(t, letter{n: 2}, w.answer(between, patterns.Proxy{To: to.ref, Message: letter{n: 2}}))
	require.Equal(t, "back", w.answer(between, patterns.Proxy{Message: "back"}))
	between.TellFrom(patterns.Proxy{Message: "back"}, sender.ref)
	w.exec.Run()
	require.Equal(t, []int{1, 2}, to.numbers(""))
	require.Same(t, sender.ref, to.got[0].Sender, "as if from the sender")
	require.Equal(t, []string{"back"}, of[string](sender))

	full := patterns.Null()
	full.Held, full.Mailbox = true, actor.Mailbox{Capacity: 1, Policy: actor.Fail}
	stuck := w.spawn("stuck", full)
	stuck.Tell("fills")
	a := w.ask(between, patterns.Proxy{To: stuck, Message: "x"})
	b := w.ask(between, patterns.Proxy{To: (*actor.Ref)(nil), Message: "x"})
	w.exec.Run()
	require.ErrorIs(t, a.err, actor.ErrMailboxFull)
	require.Error(t, b.err)
}

func TestThrottlingRelay(t *testing.T) {
	w := oneWorld(t)
	begun := w.sys.Now()
	to, other, sender := w.timed("to"), w.timed("other"), w.recorder("sender")
	relay := w.spawn("relay", patterns.ThrottlingRelay(patterns.RelayConfig{
		Rate: patterns.Rate{Every: time.Minute, Burst: 2}, Queue: 5, To: to.ref,
	}))
	relay.TellFrom(letter{n: 1}, sender.ref)
	asked := w.ask(relay, letter{n: 2})
	relay.TellFrom(patterns.Proxy{To: other.ref, Message: letter{n: 3}}, sender.ref)
	relay.TellFrom(patterns.Proxy{Message: letter{n: 4}}, sender.ref)
	relay.Tell(letter{n: 5})
	w.exec.RunFor(0)
	require.Equal(t, letter{n: 2}, asked.v, "two at once")
	require.Equal(t, patterns.State{Waiting: 3, Capacity: 5, Passed: 2}, w.answer(relay, patterns.Status{}))
	w.exec.RunFor(59 * time.Second)
	require.Len(t, to.got, 2)
	w.exec.RunFor(2 * time.Minute)
	require.Equal(t, []int{1, 2, 4, 5}, to.numbers(""))
	require.Equal(t, []int{3}, other.numbers(""))
	require.Same(t, sender.ref, other.got[0].Sender)
	require.Equal(t, begun.Add(time.Minute), other.when[0])
	require.Equal(t, begun.Add(2*time.Minute), to.when[3])

	// After a rest it goes at once, and never more than the burst.
	w.exec.RunFor(time.Hour)
	for n := range 7 {
		relay.Tell(letter{n: 10 + n})
	}
	w.exec.RunFor(0)
	require.Equal(t, []int{10, 11}, to.numbers("")[4:])
	over := w.ask(relay, letter{n: 20})
	w.exec.RunFor(0)
	require.ErrorIs(t, over.err, actor.ErrMailboxFull)
	require.Len(t, deadOf[letter](w), 1, "what overflows is reported")

	require.True(t, w.answer(relay, patterns.Pause{}).(patterns.State).Paused)
	w.exec.RunFor(time.Hour)
	require.Len(t, to.got, 6)
	require.Equal(t, patterns.State{Capacity: 5, Waiting: 5, Passed: 7, Refused: 1}, w.answer(relay, patterns.Continue{}))
	w.exec.RunFor(0)
	require.Len(t, to.got, 8)

	waiting := w.ask(relay, patterns.Proxy{To: other.ref, Message: letter{}})
	w.exec.RunFor(0)
	relay.Stop()
	w.exec.Run()
	require.ErrorIs(t, waiting.err, actor.ErrStopped)
	require.Len(t, deadOf[letter](w), 1+3)
}

func TestThrottlingRelayGivesTurns(t *testing.T) {
	w := oneWorld(t)
	relay := w.spawn("relay", patterns.ThrottlingRelay(patterns.RelayConfig{}))
	begun := w.sys.Now()
	for range 5 {
		require.Nil(t, w.answer(relay, patterns.Proxy{}))
	}
	require.Equal(t, 4*time.Second, w.sys.Now().Sub(begun))
	relay.Tell("to nobody, from nobody")
	w.exec.Run()
	require.Len(t, deadOf[string](w), 1)
	gone := w.recorder("gone")
	gone.ref.Stop()
	w.exec.Run()
	a := w.ask(relay, patterns.Proxy{To: gone.ref, Message: "x"})
	b := w.ask(relay, patterns.Proxy{To: (*actor.Ref)(nil), Message: "x"})
	w.exec.Run()
	require.ErrorIs(t, a.err, actor.ErrStopped)
	require.Error(t, b.err, "a target that panics harms its message alone")
	require.Nil(t, w.answer(relay, patterns.Proxy{}))
}

func TestKeyedThrottlingRelay(t *testing.T) {
	w := oneWorld(t)
	to := w.timed("to")
	relay := w.spawn("relay", patterns.KeyedThrottlingRelay(patterns.KeyedRelayConfig{
		Rate:  patterns.Rate{Every: time.Minute},
		Rates: map[string]patterns.Rate{"fast": {Every: time.Second}},
		Queue: 10, Keys: 3, To: to.ref,
	}))
	for n := range 5 {
		relay.Tell(letter{"a", n})
		relay.Tell(letter{"fast", n})
	}
	relay.Tell(patterns.Proxy{Key: "fast", Message: letter{"b", 0}})
	relay.Tell(patterns.Proxy{Message: letter{"", 0}})
	w.exec.RunFor(0)
	require.Equal(t, patterns.State{Waiting: 9, Capacity: 10, Active: 3, Passed: 3}, w.answer(relay, patterns.Status{}))
	w.exec.RunFor(10 * time.Second)
	require.Equal(t, []int{0, 1, 2, 3, 4}, to.numbers("fast"), "keys do not wait for each other")
	require.Equal(t, []int{0}, to.numbers("b"), "a Proxy's own key")
	require.Equal(t, []int{0}, to.numbers("a"))
	w.exec.RunFor(5 * time.Minute)
	require.Equal(t, []int{0, 1, 2, 3, 4}, to.numbers("a"))

	// As many keys as may be, each just used.
	for _, key := range []string{"x", "y", "z"} {
		relay.Tell(letter{key, 1})
	}
	a := w.ask(relay, letter{"more", 1})
	w.exec.RunFor(0)
	require.ErrorIs(t, a.err, actor.ErrMailboxFull)
	w.exec.RunFor(59 * time.Second)
	b := w.ask(relay, letter{"more", 1})
	w.exec.RunFor(0)
	require.ErrorIs(t, b.err, actor.ErrMailboxFull)
	w.exec.RunFor(time.Second)
	require.Equal(t, letter{"more", 1}, w.answer(relay, letter{"more", 1}), "idle keys are forgotten")

	w.answer(relay, patterns.Pause{})
	for n := range 12 {
		relay.Tell(letter{"more", n})
	}
	w.exec.RunFor(time.Hour)
	require.Equal(t, patterns.State{Paused: true, Waiting: 10, Capacity: 10, Active: 1, Passed: 16, Refused: 4}, w.answer(relay, patterns.Status{}))
	relay.Tell(patterns.Continue{})
	w.exec.RunFor(0)
	require.Equal(t, []int{1, 0}, to.numbers("more"))
	relay.Stop()
	w.exec.Run()
	require.Len(t, deadOf[letter](w), 4+9)
}

func TestKeyedThrottlingRelayByAFunction(t *testing.T) {
	w := oneWorld(t)
	to := w.timed("to")
	relay := w.spawn("relay", patterns.KeyedThrottlingRelay(patterns.KeyedRelayConfig{
		To: to.ref,
		Key: func(msg any) (string, bool) {
			l := msg.(letter)
			if l.n < 0 {
				panic(errTest)
			}
			return fmt.Sprint(l.n % 2), l.n < 10
		},
	}))
	for _, n := range []int{0, 1, 2, 3, 10, 11, -1} {
		relay.Tell(letter{n: n})
	}
	w.exec.RunFor(0)
	require.Equal(t, []int{0, 1, 10}, to.numbers(""))
	require.Len(t, deadOf[letter](w), 1)
	require.ErrorIs(t, deadOf[letter](w)[0].Reason, errTest)
	w.exec.Run()
	require.ElementsMatch(t, []int{0, 1, 10, 2, 3, 11}, to.numbers(""), "a panic harms its message alone")
}

// However letters come, and whoever pauses or stops: none passes too early or
// out of order, and none is lost.
func TestThrottlingRelayUnderSeeds(t *testing.T) {
	underSeeds(t, func(w *world) {
		rate := patterns.Rate{Every: time.Second, Burst: 1 + w.IntN(3)}
		to := w.timed("to")
		w.relayScenario(to, patterns.ThrottlingRelay(patterns.RelayConfig{Rate: rate, Queue: 5 + w.IntN(30), To: to.ref}))
		to.within(w, "", rate)
	})
}

func TestKeyedThrottlingRelayUnderSeeds(t *testing.T) {
	underSeeds(t, func(w *world) {
		rate := patterns.Rate{Every: time.Second, Burst: 1 + w.IntN(3)}
		fast := patterns.Rate{Every: 100 * time.Millisecond}
		to := w.timed("to")
		w.relayScenario(to, patterns.KeyedThrottlingRelay(patterns.KeyedRelayConfig{
			Rate: rate, Rates: map[string]patterns.Rate{"b": fast}, Queue: 2 + w.IntN(15), Keys: 2 + w.IntN(3), To: to.ref,
		}))
		to.within(w, "a", rate)
		to.within(w, "b", fast)
		to.within(w, "c", rate)
	})
}

func (w *world) relayScenario(to *timed, p actor.Props) {
	relay := w.spawn("relay", p)
	n := 0
	for range 40 {
		w.later(5*time.Second, func() {
			n++
			l := letter{[]string{"a", "b", "c"}[w.IntN(3)], n}
			switch w.IntN(3) {
			case 0:
				w.ask(relay, l)
			case 1:
				relay.Tell(l)
			case 2:
				relay.Tell(patterns.Proxy{To: to.ref, Message: l})
			}
		})
	}
	if w.IntN(2) == 0 {
		w.later(5*time.Second, func() { relay.Tell(patterns.Pause{}) })
		w.sys.After(6*time.Second, func() { relay.Tell(patterns.Continue{}) })
	}
	if w.IntN(4) == 0 {
		w.later(10*time.Second, relay.Stop)
	}
	w.exec.Run()
	seen := map[int]int{}
	last := map[string]int{}
	for _, m := range to.got {
		l := m.Payload.(letter)
		seen[l.n]++
		require.Greater(w.t, l.n, last[l.key])
		last[l.key] = l.n
	}
	for _, z := range w.dead {
		switch l := z.Message.Payload.(type) {
		case letter:
			seen[l.n]++
		case patterns.Proxy:
			seen[l.Message.(letter).n]++
		}
	}
	require.Len(w.t, seen, 40)
	for i := range seen {
		require.Equal(w.t, 1, seen[i], "letter %d", i)
	}
}

// within checks that letters of a key ("" is any) came no faster than the rate.
func (r *timed) within(w *world, key string, rate patterns.Rate) {
	var when []time.Time
	for i, m := range r.got {
		if key == "" || m.Payload.(letter).key == key {
			when = append(when, r.when[i])
		}
	}
	burst := max(rate.Burst, 1)
	for i := burst; i < len(when); i++ {
		require.GreaterOrEqual(w.t, when[i].Sub(when[i-burst]), rate.Every)
	}
}
