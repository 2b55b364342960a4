package actor_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

// heldRecorder is a recorder with that mailbox, whose messages wait.
func heldRecorder(t *testing.T, sys *actor.System, m actor.Mailbox) *actor.Ref {
	t.Helper()
	p := recorderProps(nil)
	p.Held, p.Mailbox = true, m
	return spawn(t, sys, "held", p)
}

func release(t *testing.T, r *actor.Ref) {
	t.Helper()
	r.TellSystem("resume")
	until(t, r.System(), func() bool { return r.MailboxLen() == 0 })
}

// letters collects the dead letters of a system.
func letters(sys *actor.System) func() []actor.ZombieMsg {
	var mu sync.Mutex
	var all []actor.ZombieMsg
	sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, z)
	})
	return func() []actor.ZombieMsg {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func TestWhoIsFullIsInTheError(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		r := heldRecorder(t, sys, actor.Mailbox{Capacity: 2, Policy: actor.Fail})
		require.Equal(t, 2, r.MailboxCap())
		require.NoError(t, r.Tell(1))
		require.NoError(t, r.Tell(2))
		err := r.Tell(3)
		var full *actor.FullError
		require.ErrorAs(t, err, &full)
		require.Same(t, r, full.Ref)
		require.Equal(t, 2, full.Capacity)
		require.ErrorContains(t, err, "/user/held: mailbox full")
		require.Zero(t, sys.User().MailboxCap())
	})
}

func TestDropNewestDropsWhatComesToAFullMailbox(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		dead := letters(sys)
		r := heldRecorder(t, sys, actor.Mailbox{Capacity: 2, Policy: actor.DropNewest})
		for i := range 4 {
			require.NoError(t, r.Tell(i))
		}
		_, err := r.Ask(context.Background(), 4)
		require.ErrorIs(t, err, actor.ErrMailboxFull, "the ask of what is dropped ends at once")
		release(t, r)
		require.Equal(t, []any{0, 1}, ask(t, r, "?"))
		require.Len(t, dead(), 3)
		for i, z := range dead() {
			require.Equal(t, 2+i, z.Message.Payload)
			require.Equal(t, "/user/held", z.To)
			var full *actor.FullError
			require.ErrorAs(t, z.Reason, &full)
			require.Same(t, r, full.Ref)
		}
	})
}

func TestDropOldestDropsWhatHasWaitedLongest(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		dead := letters(sys)
		r := heldRecorder(t, sys, actor.Mailbox{Capacity: 2, Policy: actor.DropOldest})
		var answer error
		first := sys.OnReply(func(_ any, err error) { answer = err })
		require.NoError(t, r.Post(actor.Message{Payload: 0, Reply: first}))
		for i := 1; i < 5; i++ {
			require.NoError(t, r.Tell(i))
		}
		require.Equal(t, 2, r.MailboxLen())
		require.Equal(t, 2, r.MailboxCap())
		require.ErrorIs(t, answer, actor.ErrMailboxFull)
		release(t, r)
		require.Equal(t, []any{3, 4}, ask(t, r, "?"))
		require.Len(t, dead(), 3)
		for i, z := range dead() {
			require.Equal(t, i, z.Message.Payload)
			require.ErrorIs(t, z.Reason, actor.ErrMailboxFull)
		}
	})
}

// The runtime's own messages are never dropped, and keep their place.
func TestDropOldestKeepsTerminatedAndPoison(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		other := spawn(t, sys, "other", idle())
		var got []any
		h := &holder{f: func(ctx *actor.Context, msg any) error {
			switch m := msg.(type) {
			case string:
				ctx.Watch(other)
				ctx.Hold()
			case actor.Terminated:
				got = append(got, m.Ref)
			default:
				got = append(got, m)
			}
			return nil
		}}
		r := spawn(t, sys, "r", actor.Props{
			New:     func() actor.Actor { return h },
			Mailbox: actor.Mailbox{Capacity: 3, Policy: actor.DropOldest},
		})
		require.NoError(t, r.Tell("begin"))
		until(t, sys, func() bool { return r.MailboxLen() == 0 && r.Load() == 0 })
		require.NoError(t, r.Tell(0))
		require.NoError(t, r.Tell(1))
		other.Stop()
		awaitStop(t, other)
		require.NoError(t, r.Tell(2))
		require.NoError(t, r.Tell(3)) // drops 0
		require.NoError(t, r.Tell(actor.PoisonPill{}))
		require.NoError(t, r.Tell(4)) // drops 1
		require.Equal(t, 5, r.MailboxLen())
		r.TellSystem("resume")
		awaitStop(t, r)
		require.Equal(t, []any{other, 2, 3}, got)
		require.EqualValues(t, 3, sys.DeadLetters().Count(), "0, 1, and 4 behind the pill")
	})
}

