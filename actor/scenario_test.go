package actor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

// TestSupervisionScenario runs one tree of supervisors of all kinds, whose
// workers fail, panic and stop at random, under thousands of seeds. What must
// hold is in check. ACTOR_SEED=n runs only that seed.
func TestSupervisionScenario(t *testing.T) {
	if s := os.Getenv("ACTOR_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		exec := actortest.NewSeeded(seed)
		defer exec.Close()
		err = scenario(exec)
		if err != nil {
			t.Log(strings.Join(exec.Trace(), "\n"))
		}
		require.NoError(t, err)
		return
	}
	var next, failed atomic.Uint64
	var total totals
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for failed.Load() < 3 {
				seed := next.Add(1)
				if seed > scenarioSeeds {
					return
				}
				exec := actortest.NewSeeded(seed)
				w := newScene(exec)
				if err := w.play(); err != nil {
					failed.Add(1)
					t.Errorf("seed %d: %v\nreplay: ACTOR_SEED=%d go test ./actor -run '^TestSupervisionScenario$'", seed, err, seed)
				}
				exec.Close()
				total.add(w)
			}
		})
	}
	wg.Wait()
	t.Logf("%d seeds: %+v", scenarioSeeds, total.sum)
	require.Positive(t, total.sum.handled)
	require.Positive(t, total.sum.dead)
	require.Positive(t, total.sum.restarted)
	require.Positive(t, total.sum.stopped)
}

// totals are over all seeds, to see that everything does come up.
type totals struct {
	mu  sync.Mutex
	sum counts
}

type counts struct{ sent, handled, dead, restarted, failed, stopped, watched int }

func (t *totals) add(s *scene) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := s.counts
	t.sum.sent += c.sent
	t.sum.handled += c.handled
	t.sum.dead += c.dead
	t.sum.restarted += c.restarted
	t.sum.failed += c.failed
	t.sum.stopped += c.stopped
	t.sum.watched += c.watched
}

func scenario(exec *actortest.Seeded) error { return newScene(exec).play() }

// job is a message with a number of its own and what to do at it.
type job struct {
	id   int
	from int // sender
	n    int // of that sender to that actor, from 1
	do   string
}

type scene struct {
	exec    *actortest.Seeded
	sys     *actor.System
	workers []*actor.Ref
	counts

	handledBy map[int]string         // job id → worker
	deadJobs  map[int]int            // job id → dead letters
	last      map[string]map[int]int // worker → sender → n
	inside    map[string]bool
	events    map[*actor.Ref][]actor.EventKind
	told      map[*actor.Ref]int // Terminated by who stopped
	asks      int
	answers   int
	errs      []error
}

func (s *scene) wrong(format string, a ...any) {
	if len(s.errs) < 5 {
		s.errs = append(s.errs, fmt.Errorf(format, a...))
	}
}

func newScene(exec *actortest.Seeded) *scene {
	s := &scene{
		exec: exec, sys: actor.NewSystem("scene", actor.Config{Executor: exec}),
		handledBy: map[int]string{}, deadJobs: map[int]int{}, last: map[string]map[int]int{},
		inside: map[string]bool{}, events: map[*actor.Ref][]actor.EventKind{}, told: map[*actor.Ref]int{},
	}
	s.sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) {
		if j, ok := z.Message.Payload.(job); ok {
			s.deadJobs[j.id]++
			s.dead++
		}
	})
	s.sys.Events().Subscribe(func(e actor.Event) { s.events[e.Ref] = append(s.events[e.Ref], e.Kind) })
	return s
}

func (s *scene) play() error {
	s.plant()
	for from := range 3 {
		s.sys.Go(func() { s.send(from) })
	}
	s.exec.Run()
	for _, w := range s.workers[:16] {
		ended := len(s.events[w]) > 0 && s.events[w][len(s.events[w])-1] == actor.ActorStopped
		if ended != (s.told[w] == 1) {
			s.wrong("%v: ended %v, Terminated came %d times", w, ended, s.told[w])
		}
	}
	if err := s.sys.Stop(context.Background()); err != nil {
		s.wrong("stop: %w", err)
	}
	s.check()
	return errors.Join(s.errs...)
}

// plant makes a watcher and four supervisors with three workers each, one of
// which is a level deeper.
func (s *scene) plant() {
	strategies := []*actor.Strategy{
		{MaxRestarts: 3},
		{AllForOne: true, MaxRestarts: 4, MinBackoff: 10 * time.Millisecond},
		{Choose: actor.ByError(actor.Resume, actor.WhenType[*actor.PanicError](actor.Restart), actor.When(errOther, actor.Stop))},
		{Choose: func(f actor.Failure) actor.Decision {
			if f.Restarts > 1 {
				return actor.Decision{Directive: actor.Escalate}
			}
			return actor.Decision{Directive: actor.Directive(s.sys.Uint64() % 3), Delay: 5 * time.Millisecond}
		}},
	}
	for i, strategy := range strategies {
		name := fmt.Sprint("s", i)
		p := actor.PropsOf(func() actor.Actor { return &boss{s: s, name: name, strategy: strategy} })
		p.Supervisor = strategy
		if _, err := s.sys.Spawn(name, p); err != nil {
			s.wrong("spawn: %w", err)
		}
	}
	watcher, err := s.sys.Spawn("watcher", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		switch m := msg.(type) {
		case *actor.Ref:
			ctx.Watch(m)
			s.watched++
		case actor.Terminated:
			s.told[m.Ref]++
		}
		return nil
	}))
	if err != nil {
		s.wrong("spawn: %w", err)
	}
	s.exec.RunUntil(func() bool { return len(s.workers) >= 4*4 })
	for _, w := range s.workers {
		_ = watcher.Tell(w)
	}
}

