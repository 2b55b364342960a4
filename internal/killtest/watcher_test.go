package killtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// scope is what a watcher watches.
type scope struct {
	pod, name string // empty: all
	odd       bool   // only entities whose number is odd
}

func (s scope) path() string {
	p := "/v1/watch"
	switch {
	case s.name != "":
		p = "/v1/pods/" + s.pod + "/entities/" + s.name + "/watch"
	case s.pod != "":
		p = "/v1/pods/" + s.pod + "/watch"
	}
	if s.odd {
		p += "?filter=" + url.QueryEscape("state.odd")
	}
	return p
}

func (s scope) has(pod, name string) bool {
	return (s.pod == "" || s.pod == pod) && (s.name == "" || s.name == name)
}

// told is an event, as a watcher got it.
type told struct {
	kind     string
	Pod      string `json:"pod"`
	Name     string `json:"name"`
	Life     uint64 `json:"life"`
	Revision uint64 `json:"revision"`
	Position uint64 `json:"position"`
	State    *twin  `json:"state"`
	Unsure   bool   `json:"unsure"`
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	Reason   string `json:"reason"`
}

// twin is the state of the entities that are watched.
type twin struct {
	N    int  `json:"n"`
	Odd  bool `json:"odd"`
	Last bool `json:"last"`
}

// watcher is a client that is cut off over and over, by itself and by servers
// that are killed, and goes on where it was. Only its own goroutine uses it
// until that has ended.
type watcher struct {
	scope  scope
	rng    *rand.Rand
	client *http.Client
	server *atomic.Pointer[process]
	passed *atomic.Int64 // changes that were acknowledged
	most   int64         // of them, when all are
	away   int64         // it stays away until so many have passed
	lasts  int           // the last changes that it is to see

	known   bool // last is
	last    string
	start   uint64 // where it began
	events  []told
	gaps    []told
	cuts    map[string]int
	streams int
	errs    []error
}

// run watches until all last changes were seen.
func (w *watcher) run(ctx context.Context) {
	for w.lasts > 0 && len(w.errs) == 0 {
		if ctx.Err() != nil {
			w.errs = append(w.errs, fmt.Errorf("%d last changes were not seen in time; %d events, at %s", w.lasts, len(w.events), w.last))
			return
		}
		for w.passed.Load() < min(w.away, w.most) && ctx.Err() == nil {
			w.pause(ctx)
		}
		w.connect(ctx)
		if w.rng.IntN(20) == 0 {
			w.away = w.passed.Load() + w.rng.Int64N(w.most/4)
		}
	}
}

// connect reads one stream to its end, which the watcher may choose.
func (w *watcher) connect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(20+w.rng.IntN(1500))*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.Load().url+w.scope.path(), nil)
	if err != nil {
		w.errs = append(w.errs, err)
		return
	}
	if w.known {
		req.Header.Set("Last-Event-ID", w.last)
	}
	res, err := w.client.Do(req)
	if err != nil { // killed, or not there yet
		w.pause(ctx)
		return
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		if res.StatusCode < 500 {
			w.errs = append(w.errs, fmt.Errorf("behind %q: %s: %s", w.last, res.Status, text))
		}
		w.pause(ctx)
		return
	}
	w.streams++
	w.read(res.Body, w.rng.IntN(400))
}

// pause waits a little before another try.
func (w *watcher) pause(ctx context.Context) {
	select {
	case <-time.After(time.Duration(1+w.rng.IntN(20)) * time.Millisecond):
	case <-ctx.Done():
	}
}

// read takes events as a browser does: what is not whole does not count, and an
// event's id holds with it.
func (w *watcher) read(body io.Reader, most int) {
	in := bufio.NewReader(body)
	var kind, data string
	id, has := "", false
	for most > 0 && w.lasts > 0 {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			id, has = value, true
		case "event":
			kind = value
		case "data":
			data = value
		case "":
			if line != "\n" { // a comment
				continue
			}
			if has {
				w.place(id)
			}
			if kind != "" {
				w.take(kind, data)
				most--
			}
			kind, data, has = "", "", false
		}
	}
}

// place notes where to go on.
func (w *watcher) place(id string) {
	now, err := strconv.ParseUint(id, 10, 64)
	before, _ := strconv.ParseUint(w.last, 10, 64)
	if err != nil || now < before {
		w.errs = append(w.errs, fmt.Errorf("the id %q behind %q", id, w.last))
	}
	if !w.known {
		w.start = now
	}
	w.last, w.known = id, true
}

func (w *watcher) take(kind, data string) {
	e := told{kind: kind}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		w.errs = append(w.errs, fmt.Errorf("%s: %q: %w", kind, data, err))
		return
	}
	switch kind {
	case "cut":
		w.cuts[e.Reason]++
	case "gap":
		w.gaps = append(w.gaps, e)
	case "changed", "left", "deleted":
		w.events = append(w.events, e)
		if e.State != nil && e.State.Last {
			w.lasts--
		}
	default:
		w.errs = append(w.errs, fmt.Errorf("an event %q: %s", kind, data))
	}
}