func TestBlockWaitsForRoomInTheOrderOfTheSenders(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		r := heldRecorder(t, sys, actor.Mailbox{Capacity: 2, Policy: actor.Block})
		const senders, each = 3, 20
		pending := senders
		done := sys.NewWaiter()
		var mu sync.Mutex
		for from := range senders {
			sys.Go(func() {
				for n := range each {
					if err := r.Tell(numbered{from, n}); err != nil {
						t.Error(err)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if pending--; pending == 0 {
					done.Wake()
				}
			})
		}
		until(t, sys, func() bool { return r.MailboxLen() == 2+senders })
		r.TellSystem("resume")
		require.NoError(t, done.Wait(context.Background()))
		got := ask(t, r, "?").([]any)
		require.Len(t, got, senders*each)
		next := [senders]int{}
		for _, x := range got {
			m := x.(numbered)
			require.Equal(t, next[m.from], m.n)
			next[m.from]++
		}
		require.Zero(t, sys.DeadLetters().Count())
	})
}

func TestBlockedSendersAreFreedByAStop(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		dead := letters(sys)
		r := heldRecorder(t, sys, actor.Mailbox{Capacity: 1, Policy: actor.Block})
		require.NoError(t, r.Tell(0))
		done := sys.NewWaiter()
		sys.Go(func() {
			defer done.Wake()
			if err := r.Tell(1); err != nil {
				t.Error(err)
			}
			if _, err := r.Ask(context.Background(), 2); !errors.Is(err, actor.ErrStopped) {
				t.Error(err)
			}
		})
		until(t, sys, func() bool { return r.MailboxLen() == 2 })
		r.Stop()
		require.NoError(t, done.Wait(context.Background()))
		until(t, sys, func() bool { return len(dead()) == 3 })
		var was []any // in the mailbox, oldest first; the ask found it closed and may be ahead
		for _, z := range dead() {
			if z.Message.Reply == nil {
				was = append(was, z.Message.Payload)
			}
		}
		require.Equal(t, []any{0, 1}, was)
	})
}

func TestBlockIsBoundedByAContextAndByAskTimeout(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		r := heldRecorder(t, sys, actor.Mailbox{Capacity: 1, Policy: actor.Block})
		require.NoError(t, r.Tell(0))
		for _, try := range []func(ctx context.Context) error{
			func(ctx context.Context) error { return r.TellContext(ctx, 1) },
			func(ctx context.Context) error { _, err := r.Ask(ctx, 1); return err },
		} {
			ctx, cancel := sys.WithTimeout(context.Background(), 5*time.Millisecond)
			err := try(ctx)
			cancel()
			require.ErrorIs(t, err, actor.ErrMailboxFull)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, 1, r.MailboxLen(), "the message was taken back")
		}
		release(t, r)
		require.Equal(t, []any{0}, ask(t, r, "?"))
	})
	t.Run("AskTimeout", func(t *testing.T) {
		sys := actor.NewSystem("test", actor.Config{AskTimeout: 10 * time.Millisecond})
		defer stopSystem(t, sys)
		r := heldRecorder(t, sys, actor.Mailbox{Capacity: 1, Policy: actor.Block})
		require.NoError(t, r.Tell(0))
		_, err := r.Ask(context.Background(), 1)
		require.ErrorIs(t, err, actor.ErrMailboxFull)
	})
}

// Inside a turn nothing waits, by whatever way the message is sent.
func TestBlockNeverWaitsInsideATurn(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		full := heldRecorder(t, sys, actor.Mailbox{Capacity: 1, Policy: actor.Block})
		require.NoError(t, full.Tell(0))
		r := spawn(t, sys, "r", actor.PropsFunc(func(ctx *actor.Context, _ any) error {
			_, asked := full.Ask(context.Background(), 1)
			ctx.Respond([]error{
				ctx.Tell(full, 1), full.Tell(1), full.TellFrom(1, ctx.Self()), ctx.Forward(full),
				full.TellContext(context.Background(), 1), full.TryPost(actor.Message{Payload: 1}), asked,
			})
			return nil
		}))
		for _, err := range ask(t, r, "x").([]error) {
			require.ErrorIs(t, err, actor.ErrMailboxFull)
		}
		// A pipe is outside, and waits.
		var piped error
		done := sys.NewWaiter()
		p := spawn(t, sys, "p", actor.PropsFunc(func(ctx *actor.Context, _ any) error {
			if ctx.Sender() == ctx.Self() {
				return nil
			}
			ctx.PipeTo(ctx.Self(), func(context.Context) (any, error) {
				piped = full.Tell("piped")
				done.Wake()
				return nil, nil
			})
			return nil
		}))
		require.NoError(t, p.Tell("go"))
		until(t, sys, func() bool { return full.MailboxLen() == 2 })
		full.TellSystem("resume")
		require.NoError(t, done.Wait(context.Background()))
		require.NoError(t, piped)
	})
}

