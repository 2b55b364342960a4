package actor

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each task that is handed over comes out of the seat once, however hands and the
// ends of waits fall together.
func TestWhatIsHandedOverIsTakenOnce(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("nobody spins on one processor")
	}
	s := &spinner{}
	var queued atomic.Bool
	taken := make(map[*Ref]int)
	handed := make(map[*Ref]int)
	var done atomic.Bool
	var workers, senders sync.WaitGroup
	var mu sync.Mutex
	for range 2 {
		workers.Go(func() {
			for !done.Load() {
				s.paid.Store(true)
				if r := s.wait(&s.paid, &queued); r != nil {
					mu.Lock()
					taken[r]++
					mu.Unlock()
				}
				runtime.Gosched()
			}
		})
		senders.Go(func() {
			for n := 0; n < 2000; {
				r := &Ref{}
				if s.hand(r) {
					n++
					mu.Lock()
					handed[r]++
					mu.Unlock()
				}
				runtime.Gosched()
			}
		})
	}
	senders.Wait()
	require.Eventually(t, func() bool { return s.seat.Load() == nil || s.seat.Load() == &s.vacant }, waitTest, tickTest)
	done.Store(true)
	workers.Wait()
	require.Nil(t, s.seat.Load(), "the seat is left")
	require.Equal(t, handed, taken)
	require.False(t, s.hand(&Ref{}), "to nobody")
}

func TestAWorkerSpinsOnlyWhereItPays(t *testing.T) {
	s := &spinner{}
	var queued atomic.Bool
	seated := func() bool { return s.seat.Load() == &s.vacant }

	var told sync.WaitGroup
	told.Go(func() {
		for range 2000 {
			s.wait(&s.lone, &queued)
			runtime.Gosched()
		}
	})
	for range 20_000 {
		require.False(t, s.hand(&Ref{}), "it was told that it does not pay")
	}
	told.Wait()
	s.lone.Store(true)
	require.Nil(t, s.wait(&s.lone, &queued), "nothing came")
	require.False(t, s.lone.Load(), "it was in vain")

	queued.Store(true) // a task that is to be looked for elsewhere
	s.lone.Store(true)
	require.Nil(t, s.wait(&s.lone, &queued))
	require.True(t, s.lone.Load(), "that was not in vain")

	s.seat.Store(&s.vacant) // of another worker
	queued.Store(false)
	require.Nil(t, s.wait(&s.lone, &queued))
	require.True(t, seated(), "that is the other's")
}

// Wherever an answer falls in the asker's spinning and parking, he gets it, and
// no permit is left behind or missing.
func TestAnAnswerFindsAnAskerThatSpinsOrParks(t *testing.T) {
	s := NewSystem("test", Config{AskTimeout: time.Hour})
	defer stop(t, s)
	p := s.borrow(true)
	answers := make(chan int)
	defer close(answers)
	go func() {
		for n := range answers {
			for range n % 97 * 10 {
				p.Done()
			}
			p.resolve(n, nil)
		}
	}()
	for n := range 30_000 {
		for range p.word.Load() & 7 {
			runtime.Gosched()
		}
		p.word.Store(p.word.Load()&^(promiseNext-1) + promiseNext | promiseQuick)
		answers <- n
		if !p.watch(n % 89 * 10) {
			require.NoError(t, p.park(context.Background(), 0))
		}
		require.Equal(t, n, p.v)
		require.Empty(t, p.quick.permit)
	}
	p.clock.timer.Stop()
}

// An asker who stops spinning while the answer is being written waits for a permit.
func TestAnAskerThatParksWhileTheAnswerIsWrittenGetsAPermit(t *testing.T) {
	s := NewSystem("test", Config{AskTimeout: time.Hour})
	defer stop(t, s)
	for _, parks := range []bool{true, false} {
		p := s.borrow(true)
		p.word.Or(promiseSpins)
		before, ok := p.leave(promiseAnswered)
		require.True(t, ok)
		require.False(t, there(p.word.Load()), "the outcome is not written")
		if parks {
			p.word.And(^promiseSpins)
		}
		p.deliver(before, 1, nil)
		require.True(t, there(p.word.Load()))
		require.Equal(t, parks, len(p.quick.permit) == 1)
	}
}

// The clock ends the ask of an asker who spins without a permit, and does not
// begin anew because he began to.
func TestTheClockEndsAnAskThatSpins(t *testing.T) {
	s := NewSystem("test", Config{AskTimeout: time.Hour}) // the ticks are the test's
	defer stop(t, s)
	for _, begins := range []int{0, 5, ticksPerLimit} {
		p := s.borrow(true)
		p.clock.start()
		defer p.clock.timer.Stop()
		for i := range ticksPerLimit {
			if i == begins {
				p.word.Or(promiseSpins)
			}
			require.False(t, p.Done())
			p.clock.tick()
		}
		spun := begins < ticksPerLimit
		require.True(t, p.GivenUp())
		require.Equal(t, spun, len(p.quick.permit) == 0, "a permit for who parks")
		require.True(t, there(p.word.Load()))
		require.False(t, p.resolve(1, nil))
	}
}

// asked lets a cell see where its ask went, and returns how long it would spin.
func (a *asker) asked(went scheduled) (reads int, probe bool) {
	if went != taskNot {
		a.streak = min(a.streak+1, loneAfter)
	}
	a.went = went
	return a.reads()
}

// single returns a cell of an asker who is alone and has won his trial.
func single() *asker {
	a := &asker{d: &dispatcher{}, probeAt: probeFirst, calm: aloneAfter, trial: trial{spins: true, left: trialWon}}
	a.d.spinner.only.Store(a)
	return a
}

