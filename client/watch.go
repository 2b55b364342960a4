package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// WatchOptions says what a watch shows. The zero value shows all changes of all
// pods from now on.
type WatchOptions struct {
	// Pods are those whose changes are shown; nil means all.
	Pods []string
	// Name, if not empty, is that of the one entity of the one pod of Pods.
	Name string
	// Filter is an expression in CEL: only changes of entities for which it
	// holds, or no longer holds, are shown. Empty shows all.
	Filter string
	// Resume begins the watch behind After, the ID of an event, or 0 for all that
	// the history keeps.
	Resume bool
	After  uint64
	// Lost, if not nil, is told why a connection was lost, before the watch
	// connects anew.
	Lost func(error)
	// Connected, if not nil, is told each time that the server has begun to
	// answer: what is changed from then on is shown.
	Connected func()
}

// EventKind says what an Event tells.
type EventKind string

// The kinds of events.
const (
	// Changed: the entity was created or changed.
	Changed EventKind = "changed"
	// Deleted: the entity's life has ended.
	Deleted EventKind = "deleted"
	// Left: by this change the filter holds for the entity no longer.
	Left EventKind = "left"
	// Gap: changes from one position to another may be missing. What was known
	// from the watch may be out of date, and is to be read anew.
	Gap EventKind = "gap"
)

// Event is one thing that a watch shows.
type Event[S any] struct {
	Kind EventKind
	// ID is where another watch goes on behind this event.
	ID uint64

	Pod      string    `json:"pod"`
	Name     string    `json:"name"`
	Life     uint64    `json:"life"`
	Revision uint64    `json:"revision"`
	Position uint64    `json:"position"` // orders all changes of the store
	Changed  time.Time `json:"changed"`
	// Type is the message that led to the change, or the event of an event-sourced
	// entity, or "deleted".
	Type string `json:"type"`
	// State is the state that the change led to; nil where it is not told.
	State *S `json:"state"`
	// Raised is the event of an event-sourced entity.
	Raised json.RawMessage `json:"event"`
	// Unsure says that it is no longer known whether the filter held before:
	// whoever does not know the entity passes over it.
	Unsure bool `json:"unsure"`

	// Of a gap: the positions that may be missing, and why.
	From   uint64 `json:"from"`
	To     uint64 `json:"to"`
	Reason string `json:"reason"`
}

// ETag names the revision that the event is of.
func (e *Event[S]) ETag() ETag { return ETag{e.Life, e.Revision} }

// Watch goes through changes in the order in which they became durable, each
// once. A connection that is lost is made again where it ended, with growing
// pauses, for as long as the context lasts: what the server no longer has then
// is a Gap. An error is the last that comes: the context's, or one that no repeat
// would mend. A State that does not fit S is such an error; json.RawMessage takes
// all.
func Watch[S any](ctx context.Context, c *Client, o WatchOptions) iter.Seq2[Event[S], error] {
	return func(yield func(Event[S], error) bool) {
		w := &watch{c: c, o: o}
		if o.Resume {
			w.lastID = strconv.FormatUint(o.After, 10)
		}
		r, err := w.request()
		for err == nil {
			err = w.connected(ctx, r, func(e serverEvent) (bool, error) {
				event, err := parseEvent[S](e, w.lastID)
				return err == nil && yield(event, nil), err
			})
			if errors.Is(err, errEnough) {
				return
			}
			var reason *lostError
			if errors.As(err, &reason) {
				err = w.pause(ctx, reason)
			}
		}
		var none Event[S]
		yield(none, err)
	}
}

// Watch goes through the changes of the entity. See the function Watch.
func (e Entity) Watch(ctx context.Context) iter.Seq2[Event[json.RawMessage], error] {
	return Watch[json.RawMessage](ctx, e.c, WatchOptions{Pods: []string{e.pod}, Name: e.name})
}

// errEnough says that whoever watches wants no more.
var errEnough = errors.New("enough")

// lostError is a connection that may be made again.
type lostError struct{ cause error }

