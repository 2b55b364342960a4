package pod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

// Config tunes Pods. The zero value works.
type Config struct {
	// IdleAfter is how long an entity of a lazy pod stays in memory without a
	// message, at least; it leaves within twice that. 0 means 10 minutes,
	// negative never.
	IdleAfter time.Duration
	// MaxActive is how many entities of all pods may be in memory. When there
	// are more, those that have not been used for the longest time leave it; busy
	// ones, those of eager pods and those whose passivation is paused stay, so the
	// bound may be passed. 0 means 100,000, negative no bound.
	MaxActive int
	// Mailbox is how many messages an entity's mailbox holds before senders
	// get actor.ErrMailboxFull. 0 means 1,024.
	Mailbox int
	// MaxState is the most bytes that an entity's encoded state may have; a
	// message that would make it larger is refused. 0 means 4 MiB. It must not
	// exceed what the store takes.
	MaxState int
	// RecoverAtOnce is how many entities an eager pod recovers at a time. 0
	// means 64.
	RecoverAtOnce int
	// RemindAtOnce is how many entities of a pod are reminded at a time. 0 means
	// 256.
	RemindAtOnce int
	// RemindersHeld is how many of a pod's reminders are in memory, at least two
	// for each that RemindAtOnce allows: those that are due next. The others are
	// read from the store when their time comes near. 0 means 65,536.
	RemindersHeld int
	// ChangesHeld is how many of the newest changes are in memory for those who
	// watch; what is before them they read from the store. 0 means 4,096.
	ChangesHeld int
	// Committer tunes how changes are grouped into commits.
	Committer persist.CommitterConfig
}

func (c Config) withDefaults() Config {
	if c.IdleAfter == 0 {
		c.IdleAfter = 10 * time.Minute
	}
	if c.MaxActive == 0 {
		c.MaxActive = 100_000
	}
	if c.Mailbox <= 0 {
		c.Mailbox = 1024
	}
	if c.MaxState <= 0 {
		c.MaxState = 4 << 20
	}
	if c.RecoverAtOnce <= 0 {
		c.RecoverAtOnce = 64
	}
	if c.RemindAtOnce <= 0 {
		c.RemindAtOnce = 256
	}
	if c.RemindersHeld <= 0 {
		c.RemindersHeld = 65_536
	}
	c.RemindersHeld = max(c.RemindersHeld, 2*c.RemindAtOnce)
	if c.ChangesHeld <= 0 {
		c.ChangesHeld = 4096
	}
	return c
}

// Pods is the registry of the pods on one store. It is safe for concurrent
// use. Whoever opens it closes it, before the store and the system.
type Pods struct {
	sys       *actor.System
	committer *persist.Committer
	cfg       Config
	root      *actor.Ref
	letters   *PodDeadLetterActor
	work      context.Context // of what the pods do in the background; ends when they close
	endWork   context.CancelFunc
	changing  gate // serialises changes of definitions
	ending    gate // serialises Close
	residents residents
	volatile  volatileStore
	hub       hub // of what is not volatile

	mu       sync.RWMutex
	pods     map[string]*Pod
	watchers []*watcher
	creation []*creationWatcher
	closing  atomic.Bool
}

type watcher struct{ f func(persist.Change) }

// Open opens the pods that a store holds: document pods run at once, typed pods
// are read-only until Start brings their type. The store must have no other
// writer and stays the caller's to close.
func Open(sys *actor.System, store persist.PersistenceService, cfg Config) (*Pods, error) {
	p := &Pods{
		sys: sys, committer: persist.NewCommitter(sys, store, cfg.Committer), cfg: cfg.withDefaults(),
		pods: make(map[string]*Pod),
	}
	p.residents.init(p.cfg.MaxActive)
	p.hub.init(p)
	p.volatile.hub.init(p)
	p.work, p.endWork = context.WithCancel(context.Background())
	// A restart of a pod's manager would stop all its entities.
	props := actor.PropsFunc(func(*actor.Context, any) error { return nil })
	props.Supervisor = &actor.Strategy{Decide: func(error) actor.Directive { return actor.Resume }}
	props.IgnoreChildren = true
	root, err := sys.Spawn("pods", props)
	if err != nil {
		return nil, fmt.Errorf("open the pods: %w", err)
	}
	p.root = root
	if err := p.openHub(context.Background()); err != nil {
		root.Stop()
		return nil, fmt.Errorf("open the pods: %w", err)
	}
	if err := p.openAll(context.Background()); err != nil {
		root.Stop()
		return nil, fmt.Errorf("open the pods: %w", err)
	}
	return p, nil
}

func (p *Pods) openAll(ctx context.Context) error {
	p.letters = newPodDeadLetterActor(p)
	letters, err := p.root.Spawn("$deadletters", actor.PropsOf(func() actor.Actor { return p.letters }))
	if err != nil {
		return err
	}
	p.letters.subscribe(letters)
	defs, err := p.storedDefinitions(ctx)
	if err != nil {
		return err
	}
	for _, d := range defs {
		if _, err := p.run(d); err != nil {
			return err
		}
	}
	return nil
}

// run puts a pod of a stored definition into the registry.
func (p *Pods) run(d stored) (*Pod, error) {
	var spec *entity.Spec
	if d.Type == entity.KindDocument {
		var err error
		if spec, err = d.spec(); err != nil { // by other rules than today's
			d = stored{name: d.name, Definition: Definition{Type: unreadable}, damaged: err}
		}
	}
	return p.add(d, spec)
}

