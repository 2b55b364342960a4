package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/client"
)

type topCommand struct {
	Pod      string        `arg:"" optional:"" complete:"pods" help:"The pod; left out, all pods."`
	Interval time.Duration `short:"i" default:"2s" placeholder:"DURATION" help:"How long it counts before it shows what there was (${default})."`
	Number   int           `short:"n" default:"10" placeholder:"N" help:"How many entities it shows (${default})."`
	Once     bool          `help:"Show it once, and end. So it is away from a terminal, and with -o json, yaml or jsonl."`
	ServerFlags
	OutputFlag
}

// Help says more than the list of flags.
func (topCommand) Help() string {
	return "It counts the changes that a watch shows, and reads the server's figures.\n\n" +
		Examples(
			"twinsrv top                                    # until Ctrl-C",
			"twinsrv top rooms --interval 10s --number 30",
			"twinsrv top --once",
			"twinsrv top -o json | jq .changesPerSecond",
		)
}

// sample is what there was in a span of time.
type sample struct {
	Seconds          float64      `json:"seconds"`
	Changes          int          `json:"changes"`
	ChangesPerSecond float64      `json:"changesPerSecond"`
	Missed           bool         `json:"missed,omitempty"` // changes are missing: the connection was lost, or there was a gap
	Pods             []busyPod    `json:"pods"`
	Entities         []busyEntity `json:"entities"`
	Server           figures      `json:"server"`
}

type busyPod struct {
	Pod              string  `json:"pod"`
	Changes          int     `json:"changes"`
	ChangesPerSecond float64 `json:"changesPerSecond"`
}

type busyEntity struct {
	Pod              string  `json:"pod"`
	Name             string  `json:"name"`
	Changes          int     `json:"changes"`
	ChangesPerSecond float64 `json:"changesPerSecond"`
	Type             string  `json:"type"` // of the last one
}

// Run shows samples.
func (c *topCommand) Run(ctx context.Context) error {
	switch {
	case c.Interval < 100*time.Millisecond:
		return Usagef("--interval must be at least 100ms")
	case c.Number < 1:
		return Usagef("--number must be at least 1")
	}
	return c.stream(ctx, func(ctx context.Context, s *Session) error {
		err := c.show(ctx, s)
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return ended()
		}
		return err
	})
}

func (c *topCommand) show(ctx context.Context, s *Session) error {
	w := watchCommand{}
	if c.Pod != "" {
		w.Pod = &c.Pod
	}
	if err := w.there(ctx, s); err != nil {
		return err
	}
	t := newTally()
	end := t.watch(ctx, s, w.options())
	defer end()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.failed:
		return t.failure()
	case <-t.begun:
	}
	before, err := readFigures(ctx, s)
	if err != nil {
		return err
	}
	once := c.Once || !c.Table() || !isTerminal(os.Stdout)
	screen := &screen{out: os.Stdout}
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.failed:
			return t.failure()
		case <-tick.C:
		}
		after, err := readFigures(ctx, s)
		if err != nil && once {
			return err
		}
		now := t.take(c.Number)
		if err == nil { // else the next ones count from the last that were had
			now.Server = after.since(before)
			before = after
		}
		if once {
			return c.Print(now, func(w io.Writer) error { return now.print(w, s.shown) })
		}
		if err := screen.draw(func(w io.Writer) error { return now.print(w, s.shown) }); err != nil {
			return err
		}
	}
}

// tally counts changes.
type tally struct {
	begun  chan struct{} // closed when it counts
	failed chan struct{} // closed when there is nothing more to count

	mu       sync.Mutex
	began    time.Time
	entities map[[2]string]*busyEntity
	missed   bool
	err      error
}

func newTally() *tally {
	return &tally{begun: make(chan struct{}), failed: make(chan struct{}), entities: make(map[[2]string]*busyEntity)}
}

// watch counts what a watch shows, until end is called or the watch fails.
func (t *tally) watch(ctx context.Context, s *Session, o client.WatchOptions) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	o.Lost = func(error) { t.miss() }
	o.Connected = sync.OnceFunc(t.begin)
	go func() {
		defer close(gone)
		for e, err := range client.Watch[json.RawMessage](ctx, s.Client, o) {
			switch {
			case err != nil:
				t.fail(err)
				return
			case e.Kind == client.Gap:
				t.miss()
			default:
				t.count(&e)
			}
		}
	}()
	return func() { cancel(); <-gone }
}

// begin begins to count.
func (t *tally) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began = time.Now()
	close(t.begun)
}

func (t *tally) count(e *client.Event[json.RawMessage]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := [2]string{e.Pod, e.Name}
	b := t.entities[key]
	if b == nil {
		b = &busyEntity{Pod: e.Pod, Name: e.Name}
		t.entities[key] = b
	}
	b.Changes++
	b.Type = e.Type
}

func (t *tally) miss() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.missed = true
}

func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	close(t.failed)
}

func (t *tally) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// take returns what was counted, with so many entities, and begins anew.
func (t *tally) take(most int) sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	s := sample{Seconds: round(now.Sub(t.began).Seconds()), Missed: t.missed, Pods: []busyPod{}, Entities: []busyEntity{}}
	pods := make(map[string]int)
	for _, b := range t.entities {
		s.Changes += b.Changes
		pods[b.Pod] += b.Changes
		b.ChangesPerSecond = round(float64(b.Changes) / s.Seconds)
		s.Entities = append(s.Entities, *b)
	}
	for pod, n := range pods {
		s.Pods = append(s.Pods, busyPod{pod, n, round(float64(n) / s.Seconds)})
	}
	s.ChangesPerSecond = round(float64(s.Changes) / s.Seconds)
	slices.SortFunc(s.Pods, func(a, b busyPod) int {
		return cmp.Or(cmp.Compare(b.Changes, a.Changes), cmp.Compare(a.Pod, b.Pod))
	})
	slices.SortFunc(s.Entities, func(a, b busyEntity) int {
		return cmp.Or(cmp.Compare(b.Changes, a.Changes), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Name, b.Name))
	})
	s.Entities = s.Entities[:min(most, len(s.Entities))]
	t.began, t.missed = now, false
	clear(t.entities)
	return s
}

// round keeps what a rate is good for.
func round(x float64) float64 { return math.Round(x*100) / 100 }
