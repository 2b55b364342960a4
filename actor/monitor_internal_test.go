package actor

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// still is a dispatcher that does nothing, with n workers in the same turn for
// ever.
func still(n int) (*dispatcher, *bytes.Buffer) {
	var out bytes.Buffer
	d := &dispatcher{base: n, log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	var list []*worker
	for range n {
		w := &worker{d: d, unpark: make(chan struct{}, 1)}
		w.turns.Store(2) // in a turn: not parked
		list = append(list, w)
	}
	d.workers.Store(&list)
	d.monitor.init(d)
	d.closed = true // so that it does not grow
	return d, &out
}

func TestTheMonitorWarnsOnlyOfWhatBlocksForLongAndOnceAMinute(t *testing.T) {
	d, out := still(2)
	m := &d.monitor
	warnings := func() int { return strings.Count(out.String(), "level=WARN") }
	m.look(true)
	for range blockedLooks - 1 {
		m.look(false)
	}
	require.Zero(t, warnings(), "a busy machine looks like this")
	require.Contains(t, out.String(), "level=DEBUG")
	for range 10 * blockedLooks {
		m.look(false)
	}
	require.Equal(t, 1, warnings())
	require.Contains(t, out.String(), "handlers=2")
	m.warned = m.warned.Add(-warnPeriod)
	m.look(false)
	m.look(false)
	require.Equal(t, 2, warnings())

	// Turns that end are no blocked handlers, however busy.
	m.warned = time.Time{}
	for range 10 * blockedLooks {
		for _, w := range *d.workers.Load() {
			w.turns.Add(2)
		}
		m.look(false)
	}
	for range blockedLooks - 1 {
		m.look(false)
	}
	require.Equal(t, 2, warnings(), "and what stood still before does not count")
}
