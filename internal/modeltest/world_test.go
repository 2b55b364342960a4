package modeltest

import (
	"context"
	"errors"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// world is a system with pods on a store, and the model of it.
type world struct {
	*model
	t      *rapid.T
	seeded bool
	media  []medium // of the kinds to which the store may move
	medium medium
	cfg    pod.Config
	eager  bool

	raw      persist.PersistenceService // nil while no store is open
	gate     *gate                      // nil with a medium that needs none
	faults   *persisttest.FaultStore
	exec     *actortest.Seeded // nil: the system's own, and the clock on the wall
	sys      *actor.System
	pods     *pod.Pods
	elapsed  time.Duration // virtual time of all runs
	restarts int

	heard     int // published changes
	mu        sync.Mutex
	published []persist.Change
	letters   []actor.ZombieMsg
}

func (w *world) must(err error, doing string) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", doing, err)
	}
}

// open starts a system on what the medium holds, and compares that with the
// model.
func (w *world) open() {
	w.t.Helper()
	w.exec, w.gate = nil, nil
	actors := actor.Config{}
	if w.seeded {
		w.exec = actortest.NewSeeded(rapid.Uint64().Draw(w.t, "seed"))
		w.exec.RunFor(w.elapsed)
		actors.Executor = w.exec
	}
	w.sys = actor.NewSystem("model", actors)
	raw, err := w.medium.open()
	w.must(err, "open the store")
	w.raw = raw
	w.inspect(w.raw)
	w.faults = persisttest.NewFaultStore(w.guard(w.raw))
	w.sys.DeadLetters().Subscribe(w.letter)
	w.pods, err = pod.Open(w.sys, w.faults, w.cfg)
	w.must(err, "open the pods")
	w.pods.OnChange(w.change)
	w.start()
	for _, k := range w.keys {
		if w.look(w.books[k]) {
			w.books[k].settle(w.sent)
		}
	}
}

// guard gives a store's commits their duration, and what lets it die.
func (w *world) guard(raw persist.PersistenceService) persist.PersistenceService {
	sys := w.sys
	pause := func(ctx context.Context) error { return sys.Sleep(ctx, time.Duration(sys.Uint64()%3)*time.Millisecond) }
	if crash, is := raw.(*persisttest.CrashStore); is {
		crash.Pause = pause
		return crash
	}
	w.gate = &gate{PersistenceService: raw, pause: pause}
	return w.gate
}

func (w *world) start() {
	for _, k := range []entity.Definition{
		slowly(w.sys, ledgers(syncPod, entity.Sync(), w.eager)),
		ledgers(asyncPod, entity.Async(asyncInterval), false),
		sourceds(),
		entity.Document{Name: docPod},
		ledgers(volatilePod, entity.Volatile(), false),
	} {
		_, err := w.pods.Start(context.Background(), k)
		w.must(err, "start a pod")
	}
}

func (w *world) letter(z actor.ZombieMsg) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if undelivered(z) {
		w.letters = append(w.letters, z)
	}
}

func (w *world) change(c persist.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published = append(w.published, c)
}

// hear takes everything that the system has told so far.
func (w *world) hear() {
	w.collect()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, z := range w.letters {
		w.failf("a message of SendOnce to %s was given up: %v", z.To, z.Reason)
	}
	for _, c := range w.published {
		w.told(c)
	}
	w.heard += len(w.published)
	w.published = nil
}

func (w *world) pod(name string) *pod.Pod {
	p, err := w.pods.Pod(name)
	w.must(err, "find a pod")
	return p
}

