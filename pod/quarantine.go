package pod

import (
	"maps"
	"slices"
	"sync"
)

// Quarantined is an entity whose record cannot be read. It is blocked until it
// is deleted, or read by a program that can. An empty Name stands for the pod's
// definition; such a pod is read-only until it is declared again.
type Quarantined struct {
	Pod, Name string
	Reason    error
}

// quarantine lists an entity, or with nil takes it off.
func (p *Pod) quarantine(name string, reason error) {
	p.unread.set(name, blocked{reason: reason})
}

// suspect lists an entity whose record a reader could not read. Whether it is
// blocked, its own activation says.
func (p *Pod) suspect(name string, reason error) {
	p.unread.set(name, blocked{reason: reason, suspected: true})
}

// readable takes an entity off the list that only readers had put there. A good
// record says nothing about what else its activation may have met.
func (p *Pod) readable(name string) {
	q := &p.unread
	q.mu.Lock()
	defer q.mu.Unlock()
	if b, is := q.m[name]; is && b.suspected {
		delete(q.m, name)
	}
}

// quarantineList names the entities that were found to be unreadable.
type quarantineList struct {
	mu sync.Mutex
	m  map[string]blocked
}

type blocked struct {
	reason    error
	suspected bool
}

// set lists an entity; without a reason it takes it off.
func (q *quarantineList) set(name string, b blocked) {
	q.mu.Lock()
	defer q.mu.Unlock()
	old, is := q.m[name]
	switch {
	case b.reason == nil:
		delete(q.m, name)
	case is && b.suspected && !old.suspected: // the activation knows better
	case q.m == nil:
		q.m = map[string]blocked{name: b}
	default:
		q.m[name] = b
	}
}

// Quarantined returns the entities of all pods that were found to be
// unreadable, by pod and name. Lazy pods find out when an entity is first read
// or listed.
func (p *Pods) Quarantined() []Quarantined {
	var out []Quarantined
	for _, pod := range p.All() {
		pod.unread.mu.Lock()
		for _, name := range slices.Sorted(maps.Keys(pod.unread.m)) {
			out = append(out, Quarantined{Pod: pod.name, Name: name, Reason: pod.unread.m[name].reason})
		}
		pod.unread.mu.Unlock()
	}
	return out
}
