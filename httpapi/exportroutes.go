package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// Line is one line of an export, and of an import: the definition of a pod, an
// entity, or the end.
type Line struct {
	Pod string `json:"pod,omitempty"`
	// Definition stands in the line of a pod, which comes before its entities.
	Definition *pod.Definition `json:"definition,omitempty"`

	Name     string          `json:"name,omitempty"`
	Life     uint64          `json:"life,omitempty"`
	Revision uint64          `json:"revision,omitempty"`
	Changed  *time.Time      `json:"changed,omitempty"`
	State    json.RawMessage `json:"state,omitempty"`
	// Quarantined stands in place of the state of an entity that cannot be read.
	Quarantined string `json:"quarantined,omitempty"`

	// Cursor is where an export goes on behind this line.
	Cursor string `json:"cursor,omitempty"`
	// End stands in the last line, with the numbers of entities.
	End      bool `json:"end,omitempty"`
	Entities int  `json:"entities,omitempty"`
	Skipped  int  `json:"skipped,omitempty" doc:"entities that are quarantined"`
}

const (
	// exportPage is how many entities are read at a time.
	exportPage = 500
	// linePart is how many bytes of lines a client has its time to receive.
	linePart = 64 << 10
)

// getExport streams the entities of pods by pod and name, as they are
// acknowledged when they are read. An export without the line of its end is not
// whole; it goes on with the cursor of the last line that came.
func getExport(c *call) error {
	o, err := c.page()
	if err != nil {
		return err
	}
	pods, err := c.thePods()
	if err != nil {
		return err
	}
	from, name, _ := strings.Cut(o.After, "/")
	w := &lineWriter{call: c, control: http.NewResponseController(c.w)}
	end := Line{End: true}
	for _, p := range pods {
		after := ""
		switch {
		case p.Name() < from:
			continue
		case p.Name() == from:
			after = name
		}
		if p.Name() != from {
			def := p.Definition()
			w.write(Line{Pod: p.Name(), Definition: &def, Cursor: c.cursor(p.Name() + "/")})
		}
		err := c.exportPod(w, p, after, &end)
		switch {
		case err != nil && !w.begun:
			return err
		case err != nil:
			c.api.log.WarnContext(c.r.Context(), "an export was cut off", "pod", p.Name(), "error", err)
			panic(http.ErrAbortHandler) // so that the client sees no end
		}
	}
	w.write(end)
	_ = w.flush()
	return nil
}

func (c *call) exportPod(w *lineWriter, p *pod.Pod, after string, end *Line) error {
	for {
		page, err := c.exportPage(p, after)
		if err != nil {
			return err
		}
		for _, i := range page.Items {
			l := Line{Pod: p.Name(), Name: i.Name, Cursor: c.cursor(p.Name() + "/" + i.Name)}
			if i.Err != nil {
				l.Quarantined = i.Err.Error()
				end.Skipped++
			} else {
				changed := i.View.Changed.UTC()
				l.Life, l.Revision, l.Changed = i.View.Life, i.View.Revision, &changed
				if l.State, err = i.View.JSON(); err != nil {
					return err
				}
				end.Entities++
			}
			w.write(l)
			if w.full() {
				if err := w.flush(); err != nil {
					return err
				}
			}
		}
		if err := w.flush(); err != nil {
			return err
		}
		if after = page.Next; after == "" {
			return c.r.Context().Err()
		}
	}
}

func (c *call) exportPage(p *pod.Pod, after string) (pod.Page, error) {
	ctx, cancel := c.api.pods.System().WithTimeout(c.r.Context(), maxTimeout)
	defer cancel()
	return p.List(ctx, persist.ListOptions{After: after, Limit: exportPage})
}

// thePods returns the pods that the query names, by name and each once; all if
// it names none.
func (c *call) thePods() ([]*pod.Pod, error) {
	q, err := c.query()
	if err != nil {
		return nil, err
	}
	if !q.Has("pods") {
		return c.api.pods.All(), nil
	}
	names := strings.Split(q.Get("pods"), ",")
	slices.Sort(names)
	var pods []*pod.Pod
	for _, name := range slices.Compact(names) {
		p, err := c.podNamed(name)
		if err != nil {
			return nil, err
		}
		pods = append(pods, p)
	}
	return pods, nil
}

// podNamed returns a pod whose name comes from outside.
func (c *call) podNamed(name string) (*pod.Pod, error) {
	if err := (target{pod: name}).checkPod(); err != nil {
		return nil, err
	}
	return c.api.pods.Pod(name)
}

// lineWriter sends lines of JSON, each part of them within its time.
type lineWriter struct {
	call    *call
	control *http.ResponseController
	buf     []byte
	failed  error
	begun   bool

	mu   sync.Mutex
	calm bool // the client has all the time it wants; see hurry
}

// begin sends the header, unless it is sent. Before that a failure can still be
// answered as one. The server's own timeouts, which are for short requests, hold
// no more.
func (w *lineWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	_ = w.control.SetReadDeadline(time.Time{}) // a recorder of a test has none
	h := w.call.w.Header()
	h.Set("Content-Type", linesType)
	h.Set("Cache-Control", "no-store")
	w.call.w.WriteHeader(http.StatusOK)
}

// write adds a line. What fails is said by the next flush.
func (w *lineWriter) write(v any) {
	line, err := encode(v)
	if err != nil {
		w.failed = err
		return
	}
	w.buf = append(append(w.buf, line...), '\n')
}

func (w *lineWriter) full() bool { return len(w.buf) >= 64<<10 }

// flush sends the lines that were added.
func (w *lineWriter) flush() error {
	if w.failed != nil {
		return w.failed
	}
	w.begin()
	for data := w.buf; len(data) > 0 && w.failed == nil; {
		part := data[:min(len(data), linePart)]
		w.timed()
		_, w.failed = w.call.w.Write(part)
		data = data[len(part):]
	}
	if w.timed(); w.failed == nil {
		w.failed = w.control.Flush()
	}
	if w.buf = w.buf[:0]; cap(w.buf) > 1<<20 {
		w.buf = nil
	}
	return w.failed
}

// timed gives the client its time to receive the next part.
func (w *lineWriter) timed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var until time.Time
	if !w.calm {
		until = time.Now().Add(w.call.api.patience)
	}
	_ = w.control.SetWriteDeadline(until) // see begin
}

// hurry gives the client its time to receive what is being sent, and what will
// be. Before, it may be busy with sending.
func (w *lineWriter) hurry(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calm = false
	_ = w.control.SetWriteDeadline(time.Now().Add(d))
}

// streaming is a context that ends with the request, or when the server ends its
// streams.
func (c *call) streaming() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.r.Context())
	stop := context.AfterFunc(c.api.ending, cancel)
	return ctx, func() { stop(); cancel() }
}
