package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

// FutureState is a message's answer that will come, or has.
type FutureState struct {
	ID     string `json:"id"`
	Status string `json:"status" enum:"pending,done,failed,cancelled,expired" doc:"cancelled and expired leave open whether a change was made"`
	// Pod, Name and Message say what was sent to whom.
	Pod     string    `json:"pod"`
	Name    string    `json:"name"`
	Message string    `json:"message"`
	Created time.Time `json:"created"`
	// Expires is when the future is forgotten. It is left out while it is
	// pending.
	Expires *time.Time `json:"expires,omitempty"`
	// ETag is the revision that the entity has acknowledged.
	ETag string `json:"etag,omitempty"`
	// Result is what the answer would have been, when the status is done.
	Result json.RawMessage `json:"result,omitempty"`
	// Problem is what the answer would have been otherwise.
	Problem *Problem `json:"problem,omitempty"`
}

func (f *future) state() FutureState {
	s := FutureState{ID: f.id, Status: futurePending, Pod: f.pod, Name: f.entity, Message: f.message, Created: f.created.UTC()}
	select {
	case <-f.done:
	default:
		return s
	}
	expires := f.at.Add(futureLife).UTC()
	s.Status, s.Expires, s.ETag, s.Result = f.status, &expires, f.outcome.etag, f.outcome.body
	if f.outcome.failed != nil {
		p := f.outcome.failed.problem()
		s.Problem = &p
	}
	return s
}

// endedAs is the status of a future that has ended.
func endedAs(err error, o outcome) string {
	switch {
	case errors.Is(err, patterns.ErrCancelled):
		return futureCancelled
	case errors.Is(err, actor.ErrTimeout):
		return futureExpired
	case o.failed != nil:
		return futureFailed
	}
	return futureDone
}

// respondAsync sends a message and answers with a future: at once, or when it
// has not ended within the time that the client prefers to wait. What would be
// refused without its handler is refused at once.
func (c *call) respondAsync(l letter, p preferences) error {
	if err := c.admit(l); err != nil {
		return err
	}
	f := &future{pod: c.pod, entity: c.entity, message: c.message}
	begin := func() (*patterns.Future, error) {
		return c.api.asks.Start(context.Background(), l.pod.Ref(c.entity), l.message, l.timeout) // not the request's, which ends
	}
	cond := l.message.If
	if err := c.api.futures.start(f, begin, func(v any, err error) outcome {
		c.api.metrics.asked(err)
		return outcomeOf(cond, v, err)
	}); err != nil {
		return err
	}
	if p.waits {
		c.w.Header().Add(appliedHeader, p.applied())
		if c.await(f, min(p.wait, l.timeout)) {
			c.api.futures.cancel(f) // the answer is the client's
			return c.answer(f.outcome)
		}
	}
	h := c.w.Header()
	h.Add(appliedHeader, "respond-async")
	h.Set("Location", "/v1/futures/"+f.id)
	return c.json(http.StatusAccepted, f.state())
}

// admit says why the entity, as it is now, would refuse a message, as the answer
// would be without respond-async.
func (c *call) admit(l letter) error {
	ctx, cancel := c.api.pods.System().WithTimeout(c.r.Context(), l.timeout)
	defer cancel()
	if err := l.pod.Admit(ctx, c.entity, l.message); err != nil {
		c.api.metrics.asked(err)
		return outcomeOf(l.message.If, nil, err).failed
	}
	return nil
}

// await waits until a future has ended, the time is over or the client has gone;
// it reports whether the future has ended.
func (c *call) await(f *future, d time.Duration) bool {
	ctx, cancel := c.api.pods.System().WithTimeout(c.r.Context(), d)
	defer cancel()
	select {
	case <-f.done:
		return true
	case <-ctx.Done():
		return false
	case <-c.api.ending.Done():
		return false
	}
}

func (c *call) theFuture() (*future, error) {
	f := c.api.futures.get(c.future)
	if f == nil {
		return nil, refuse(CodeNoSuchFuture, "there is no such future: it has expired, was deleted, or is of the server's run before this")
	}
	return f, nil
}

func getFuture(c *call) error {
	f, err := c.theFuture()
	if err != nil {
		return err
	}
	wait, err := c.duration("wait", 0, maxTimeout)
	if err != nil {
		return err
	}
	p, err := c.preferences()
	if err != nil {
		return err
	}
	if p.waits {
		c.w.Header().Add(appliedHeader, p.applied())
		wait = max(wait, min(p.wait, maxTimeout))
	}
	if wait > 0 {
		c.await(f, wait)
	}
	c.w.Header().Set("Cache-Control", "no-store")
	return c.json(http.StatusOK, f.state())
}

func deleteFuture(c *call) error {
	f, err := c.theFuture()
	if err != nil {
		return err
	}
	c.api.futures.cancel(f)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
