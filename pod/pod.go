package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
)

// Pod is a named collection of entities of one type, without the Go type of
// their state. It is safe for concurrent use.
type Pod struct {
	pods      *Pods
	name      string
	committer *persist.Committer
	hub       *hub // tells of what the committer commits
	manager   *actor.Ref
	slots     slots
	indexes   indexing
	pinned    pins
	reminders reminders
	swept     uint64 // the count of uses at the last sweep; the manager's alone

	def  atomic.Pointer[stored]
	spec atomic.Pointer[entity.Spec] // nil: the type is not part of this program

	dropping   atomic.Bool
	recovering atomic.Int64 // eager recoveries that are under way
	removing   atomic.Int64 // deletions of entities that are under way
	unread     quarantineList
}

func newPod(p *Pods, d stored, spec *entity.Spec) *Pod {
	pod := &Pod{pods: p, name: d.name, committer: p.committerOf(d.Definition)}
	if pod.hub = &p.hub; pod.committer != p.committer {
		pod.hub = &p.volatile.hub
	}
	pod.slots.init()
	pod.reminders.init(pod)
	pod.def.Store(&d)
	if spec != nil {
		pod.spec.Store(spec)
	}
	return pod
}

// start spawns the pod's manager and begins what is to be done in the
// background.
func (p *Pod) start() error {
	if err := p.spawnManager(p.spec.Load()); err != nil {
		return err
	}
	if err := p.def.Load().damaged; err != nil {
		p.quarantine("", fmt.Errorf("%w: the pod's definition cannot be read; declare the pod again: %w", entity.ErrQuarantined, err))
	}
	p.index()
	p.recoverEagerly()
	p.resumeOutboxes()
	p.reminders.begin()
	return nil
}

func (p *Pod) spawnManager(spec *entity.Spec) error {
	// By default an entity that keeps failing outside its handlers harms itself
	// alone.
	strategy := &actor.Strategy{MaxRestarts: -1}
	if spec != nil && spec.Supervisor != nil {
		strategy = spec.Supervisor
	}
	manager, err := p.pods.root.Spawn(p.name, actor.Props{
		New:            func() actor.Actor { return &PodManagerActor{pod: p} },
		OnAbsent:       p.claim,
		Supervisor:     strategy,
		IgnoreChildren: true, // entities come and go by passivation
	})
	if err != nil {
		return fmt.Errorf("start pod %s: %w", p.name, err)
	}
	p.manager = manager
	return nil
}

// superviseBy gives a pod whose type was unknown so far, and which so has nobody
// in memory, a manager with the type's strategy.
func (p *Pod) superviseBy(ctx context.Context, spec *entity.Spec) error {
	if p.spec.Load() != nil || spec.Supervisor == nil {
		return nil
	}
	p.manager.Stop()
	if err := p.pods.sys.AwaitStop(ctx, p.manager); err != nil {
		return fmt.Errorf("start pod %s: %w", p.name, err)
	}
	return p.spawnManager(spec)
}

// Name returns the pod's name.
func (p *Pod) Name() string { return p.name }

// Spec returns what the pod's entities are made of; nil when their type is not
// part of this program and the pod is read-only.
func (p *Pod) Spec() *entity.Spec { return p.spec.Load() }

func (p *Pod) store() persist.PersistenceService { return p.committer.Service() }

// writable returns the spec, or why the pod takes no messages.
func (p *Pod) writable() (*entity.Spec, error) {
	spec := p.spec.Load()
	if spec == nil {
		if err := p.def.Load().damaged; err != nil {
			return nil, fmt.Errorf("%w: the definition of pod %s cannot be read; declare it again: %v", ErrReadOnly, p.name, err)
		}
		return nil, fmt.Errorf("%w: pod %s has a type that this program does not have; run the program that defines it", ErrReadOnly, p.name)
	}
	return spec, nil
}

// Ref returns an entity's address.
func (p *Pod) Ref(name string) entity.Ref {
	return entity.NewRef(p, persist.Key{Pod: p.name, Name: name})
}

var _ entity.Directory = (*Pod)(nil)

// System returns the actor system that the pod runs in.
func (p *Pod) System() *actor.System { return p.pods.sys }

// Wrap binds a Go value to the message of its type in a pod.
func (p *Pod) Wrap(pod string, v any) (*entity.Message, error) { return p.pods.Wrap(pod, v) }

// Encode makes a Go value for an entity of a pod into bytes.
func (p *Pod) Encode(pod string, v any) (string, []byte, error) { return p.pods.Encode(pod, v) }

// Decode makes what Encode returned a message again.
func (p *Pod) Decode(pod, what string, body []byte) (*entity.Message, error) {
	return p.pods.Decode(pod, what, body)
}

