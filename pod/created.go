package pod

import (
	"slices"

	"github.com/twinsrv/twinsrv/actor"
)

// CreatedChild says that an entity's life has begun, durably.
type CreatedChild struct {
	Pod, Name string
	Life      uint64
}

// creationWatcher has one of the two.
type creationWatcher struct {
	pod string // empty: of every pod
	f   func(CreatedChild)
	ref *actor.Ref
}

// OnCreated calls f when an entity of any pod has been created, on the entity's
// turn, so f must not block. cancel ends that. An actor hears of the entities of
// one pod as CreatedChild when it sends actor.Subscribe to the pod's manager.
func (p *Pods) OnCreated(f func(CreatedChild)) (cancel func()) {
	w := &creationWatcher{f: f}
	p.changeCreationWatchers(func(list []*creationWatcher) []*creationWatcher { return append(list, w) })
	return func() {
		p.changeCreationWatchers(func(list []*creationWatcher) []*creationWatcher {
			return slices.DeleteFunc(list, func(x *creationWatcher) bool { return x == w })
		})
	}
}

// subscribe has an actor told of the pod's creations, or no longer.
func (p *Pod) subscribe(r *actor.Ref, on bool) {
	if r == nil {
		return
	}
	p.pods.changeCreationWatchers(func(list []*creationWatcher) []*creationWatcher {
		list = slices.DeleteFunc(list, func(x *creationWatcher) bool {
			return x.ref != nil && (x.ref.Stopped() || x.ref == r && x.pod == p.name)
		})
		if on {
			list = append(list, &creationWatcher{pod: p.name, ref: r})
		}
		return list
	})
}

func (p *Pods) changeCreationWatchers(f func([]*creationWatcher) []*creationWatcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.creation = f(slices.Clone(p.creation))
}

func (p *Pod) created(c CreatedChild) {
	p.pods.mu.RLock()
	watchers := p.pods.creation
	p.pods.mu.RUnlock()
	for _, w := range watchers {
		switch {
		case w.ref != nil && w.pod == p.name && !w.ref.Stopped():
			_ = w.ref.Tell(c) // one whose mailbox is full misses it
		case w.f != nil:
			p.pods.tellCreation(w, c)
		}
	}
}

// tellCreation keeps a watcher that panics from harming the entity.
func (p *Pods) tellCreation(w *creationWatcher, c CreatedChild) {
	defer func() {
		if r := recover(); r != nil {
			p.sys.Logger().Error("a watcher of creations panicked", "entity", c.Pod+"/"+c.Name, "panic", r)
		}
	}()
	w.f(c)
}