// post sends an attempt's message.
func (w *world) post(a *attempt, msg any) {
	a.promise = w.sys.NewPromise()
	if err := w.pod(a.book.key.Pod).Ref(a.book.key.Name).Post(actor.Message{Payload: msg, Reply: a.promise}); err != nil {
		a.promise.Fail(err)
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	if w.exec != nil {
		w.exec.RunFor(d)
		return
	}
	_ = w.sys.Sleep(context.Background(), d)
}

// patience is how long the answer to a message may take, with the faults that
// there are.
const patience = 30 * time.Second

// await lets time pass until an attempt is answered.
func (w *world) await(a *attempt) {
	w.t.Helper()
	const step = 2 * time.Millisecond
	for waited := time.Duration(0); !a.promise.Done(); waited += step {
		if waited > patience {
			w.hear()
			a.book.failf("%s is not answered within %v", a, patience)
		}
		w.pass(step)
	}
	w.hear()
}

// look reads an entity and compares it with the model, and reports whether it
// could be read.
func (w *world) look(b *book) bool {
	w.hear()
	v, err := w.pod(b.key.Pod).Get(context.Background(), b.key.Name)
	return w.shows(b, v, err)
}

func (w *world) shows(b *book, v pod.View, err error) bool {
	switch {
	case err == nil:
		state, err := v.JSON()
		w.must(err, "read a view")
		log, err := logOf(b.key.Pod, state)
		w.must(err, "read a view")
		b.now(v.Life, v.Revision, log)
		return true
	case errors.Is(err, entity.ErrNotFound):
		b.absent()
		return true
	case errors.Is(err, entity.ErrQuarantined) && w.damaged[b.key]:
	case errors.Is(err, persist.ErrUnavailable):
	default:
		b.failf("it cannot be read: %v", err)
	}
	return false
}

// list reads a pod as a whole and compares it with the model.
func (w *world) list(name string) {
	w.hear()
	page, err := w.pod(name).List(context.Background(), persist.ListOptions{})
	if err != nil {
		if !errors.Is(err, persist.ErrUnavailable) {
			w.failf("list %s: %v", name, err)
		}
		return
	}
	if name == volatilePod {
		return // its own store may be ahead of the lines
	}
	found := map[string]bool{}
	for _, i := range page.Items {
		found[i.Name] = true
		w.shows(w.books[persist.Key{Pod: name, Name: i.Name}], i.View, i.Err)
	}
	for _, n := range entityNames {
		if b := w.books[persist.Key{Pod: name, Name: n}]; !found[n] {
			b.absent()
		}
	}
}

// settle waits until nothing of an entity is in flight, and decides what was
// unknown.
func (w *world) settle(b *book) {
	w.t.Helper()
	for range 200 {
		a := w.fence(b)
		w.await(a)
		rejected := (*entity.RejectedError)(nil)
		if a.err == nil || errors.Is(a.err, entity.ErrNotFound) || errors.As(a.err, &rejected) {
			if w.look(b) {
				b.settle(a.n)
				return
			}
		}
		w.pass(50 * time.Millisecond)
	}
	b.failf("it does not come back")
}

// fence sends a message that is answered behind all others.
func (w *world) fence(b *book) *attempt {
	if b.key.Pod == docPod {
		a := w.attempt(b, "fence", nil)
		w.post(a, entity.Remove{Pointer: "/nothing"})
		return a
	}
	a := w.attempt(b, "peek", nil)
	w.post(a, peek{})
	return a
}

// close ends the system in order, and leaves the store open.
func (w *world) close() {
	w.t.Helper()
	ctx, cancel := w.sys.WithTimeout(context.Background(), patience)
	defer cancel()
	w.must(w.pods.Close(ctx), "close the pods")
	w.must(w.sys.Stop(ctx), "stop the system")
	w.ended(true)
}

// ended takes note that the system has stopped.
func (w *world) ended(inOrder bool) {
	if w.exec != nil {
		w.elapsed = w.exec.Now().Sub(actortest.NewSeeded(0).Now()) + time.Second
		w.exec.Close()
	}
	w.hear()
	w.pods, w.sys = nil, nil
	w.restarts++
	for _, k := range w.keys {
		b := w.books[k]
		for _, a := range b.attempts {
			if inOrder && a.fate == open {
				b.failf("%s was not answered before the pods were closed", a)
			}
		}
		b.restart(inOrder)
	}
}

// shut closes the store after close.
func (w *world) shut() {
	w.must(w.raw.Close(), "close the store")
	w.medium = w.medium.closed(w.raw)
	w.raw = nil
}

// crash ends the system and the store where they are.
func (w *world) crash() {
	w.t.Helper()
	quiet := func() {}
	if w.gate != nil {
		w.gate.dead.Store(true)
		quiet = w.gate.quiet
	}
	after, err := w.medium.crashed(w.raw, rapid.Uint64().Draw(w.t, "luck"), quiet)
	w.must(err, "take what the crash left")
	w.abandon()
	w.ended(false)
	w.medium, w.raw = after, nil
}

// abandon gets rid of a system whose store is dead. What runs on the seeded
// executor ends with that.
func (w *world) abandon() {
	if w.exec != nil || w.sys == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	_ = w.pods.Close(ctx) // it cannot finish
	cancel()
	ctx, cancel = context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.must(w.sys.Stop(ctx), "stop the abandoned system")
}

// cleanup gets rid of what a failed or finished run has left.
func (w *world) cleanup() {
	if w.gate != nil {
		w.gate.dead.Store(true)
	}
	if w.raw != nil {
		_ = w.raw.Close()
	}
	switch {
	case w.exec != nil:
		w.exec.Close()
	case w.sys != nil:
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if w.pods != nil { // nil when what the store held was found wrong
			_ = w.pods.Close(ctx)
		}
		_ = w.sys.Stop(context.Background())
	}
}