func (p *Pods) add(d stored, spec *entity.Spec) (*Pod, error) {
	pod := newPod(p, d, spec)
	if err := pod.start(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.pods[pod.name] = pod
	p.mu.Unlock()
	return pod, nil
}

// Pod returns the pod of a name, or an error wrapping ErrNoPod.
func (p *Pods) Pod(name string) (*Pod, error) {
	p.mu.RLock()
	pod := p.pods[name]
	p.mu.RUnlock()
	if pod == nil {
		return nil, fmt.Errorf("%w: %q; declare it, or start its type", ErrNoPod, name)
	}
	return pod, nil
}

// All returns the pods in the order of their names.
func (p *Pods) All() []*Pod {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := make([]*Pod, 0, len(p.pods))
	for _, name := range slices.Sorted(maps.Keys(p.pods)) {
		out = append(out, p.pods[name])
	}
	return out
}

// System returns the actor system that the pods run in.
func (p *Pods) System() *actor.System { return p.sys }

// MaxState returns the most bytes that an entity's encoded state may have: Config.MaxState,
// or its default.
func (p *Pods) MaxState() int { return p.cfg.MaxState }

// Committer returns the way into the store, and its state.
func (p *Pods) Committer() *persist.Committer { return p.committer }

func (p *Pods) store() persist.PersistenceService { return p.committer.Service() }

// Wrap binds a Go value to the message of its type in a pod.
func (p *Pods) Wrap(pod string, v any) (*entity.Message, error) {
	spec, err := p.writableSpec(pod)
	if err != nil {
		return nil, err
	}
	return spec.Wrap(v)
}

// Encode makes a Go value for an entity of a pod into bytes, from which Decode
// makes the message again, also after a restart.
func (p *Pods) Encode(pod string, v any) (what string, body []byte, err error) {
	spec, err := p.writableSpec(pod)
	if err != nil {
		return "", nil, err
	}
	return spec.Encode(v)
}

// Decode makes what Encode returned a message again.
func (p *Pods) Decode(pod, what string, body []byte) (*entity.Message, error) {
	spec, err := p.writableSpec(pod)
	if err != nil {
		return nil, err
	}
	return spec.Decode(what, body)
}

func (p *Pods) writableSpec(pod string) (*entity.Spec, error) {
	to, err := p.Pod(pod)
	if err != nil {
		return nil, err
	}
	return to.writable()
}

// Post puts a message into an entity's mailbox, also while the pods are being
// closed: entities finish what they began.
func (p *Pods) Post(key persist.Key, m actor.Message) error {
	pod, err := p.Pod(key.Pod)
	if err != nil {
		return err
	}
	return pod.post(key.Name, m)
}

var _ entity.Directory = (*Pods)(nil)

// OnChange calls f with every change once it is acknowledged: for each entity
// in order, on the entity's turn, so f must not block. cancel ends that.
func (p *Pods) OnChange(f func(persist.Change)) (cancel func()) {
	w := &watcher{f}
	p.mu.Lock()
	p.watchers = append(slices.Clone(p.watchers), w)
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watchers = slices.DeleteFunc(slices.Clone(p.watchers), func(x *watcher) bool { return x == w })
	}
}

func (p *Pods) published(c persist.Change) {
	p.mu.RLock()
	watchers := p.watchers
	p.mu.RUnlock()
	for _, w := range watchers {
		p.tellWatcher(w, c)
	}
}

// tellWatcher keeps a watcher that panics from harming the entity.
func (p *Pods) tellWatcher(w *watcher, c persist.Change) {
	defer func() {
		if r := recover(); r != nil {
			p.sys.Logger().Error("a watcher of changes panicked", "entity", c.Key.String(), "panic", r)
		}
	}()
	w.f(c)
}

// Close refuses further messages from outside, lets the entities finish and
// makes everything durable, within ctx. An error says what was not finished;
// acknowledged changes of synchronous entities are durable all the same. A
// second call waits for the first and returns nil.
func (p *Pods) Close(ctx context.Context) error {
	if err := p.ending.enter(ctx, p.sys); err != nil {
		return fmt.Errorf("wait for another Close: %w", err)
	}
	defer p.ending.leave()
	if p.closing.Swap(true) {
		return nil
	}
	p.endWork()
	p.endWatches()
	errs := []error{p.emptyMemory(ctx)}
	if err := p.committer.Close(ctx); err != nil {
		errs = append(errs, err)
	}
	if err := p.volatile.close(ctx); err != nil {
		errs = append(errs, err)
	}
	p.root.Stop()
	if err := p.sys.AwaitStop(ctx, p.root); err != nil {
		errs = append(errs, fmt.Errorf("stop the pods: %w", err))
	}
	return errors.Join(errs...)
}

// emptyMemory has all entities of all pods leave memory. The last words of one
// pod's entities may wake those of another, so it goes round until a whole
// round meets nobody.
func (p *Pods) emptyMemory(ctx context.Context) error {
	if mutant.On(mutant.CloseLosesAsync) {
		return nil
	}
	for {
		var met atomic.Bool
		var ended []*actor.Promise
		for _, pod := range p.All() { // side by side, so that none waits for another's that cannot leave
			end := p.sys.NewPromise()
			ended = append(ended, end)
			p.sys.Go(func() {
				err := pod.passivateAll(ctx, func(*slot) bool { met.Store(true); return true }, true)
				if err != nil {
					end.Fail(fmt.Errorf("close pod %s: %w", pod.name, err))
					return
				}
				end.Complete(nil)
			})
		}
		var errs []error
		for _, end := range ended {
			_, err := end.Wait(context.WithoutCancel(ctx)) // ctx bounds passivateAll
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil || !met.Load() {
			return err
		}
	}
}
