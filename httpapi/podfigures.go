package httpapi

import (
	"sync"
	"sync/atomic"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// PodFigures count what has happened in a pod since the server's start, so that
// the difference between two of them is a rate.
type PodFigures struct {
	// Changes are those of the pod's entities, their deletions included.
	Changes uint64 `json:"changes"`
	// DeadLetters are messages to the pod's entities that reached nobody.
	DeadLetters uint64 `json:"deadLetters"`
}

// changeCounts counts the changes of each pod. It is safe for concurrent use.
type changeCounts struct {
	cancel func()

	mu    sync.RWMutex
	byPod map[string]*atomic.Uint64
}

func (n *changeCounts) listen(pods *pod.Pods) {
	n.byPod = make(map[string]*atomic.Uint64)
	n.cancel = pods.OnChange(func(c persist.Change) { n.of(c.Key.Pod).Add(1) })
}

func (n *changeCounts) of(pod string) *atomic.Uint64 {
	n.mu.RLock()
	count := n.byPod[pod]
	n.mu.RUnlock()
	if count != nil {
		return count
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if count = n.byPod[pod]; count == nil {
		count = new(atomic.Uint64)
		n.byPod[pod] = count
	}
	return count
}

// figuresOf counts what has happened in a pod.
func (a *API) figuresOf(pod string) *PodFigures {
	return &PodFigures{Changes: a.changes.of(pod).Load(), DeadLetters: a.pods.DeadLetters(pod)}
}
