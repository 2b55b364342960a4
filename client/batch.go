package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Item is one message of a batch.
type Item struct {
	// Entity is whom the message is for, with its conditions and its key. Its
	// timeout is not used.
	Entity Entity
	// Message is the message's name.
	Message string
	// Body is the message's; nil stands for a message without fields.
	Body any
}

// Answer is what became of one message of a batch.
type Answer struct {
	// Status is what the answer's would have been.
	Status int
	// ETag is that of the revision, if the entity has acknowledged one.
	ETag string
	// Body is the handler's answer.
	Body json.RawMessage
	// Omitted says that the body is left out, since the answers before it have as
	// many bytes as those of a batch may have. What the message did is done.
	Omitted bool
	// Err is why there is none, an *Error; else nil.
	Err error
}

// Into decodes the handler's answer, or returns why there is none.
func (a *Answer) Into(v any) error {
	switch {
	case a.Err != nil:
		return a.Err
	case a.Omitted:
		return errOmitted
	}
	x := answer{body: a.Body}
	return x.into(v)
}

var errOmitted = errors.New("the server left the answer out: those before it have as many bytes as the answers of a batch may have; the message was handled")

type batchItem struct {
	Pod  string          `json:"pod"`
	Name string          `json:"name"`
	Type string          `json:"type"`
	Body json.RawMessage `json:"body,omitempty"`
	If   *batchCondition `json:"if,omitempty"`
	ID   string          `json:"id,omitempty"`
}

type batchCondition struct {
	Match     string `json:"match,omitempty"`
	NoneMatch string `json:"noneMatch,omitempty"`
	Condition string `json:"condition,omitempty"`
}

// Batch sends up to 1,000 messages in one request. They are handled side by
// side, those to one entity in their order. The answers come in the order of the
// messages; each fails alone. The timeout is that of the whole batch: what is not
// sent when it is over fails with TimedOut, and has changed nothing. 0 is the
// server's.
func (c *Client) Batch(ctx context.Context, items []Item, timeout time.Duration) ([]Answer, error) {
	list := make([]batchItem, len(items))
	for n, i := range items {
		var err error
		if list[n], err = i.encode(); err != nil {
			return nil, fmt.Errorf("message %d of the batch, to %s: %w", n, i.Entity, err)
		}
	}
	body, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("the batch: %w", err)
	}
	r := request{method: http.MethodPost, path: "/v1/batch", body: body, bodyType: jsonType, repeats: always} // all have keys
	if timeout > 0 {
		r.ask("timeout", timeout.String())
	}
	a, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	var result struct {
		Items []struct {
			Status  int             `json:"status"`
			ETag    string          `json:"etag"`
			Body    json.RawMessage `json:"body"`
			Problem *problem        `json:"problem"`
			Omitted bool            `json:"omitted"`
		} `json:"items"`
	}
	if err := a.into(&result); err != nil {
		return nil, err
	}
	out := make([]Answer, len(result.Items))
	for n, i := range result.Items {
		out[n] = Answer{Status: i.Status, ETag: i.ETag, Body: i.Body, Omitted: i.Omitted}
		if i.Problem != nil {
			out[n].Err = i.Problem.failure()
		}
	}
	return out, nil
}

func (i Item) encode() (batchItem, error) {
	e := i.Entity
	b := batchItem{Pod: e.pod, Name: e.name, Type: i.Message, ID: e.key}
	if b.ID == "" {
		b.ID = newKey()
	}
	var cond batchCondition
	cond.Condition = e.where
	switch {
	case e.match != nil:
		cond.Match = quoted(e.match)
	case e.there:
		cond.Match = "*"
	}
	switch {
	case e.noneMatch != nil:
		cond.NoneMatch = quoted(e.noneMatch)
	case e.absent:
		cond.NoneMatch = "*"
	}
	if cond != (batchCondition{}) {
		b.If = &cond
	}
	if i.Body == nil {
		return b, nil
	}
	var err error
	b.Body, err = json.Marshal(i.Body)
	return b, err
}
