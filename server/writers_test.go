package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// writers count entities up until they are stopped, each its own, and remember
// what was acknowledged. A write of an unknown outcome may be in the state.
type writers struct {
	p        *process
	wg       sync.WaitGroup
	stop     chan struct{}
	mu       sync.Mutex
	acked    map[int]int // by writer: the highest number that was acknowledged
	sent     map[int]int
	statuses map[int]int // how often each status came; 0: the connection broke
}

func write(p *process, n int) *writers {
	w := &writers{p: p, stop: make(chan struct{}), acked: map[int]int{}, sent: map[int]int{}, statuses: map[int]int{}}
	for i := range n {
		w.wg.Go(func() { w.write(i) })
	}
	return w
}

func entityOf(i int) string { return fmt.Sprintf("/v1/pods/docs/entities/w%d/state", i) }

func (w *writers) write(i int) {
	for n := 1; ; n++ {
		select {
		case <-w.stop:
			return
		default:
		}
		w.mu.Lock()
		w.sent[i] = n
		w.mu.Unlock()
		status, _, err := w.p.ask(http.MethodPut, entityOf(i), fmt.Sprintf(`{"n":%d,"again":%d}`, n, n))
		w.mu.Lock()
		if err != nil {
			status = 0
		}
		w.statuses[status]++
		if status == 200 || status == 201 {
			w.acked[i] = n
		}
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// count returns how often any of the statuses came.
func (w *writers) count(statuses ...int) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range statuses {
		n += w.statuses[s]
	}
	return n
}

func (w *writers) end() {
	close(w.stop)
	w.wg.Wait()
}

// check holds the state that a process serves against what was acknowledged.
func (w *writers) check(t *testing.T, p *process) {
	t.Helper()
	for i, sent := range w.sent {
		status, text, err := p.ask(http.MethodGet, entityOf(i), "")
		require.NoError(t, err)
		if w.acked[i] == 0 && status == 404 {
			continue
		}
		require.Equal(t, 200, status, text)
		var state struct{ N, Again int }
		require.NoError(t, json.Unmarshal([]byte(text), &state))
		require.GreaterOrEqual(t, state.N, w.acked[i], "an acknowledged write is lost")
		require.LessOrEqual(t, state.N, sent)
		require.Equal(t, state.N, state.Again, "half a write is there")
	}
}

// snapshot is what has been sent and acknowledged so far.
func (w *writers) snapshot() *writers {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &writers{acked: maps.Clone(w.acked), sent: maps.Clone(w.sent)}
}
