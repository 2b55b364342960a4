package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

// Result is what a run came to.
type Result struct {
	Trace uint64   // a digest of everything that happened
	Steps int      // how many steps the plan has
	Wrong []string // broken promises; none if all is well
}

const systemName = "sim"

// world is one run. All of it happens on one goroutine.
type world struct {
	exec      *actortest.Seeded
	sys       *actor.System
	service   *patterns.CompletionService
	log       io.Writer
	digest    uint64
	wrongs    []string
	userOver  bool // /user has stopped
	over      bool // the system has stopped; nothing may happen any more
	delegated bool // somebody has
	halted    bool // it was told to
	shut      bool // the completion service is
	overheard bool // actors hear of dead letters; theirs about such are only counted

	lives   []*life // in the order in which they came
	byRef   map[*actor.Ref]*life
	at      map[string]*life // the latest of a path
	parcels []*parcel
	replies []*reply
	asks    []*asking
	waits   []*waiting
	timers  []*timing
	sent    int // counts what is sent
	jobs    int // that run
	letters uint64
	events  []actor.Event
	zombies []actor.ZombieMsg
	visits  int
	probes  int // jobs of the harness itself

	notes     notes // what the system's store has
	handbacks []*handback
	misheard  int    // subscriptions to nothing that have not ended
	relayed   []bool // dead letters that were sent as such: told

	// See logging.go.
	due        string // what is to be logged next
	lastFailed string // the line about a failure whose event is to come
	dropped    string // whose system message was, by the last such line
	heardAll   int    // what the subscriber that panics has heard
}

// Run carries out the plan of a seed, but for the steps that keep, if not nil,
// says no to. A log, if not nil, gets a line for everything that happens.
func Run(seed uint64, keep func(step int) bool, log io.Writer) Result {
	w := &world{
		exec: actortest.NewSeeded(seed), log: log, digest: 14695981039346656037,
		byRef: map[*actor.Ref]*life{}, at: map[string]*life{}, notes: notes{},
	}
	w.sys = actor.NewSystem(systemName, actor.Config{
		Executor: w.exec, AskTimeout: 2 * time.Second, Logger: slog.New(book{w: w}),
	})
	w.service = patterns.NewCompletionService(w.sys, patterns.Config{Limit: 5, Timeout: time.Second})
	deaf := w.sys.DeadLetters().Subscribe(func(actor.ZombieMsg) { w.earful() })
	deafer := w.sys.Events().Subscribe(func(actor.Event) { w.earful() })
	w.sys.DeadLetters().Subscribe(w.onDead)
	w.sys.Events().Subscribe(w.onEvent)
	plan := newPlan(seed)
	for _, s := range plan {
		if keep == nil || keep(s.at) {
			w.note("step %d: %v", s.at, s)
			w.do(s)
		}
	}
	deaf()
	deafer()
	heard := w.heardAll
	w.finish()
	if w.heardAll != heard {
		w.wrong("who has cancelled a subscription is told %d things", w.heardAll-heard)
	}
	w.exec.Close()
	w.mix(w.exec.Hash())
	w.mix(w.exec.Steps())
	return Result{Trace: w.digest, Steps: len(plan), Wrong: w.wrongs}
}

func (w *world) mix(x uint64) { w.digest = (w.digest ^ x) * 1099511628211 }

// note writes into the trace.
func (w *world) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	for i := range len(line) {
		w.mix(uint64(line[i]))
	}
	if w.log != nil {
		_, _ = fmt.Fprintf(w.log, "%12v %s\n", w.now().Sub(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), line)
	}
}

func (w *world) wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.wrongs = append(w.wrongs, text)
	w.note("WRONG: %s", text)
}

func (w *world) now() time.Time { return w.exec.Now() }

// tick numbers what is sent.
func (w *world) tick() int {
	w.sent++
	return w.sent
}

// spare is the runtime's own or unknown actor, whom nothing is expected of.
func (w *world) lifeAt(slot int) *life { return w.at["/user/"+slots[slot]] }

// goes runs a job and counts it.
func (w *world) goes(f func()) {
	w.jobs++
	w.sys.Go(func() {
		defer func() { w.jobs-- }()
		f()
	})
}

// do carries out a step.
func (w *world) do(s step) {
	l := w.lifeAt(s.slot)
	switch s.kind {
	case spawn, ensure, rate, brood, misname:
		w.making(s)
		return
	case goOn:
		w.exec.RunFor(s.d)
		return
	case turns:
		for range s.n {
			w.exec.Step()
		}
		return
	case choose:
		w.selecting(s)
		return
	case relayStep:
		w.relaying()
		return
	case mishear:
		w.mishearing(s)
		return
	case send:
		w.sending(s)
		return
	case cancel:
		if n := len(w.timers); n > 0 {
			w.timers[s.n%n].cancel()
		}
		return
	case look:
		w.looking()
		return
	case closing:
		w.shut = true
		w.service.Close()
		return
	case halt:
		w.stopping(s.d)
		return
	}
	if l != nil {
		w.doTo(l, s)
	}
}

// doTo carries out a step that is about an actor.
func (w *world) doTo(l *life, s step) {
	out := fmt.Sprintf("out%d", s.who)
	switch s.kind {
	case tell:
		w.telling(l, out, s.letter)
	case burst:
		for range s.n {
			w.telling(l, out, s.letter)
		}
	case ask:
		w.asking(l, s)
	case promise:
		w.promising(l, s)
	case future:
		w.futuring(l, s)
	case pill:
		l.pilled(out, l.ref.Tell(actor.PoisonPill{}))
	case askPill:
		w.askPill(l)
	case stop:
		w.note("stop %v", l)
		l.asked++
		l.ref.Stop()
	case stopChild:
		w.stopChild(l)
	case urge:
		for range s.n {
			l.urge(&urging{fails: s.fails})
		}
	case awaitEnd:
		w.awaiting(l, s.d)
	case subscribe, unsubscribe:
		w.subscribing(l, s)
	case resize, toAll:
		w.routing(l, s)
	case name:
		w.naming(l, s)
	}
}

func (w *world) stopChild(l *life) {
	if l.parent == nil {
		return
	}
	holder, ok := l.parent.ref.Child(l.name())
	if ok != l.parent.ref.StopChild(l.name()) {
		w.wrong("StopChild and Child do not agree about %v", l)
	}
	if ok == l.over && holder == l.ref {
		w.wrong("StopChild says %v of %v, whose end is %v", ok, l, l.over)
	}
	if k := w.byRef[holder]; k != nil {
		k.asked++
	}
}

// waiting is a wait for an actor's end.
type waiting struct {
	of    *life
	until time.Time
	ended bool
}

func (w *world) awaiting(l *life, limit time.Duration) {
	x := &waiting{of: l, until: w.now().Add(limit)}
	w.waits = append(w.waits, x)
	w.goes(func() {
		ctx, cancel := w.sys.WithTimeout(context.Background(), limit)
		defer cancel()
		err := w.sys.AwaitStop(ctx, l.ref)
		x.ended = true
		w.note("awaited %v: %v", l, err)
		switch {
		case err == nil && !l.over:
			w.wrong("AwaitStop of %v returned before its end", l)
		case err != nil && (!errors.Is(err, context.DeadlineExceeded) || w.now().Before(x.until)):
			w.wrong("AwaitStop of %v ended early: %v", l, err)
		case err != nil && !strings.Contains(err.Error(), l.path):
			w.wrong("AwaitStop of %v does not name it: %v", l, err)
		}
	})
}