// lonely is single who has found his actor at rest for long.
func lonely() *asker {
	a := single()
	for range loneAfter {
		a.asked(taskWoke)
	}
	return a
}

func TestOnlyALoneAskerSpins(t *testing.T) {
	a := single()
	lone := &a.d.spinner.lone
	for range loneAfter - 1 {
		n, _ := a.asked(taskHanded)
		require.Zero(t, n)
		require.False(t, lone.Load())
	}
	n, probe := a.asked(taskHanded)
	require.Equal(t, spinReads, n)
	require.False(t, probe)
	require.True(t, lone.Load())

	a.ended(true, false)
	for range 3 { // the worker has not come to rest, being as quick, or is about to look
		n, _ = a.asked(taskNot)
		require.Equal(t, spinReads, n)
		n, _ = a.asked(taskQueued)
		require.Equal(t, spinReads, n)
	}
	n, _ = a.asked(taskWoke)
	require.Zero(t, n, "a worker that is woken is not near")
	n, _ = a.asked(taskNot)
	require.Zero(t, n, "the actor is at work for others")
	require.False(t, lone.Load())
	n, _ = a.asked(taskHanded)
	require.Zero(t, n, "who is alone again must show it")
}

// Who asks while somebody else does, of whatever actor, does not spin, nor does
// the other go on.
func TestWhoIsNotAloneDoesNotSpin(t *testing.T) {
	a := lonely()
	b := &asker{d: a.d}
	n, _ := a.asked(taskHanded)
	require.Equal(t, spinReads, n)
	n, _ = b.asked(taskHanded)
	require.Zero(t, n)
	for range 1000 {
		for _, x := range []*asker{a, b} {
			n, _ = x.asked(taskHanded)
			require.Zero(t, n)
			require.False(t, a.d.spinner.lone.Load())
		}
	}
	asks := 1
	for n, _ = a.asked(taskHanded); n == 0; n, _ = a.asked(taskHanded) {
		require.Less(t, asks, 4*aloneAfter, "he is alone again")
		asks++
	}
	require.GreaterOrEqual(t, asks, aloneAfter)
}

// Whoever has not won his trial parks.
func TestWhoseTrialIsNotWonDoesNotSpin(t *testing.T) {
	a := lonely()
	a.asked(taskHanded)
	a.ended(true, false)
	a.trial.spins = false
	n, _ := a.asked(taskHanded)
	require.Zero(t, n)
	require.False(t, a.d.spinner.lone.Load())
	require.False(t, a.near, "nor does he know later where the worker is")
}

func TestSpinningInVainEndsIt(t *testing.T) {
	a := lonely()
	n, _ := a.asked(taskHanded)
	require.Equal(t, spinReads, n)
	a.d.spinner.paid.Store(true)
	a.ended(false, false)
	require.False(t, a.near)
	require.False(t, a.d.spinner.paid.Load())
	for range loneAfter - 1 {
		n, _ = a.asked(taskHanded)
		require.Zero(t, n)
	}
	n, _ = a.asked(taskHanded)
	require.Equal(t, spinReads, n)
}

// A probe in vain makes the next ones rarer, up to a limit.
func TestProbesInVainBecomeRare(t *testing.T) {
	a := lonely()
	next := func() (asks int) {
		for {
			asks++
			if n, probe := a.asked(taskQueued); probe {
				require.Equal(t, probeReads, n)
				return asks
			}
		}
	}
	for _, want := range []int{64, 128, 256, 512, 512} {
		require.Equal(t, want, next())
		a.ended(false, true)
		a.streak = loneAfter
	}
	next()
	a.ended(true, true)
	require.True(t, a.near)
	a.near = false
	require.Equal(t, probeFirst, next())
}

// A parked asker who is answered tells the workers not to keep the processor
// that he needs.
func TestAnAnswerToAParkedAskerEndsSpinning(t *testing.T) {
	s := NewSystem("test", Config{AskTimeout: time.Hour})
	defer stop(t, s)
	p := s.borrow(true)
	p.asker = &asker{d: &dispatcher{}}
	paid := &p.asker.d.spinner.paid
	paid.Store(true)
	p.word.Or(promiseSpins)
	require.True(t, p.resolve(1, nil))
	require.True(t, paid.Load())
	require.Empty(t, p.quick.permit)

	p.word.Store(p.word.Load()&^(promiseNext-1) + promiseNext)
	require.True(t, p.resolve(2, nil))
	require.False(t, paid.Load())
	require.Len(t, p.quick.permit, 1)
}

// One asker, two or three, with handlers and pauses of all lengths around those
// of spinning: every answer is to its question.
func TestAsksWhileSpinningAreNeitherLostNorCrossed(t *testing.T) {
	s := NewSystem("test", Config{})
	defer stop(t, s)
	r, err := s.Spawn("", PropsFunc(func(ctx *Context, msg any) error {
		busy(msg.(int) / 7 % 300)
		ctx.Respond(msg)
		return nil
	}))
	require.NoError(t, err)
	for askers := 1; askers <= 3; askers++ {
		var all sync.WaitGroup
		for who := range askers {
			all.Go(func() {
				for n := range 20_000 {
					question := n*askers + who
					v, err := r.Ask(context.Background(), question)
					if err != nil || v != question {
						t.Errorf("asked %d: %v, %v", question, v, err)
						return
					}
					busy(n / 11 % 300)
				}
			})
		}
		all.Wait()
	}
}

func busy(n int) {
	var x atomic.Int32
	for range n {
		x.Load()
	}
}