// Post puts a message into an entity's mailbox and returns at once. The payload
// is an *entity.Message, or a Go value of one of the pod's messages. It fails,
// taking nothing, when the pod is read-only or closing, the name or the message
// is bad, or the entity's mailbox is full.
func (p *Pod) Post(key persist.Key, m actor.Message) error {
	switch {
	case key.Pod != p.name:
		return p.pods.Post(key, m)
	case p.pods.closing.Load():
		return fmt.Errorf("pod %s: %w", p.name, ErrStopping)
	}
	return p.post(key.Name, m)
}

// Tell puts a message into an entity's mailbox, which creates the entity if it
// is new and the message may do that.
func (p *Pod) Tell(name string, msg any) error {
	return p.Ref(name).Post(actor.Message{Payload: msg})
}

// Ask sends a message and waits for the answer.
func (p *Pod) Ask(ctx context.Context, name string, msg any) (any, error) {
	return actor.Ask[any](ctx, p.Ref(name), msg)
}

// Delete ends an entity's life, durably, if the condition holds. The answer is
// the revision of the deletion; entity.ErrNotFound when there is no entity. A
// quarantined entity is removed whatever the condition.
func (p *Pod) Delete(ctx context.Context, name string, c entity.Condition) (entity.Ack, error) {
	return entity.Ask[entity.Ack](ctx, p.Ref(name), entity.Delete(c))
}

// post is Post also while the pods are closing: entities finish what they began.
func (p *Pod) post(name string, m actor.Message) error { return p.deliver(name, m, false) }

// deliver resolves the name to its slot until one takes the message. Only what
// deletes the pod's entities gets into a pod that is being deleted.
func (p *Pod) deliver(name string, m actor.Message, deletes bool) error {
	msg, err := p.bind(name, m.Payload)
	if err != nil {
		return err
	}
	m.Payload = msg
	for {
		if p.dropping.Load() && !deletes {
			return p.isDropped()
		}
		s, err := p.slots.ensure(name, func(succeeds bool) (*slot, error) {
			if p.dropping.Load() && !deletes { // looked at again under the lock that clear's passivation takes
				return nil, p.isDropped()
			}
			return p.spawn(name, p.spec.Load(), succeeds)
		})
		if err != nil {
			return err
		}
		if err = s.ref.TryPost(m); !errors.Is(err, actor.ErrStopped) {
			if err != nil {
				return fmt.Errorf("%s/%s: %w", p.name, name, err)
			}
			return nil
		}
	}
}

// bind makes of what is to be sent to a name a message of the pod.
func (p *Pod) bind(name string, payload any) (*entity.Message, error) {
	spec, err := p.writable()
	if err != nil {
		return nil, err
	}
	if err := entity.CheckName(name); err != nil {
		return nil, err
	}
	return spec.Wrap(payload)
}

func (p *Pod) isDropped() error {
	return fmt.Errorf("%w: pod %s is being deleted", ErrStopping, p.name)
}

// passivateAll has the resident entities for which which holds leave memory,
// again for those that messages kept busy, until none is left that can or ctx
// ends. Those whose changes the store does not take at the moment are given up,
// or with patience asked again. The error is that of the first, by name, that
// stays.
func (p *Pod) passivateAll(ctx context.Context, which func(*slot) bool, patience bool) error {
	stuck := map[*slot]bool{}
	var failed error
	for {
		resident := p.resident(func(s *slot) bool { return !stuck[s] && !s.ref.Stopped() && which(s) })
		if len(resident) == 0 {
			return failed
		}
		asked := make([]*actor.Promise, len(resident))
		for i, s := range resident {
			asked[i] = p.askToLeave(s)
		}
		again := false
		for i, s := range resident {
			_, err := asked[i].Wait(ctx)
			switch {
			case err == nil, errors.Is(err, entity.ErrBusy), errors.Is(err, actor.ErrStopped):
			case ctx.Err() != nil:
				return fmt.Errorf("%s/%s: %w", p.name, s.name, err)
			case errors.Is(err, actor.ErrMailboxFull), patience:
				again = true
			default:
				stuck[s] = true
				failed = cmp.Or(failed, fmt.Errorf("%s/%s: %w", p.name, s.name, err))
			}
		}
		if again {
			if err := p.pods.sys.Sleep(ctx, againPause); err != nil {
				return fmt.Errorf("pod %s: its entities did not leave in time: %w", p.name, err)
			}
		}
	}
}

// againPause is the wait before entities are asked again to leave memory.
const againPause = 20 * time.Millisecond

func (p *Pod) askToLeave(s *slot) *actor.Promise {
	reply := p.pods.sys.NewPromise()
	if err := s.ref.TryPost(actor.Message{Payload: entity.Passivate(), Reply: reply}); err != nil {
		reply.Fail(err)
	}
	return reply
}

// resident returns the slots for which want holds, by name.
func (p *Pod) resident(want func(*slot) bool) []*slot {
	all := p.slots.all(want)
	slices.SortFunc(all, func(a, b *slot) int { return strings.Compare(a.name, b.name) })
	return all
}
