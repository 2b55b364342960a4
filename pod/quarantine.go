package pod

import (
	"maps"
	"slices"
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
	q := &p.unread
	q.mu.Lock()
	defer q.mu.Unlock()
	if reason == nil {
		delete(q.m, name)
		return
	}
	if q.m == nil {
		q.m = make(map[string]error)
	}
	q.m[name] = reason
}

// readable takes an entity off the list when it was on it.
func (p *Pod) readable(name string) {
	q := &p.unread
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.m) > 0 {
		delete(q.m, name)
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
			out = append(out, Quarantined{Pod: pod.name, Name: name, Reason: pod.unread.m[name]})
		}
		pod.unread.mu.Unlock()
	}
	return out
}
