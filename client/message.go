package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Send sends an entity a message whose handler answers with a new revision. A
// nil body stands for a message without fields.
func (e Entity) Send(ctx context.Context, message string, body any) (Ack, error) {
	return Ask[Ack](ctx, e, message, body)
}

// Ask sends an entity a message and returns its handler's answer. A nil body
// stands for a message without fields.
func Ask[R any](ctx context.Context, e Entity, message string, body any) (R, error) {
	var reply R
	r, err := e.post(ctx, message, body)
	if err != nil {
		return reply, err
	}
	a, err := e.c.do(ctx, r)
	if err != nil {
		return reply, err
	}
	return reply, a.into(&reply)
}

func (e Entity) post(ctx context.Context, message string, body any) (request, error) {
	bodyType := jsonType
	if body == nil {
		bodyType = ""
	}
	return e.write(ctx, http.MethodPost, e.path()+"/messages/"+segment(message), bodyType, body)
}

// Future is the address of an answer that the server keeps until somebody asks
// for it: for 15 minutes, as long as it runs.
type Future struct {
	c  *Client
	ID string
}

// FutureState is what has become of a Future.
type FutureState struct {
	ID string `json:"id"`
	// Status is "pending", "done", "failed", "cancelled" or "expired". The last
	// two leave open whether the message was handled.
	Status  string    `json:"status"`
	Pod     string    `json:"pod"`
	Name    string    `json:"name"`
	Message string    `json:"message"`
	Created time.Time `json:"created"`
	// Expires is when the answer is forgotten; zero while it is pending.
	Expires time.Time `json:"expires"`
	// ETag is that of the revision, if the entity has acknowledged one.
	ETag   string          `json:"etag"`
	Result json.RawMessage `json:"result"`
	// Err is why there is no result, an *Error.
	Err error `json:"-"`
}

// Start sends an entity a message without waiting for its answer. What can be
// refused without the entity is refused all the same.
func (e Entity) Start(ctx context.Context, message string, body any) (Future, error) {
	r, err := e.post(ctx, message, body)
	if err != nil {
		return Future{}, err
	}
	r.set("Prefer", "respond-async")
	a, err := e.c.do(ctx, r)
	if err != nil {
		return Future{}, err
	}
	var s FutureState
	err = a.into(&s)
	return Future{c: e.c, ID: s.ID}, err
}

// Future returns the address of a future by its id.
func (c *Client) Future(id string) Future { return Future{c: c, ID: id} }

func (f Future) path() string { return "/v1/futures/" + segment(f.ID) }

// State says what has become of the future, waiting for its end up to a time of
// at most a minute; 0 does not wait. It fails with NoSuchFuture.
func (f Future) State(ctx context.Context, wait time.Duration) (FutureState, error) {
	r := request{method: http.MethodGet, path: f.path(), repeats: always}
	if wait > 0 {
		r.ask("wait", wait.String())
	}
	var s struct {
		FutureState
		Problem *problem `json:"problem"`
	}
	a, err := f.c.do(ctx, r)
	if err == nil {
		err = a.into(&s)
	}
	if s.Problem != nil {
		s.Err = s.Problem.failure()
	}
	return s.FutureState, err
}

// Cancel ends the waiting, not the message: it may be handled all the same. It
// forgets a future that has ended.
func (f Future) Cancel(ctx context.Context) error {
	_, err := f.c.do(ctx, request{method: http.MethodDelete, path: f.path()})
	return err
}

// futureWait is how long one request waits for the end of a future.
const futureWait = 30 * time.Second

// Await waits for the end of a future and returns its answer.
func Await[R any](ctx context.Context, f Future) (R, error) {
	var reply R
	for {
		s, err := f.State(ctx, futureWait)
		switch {
		case err != nil:
			return reply, err
		case s.Status == "pending":
		case s.Err != nil:
			return reply, s.Err
		case s.Status != "done":
			return reply, &Error{Code: OutcomeUnknown, Detail: "the future is " + s.Status}
		default:
			a := answer{body: s.Result}
			return reply, a.into(&reply)
		}
		if err := ctx.Err(); err != nil {
			return reply, err
		}
	}
}
