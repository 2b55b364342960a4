package actor

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func stop(t *testing.T, s *System) {
	require.NoError(t, s.Stop(context.Background()))
}

func TestBuffersShrinkAfterABurst(t *testing.T) {
	s := NewSystem("test", Config{})
	defer stop(t, s)
	gate := make(chan struct{})
	r, err := s.Spawn("a", PropsFunc(func(ctx *Context, msg any) error {
		if msg == "wait" {
			<-gate
		}
		if ctx.Message().Reply != nil {
			ctx.Respond(nil)
		}
		return nil
	}))
	require.NoError(t, err)
	require.NoError(t, r.Tell("wait"))
	for range 10_000 {
		require.NoError(t, r.Tell("x"))
	}
	close(gate)
	_, err = r.Ask(context.Background(), "last")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.flags.Load() == resting && cap(r.queue) <= keptCap && cap(r.batch) <= keptCap
	}, waitTest, tickTest, "and the next message needs no lock")
}

// What was stashed comes back in a buffer of its own, and nothing is queued behind it.
func TestBuffersShrinkAfterAnUnstash(t *testing.T) {
	s := NewSystem("test", Config{})
	defer stop(t, s)
	const stashed = 1000
	n, opened := 0, false
	r, err := s.Spawn("a", PropsFunc(func(ctx *Context, msg any) error {
		switch {
		case msg == "open":
			opened = true
			ctx.UnstashAll()
			ctx.Respond(nil)
		case !opened:
			return ctx.Stash()
		default:
			n++
		}
		return nil
	}))
	require.NoError(t, err)
	for range stashed {
		require.NoError(t, r.Tell("x"))
	}
	rests := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.flags.Load() == resting && cap(r.queue) <= keptCap && cap(r.batch) <= keptCap
	}
	require.Eventually(t, rests, waitTest, tickTest)
	_, err = r.Ask(context.Background(), "open")
	require.NoError(t, err)
	require.Eventually(t, rests, waitTest, tickTest)
	require.Equal(t, stashed, n)
}

// The price of a message to an actor at rest: no sender and no turn takes the lock.
func TestAMessageToAnActorAtRestTakesNoLock(t *testing.T) {
	s := NewSystem("test", Config{})
	defer stop(t, s)
	r, err := s.Spawn("a", PropsFunc(func(ctx *Context, msg any) error {
		ctx.Respond(msg)
		return nil
	}))
	require.NoError(t, err)
	_, err = r.Ask(context.Background(), 0)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return r.flags.Load() == resting }, waitTest, tickTest)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range 10 {
		v, err := r.Ask(context.Background(), i)
		require.NoError(t, err)
		require.Equal(t, i, v)
		require.Eventually(t, func() bool { return r.flags.Load() == resting }, waitTest, tickTest)
	}
	require.Zero(t, r.put-r.took.Load(), "it counts as in progress")
}

// A message does not wake an actor that could not take it; a signal does.
func TestWhatWakesAnActor(t *testing.T) {
	for name, c := range map[string]struct {
		flags, flag, unless, after uint32
		wakes                      bool
	}{
		"a message, at rest":    {resting, queued, holding, queued, true},
		"a message, at work":    {0, queued, holding, queued, false},
		"a message, held":       {resting | holding, queued, holding, resting | holding | queued, false},
		"a signal, at rest":     {resting, urgent, 0, urgent, true},
		"a signal, held":        {resting | holding, urgent, 0, urgent | holding, true},
		"a signal, at work":     {ending, urgent, 0, ending | urgent, false},
		"once more":             {urgent, urgent, 0, urgent, false},
		"a message with limits": {limited | resting, 0, holding, limited, true},
	} {
		r := &Ref{}
		r.flags.Store(c.flags)
		require.Equal(t, c.wakes, r.raise(c.flag, c.unless), name)
		require.Equal(t, c.after, r.flags.Load(), name)
	}
}