// boss spawns its workers whenever it starts.
type boss struct {
	s        *scene
	name     string
	strategy *actor.Strategy
}

func (b *boss) PreStart(ctx *actor.Context) error {
	for i := range 3 {
		w, err := ctx.Spawn(fmt.Sprint("w", i), b.worker())
		if err != nil {
			return err
		}
		b.s.workers = append(b.s.workers, w)
		if i == 0 {
			deep, err := w.Spawn("deep", b.worker())
			if err != nil && !errors.Is(err, actor.ErrStopped) {
				return err
			}
			if err == nil {
				b.s.workers = append(b.s.workers, deep)
			}
		}
	}
	return nil
}

func (b *boss) Receive(*actor.Context, any) error { return nil }

func (b *boss) worker() actor.Props {
	p := actor.PropsOf(func() actor.Actor { return &labourer{b.s} })
	p.Supervisor = b.strategy
	return p
}

type labourer struct{ s *scene }

func (l *labourer) Receive(ctx *actor.Context, msg any) error {
	s, me, j := l.s, fmt.Sprintf("%p", ctx.Self()), msg.(job)
	if s.inside[me] {
		s.wrong("%v handles two messages at a time", ctx.Self())
	}
	s.inside[me] = true
	defer func() { s.inside[me] = false }()
	if s.last[me] == nil {
		s.last[me] = map[int]int{}
	}
	if s.last[me][j.from] >= j.n {
		s.wrong("%v got %d of sender %d after %d", ctx.Self(), j.n, j.from, s.last[me][j.from])
	}
	s.last[me][j.from] = j.n
	if by, again := s.handledBy[j.id]; again {
		s.wrong("job %d was handled by %s and %s", j.id, by, me)
	}
	s.handledBy[j.id] = me
	s.handled++
	switch j.do {
	case "error":
		return errTest
	case "fatal":
		return errOther
	case "panic":
		panic("on purpose")
	case "stop":
		ctx.StopSelf()
	case "wait":
		return s.sys.Sleep(context.Background(), time.Millisecond)
	}
	if ctx.Message().Reply != nil {
		ctx.Respond(j.id)
	}
	return nil
}

func (s *scene) send(from int) {
	n := map[*actor.Ref]int{}
	for range 25 {
		to := s.workers[s.sys.Uint64()%uint64(len(s.workers))]
		n[to]++
		s.sent++
		j := job{s.sent, from, n[to], "work"}
		switch d := s.sys.Uint64() % 20; {
		case d < 3:
			j.do = "error"
		case d < 4:
			j.do = "fatal"
		case d < 6:
			j.do = "panic"
		case d < 7:
			j.do = "stop"
		case d < 9:
			j.do = "wait"
		}
		if s.sys.Uint64()%3 == 0 {
			s.ask(to, j)
		} else {
			_ = to.Tell(j)
		}
		if s.sys.Uint64()%16 == 0 {
			_ = s.sys.Sleep(context.Background(), time.Duration(s.sys.Uint64()%100)*time.Millisecond)
		}
	}
}

func (s *scene) ask(to *actor.Ref, j job) {
	s.asks++
	ended := false
	_ = to.Post(actor.Message{Payload: j, Reply: s.sys.OnReply(func(v any, err error) {
		if ended {
			s.wrong("ask %d ended twice", j.id)
		}
		ended = true
		s.answers++
		if err == nil && v != j.id {
			s.wrong("ask %d was answered %v", j.id, v)
		}
	})})
}

// check says what must hold in the end.
func (s *scene) check() {
	for id := 1; id <= s.sent; id++ {
		_, handled := s.handledBy[id]
		dead := s.deadJobs[id]
		if (handled && dead > 0) || (!handled && dead != 1) {
			s.wrong("job %d: handled %v, and %d times a dead letter", id, handled, dead)
		}
	}
	if s.asks != s.answers {
		s.wrong("%d asks, %d ended", s.asks, s.answers)
	}
	for _, w := range s.workers[:16] {
		// The watcher may have stopped before it heard of the system's end.
		if s.told[w] > 1 {
			s.wrong("%v: Terminated came %d times", w, s.told[w])
		}
	}
	for _, w := range s.workers {
		if !w.Stopped() || len(w.Children()) > 0 {
			s.wrong("%v has not stopped", w)
		}
		s.checkEvents(w, s.events[w])
	}
}

// checkEvents holds one life to: started, then failures and restarts, then
// stopped, once and last.
func (s *scene) checkEvents(w *actor.Ref, kinds []actor.EventKind) {
	for i, k := range kinds {
		ok := true
		switch k {
		case actor.ActorStarted:
			ok = i == 0
		case actor.ActorRestarted:
			s.restarted++
			ok = i > 0
		case actor.ActorFailed:
			s.failed++
			ok = i > 0
		case actor.ActorStopped:
			s.stopped++
			ok = i == len(kinds)-1
		}
		if !ok {
			s.wrong("%v: %v as number %d of %v", w, k, i, kinds)
		}
	}
	if len(kinds) == 0 || kinds[len(kinds)-1] != actor.ActorStopped {
		s.wrong("%v: no end in %v", w, kinds)
	}
}