func (e *lostError) Error() string { return "the watch lost its connection: " + e.cause.Error() }

func (e *lostError) Unwrap() error { return e.cause }

// watch is the state of a watch between its connections.
type watch struct {
	c      *Client
	o      WatchOptions
	lastID string // empty: from now on
	tries  int    // since something came
}

func (w *watch) request() (request, error) {
	r := request{method: http.MethodGet, path: "/v1/watch", repeats: always}
	switch {
	case w.o.Name != "" && len(w.o.Pods) != 1:
		return r, errors.New("a watch of one entity names its pod, and no other")
	case w.o.Name != "":
		r.path = w.c.Entity(w.o.Pods[0], w.o.Name).path() + "/watch"
	case len(w.o.Pods) == 1:
		r.path = podPath(w.o.Pods[0]) + "/watch"
	case w.o.Pods != nil:
		r.ask("pods", strings.Join(w.o.Pods, ","))
	}
	if w.o.Filter != "" {
		r.ask("filter", w.o.Filter)
	}
	r.set("Accept", eventsType)
	return r, nil
}

// connected makes a connection and hands on what comes. It fails with a
// *lostError when another may do better.
func (w *watch) connected(ctx context.Context, r request, take func(serverEvent) (more bool, err error)) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if w.lastID != "" {
		r.set("Last-Event-ID", w.lastID)
	}
	silent := fmt.Errorf("nothing came for %s", w.c.cfg.Silence)
	alarm := time.AfterFunc(w.c.cfg.Silence, func() { cancel(silent) })
	defer alarm.Stop()
	resp, err := w.c.send(inner, &r, nil)
	if err != nil {
		if ctx.Err() == nil && (r.again(err) || errors.Is(context.Cause(inner), silent)) {
			return &lostError{err}
		}
		return err
	}
	defer resp.Body.Close()
	if w.o.Connected != nil {
		w.o.Connected()
	}
	events := eventReader{in: bufio.NewReader(resp.Body), lastID: w.lastID, read: func() { alarm.Reset(w.c.cfg.Silence) }}
	for {
		e, err := events.next()
		w.lastID = events.lastID
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if cause := context.Cause(inner); cause != nil {
				err = cause
			}
			return &lostError{err}
		case e.kind == "cut":
			return cut(e)
		}
		w.tries = 0
		alarm.Stop() // whoever watches takes his time
		more, err := take(e)
		switch {
		case err != nil:
			return err
		case !more:
			return errEnough
		}
		alarm.Reset(w.c.cfg.Silence)
	}
}

// cut is the error of a stream that the server has ended.
func cut(e serverEvent) error {
	var c struct {
		Reason Code   `json:"reason"`
		Detail string `json:"detail"`
	}
	_ = json.Unmarshal([]byte(e.data), &c) // what does not fit says nothing
	err := &Error{Code: c.Reason, Detail: c.Detail}
	switch c.Reason {
	case "slow", Stopping, StoreUnavailable, Overloaded, Busy, OutcomeUnknown:
		return &lostError{err}
	}
	return err
}

// pause waits before the next connection.
func (w *watch) pause(ctx context.Context, reason *lostError) error {
	if w.o.Lost != nil {
		w.o.Lost(reason.cause)
	}
	d := backoff(w.c.cfg.Pause, w.c.cfg.MaxPause, w.tries)
	w.tries++
	var e *Error
	if errors.As(reason, &e) {
		d = max(d, e.RetryAfter)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func parseEvent[S any](e serverEvent, id string) (Event[S], error) {
	event := Event[S]{Kind: EventKind(e.kind)}
	if err := json.Unmarshal([]byte(e.data), &event); err != nil {
		return event, fmt.Errorf("the event %s of %s does not fit a %T: %w", e.kind, id, event, err)
	}
	if id != "" {
		var err error
		if event.ID, err = strconv.ParseUint(id, 10, 64); err != nil {
			return event, fmt.Errorf("the event's id: %w", err)
		}
	}
	return event, nil
}