// urgentFirst is a mailbox of one's own: numbers, the largest first, no more
// than ten, and no strings.
type urgentFirst struct {
	all   []actor.Message
	panic string
}

func (u *urgentFirst) Push(m actor.Message) (*actor.Message, error) {
	switch p := m.Payload.(type) {
	case string:
		if p == u.panic {
			panic("push")
		}
		if p != "?" {
			return nil, fmt.Errorf("no strings, so not %q", p)
		}
	case int:
		if len(u.all) >= 10 {
			return nil, actor.ErrMailboxFull
		}
	}
	u.all = append(u.all, m)
	slices.SortStableFunc(u.all, func(a, b actor.Message) int {
		x, _ := a.Payload.(int)
		y, _ := b.Payload.(int)
		return cmp.Compare(y, x)
	})
	return nil, nil
}

func (u *urgentFirst) Pop() (actor.Message, bool) {
	if len(u.all) == 0 {
		return actor.Message{}, false
	}
	if u.panic == "pop" {
		panic("pop")
	}
	m := u.all[0]
	u.all = u.all[1:]
	return m, true
}
func (u *urgentFirst) Len() int { return len(u.all) }
func (u *urgentFirst) Cap() int { return 10 }

func TestAMailboxOfOnesOwn(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		r := heldRecorder(t, sys, actor.Mailbox{New: func() actor.Queue { return &urgentFirst{} }})
		for i := range 10 {
			require.NoError(t, r.Tell(i))
		}
		err := r.Tell(10)
		var full *actor.FullError
		require.ErrorAs(t, err, &full)
		require.Same(t, r, full.Ref)
		require.ErrorContains(t, r.Tell("x"), `no strings, so not "x"`)
		require.Equal(t, 10, r.MailboxLen())
		require.Equal(t, 10, r.MailboxCap())
		release(t, r)
		require.Equal(t, []any{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, ask(t, r, "?"))
		// What it has left becomes dead letters.
		dead := letters(sys)
		h := heldRecorderNamed(t, sys, "h2", actor.Mailbox{New: func() actor.Queue { return &urgentFirst{} }})
		require.NoError(t, h.Tell(1))
		require.NoError(t, h.Tell(2))
		h.Stop()
		awaitStop(t, h)
		require.Len(t, dead(), 2)
	})
}

func heldRecorderNamed(t *testing.T, sys *actor.System, name string, m actor.Mailbox) *actor.Ref {
	t.Helper()
	p := recorderProps(nil)
	p.Held, p.Mailbox = true, m
	return spawn(t, sys, name, p)
}

func TestAMailboxThatPanicsHarmsOnlyItsActor(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		push := heldRecorderNamed(t, sys, "push", actor.Mailbox{New: func() actor.Queue { return &urgentFirst{panic: "now"} }})
		require.NoError(t, push.Tell(1))
		require.ErrorContains(t, push.Tell("now"), "push")
		awaitStop(t, push)
		pop := heldRecorderNamed(t, sys, "pop", actor.Mailbox{New: func() actor.Queue { return &urgentFirst{panic: "pop"} }})
		require.NoError(t, pop.Tell(1))
		pop.TellSystem("resume")
		awaitStop(t, pop)
		none := spawn(t, sys, "nil", actor.Props{New: idle().New, Mailbox: actor.Mailbox{New: func() actor.Queue { return nil }}})
		probe := actortest.NewProbe(t, sys, "")
		probe.Watch(none)
		require.ErrorIs(t, probe.ExpectTerminated(none), actor.ErrInvalid)
	})
}

func TestMailboxesThatCannotBe(t *testing.T) {
	sys, _ := seededSystem(t, 1)
	for _, m := range []actor.Mailbox{
		{Policy: actor.Block},
		{Policy: actor.DropOldest, Capacity: -1},
		{Policy: actor.DropOldest + 1, Capacity: 1},
		{New: func() actor.Queue { return &urgentFirst{} }, Capacity: 1},
	} {
		p := idle()
		p.Mailbox = m
		_, err := sys.Spawn("x", p)
		require.ErrorIs(t, err, actor.ErrInvalid)
	}
}