// Senders find an actor at rest, on its way there, and at work: whatever falls
// together, each message is handled once, in its sender's order, and the actor rests
// in the end.
func TestNoMessageIsLostWhereAnActorComesToRest(t *testing.T) {
	const senders, each = 4, 20_000
	s := NewSystem("test", Config{})
	defer stop(t, s)
	type numbered struct{ sender, n int }
	var next [senders]int
	r, err := s.Spawn("a", PropsFunc(func(ctx *Context, msg any) error {
		m := msg.(numbered)
		if next[m.sender] != m.n {
			t.Errorf("message %d of sender %d came where %d was due", m.n, m.sender, next[m.sender])
		}
		next[m.sender] = m.n + 1
		busy(m.n % 50)
		ctx.Respond(nil)
		return nil
	}))
	require.NoError(t, err)
	var all sync.WaitGroup
	for sender := range senders {
		all.Go(func() {
			for n := range each {
				var err error
				if n%7 == 6 {
					_, err = r.Ask(context.Background(), numbered{sender, n})
				} else {
					err = r.Tell(numbered{sender, n})
				}
				if err != nil {
					t.Errorf("message %d of sender %d: %v", n, sender, err)
					return
				}
				busy(n % 31)
			}
		})
	}
	all.Wait()
	require.Eventually(t, func() bool { return r.flags.Load() == resting && r.MailboxLen() == 0 }, waitTest, tickTest)
	for sender := range senders {
		require.Equal(t, each, next[sender])
	}
}

func TestALargeBufferThatIsLittleUsedIsDropped(t *testing.T) {
	r := newRef(&System{}, nil, "", 0, &Props{}, nil, nil)
	r.batch, r.next = make([]Message, 1000), 1000
	for i := range 2 * quietSwaps {
		r.queue = append(r.queue, Message{Payload: i})
		r.swap()
		r.pop()
	}
	require.LessOrEqual(t, max(cap(r.queue), cap(r.batch)), keptCap)
}

func TestPutBackGoesToTheFront(t *testing.T) {
	for _, used := range []int{0, 1, 2, 5} {
		r := newRef(&System{}, nil, "", 0, &Props{}, nil, nil)
		for i := range 8 {
			r.queue = append(r.queue, Message{Payload: i})
		}
		r.swap()
		r.put = uint32(len(r.batch))
		var back []Message
		for range used {
			back = append(back, r.pop())
		}
		back = append(back, Message{Payload: "x"}, Message{Payload: "y"})
		r.putBack(back)
		var got []any
		for int(r.next) < len(r.batch) {
			require.EqualValues(t, len(r.batch)-int(r.next), r.left())
			got = append(got, r.pop().Payload)
		}
		want := []any{}
		for i := range used {
			want = append(want, i)
		}
		want = append(want, "x", "y")
		for i := used; i < 8; i++ {
			want = append(want, i)
		}
		require.Equal(t, want, got)
	}
}

// An idle actor that has handled a message must stay small: pods have millions.
func TestAnIdleActorIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Ref{}), uintptr(208))
	s := NewSystem("test", Config{})
	defer stop(t, s)
	parent, err := s.Spawn("parent", PropsFunc(func(*Context, any) error { return nil }))
	require.NoError(t, err)
	n := 20_000
	if raceEnabled {
		n = 2_000
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	props := PropsFunc(func(ctx *Context, _ any) error { ctx.Respond(nil); return nil })
	before := heap()
	for i := range n {
		_, err := parent.Spawn("room-"+strconv.Itoa(i), props)
		require.NoError(t, err)
	}
	for _, c := range parent.Children() {
		_, err := c.Ask(context.Background(), nil)
		require.NoError(t, err)
	}
	goroutines := runtime.NumGoroutine()
	per := (heap() - before) / uint64(n)
	t.Logf("%d bytes an idle actor (a Ref alone: %d), %d goroutines for %d actors", per, unsafe.Sizeof(Ref{}), goroutines, n)
	if !raceEnabled {
		require.LessOrEqual(t, per, uint64(320), "with a buffer and its place in the parent")
	}
	require.Less(t, goroutines, 100)
	runtime.KeepAlive(parent)
}

func TestSendingAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := NewSystem("test", Config{})
	defer stop(t, s)
	seen := make(chan struct{}, 1)
	r, err := s.Spawn("a", PropsFunc(func(ctx *Context, msg any) error {
		if ctx.call.msg.Reply != nil {
			ctx.Respond(msg)
		} else {
			seen <- struct{}{}
		}
		return nil
	}))
	require.NoError(t, err)
	msg := any("x")
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_ = r.Tell(msg)
		<-seen
	}), "Tell")
	ctx := context.Background()
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if _, err := r.Ask(ctx, msg); err != nil {
			panic(err)
		}
	}), "Ask")
}
