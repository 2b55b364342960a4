package actor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A cell that has served an earlier ask ends the next one at its own limit, not
// at what was left of the earlier one's.
func TestAnAskClockCountsFromTheAskInProgress(t *testing.T) {
	s := NewSystem("test", Config{AskTimeout: time.Hour}) // the ticks are the test's
	defer stop(t, s)
	var p *Promise
	borrow := func() { p.word.Store(p.word.Load() | (promiseNext - 1) + 1 | promiseQuick) }
	p = s.borrow(true)
	p.clock.start()
	defer p.clock.timer.Stop()
	for range ticksPerLimit - 1 {
		p.clock.tick()
	}
	require.False(t, p.Done())
	require.True(t, p.leaveOpen(promiseAnswered))
	borrow()
	for range ticksPerLimit {
		p.clock.tick()
		require.False(t, p.Done(), "a full limit after the first tick that saw it")
	}
	require.Empty(t, p.quick.permit)
	p.clock.tick()
	require.True(t, p.GivenUp())
	require.Len(t, p.quick.permit, 1)
	require.False(t, p.resolve(1, nil))
}

func TestAnAskClockStopsWhenNobodyWaits(t *testing.T) {
	s := NewSystem("test", Config{AskTimeout: time.Hour})
	defer stop(t, s)
	p := s.borrow(true)
	p.clock.start()
	defer p.clock.timer.Stop()
	p.clock.tick()
	require.True(t, p.clock.armed.Load())
	p.resolve(1, nil)
	p.clock.tick()
	require.False(t, p.clock.armed.Load())
}

// An ask that has less time left, having waited for room, leaves the clock of
// the cell alone, and so does one with a limit of its own.
func TestAnAskClockKnowsOneLimit(t *testing.T) {
	s := NewSystem("test", Config{AskTimeout: time.Hour})
	defer stop(t, s)
	for _, quick := range []bool{true, false} {
		p := s.borrow(quick)
		p.clock.start()
		defer p.clock.timer.Stop()
		p.leaveClock()
		for range ticksPerLimit + 1 {
			p.clock.tick()
		}
		_, err := p.await(context.Background(), time.Millisecond)
		require.Equal(t, waitError{context.DeadlineExceeded}, err)
	}
}

// An answer that wins against the end of a wait is the wait's outcome, also when
// its permit comes later.
func TestAnAnswerThatCameFirstIsTaken(t *testing.T) {
	s := NewSystem("test", Config{})
	defer stop(t, s)
	for range 100 {
		p := s.borrow(false)
		require.True(t, p.leaveOpen(promiseAnswered)) // as the first half of resolve
		answer := make(chan any, 1)
		go func() {
			v, _ := p.await(context.Background(), 1)
			answer <- v
		}()
		p.v = "v"
		p.parker.Unpark()
		require.Equal(t, "v", <-answer)
		require.Empty(t, p.quick.permit)
	}
}

// parkers is a Parker of functions, called in turn.
type parkers []func() error

func (p *parkers) Park(context.Context, time.Duration) error {
	f := (*p)[0]
	*p = (*p)[1:]
	return f()
}
func (*parkers) Unpark() {}
func (*parkers) Reset()  {}

// Who loses against an answer that is still being written waits for its permit.
func TestAWaitThatEndsTooLateWaitsForTheAnswer(t *testing.T) {
	s := NewSystem("test", Config{})
	defer stop(t, s)
	p := &Promise{sys: s}
	p.parker = &parkers{
		func() error { p.leaveOpen(promiseAnswered); return context.Canceled },
		func() error { p.v = "v"; return nil },
	}
	v, err := p.await(context.Background(), 0)
	require.NoError(t, err)
	require.Equal(t, "v", v)
}

// A call that has answered an ask or passed it on holds no more of its cell, which
// may serve another ask already; one that stashes keeps it from that.
func TestACallLetsGoOfAnAskThatIsNoLongerIts(t *testing.T) {
	s := NewSystem("test", Config{})
	defer stop(t, s)
	other, err := s.Spawn("other", PropsFunc(func(ctx *Context, msg any) error { ctx.Respond(msg); return nil }))
	require.NoError(t, err)
	ends := map[string]func(ctx *Context) error{
		"respond":     func(ctx *Context) error { ctx.Respond(1); return nil },
		"fail":        func(ctx *Context) error { ctx.Fail(ErrInvalid); return nil },
		"forward":     func(ctx *Context) error { return ctx.Forward(other) },
		"try forward": func(ctx *Context) error { return ctx.TryForward(other) },
	}
	for name, end := range ends {
		letGo := make(chan bool, 1)
		r, err := s.Spawn("", PropsFunc(func(ctx *Context, _ any) error {
			err := end(ctx)
			letGo <- ctx.call.msg.Reply == &s.spent && !ctx.Defer().Complete(2)
			return err
		}))
		require.NoError(t, err)
		_, _ = r.Ask(context.Background(), 1)
		require.True(t, <-letGo, name)
	}
	pinned := make(chan bool, 1)
	r, err := s.Spawn("", PropsFunc(func(ctx *Context, msg any) error {
		if msg == "stash" {
			err := ctx.Stash()
			pinned <- ctx.call.msg.Reply.pinned
			ctx.UnstashAll()
			ctx.Become(func(ctx *Context, msg any) error { ctx.Respond(msg); return nil })
			return err
		}
		return nil
	}))
	require.NoError(t, err)
	v, err := r.Ask(context.Background(), "stash")
	require.NoError(t, err)
	require.Equal(t, "stash", v)
	require.True(t, <-pinned)
}

// An ask that had to wait for room has less time left than the clock would give.
func TestAnAskThatWaitedForRoomLeavesTheClock(t *testing.T) {
	s := NewSystem("test", Config{AskTimeout: time.Hour})
	defer stop(t, s)
	for _, full := range []bool{false, true} {
		reply := make(chan *Promise, 1)
		p := PropsOf(func() Actor { return &resumable{reply} })
		p.Mailbox, p.Held = Mailbox{Capacity: 1, Policy: Block}, true
		r, err := s.Spawn("", p)
		require.NoError(t, err)
		waiting := 1
		if full {
			require.NoError(t, r.Tell(1))
			waiting++
		}
		done := make(chan error, 1)
		go func() {
			_, err := r.Ask(context.Background(), 2)
			done <- err
		}()
		require.Eventually(t, func() bool { return r.MailboxLen() == waiting }, waitTest, tickTest)
		r.TellSystem(nil)
		cell := <-reply
		onClock := func() bool { return cell.word.Load()&promiseQuick != 0 }
		require.Eventually(t, func() bool { return onClock() != full }, waitTest, tickTest)
		cell.Complete(nil)
		require.NoError(t, <-done)
	}
}

// resumable is held until it gets a system message, and gives away its asks.
type resumable struct{ reply chan *Promise }

func (r *resumable) Receive(ctx *Context, _ any) error {
	if p := ctx.Defer(); p != nil {
		r.reply <- p
	}
	return nil
}

func (r *resumable) ReceiveSystem(ctx *Context, _ any) error {
	ctx.Resume()
	return nil
}
