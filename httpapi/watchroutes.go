package httpapi

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/pod"
)

// watchAll streams the changes of pods: of those that the query names, or of all.
func watchAll(c *call) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	var r pod.WatchRequest
	if q.Has("pods") {
		r.Pods = strings.Split(q.Get("pods"), ",")
		for _, name := range r.Pods {
			if _, err := c.podNamed(name); err != nil {
				return err
			}
		}
	}
	return c.watch(r)
}

func watchPod(c *call) error {
	p, err := c.thePod()
	if err != nil {
		return err
	}
	return c.watch(pod.WatchRequest{Pods: []string{p.Name()}})
}

func watchEntity(c *call) error {
	p, err := c.theEntity()
	if err != nil {
		return err
	}
	return c.watch(pod.WatchRequest{Pods: []string{p.Name()}, Name: c.entity})
}

// watch streams what a request shows, narrowed by the query's filter, from the
// position on that the query or Last-Event-ID names, or else from now on.
func (c *call) watch(r pod.WatchRequest) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	after := q.Get("after")
	if last := c.r.Header.Get(lastEventHeader); last != "" {
		after = last // the later word: whoever connects again sends the same query
	} else if q.Has("after") && after == "" {
		return badPosition()
	}
	if after != "" {
		r.Resume = true
		if r.After, err = strconv.ParseUint(after, 10, 64); err != nil {
			return badPosition()
		}
	}
	leave, err := c.api.watching.enter(q.Get("filter")) // before it takes memory
	if err != nil {
		return err
	}
	defer leave()
	if q.Has("filter") {
		f, err := compiled("filter", q.Get("filter"))
		if err != nil {
			return err
		}
		r.Match = pod.Matching(f)
	}
	w, err := c.api.pods.Watch(c.r.Context(), r)
	if err != nil {
		return err
	}
	defer w.Close()
	c.stream(w, r.Resume)
	return nil
}

func badPosition() error {
	return refuse(CodeBadQuery, "after and "+lastEventHeader+" are the id of an event of a watch, or 0 for all that the history keeps")
}

// streamAhead is how many events are read ahead of those that are being sent. All
// others stay where the watch reads them.
const streamAhead = 8

// cutData is the data of a cut event: the stream ends, and why. A watch goes on
// behind the last event's id.
type cutData struct {
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// stream sends the events of a watch until the client goes, the watch or the
// server ends, or the client is too slow; if it can, it says so with its last
// event.
func (c *call) stream(w *pod.Watch, resumed bool) {
	ctx, cancel := c.streaming()
	s := c.eventStream()
	events, failed := make(chan pod.Event, streamAhead), make(chan error, 1)
	place := w.Position() // before anything is read ahead: a client resumes from what it was told
	if place > 0 || !resumed {
		s.place(place)
	}
	read := make(chan struct{})
	defer func() { cancel(); <-read }()
	go func() {
		defer close(read)
		failed <- pass(ctx, w, events)
	}()
	beats := s.beats()
	defer beats.Stop()
	for {
		if s.pending() > 0 {
			begun := time.Now()
			if s.flush() != nil {
				return
			}
			if time.Since(begun) > c.api.patience/2 {
				s.cut("slow", "the events are not being received fast enough; go on behind the last one")
				return
			}
		}
		select {
		case e := <-events:
			if c.revoked(s) {
				return
			}
			s.addAll(e, events)
			place = max(place, e.ID)
		case <-beats.C:
			if c.revoked(s) {
				return
			}
			// What the filter passed over need not be looked at again.
			if at := w.Position(); len(events) == 0 && at > place {
				place = at
				s.place(at)
			} else if s.heartbeat() != nil {
				return
			}
		case err := <-failed:
			for len(events) > 0 {
				s.addAll(<-events, events)
			}
			s.ended(err)
			return
		}
	}
}

// revoked cuts a stream whose token has been taken back since it began. It is
// asked before anything is sent.
func (c *call) revoked(s *eventStream) bool {
	known := c.api.tokens.Load()
	if known == s.known {
		return false
	}
	s.known = known
	if c.api.authorize(c.op, c.r) == nil {
		return false
	}
	s.cut("unauthorized", "the server does not know the token any more")
	return true
}

// pass hands on the events of a watch until it ends.
func pass(ctx context.Context, w *pod.Watch, to chan<- pod.Event) error {
	for {
		e, err := w.Next(ctx)
		if err != nil {
			return err
		}
		select {
		case to <- e:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// addAll adds an event and those that are there behind it, as many as are sent at
// a time.
func (s *eventStream) addAll(e pod.Event, more <-chan pod.Event) {
	for {
		s.add(string(e.Kind), strconv.FormatUint(e.ID, 10), e.JSON())
		if s.pending() >= 64<<10 {
			return
		}
		select {
		case e = <-more:
		default:
			return
		}
	}
}

// place says, without an event, where the client resumes.
func (s *eventStream) place(position uint64) {
	s.buf.WriteString("id: " + strconv.FormatUint(position, 10) + "\n\n")
}

// ended says why a watch has ended, unless it is the client that went.
func (s *eventStream) ended(err error) {
	switch {
	case s.call.r.Context().Err() != nil:
	case errors.Is(err, context.Canceled), errors.Is(err, pod.ErrStopping):
		s.stopping()
	default:
		f := failureOf(err)
		s.call.api.note(s.call.r, f)
		s.cut(string(f.code), f.detail)
	}
}

func (s *eventStream) stopping() {
	s.cut("stopping", "the server is being stopped; go on behind the last event when it is back")
}

// cut ends the stream with an event that says why.
func (s *eventStream) cut(reason, detail string) {
	data, err := encode(cutData{Reason: reason, Detail: detail})
	if err != nil {
		return // two texts always have JSON
	}
	s.add("cut", "", data)
	_ = s.flush() // the client is gone if this fails
}