// A lane is looked at too before an actor retires.
func TestRetireRefusesWhileALaneHasMessages(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		for _, policy := range []actor.Policy{actor.Block, actor.DropOldest} {
			var could []bool
			p := actor.PropsFunc(func(ctx *actor.Context, msg any) error {
				if msg == "first" {
					_ = ctx.Tell(ctx.Self(), "second")
				}
				could = append(could, ctx.Retire())
				return nil
			})
			p.Mailbox = actor.Mailbox{Capacity: 2, Policy: policy}
			r := spawn(t, sys, "", p)
			require.NoError(t, r.Tell("first"))
			awaitStop(t, r)
			require.Equal(t, []bool{false, true}, could)
		}
		require.Zero(t, sys.DeadLetters().Count())
	})
}

func TestStashesAreBoundedAsTheirMailboxIs(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var errs []error
		p := actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			errs = append(errs, ctx.Stash())
			return nil
		})
		p.Mailbox = actor.Mailbox{Capacity: 1, Policy: actor.DropOldest}
		r := spawn(t, sys, "r", p)
		require.NoError(t, r.Tell(1))
		until(t, sys, func() bool { return r.Load() == 0 })
		require.NoError(t, r.Tell(2))
		until(t, sys, func() bool { return r.Load() == 0 })
		r.Stop()
		awaitStop(t, r)
		require.Len(t, errs, 2)
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], actor.ErrMailboxFull)
	})
}

// again is a mailbox that hands each message out twice.
type again struct{ first, second []actor.Message }

func (q *again) Push(m actor.Message) (*actor.Message, error) {
	q.first = append(q.first, m)
	return nil, nil
}

func (q *again) Pop() (m actor.Message, ok bool) {
	switch {
	case len(q.first) > 0:
		m, q.first = q.first[0], q.first[1:]
		q.second = append(q.second, m)
		return m, true
	case len(q.second) > 0:
		m, q.second = q.second[0], q.second[1:]
		return m, true
	}
	return m, false
}

func (q *again) Len() int { return len(q.first) + len(q.second) }
func (q *again) Cap() int { return 0 }

// A mailbox of one's own that hands an ask out twice has it answered twice: the second
// answer is a dead letter, and not that of the ask which is under way by then.
func TestAMailboxOfOnesOwnCrossesNoAsks(t *testing.T) {
	sys := realSystem(t)
	goOn, answered := make(chan struct{}), make(chan struct{})
	calls := 0
	p := actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		if calls++; calls%2 == 1 {
			ctx.Respond(msg)
			return nil
		}
		<-goOn
		ctx.Respond("crossed")
		answered <- struct{}{}
		return nil
	})
	p.Mailbox.New = func() actor.Queue { return &again{} }
	twice := spawn(t, sys, "twice", p)
	other := spawn(t, sys, "other", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		goOn <- struct{}{}
		<-answered
		ctx.Respond(msg)
		return nil
	}))
	for i := range 500 {
		require.Equal(t, i, ask(t, twice, i))
		require.Equal(t, -i, ask(t, other, -i))
		require.EqualValues(t, i+1, sys.DeadLetters().Count())
	}
}

// What makes a mailbox of one's own is called while nothing is locked: it may look at
// the family, be slow, and leave.
func TestWhatMakesAMailboxHoldsNobodyUp(t *testing.T) {
	sys := realSystem(t)
	p := idle()
	p.Mailbox.New = func() actor.Queue {
		_, err := sys.Spawn("other", idle())
		require.NoError(t, err)
		require.Len(t, sys.User().Children(), 1)
		return &urgentFirst{}
	}
	spawn(t, sys, "curious", p)
	_, created, err := sys.User().EnsureChild("curious", func() actor.Props { return p })
	require.NoError(t, err)
	require.False(t, created)

	p.Mailbox.New = func() actor.Queue { runtime.Goexit(); return nil }
	for _, spawns := range []func(){
		func() { _, _ = sys.Spawn("gone", p) },
		func() { _, _, _ = sys.User().EnsureChild("gone", func() actor.Props { return p }) },
	} {
		var left sync.WaitGroup
		left.Go(spawns)
		left.Wait()
		_, ok := sys.User().Child("gone")
		require.False(t, ok)
	}
	spawn(t, sys, "later", idle())
}
